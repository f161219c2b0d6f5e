package sqlite

import (
	"context"
	"database/sql"

	"thalweg/internal/state"
)

// Manifest implements state.Store.
func (s *Store) Manifest(ctx context.Context, key state.NodeKey) ([]state.Part, error) {
	return s.parts(ctx, "read manifest of ", key, "side = ''")
}

// SideParts implements state.Store.
func (s *Store) SideParts(ctx context.Context, key state.NodeKey) ([]state.Part, error) {
	return s.parts(ctx, "list side parts of ", key, "side <> ''")
}

// parts lists those parts of a node for which a condition of our own holds.
func (s *Store) parts(ctx context.Context, what string, key state.NodeKey, where string) (parts []state.Part, err error) {
	err = s.view(ctx, what+nameNode(key), func(tx *sql.Tx) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		parts, err = list(ctx, tx, scanPart, `SELECT key, side, batch, seq, bucket, rows, bytes, raw_bytes, schema, checksum
			FROM parts WHERE node_id = ? AND `+where+` ORDER BY batch, seq`, n.id)
		return err
	})
	return parts, err
}

func scanPart(row scanner) (p state.Part, err error) {
	err = row.Scan(&p.Key, &p.Side, &p.Batch, &p.Seq, &p.Bucket, &p.Rows, &p.Bytes, &p.RawBytes, &p.Schema, &p.Checksum)
	return p, err
}

// Files implements state.Store.
func (s *Store) Files(ctx context.Context, key state.RunKey) (files []state.File, err error) {
	err = s.view(ctx, "list files of "+nameRun(key), func(tx *sql.Tx) error {
		id, _, err := findRun(ctx, tx, key)
		if err != nil {
			return err
		}
		files, err = list(ctx, tx, scanFile(key), `SELECT n.node, f.batch, f.url, f.rows, f.bytes, f.checksum
			FROM nodes n JOIN files f ON f.node_id = n.id WHERE n.run_id = ? ORDER BY n.ordinal, n.id, f.batch, f.seq`, id)
		return err
	})
	return files, err
}

func scanFile(key state.RunKey) func(scanner) (state.File, error) {
	return func(row scanner) (state.File, error) {
		f := state.File{NodeKey: state.NodeKey{RunKey: key}}
		err := row.Scan(&f.Node, &f.Batch, &f.URL, &f.Rows, &f.Bytes, &f.Checksum)
		return f, err
	}
}

// Checks implements state.Store.
func (s *Store) Checks(ctx context.Context, key state.RunKey) (results []state.CheckResult, err error) {
	err = s.view(ctx, "list checks of "+nameRun(key), func(tx *sql.Tx) error {
		id, _, err := findRun(ctx, tx, key)
		if err != nil {
			return err
		}
		results, err = list(ctx, tx, scanCheck(key), `SELECT n.node, c.batch, c.result
			FROM nodes n JOIN checks c ON c.node_id = n.id WHERE n.run_id = ? ORDER BY n.ordinal, n.id, c.batch, c.seq`, id)
		return err
	})
	return results, err
}

func scanCheck(key state.RunKey) func(scanner) (state.CheckResult, error) {
	return func(row scanner) (state.CheckResult, error) {
		var c state.CheckResult
		var node string
		var batch int
		err := row.Scan(&node, &batch, asDocument(&c))
		c.NodeKey, c.Batch = state.NodeKey{RunKey: key, Node: node}, batch
		return c, err
	}
}
