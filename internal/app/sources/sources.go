package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"thalweg/internal/base/allow"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
	"thalweg/internal/io/files"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/query"
)

// Named is a script as a caller names it.
type Named struct {
	Path       string
	ParamsPath string
	Params     map[string]string // which win over those of ParamsPath
	Lenient    bool              // see script.Sources
	Literal    bool              // see script.Sources
	Dir        string            // that relative names are seen from; "": who looks at it decides
	Policy     *allow.Policy     // of what may be opened; nil: everything
	Texts      Texts             // read instead of files; may be nil
}

// New reads a script's files from this machine and, by means of client,
// from others; nil reads no others. Relative names are seen from dir ("": the
// working directory). Columns that a script takes from its inputs are looked up
// in them, environment values that it declares in the process's.
func New(client *remote.Client, dir, scriptPath, paramsPath string) script.Sources {
	var secrets remote.Secrets // once the script says which it has
	look := files.Look{Dir: dir, Policy: client.Policy()}
	if client != nil {
		look.Remote = samples(client, func() remote.Secrets { return secrets })
		look.List = func(ctx context.Context, pattern string) ([]string, error) {
			return client.Matching(ctx, pattern, files.MaxMatchedFilesCount)
		}
	}
	columns := func(ctx context.Context, url string, csv script.CSVReader, parquet bool) ([]script.FileColumn, error) {
		return files.Columns(ctx, look, url, csv, parquet)
	}
	tables := func(ctx context.Context, url, table, query string) ([]script.FileColumn, error) {
		c := Databases(client, dir, secrets)
		if secrets != nil {
			url = secrets.Reveal(url)
		}
		return tableColumns(c.Columns(ctx, database.Source{URL: url, Table: table, Query: query}))
	}
	return script.Sources{Path: scriptPath, ParamsPath: paramsPath, Dir: dir, Columns: columns, TableColumns: tables,
		Environment: os.LookupEnv, Secrets: func(s *script.Script) { secrets = s },
		Read: func(ctx context.Context, url string) ([]byte, error) {
			if client == nil || !address.Remote(url) {
				return script.ReadLocal(ctx, client.Policy(), address.SeenFrom(dir, url))
			}
			text, err := client.Read(ctx, url, script.MaxPythonBytes, secrets)
			var f *fault.Error
			if errors.As(err, &f) {
				f.Place = fault.Place{} // the message around it names the file
			}
			return text, err
		}, Describe: func(ctx context.Context) (script.Describer, error) { return query.Open(ctx, look) }}
}

// samples looks at remote files by means of samples.
func samples(client *remote.Client, secrets func() remote.Secrets) func(ctx context.Context, url string,
	parquet bool) (string, func(), error) {
	return func(ctx context.Context, url string, parquet bool) (string, func(), error) {
		dir, err := os.MkdirTemp("", "thalweg-look-")
		if err != nil {
			return "", nil, &fault.Error{Kind: fault.Environment,
				Message: "make a directory for looking at a remote file", Err: err, Hint: "check TMPDIR"}
		}
		done := func() { _ = os.RemoveAll(dir) } // in a directory that the system clears
		path := filepath.Join(dir, "sample")
		if parquet {
			err = client.SampleParquet(ctx, url, path, secrets())
		} else {
			err = client.Sample(ctx, url, files.HeadBytesMax, path, secrets())
		}
		if err != nil {
			done()
			return "", nil, err
		}
		return path, done, nil
	}
}

// Databases opens sessions with databases, by what client trusts. secrets may be nil.
func Databases(client *remote.Client, dir string, secrets remote.Secrets) database.Client {
	c := database.Client{Roots: client.Roots, Dir: dir, Policy: client.Policy()}
	if secrets != nil {
		c.Hide = secrets.Hide
	}
	return c
}

// tableColumns are columns of a database as scripts know them: what no type holds exactly is text.
func tableColumns(columns []database.Column, err error) ([]script.FileColumn, error) {
	out := make([]script.FileColumn, len(columns))
	for i, c := range columns {
		out[i] = script.FileColumn{Name: c.Name, Kind: c.Kind, Required: c.Required, Type: expr.String}
		if t, ok := typeOfTable(c.Type); ok {
			out[i].Type, out[i].Layout = t, c.Layout
		}
	}
	return out, err
}

// typeOfTable is the type of a column by the name that package database has for it.
func typeOfTable(name string) (expr.Type, bool) {
	var digits, scale int
	if _, err := fmt.Sscanf(name, "decimal(%d,%d)", &digits, &scale); err == nil && digits == scale {
		name = expr.DecimalOf(scale+1, scale).String() // a type has a digit before the point
	}
	return expr.ParseType(name)
}

// Remembered reads each file once: what is read again is what it was.
func Remembered(read func(context.Context, string) ([]byte, error)) func(context.Context, string) ([]byte, error) {
	var mu sync.Mutex
	kept := map[string][]byte{}
	return func(ctx context.Context, url string) ([]byte, error) {
		mu.Lock()
		text, ok := kept[url]
		mu.Unlock()
		if ok {
			return text, nil
		}
		text, err := read(ctx, url)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		kept[url] = text
		return text, nil
	}
}
