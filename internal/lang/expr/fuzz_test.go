package expr_test

import (
	"errors"
	"testing"

	"thalweg/internal/lang/expr"
)

// requireSane: every failure is an *Error that points into the source.
func requireSane(t *testing.T, src string, err error) {
	t.Helper()
	e := new(expr.Error)
	if !errors.As(err, &e) {
		t.Fatalf("%q: %T %v", src, err, err)
	}
	if e.Offset < 0 || e.Length < 0 || e.Offset+e.Length > len(src) || e.Message == "" {
		t.Fatalf("%q: %+v", src, e)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range valueCases() {
		f.Add(c.src)
	}
	f.Add("f(x...)")
	f.Add("a.b.c[0]{}.(int)")
	f.Fuzz(func(t *testing.T, src string) {
		e, err := expr.Parse(src)
		if err != nil {
			requireSane(t, src, err)
			return
		}
		for _, mode := range []expr.Mode{{}, {Round: true, Aggregates: true}} {
			c, err := e.Check(genScope(), mode)
			if err != nil {
				requireSane(t, src, err)
				continue
			}
			if c.SQL(column, "o") == "" || c.Type() == expr.Invalid {
				t.Fatalf("%q: no SQL or type", src)
			}
		}
	})
}

func FuzzParseOrder(f *testing.F) {
	for _, src := range []string{"name", "qty(desc), name(ignore_case, 128)", "name(", "unique(name)", ",", "a(b(c))"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if o, err := expr.ParseOrder(src, orderFields()); err != nil {
			requireSane(t, src, err)
		} else if len(o) == 0 {
			t.Fatal("empty order")
		}
		if _, _, err := expr.ParseIndex(src, orderFields()); err != nil {
			requireSane(t, src, err)
		}
	})
}

// FuzzFormats: print and scan formats and defaults never panic.
func FuzzFormats(f *testing.F) {
	for _, s := range []string{"%d", "%05.2f", "2006-01-02", "%", "%%", "Jan _2 15:04:05.000 MST", "-07", "%-+ 0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, typ := range plainTypes() {
			if _, err := expr.PrintSQL(typ, s, "x"); err != nil {
				requireSane(t, s, err)
			}
			if _, err := expr.ScanSQL(typ, s, "x"); err != nil {
				requireSane(t, s, err)
			}
			if _, err := expr.DefaultSQL(typ, s, ""); err != nil {
				requireSane(t, s, err)
			}
		}
	})
}
