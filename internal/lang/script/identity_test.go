package script

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

// TestEveryPartOfANodeCounts changes each value of each node of the conformance
// cases' scripts, one at a time. Where that makes another node of it, the node's
// fingerprint is another one, or that of a node whose table it reads: so runs
// take over nothing that was computed otherwise.
func TestEveryPartOfANodeCounts(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("../../../testdata/conformance/*/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	step := effort.Of(100, 40, 1)
	changed := 0
	for i, path := range cases {
		if i%step != 0 {
			continue
		}
		archive, err := txtar.ParseFile(path)
		require.NoError(t, err)
		files := memory{}
		for _, f := range archive.Files {
			files[f.Name] = string(f.Data)
		}
		changed += mutate(t, filepath.Base(path), files)
	}
	require.Positive(t, changed)
}

// mutate counts the changes that made another script of one.
func mutate(t *testing.T, name string, files memory) (changed int) {
	t.Helper()
	base, diags := files.load(t)
	if base == nil || diags.HasErrors() {
		return 0
	}
	with := maps.Clone(files)
	delete(with, "script.yaml")
	var doc any
	require.NoError(t, json.Unmarshal(base.Definition(), &doc))
	again := func() *Script {
		text, err := json.Marshal(doc)
		require.NoError(t, err)
		with["script.json"] = string(text)
		s, diags := with.load(t)
		if diags.HasErrors() {
			return nil
		}
		return s
	}
	if base = again(); base == nil { // it leans on its layout
		return 0
	}
	nodes, _ := doc.(map[string]any)["nodes"].(map[string]any)
	leaves(nodes, func(at string, undo func()) {
		defer undo()
		if now := again(); now != nil {
			changed += compareNodes(t, name+": "+at, base, now)
		}
	})
	return changed
}

// compareNodes holds nodes that mean something else to another fingerprint.
func compareNodes(t *testing.T, what string, base, now *Script) (changed int) {
	t.Helper()
	for _, n := range now.Nodes {
		was := base.Node(n.Name)
		if was == nil || meaning(n) == meaning(was) {
			continue
		}
		changed++
		require.True(t, differ(base, now, n, map[*Node]bool{}),
			"%s: node %s is another one, with the same fingerprint:\n%s\n%s", what, n.Name, meaning(was), meaning(n))
	}
	return changed
}

func differ(base, now *Script, n *Node, seen map[*Node]bool) bool {
	was := base.Node(n.Name)
	if seen[n] {
		return false
	}
	seen[n] = true
	return was == nil || was.Fingerprint != n.Fingerprint ||
		slices.ContainsFunc(n.Sources(now), func(s *Node) bool { return differ(base, now, s, seen) })
}

// leaves changes each value below one in turn.
func leaves(v any, visit func(at string, undo func())) {
	each := func(at string, value any, set func(any)) {
		for _, other := range otherValues(value) {
			set(other)
			visit(fmt.Sprintf("%s is %v", at, other), func() { set(value) })
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			value := v[k]
			each(k, value, func(x any) { v[k] = x })
			leaves(value, func(at string, undo func()) { visit(k+"."+at, undo) })
			delete(v, k)
			visit(k+" is gone", func() { v[k] = value })
		}
	case []any:
		for i, value := range v {
			each(fmt.Sprint(i), value, func(x any) { v[i] = x })
			leaves(value, func(at string, undo func()) { visit(fmt.Sprintf("%d.%s", i, at), undo) })
		}
	}
}

// otherValues are values in the place of one: of a text those that scripts have
// there most.
func otherValues(v any) []any {
	switch v := v.(type) {
	case string:
		words := []any{v + " ", strings.ToUpper(v), v + "x", "false"}
		if strings.Contains(v, "1") {
			words = append(words, strings.Replace(v, "1", "2", 1))
		}
		for _, pair := range [][2]string{{"left", "inner"}, {"asc", "desc"}, {"warn", "error"}, {"quarantine", "fail"},
			{"gzip", "snappy"}, {"==", "!="}, {">", "<"}, {"min", "max"}, {"int", "string"}} {
			if strings.Contains(v, pair[0]) {
				words = append(words, strings.Replace(v, pair[0], pair[1], 1))
			}
		}
		return words
	case bool:
		return []any{!v}
	case float64:
		return []any{v + 1, -v}
	}
	return nil
}

// meaning is all of a node that rows can follow from, as text: places in the
// script, descriptions and what only says when it runs are left out.
func meaning(n *Node) string {
	var b strings.Builder
	write(&b, reflect.ValueOf(*n), 0)
	return b.String()
}

func write(b *strings.Builder, v reflect.Value, depth int) {
	const deepest = 12
	if depth > deepest {
		return
	}
	switch {
	case !v.IsValid():
		return
	case v.Type() == reflect.TypeFor[document.Pos](), v.Type() == reflect.TypeFor[*document.Value](),
		v.Type() == reflect.TypeFor[*QueryInfo]():
		return
	case v.Type() == reflect.TypeFor[*Node](): // its own meaning counts where it is compared itself
		if !v.IsNil() {
			fmt.Fprintf(b, "node %s ", v.Elem().FieldByName("Name"))
		}
		return
	case v.Type() == reflect.TypeFor[*expr.Compiled](), v.Type() == reflect.TypeFor[*expr.Expr]():
		if !v.IsNil() {
			fmt.Fprintf(b, "%s ", v.MethodByName("Source").Call(nil)[0])
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			write(b, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || slices.Contains([]string{"Desc", "Fingerprint", "MaxBatchMSec",
				"RerunPolicy", "StartPolicy"},
				f.Name) {
				continue
			}
			fmt.Fprintf(b, "%s:{", f.Name)
			write(b, v.Field(i), depth+1)
			b.WriteString("} ")
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			write(b, v.Index(i), depth+1)
			b.WriteString("; ")
		}
	default:
		fmt.Fprintf(b, "%v", v)
	}
}
