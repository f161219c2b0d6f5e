package fleet

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sample is a script over made-up sales: loads, a lookup that adds up, distinct
// rows, both kinds of Python, and files.
type sample struct {
	seed uint64
	rows int           // of sales
	pace time.Duration // that Python takes for a row, or a group
}

const (
	customersOf = 20 // sales that a customer has, about
	salesFiles  = 3
)

// write makes the inputs and formulas of the script, and the script, which
// writes its files to out. All paths are absolute.
func (s sample) write(dir, out string) (script string, err error) {
	r := rand.New(rand.NewPCG(s.seed, 1))
	customers := max(s.rows/customersOf, 1)
	var text strings.Builder
	text.WriteString("customer,region\n")
	for i := range customers {
		fmt.Fprintf(&text, "c%04d,region %d\n", i, r.IntN(7))
	}
	files := map[string]string{"customers.csv": text.String(), "formulas.py": fmt.Sprintf(formulas, s.pace.Seconds())}
	id := 0
	for f := range salesFiles {
		text.Reset()
		text.WriteString("id,customer,product,qty,price\n")
		for range s.rows / salesFiles {
			fmt.Fprintf(&text, "%d,c%04d,product %d,%d,%d.%02d\n", id, r.IntN(customers+customers/10+1),
				r.IntN(50), 1+r.IntN(9), r.IntN(1000), r.IntN(100))
			id++
		}
		files[fmt.Sprintf("sales%d.csv", f)] = text.String()
	}
	files["script.yaml"] = strings.NewReplacer("IN", dir, "OUT", out).Replace(template)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return "", fmt.Errorf("make the script of seed %d: %w", s.seed, err)
		}
	}
	return filepath.Join(dir, "script.yaml"), nil
}

const formulas = `
import time

PACE = %f

def worth(qty: int, price: float) -> float:
    time.sleep(PACE)
    return round(qty * price, 2)

def running(rows):
    time.sleep(PACE)
    total, best, found = 0, 0.0, []
    for i, q, v in sorted(zip(rows["id"], rows["qty"], rows["value"])):
        total += q
        best = max(best, v)
        found.append({"id": i, "total": total, "best": best})
    return found
`

const template = `
nodes:
  read_sales:
    type: file_table
    r:
      urls: [IN/sales0.csv, IN/sales1.csv, IN/sales2.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns:
        id:       {col_type: int,      csv: {col_hdr: id}}
        customer: {col_type: string,   csv: {col_hdr: customer}}
        product:  {col_type: string,   csv: {col_hdr: product}}
        qty:      {col_type: int,      csv: {col_hdr: qty}}
        price:    {col_type: float,    csv: {col_hdr: price}}
    w:
      name: sales
      fields:
        id:       {expression: r.id,       type: int}
        customer: {expression: r.customer, type: string}
        product:  {expression: r.product,  type: string}
        qty:      {expression: r.qty,      type: int}
        price:    {expression: r.price,    type: float}
      indexes:
        idx_sales_customer: non_unique(customer)

  read_customers:
    type: file_table
    r:
      urls: [IN/customers.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns:
        customer: {col_type: string, csv: {col_hdr: customer}}
        region:   {col_type: string, csv: {col_hdr: region}}
    w:
      name: customers
      fields:
        customer: {expression: r.customer, type: string}
        region:   {expression: r.region,   type: string}

  totals:
    type: table_lookup_table
    r: {table: customers}
    l: {index_name: idx_sales_customer, join_on: r.customer, group: true, join_type: left}
    w:
      name: totals
      fields:
        customer: {expression: r.customer,                       type: string}
        region:   {expression: r.region,                         type: string}
        qty:      {expression: sum(l.qty),                       type: int}
        ids:      {expression: 'string_agg(l.product, ",")',     type: string}

  products:
    type: distinct_table
    rerun_policy: fail
    r: {table: sales}
    w:
      name: products
      fields:
        product: {expression: r.product, type: string}
        first:   {expression: r.id,      type: int}
      indexes:
        idx_products: unique(product)

  values:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: {table: sales}
    p:
      python_code_urls: [IN/formulas.py]
      calculated_fields:
        value: {expression: "worth(r.qty, r.price)", type: float}
    w:
      name: valued
      fields:
        id:       {expression: r.id,       type: int}
        customer: {expression: r.customer, type: string}
        qty:      {expression: r.qty,      type: int}
        value:    {expression: p.value,    type: float}

  courses:
    type: py_table
    r: {table: valued}
    p:
      python_code_urls: [IN/formulas.py]
      function: running
      group_by: customer
      columns: [id, qty, value]
      returns: {id: int, total: int, best: float}
    w:
      name: courses
      fields:
        customer: {expression: r.customer, type: string}
        id:       {expression: p.id,       type: int}
        total:    {expression: p.total,    type: int}
        best:     {expression: p.best,     type: float}

  write_totals:
    type: table_file
    r: {table: totals}
    w:
      url_template: OUT/totals.csv
      columns:
        - {name: customer, expression: r.customer, type: string, csv: {header: customer, format: "%s"}}
        - {name: region,   expression: r.region,   type: string, csv: {header: region,   format: "%s"}}
        - {name: qty,      expression: r.qty,      type: int,    csv: {header: qty,      format: "%d"}}
        - {name: ids,      expression: r.ids,      type: string, csv: {header: ids,      format: "%s"}}
  write_products:
    type: table_file
    r: {table: products}
    w:
      url_template: OUT/products.csv
      columns:
        - {name: product, expression: r.product, type: string, csv: {header: product, format: "%s"}}
        - {name: first,   expression: r.first,   type: int,    csv: {header: first,   format: "%d"}}
  write_values:
    type: table_file
    r: {table: valued}
    w:
      url_template: OUT/values.csv
      columns:
        - {name: id,    expression: r.id,    type: int,   csv: {header: id,    format: "%d"}}
        - {name: value, expression: r.value, type: float, csv: {header: value, format: "%.2f"}}
  write_courses:
    type: table_file
    r: {table: courses}
    w:
      top: {order: "customer(asc),id(asc)"}
      url_template: OUT/courses.csv
      columns:
        - {name: customer, expression: r.customer, type: string, csv: {header: customer, format: "%s"}}
        - {name: id,       expression: r.id,       type: int,    csv: {header: id,       format: "%d"}}
        - {name: total,    expression: r.total,    type: int,    csv: {header: total,    format: "%d"}}
        - {name: best,     expression: r.best,     type: float,  csv: {header: best,     format: "%.2f"}}
`
