package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	_ "github.com/duckdb/duckdb-go/v2" // registers the engine
	"golang.org/x/sync/errgroup"

	"thalweg/internal/store/cassandra"
	partscassandra "thalweg/internal/store/parts/cassandra"
)

// partsAtOnce are parts that are put or fetched at once, as a worker's batches do.
const partsAtOnce = 4

// asParts measures the same rows as parts.
func asParts(ctx context.Context, session *cassandra.Session, o options, out *figures) error {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of parts: %w", err)
	}
	paths, encoding, err := encode(ctx, o)
	if err != nil {
		return err
	}
	rows := float64(len(paths) * o.PartRows)
	store := partscassandra.New(session, partscassandra.Config{})
	began := time.Now()
	if err := each(ctx, paths, func(ctx context.Context, i int) error {
		_, err := store.Put(ctx, fmt.Sprintf("bench/%d", i), paths[i])
		return err
	}); err != nil {
		return err
	}
	putting := time.Since(began).Seconds()
	for info, err := range store.List(ctx, "bench/", "") {
		if err != nil {
			return err
		}
		out.PartBytes += info.Bytes
	}
	began = time.Now()
	if err := each(ctx, paths, func(ctx context.Context, i int) error {
		body, _, err := store.Open(ctx, fmt.Sprintf("bench/%d", i), 0, -1)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, body)
		return errors.Join(err, body.Close())
	}); err != nil {
		return err
	}
	fetching := time.Since(began).Seconds()
	megabytes := float64(out.PartBytes) / 1e6
	out.BytesPerRow = float64(out.PartBytes) / rows
	out.Encode, out.Put, out.EncodeAndPut, out.Fetch = rows/encoding, rows/putting,
		rows/(encoding+putting), rows/fetching
	out.PutMB, out.FetchMB = megabytes/putting, megabytes/fetching
	return nil
}

// encode makes rows and gives how long writing the files of their parts takes.
func encode(ctx context.Context, o options) (paths []string, seconds float64, err error) {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return nil, 0, fmt.Errorf("open DuckDB: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for i := range max(o.Rows/o.PartRows, 1) {
		path := filepath.Join(o.Dir, fmt.Sprintf("%d.parquet", i))
		rows := fmt.Sprintf(
			`CREATE OR REPLACE TABLE t AS SELECT 'A' || lpad((h %% %d)::VARCHAR, 6, '0') AS account, ((h // 7919) %% %d)::INTEGER AS day,
			'T' || lpad(((h // 104729) %% %d)::VARCHAR, 3, '0') AS ticker, `+
				`((h // 1299709) %% 1000)::INTEGER AS quantity, (((h // 15485863) %% 100000) / 100.0)::DOUBLE AS price
			FROM (SELECT hash(range + %d) AS h FROM range(%d))`, accounts, days, tickers, o.Seed<<40+int64(i*o.PartRows), o.PartRows)
		if _, err := db.ExecContext(ctx, rows); err != nil {
			return nil, 0, fmt.Errorf("make rows: %w", err)
		}
		began := time.Now()
		if _, err := db.ExecContext(ctx, fmt.Sprintf(`COPY t TO '%s' (FORMAT parquet, COMPRESSION zstd)`,
			path)); err != nil {
			return nil, 0, fmt.Errorf("write %s: %w", path, err)
		}
		seconds += time.Since(began).Seconds()
		paths = append(paths, path)
	}
	return paths, seconds, nil
}

// each does something with all parts, several at once.
func each(ctx context.Context, paths []string, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	for i := range paths {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
