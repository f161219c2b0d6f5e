// Command thalweg-parts measures what a Cassandra node takes: transactions of
// five columns as parts, which are compressed files of many rows in chunks, and
// one prepared INSERT a row, with as many in flight as give most. It writes its figures where the benchmark looks for
// them, makes a keyspace of its own, and removes it.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"thalweg/internal/store/cassandra"
	partscassandra "thalweg/internal/store/parts/cassandra"
)

type options struct {
	Hosts    []string `default:"127.0.0.1:9042" env:"THALWEG_TEST_CASSANDRA" help:"Nodes of the cluster."`
	Copies   int      `default:"1" help:"Copies that the keyspace keeps."`
	Dir      string   `required:"" type:"path" help:"Directory for files of parts."`
	Rows     int      `default:"20000000" help:"Rows that are put as parts."`
	PartRows int      `default:"2000000" help:"Rows of a part."`
	Inserts  int      `default:"60000" help:"Rows that are inserted one by one, for each number in flight."`
	InFlight []int    `default:"64,128,256,512" help:"Numbers of inserts in flight."`
	Seed     int64    `default:"1" help:"Of the rows."`
	Figures  string   `required:"" type:"path" help:"File for the figures."`
}

// figures holds the measurements; each rate is the best of its side.
type figures struct {
	PartBytes      int64              `json:"part_bytes"`
	BytesPerRow    float64            `json:"bytes_per_row"`
	Encode         float64            `json:"encode_rows_per_second"` // writing the files, in one process
	Put            float64            `json:"put_rows_per_second"`
	PutMB          float64            `json:"put_megabytes_per_second"`
	EncodeAndPut   float64            `json:"encode_and_put_rows_per_second"` // one behind the other
	Fetch          float64            `json:"fetch_rows_per_second"`
	FetchMB        float64            `json:"fetch_megabytes_per_second"`
	Insert         float64            `json:"insert_rows_per_second"`
	InsertInFlight int                `json:"insert_in_flight"`
	Inserts        map[string]float64 `json:"inserts_rows_per_second"` // by the number in flight
	Ratio          float64            `json:"put_over_insert"`
	RatioEncoded   float64            `json:"encode_and_put_over_insert"`
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("thalweg-parts"), kong.Description("Measure parts against single rows in Cassandra."))
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "thalweg-parts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	cfg := cassandra.Config{Hosts: o.Hosts}
	admin, err := cassandra.Open(cfg)
	if err != nil {
		return err
	}
	defer admin.Close()
	cfg.Keyspace = "bench_" + strings.ToLower(rand.Text())
	if err := cassandra.MakeKeyspace(ctx, admin, cfg.Keyspace, map[string]int{"": o.Copies}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Make(ctx, []string{"DROP KEYSPACE " + cfg.Keyspace})) }()
	session, err := cassandra.Open(cfg)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.Make(ctx, append(partscassandra.Tables(), rowTable)); err != nil {
		return err
	}
	var out figures
	if err := inserts(ctx, session, o, &out); err != nil {
		return err
	}
	if err := asParts(ctx, session, o, &out); err != nil {
		return err
	}
	out.Ratio, out.RatioEncoded = out.Put/out.Insert, out.EncodeAndPut/out.Insert
	text, err := json.MarshalIndent(map[string]any{"detail": out,
		"counts": map[string]float64{"rows a second as parts": out.Put, "rows a second one by one": out.Insert,
			"ratio": out.Ratio, "ratio encoded": out.RatioEncoded}}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the figures: %w", err)
	}
	return os.WriteFile(o.Figures, append(text, '\n'), 0o644)
}
