package graph

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/lang/script"
)

// load reads a script text.
func load(t *testing.T, text string) *script.Script {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	s, diags := script.Load(t.Context(), script.Sources{Path: path})
	require.False(t, diags.HasErrors(), diags.Render())
	return s
}

const orders = `
nodes:
  read_orders:
    type: file_table
    desc: Orders & more
    r:
      urls: ["in/a.csv", "in/b.csv", "sftp://me:hunter2@host/in/c.csv"]
      columns: {id: {col_type: string, csv: {col_hdr: id}}}
    w: {name: orders, fields: {id: {expression: r.id, type: string}}}
  read_items:
    type: file_table
    r:
      urls: ["in/items.csv"]
      columns: {id: {col_type: string, csv: {col_hdr: id}}}
    w: {name: items, fields: {id: {expression: r.id, type: string}}, indexes: {idx_items: unique(id)}}
  join:
    type: table_lookup_table
    start_policy: manual
    r: {table: orders}
    l: {index_name: idx_items, join_on: r.id, join_type: left, group: true}
    w: {name: joined, fields: {id: {expression: r.id, type: string}, n: {expression: count(), type: int}}}
  self:
    type: table_lookup_table
    r: {table: items}
    l: {index_name: idx_items, join_on: r.id, join_type: inner, group: false}
    w: {name: selves, fields: {id: {expression: r.id, type: string}}}
  write:
    type: table_file
    r: {table: joined}
    w:
      url_template: out/joined.csv
      columns: [{name: id, expression: r.id, type: string, csv: {header: id, format: "%s"}}]
`

func TestDOT(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, WriteDOT(&b, FromScript(load(t, orders), Options{Fields: true})))
	require.Equal(t, `digraph "s.yaml" {
  node [fontname=monospace, fontsize=11, shape=box, style=rounded];
  edge [fontname=monospace, fontsize=10];
  "r:read_orders" [label="a.csv\nand 2 more", shape=note, style=solid, tooltip="in/a.csv … sftp://me:xxxxx@host/in/c.csv (3 files)"];
  "n:read_orders" [label="read_orders\nfile_table\n→ orders\nid string", tooltip="Orders & more"];
  "r:read_items" [label="items.csv", shape=note, style=solid, tooltip="in/items.csv"];
  "n:read_items" [label="read_items\nfile_table\n→ items\nid string\nunique idx_items (id)"];
  "n:join" [label="join\ntable_lookup_table, manual\nleft, grouped: items by id\n→ joined\nid string\nn int", style="rounded,dashed", penwidth=2];
  "n:self" [label="self\ntable_lookup_table\ninner: items by id\n→ selves\nid string"];
  "n:write" [label="write\ntable_file"];
  "w:write" [label="joined.csv", shape=note, style=solid, tooltip="out/joined.csv"];
  "r:read_orders" -> "n:read_orders";
  "r:read_items" -> "n:read_items";
  "n:write" -> "w:write";
  "n:read_orders" -> "n:join";
  "n:read_items" -> "n:join" [style=dashed];
  "n:read_items" -> "n:self";
  "n:read_items" -> "n:self" [style=dashed];
  "n:join" -> "n:write";
}
`, b.String())
}

func TestSVG(t *testing.T) {
	t.Parallel()
	g := FromScript(load(t, orders), Options{})
	var a, b bytes.Buffer
	require.NoError(t, WriteSVG(&a, g))
	require.NoError(t, WriteSVG(&b, g))
	require.Equal(t, a.String(), b.String())
	require.NoError(t, wellFormed(a.String()))
	for _, want := range []string{">read_orders<", ">→ joined<", ">left, grouped: items by id<", `class="manual"`,
		`class="edge lookup"`, "Orders &amp; more", ">joined.csv<"} {
		require.Contains(t, a.String(), want)
	}
	require.NotContains(t, a.String(), "hunter2")
}

// Gates stand between what they show and who waits.
func TestGates(t *testing.T) {
	t.Parallel()
	text := strings.Replace(orders, "w: {name: items,",
		"w: {name: items, approval: {by: [sales, boss], message: Right?, answers: {cutoff: {type: int, default: 1}}},",
		1)
	var dot, svg bytes.Buffer
	g := FromScript(load(t, text), Options{})
	require.NoError(t, WriteDOT(&dot, g))
	for _, want := range []string{`"g:items" [label="approval items\nby sales or boss\n? cutoff int", shape=hexagon, ` +
		`style=solid, tooltip="Right?"];`,
		`"n:read_items" -> "g:items" [style=dotted];`, `"g:items" -> "n:join" [style=dotted];`,
		`"g:items" -> "n:self" [style=dotted];`} {
		require.Contains(t, dot.String(), want)
	}
	require.NoError(t, WriteSVG(&svg, g))
	require.NoError(t, wellFormed(svg.String()))
	require.Contains(t, svg.String(), `class="gate"`)
}

