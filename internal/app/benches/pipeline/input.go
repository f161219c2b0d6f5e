package pipeline

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
)

// What is generated.
const (
	batchesEach = 8 // for each that is at once at most
	batchLeast  = 64 << 10
	lookEvery   = 10_000 // rows, whether it is to end
	filesEach   = 4      // files that are written, for each batch that is at once at most
	ordersEach  = 16     // orders for each item: each batch of the lookup reads all items
)

// generated is a pipeline whose nodes wait for those before them, so that the classes are measured apart. Each works on
// all rows, but for those of the items, which are few.
const generated = `nodes:
  load_orders:
    type: file_table
    r:
      urls: [orders.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns:
        id:   {csv: {col_hdr: id},   col_type: int}
        name: {csv: {col_hdr: name}, col_type: string}
        city: {csv: {col_hdr: city}, col_type: string}
    w:
      name: orders
      fields:
        id:   {expression: r.id,   type: int}
        name: {expression: r.name, type: string}
        city: {expression: r.city, type: string}
  load_items:
    type: file_table
    r:
      urls: [items.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns:
        order_id: {csv: {col_hdr: order_id}, col_type: int}
        value:    {csv: {col_hdr: value},    col_type: decimal2}
    w:
      name: items
      fields:
        order_id: {expression: r.order_id, type: int}
        value:    {expression: r.value,    type: decimal2}
      indexes:
        idx_items: non_unique(order_id)
  join_totals:
    type: table_lookup_table
    r: {table: orders}
    l: {index_name: idx_items, join_on: r.id, join_type: left, group: true}
    w:
      name: totals
      fields:
        id:    {expression: r.id,         type: int}
        name:  {expression: r.name,       type: string}
        city:  {expression: r.city,       type: string}
        total: {expression: sum(l.value), type: decimal2}
`

const withPython = `  score:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: {table: totals}
    p:
      python_code_urls: [score.py]
      calculated_fields:
        score: {expression: "score(r.name, r.city)", type: int}
    w:
      name: last
      fields:
        id:    {expression: r.id,    type: int}
        total: {expression: r.total, type: decimal2}
        score: {expression: p.score, type: int}
`

const formula = `def score(name: str, city: str) -> int:
    return sum(map(ord, name.title())) * 7 + len(city.strip()) % 13
`

const written = `  write_files:
    type: table_file
    r: {table: %s, expected_batches_total: %d}
    w: {url_template: "out/part_{batch_idx|string}.csv", columns: [id, total]}
`

// generate writes the script and its inputs: the same for the same seed.

func generate(ctx context.Context, dir string, rows int64, seed uint64, python bool, most int) (script string, bytes int64, err error) {
	text, last := generated, "totals"
	if python {
		text, last = text+withPython, "last"
	}
	text += fmt.Sprintf(written, last, filesEach*most)
	script = filepath.Join(dir, "pipeline.yaml")
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // rows of no meaning
	for name, write := range map[string]func(w io.Writer) error{
		"pipeline.yaml": func(w io.Writer) error { return say(w, text) },
		"score.py":      func(w io.Writer) error { return say(w, formula) },
	} {
		if err := writeFile(ctx, filepath.Join(dir, name), write); err != nil {
			return "", 0, err
		}
	}
	cities := strings.Fields("Aarhus Bergen Cork Delft Espoo Fulda Ghent Hamar Innsbruck Jena Kiel Lille")
	orders, items := filepath.Join(dir, "orders.csv"), filepath.Join(dir, "items.csv")
	if err := writeFile(ctx, orders, func(w io.Writer) error {
		return lines(ctx, w, "id,name,city", rows, func(w io.Writer, i int64) error {
			return say(w, fmt.Sprintf("%d,customer %d,%s\n", i, rng.IntN(1_000_000), cities[rng.IntN(len(cities))]))
		})
	}); err != nil {
		return "", 0, err
	}
	if err := writeFile(ctx, items, func(w io.Writer) error {
		return lines(ctx, w, "order_id,value", max(rows/ordersEach, 1), func(w io.Writer, _ int64) error {
			return say(w, fmt.Sprintf("%d,%d.%02d\n", rng.Int64N(rows), rng.IntN(1000), rng.IntN(100)))
		})
	}); err != nil {
		return "", 0, err
	}
	st, err := os.Stat(orders)
	if err != nil {
		return "", 0, fmt.Errorf("look at what was generated: %w", err)
	}
	return script, st.Size(), nil
}

func say(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

func lines(ctx context.Context, w io.Writer, header string, rows int64, line func(io.Writer, int64) error) error {
	if err := say(w, header+"\n"); err != nil {
		return err
	}
	for i := range rows {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := line(w, i); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(ctx context.Context, path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "make an input of the bench", Err: err}
	}
	b := bufio.NewWriter(f)
	err = write(b)
	for _, end := range []func() error{b.Flush, f.Close} {
		if eerr := end(); err == nil {
			err = eerr
		}
	}
	if err != nil && ctx.Err() == nil {
		return &fault.Error{Kind: fault.Environment, Message: "write an input of the bench", Err: err}
	}
	return err
}

// cut has inputs of so many bytes cut into enough batches for the largest number that is tried. What the machine would
// choose stays if that is less.
func cut(bytes int64, most int) func(*budget.Budget) {
	return func(b *budget.Budget) {
		b.BatchBytes = min(b.BatchBytes, max(bytes/int64(batchesEach*most), batchLeast))
		b.SmallBytes = min(b.SmallBytes, b.BatchBytes)
	}
}
