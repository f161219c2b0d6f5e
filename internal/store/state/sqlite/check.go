package sqlite

import (
	"context"
	"errors"
	"strings"
)

// faultsMax limits the faults of a file that are reported.
const faultsMax = 5

// Check reads the whole file, compares all checksums, and says what is wrong with it; nothing
// if it is sound. It may take a while, and ends with ctx.
func (s *Store) Check(ctx context.Context) (wrong []string, err error) {
	rows, err := s.read.QueryContext(ctx, "PRAGMA quick_check(5)")
	if err != nil {
		return nil, s.explain(ctx, "check the state file", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, s.explain(ctx, "check the state file", err)
		}
		if text != "ok" && len(wrong) < faultsMax {
			wrong = append(wrong, strings.TrimSpace(text))
		}
	}
	if err := rows.Err(); err != nil {
		return nil, s.explain(ctx, "check the state file", err)
	}
	return wrong, nil
}
