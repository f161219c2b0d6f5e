package sqlite

import (
	"context"
	"database/sql"

	"thalweg/internal/state"
)

// Manifest implements state.Store.
func (s *Store) Manifest(ctx context.Context, key state.NodeKey) (parts []state.Part, err error) {
	err = s.view(ctx, "read manifest of "+nameNode(key), func(tx *sql.Tx) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		parts, err = list(ctx, tx, scanPart, `SELECT key, batch, seq, bucket, rows, bytes, raw_bytes, schema, checksum
			FROM parts WHERE node_id = ? ORDER BY batch, seq`, n.id)
		return err
	})
	return parts, err
}

func scanPart(row scanner) (p state.Part, err error) {
	err = row.Scan(&p.Key, &p.Batch, &p.Seq, &p.Bucket, &p.Rows, &p.Bytes, &p.RawBytes, &p.Schema, &p.Checksum)
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