func wellFormed(text string) error {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestHostileNames(t *testing.T) {
	t.Parallel()
	v := &Vertex{ID: "n:<&\"\x00\\n", Kind: Step, Title: "<script>\x01]]>\"'",
		Lines: []string{strings.Repeat("long ", 40)}}
	g := Graph{Title: "</title>", Vertices: []*Vertex{v}}
	var svg, dot bytes.Buffer
	require.NoError(t, WriteSVG(&svg, g))
	require.NoError(t, wellFormed(svg.String()))
	require.NotContains(t, svg.String(), "<script>")
	require.Contains(t, svg.String(), "…</text>")
	require.NoError(t, WriteDOT(&dot, g))
	require.Contains(t, dot.String(), `"n:<&\"`+"\uFFFD"+`\\n"`)

	var empty bytes.Buffer
	require.NoError(t, WriteSVG(&empty, Graph{}))
	require.NoError(t, wellFormed(empty.String()))
}

// TestLayout: in random graphs boxes of a rank do not touch, edges go down
// rank by rank, and everything is within the picture.
func TestLayout(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		g := Graph{}
		for i := range rapid.IntRange(1, 40).Draw(rt, "vertices") {
			v := &Vertex{ID: fmt.Sprint(i), Kind: rapid.SampledFrom([]Kind{Step, File}).Draw(rt, "kind"),
				Title: strings.Repeat("x", rapid.IntRange(0, 60).Draw(rt, "title"))}
			for _, from := range g.Vertices {
				if rapid.IntRange(0, 9).Draw(rt, "edge") == 0 {
					g.Edges = append(g.Edges, Edge{From: from, To: v})
				}
			}
			g.Vertices = append(g.Vertices, v)
		}
		p := layOut(g)
		seen := 0
		for at, rank := range p.ranks {
			for i, c := range rank {
				require.Equal(rt, at, c.rank)
				require.GreaterOrEqual(rt, c.x-c.width/2, margin-1e-6)
				require.LessOrEqual(rt, c.x+c.width/2, p.width-margin+1e-6)
				require.LessOrEqual(rt, c.y+c.height, p.height-margin+1e-6)
				if i > 0 {
					require.GreaterOrEqual(rt, c.x-c.width/2, rank[i-1].x+rank[i-1].width/2+gapX-1e-6)
				}
				if c.v != nil {
					seen++
				}
			}
		}
		require.Equal(rt, len(g.Vertices), seen)
		for _, r := range p.routes {
			require.Equal(rt, r.edge.From, r.cells[0].v)
			require.Equal(rt, r.edge.To, r.cells[len(r.cells)-1].v)
			for i, c := range r.cells[1:] {
				require.Equal(rt, r.cells[i].rank+1, c.rank)
			}
		}
	})
}

// A deep graph of which all look up the first has no more places than a multiple of its vertices, and its lines bend
// where they have to.
func TestDeepLookups(t *testing.T) {
	t.Parallel()
	const deep = 1000
	g := Graph{}
	for i := range deep {
		v := &Vertex{ID: fmt.Sprint(i), Kind: Step, Title: fmt.Sprint("node ", i)}
		g.Vertices = append(g.Vertices, v)
		if i > 0 {
			g.Edges = append(g.Edges, Edge{From: g.Vertices[i-1], To: v}, Edge{From: g.Vertices[0], To: v, Lookup: true})
		}
	}
	cells := 0
	for _, rank := range layOut(g).ranks {
		cells += len(rank)
	}
	require.Less(t, cells, 3*deep)
	points := 0
	for _, line := range Place(g).Lines {
		require.GreaterOrEqual(t, len(line.Points), 2)
		points += len(line.Points)
	}
	require.Less(t, points, 20*deep)
}

func TestInversions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		a := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 30).Draw(rt, "a")
		want := 0
		for i := range a {
			for j := range i {
				if a[j] > a[i] {
					want++
				}
			}
		}
		require.Equal(rt, want, inversions(append([]int{}, a...)))
	})
}

// A vertex belongs to the root that its rows come from, whatever it looks up; one that reads several, to none.
func TestRoots(t *testing.T) {
	t.Parallel()
	g := FromScript(load(t, orders), Options{})
	require.Equal(t, []string{"read_orders", "read_items"}, g.MarkRoots())
	roots := map[string]int{}
	for _, v := range g.Vertices {
		roots[v.ID] = v.Root
	}
	require.Equal(t, map[string]int{"r:read_orders": 1, "n:read_orders": 1, "r:read_items": 2, "n:read_items": 2,
		"n:join": 1, "n:self": 2, "n:write": 1, "w:write": 1}, roots)
	mixed := Graph{Vertices: []*Vertex{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}}
	v := mixed.Vertices
	mixed.Edges = []Edge{{From: v[0], To: v[2]}, {From: v[1], To: v[2]}, {From: v[2], To: v[3]}}
	mixed.MarkRoots()
	require.Zero(t, v[2].Root)
	require.Zero(t, v[3].Root)
}
