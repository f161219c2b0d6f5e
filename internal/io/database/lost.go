package database

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/fault"
)

// lostFault is about rows that a server has taken without an error, and not kept.
func lostFault(table string, kept, rows int64) error {
	return &fault.Error{Kind: fault.UserData,
		Message: fmt.Sprintf("table %s has kept %d of the %d rows that were written to it: a trigger or a rule of the "+
			"table leaves rows out without an error", table, kept, rows),
		Hint: "leave those rows out with having, take the trigger or rule from the table, or write to the table " +
			"where it puts them"}
}

// emptied makes sure that no row has stayed that was to be removed.
func emptied(ctx context.Context, w writer, table string) error {
	stay, err := w.rows(ctx, "SELECT 1 FROM "+w.path(table)+" LIMIT 1")
	if err == nil && len(stay) > 0 {
		err = &fault.Error{Kind: fault.UserData,
			Message: fmt.Sprintf("table %s still has rows after all were removed: a trigger or a rule of the table "+
				"keeps them without an error", table),
			Hint: "take the trigger or rule from the table, or use mode: merge"}
	}
	return err
}

// merged counts the rows of a table that agree with a row of another one that was merged into it. same
// renders the comparison of two values. It is asked where the server has counted less, which it does of rows
// that were there already.
func merged(ctx context.Context, w writer, from string, t Target, same func(a, b string) string) (int64, error) {
	alike, err := w.alike(ctx, t.Table, t.Key)
	if err != nil {
		return 0, err
	}
	var on []string
	for _, c := range t.Columns {
		if name := w.ident(c.Name); slices.Contains(t.Key, c.Name) {
			on = append(on, "t."+name+" = s."+alike[slices.Index(t.Key, c.Name)])
		} else {
			on = append(on, same("t."+name, "s."+name))
		}
	}
	found, err := w.rows(ctx, "SELECT count(*) FROM "+from+" AS s WHERE EXISTS (SELECT 1 FROM "+w.path(t.Table)+
		" AS t WHERE "+strings.Join(on, " AND ")+")")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(found[0][0], 10, 64)
}
