package infersets

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"thalweg/internal/base/sqltext"
)

// write writes the files of a set into a directory.
func (s *set) write(ctx context.Context, db *sql.DB, dir string) (paths []string, err error) {
	for _, f := range s.files {
		path := filepath.Join(dir, f.Name)
		paths = append(paths, path)
		var raw []byte
		switch s.format {
		case "csv":
			raw, err = f.encode(f.csv())
		case "json":
			raw, err = f.encode(f.json())
		case "excel":
			raw, err = f.excel()
		case "parquet":
			_, err = db.ExecContext(ctx, f.copyTo(path))
		}
		if err == nil && raw != nil {
			err = os.WriteFile(path, raw, 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", f.Name, err)
		}
	}
	return paths, nil
}

// csv is the file's text.
func (f *file) csv() string {
	var b strings.Builder
	line := func(rec []cell, end string) {
		for i, c := range rec {
			if i > 0 {
				b.WriteString(f.separator)
			}
			b.WriteString(c.csv(f.separator, len(rec) == 1))
		}
		b.WriteString(end + f.lineEnd)
	}
	end := func(from int) string {
		if f.trailing == 0 || f.trailing > from {
			return ""
		}
		return f.separator
	}
	for _, rec := range f.Titles {
		line(rec, "")
	}
	if f.Header != nil {
		line(f.Header, end(1))
	}
	for _, rec := range f.Records {
		if rec.Broken {
			line(rec.Cells, "")
			continue
		}
		line(rec.Cells, map[bool]string{true: f.separator}[f.trailing > 0])
	}
	if f.open {
		return strings.TrimSuffix(b.String(), f.lineEnd)
	}
	return b.String()
}

// csv is a cell as the file has it.
func (c cell) csv(separator string, alone bool) string {
	s := c.Text
	if c.Bare && strings.Contains(s, `"`) && !strings.HasSuffix(s, `"`) && !strings.Contains(s, `"`+separator) &&
		!strings.Contains(s, "\n") {
		return `"` + s + `"`
	}
	bare := c.Bare && !strings.HasPrefix(s, `"`) && !strings.ContainsAny(s, "\n\r"+separator)
	if c.Quote || !bare && strings.ContainsAny(s, "\"\n\r"+separator) || alone && strings.TrimSpace(s) == "" {
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	return s
}

// json is the file's text: texts, numbers as they are, truth values, null, and keys that are not there.
func (f *file) json() string {
	var records []string
	for _, rec := range f.Records {
		var members []string
		for j, c := range rec.Cells {
			value := string(quoted(c.Text))
			switch {
			case c.Kind == nothing && c.Quote:
				continue
			case c.Kind == nothing:
				value = "null"
			case c.Kind == number || c.Kind == truth:
				value = c.Is
			}
			members = append(members, string(quoted(f.Header[j].Text))+": "+value)
		}
		records = append(records, "{"+strings.Join(members, ", ")+"}")
	}
	if f.list {
		return "[" + strings.Join(records, ",\n") + "]"
	}
	return strings.Join(records, "\n") + "\n"
}

func quoted(s string) []byte {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // texts have a form in JSON
	}
	return raw
}

// encode writes a text in the file's encoding, and packs it.
func (f *file) encode(s string) (raw []byte, err error) {
	raw = []byte(s)
	if f.bom {
		raw = append([]byte("\ufeff"), raw...)
	}
	switch f.encoding {
	case "utf-16le":
		raw, err = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().Bytes(raw)
	case "utf-16be":
		raw, err = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder().Bytes(raw)
	case "latin-1":
		raw, err = charmap.ISO8859_1.NewEncoder().Bytes(raw)
	case "windows-1252":
		raw, err = charmap.Windows1252.NewEncoder().Bytes(raw)
	}
	if err != nil {
		return nil, err
	}
	return packed(raw, f.pack)
}

// packed compresses bytes.
func packed(raw []byte, how string) ([]byte, error) {
	var b bytes.Buffer
	var w io.WriteCloser
	switch how {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "zstd":
		z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		w = z
	default:
		return raw, nil
	}
	_, err := w.Write(raw)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

// excel is the file as a workbook.
func (f *file) excel() ([]byte, error) {
	book := excelize.NewFile()
	rows := append([][]cell{}, f.Titles...)
	rows = append(rows, f.Header)
	for _, rec := range f.Records {
		rows = append(rows, rec.Cells)
	}
	for y, row := range rows {
		for x, c := range row {
			at, err := excelize.CoordinatesToCellName(x+1, y+1)
			if err == nil && (c.Kind != nothing || c.Text != "") {
				err = book.SetCellValue("Sheet1", at, c.plain())
			}
			if err != nil {
				return nil, err
			}
		}
	}
	var b bytes.Buffer
	_, err := book.WriteTo(&b)
	return b.Bytes(), err
}

// plain is the value of a cell of a sheet.
func (c cell) plain() any {
	switch c.Kind {
	case number:
		if n, err := strconv.ParseInt(c.Is, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseFloat(c.Is, 64); err == nil && len(c.Is) < 15 {
			return n
		}
	case day:
		if at, err := time.Parse(time.DateOnly, c.Is); err == nil {
			return at
		}
	case moment:
		if at, err := time.Parse(time.DateTime, c.Is); err == nil {
			return at
		}
	case truth:
		return c.Is == "true"
	}
	return c.Text
}

// columnTypes are those that a Parquet file gives the kinds of columns.
var columnTypes = map[string]string{"int": "INTEGER", "ids": "BIGINT", "long": "DECIMAL(38,0)",
	"cents": "DECIMAL(18,2)", "thirds": "DECIMAL(9,3)",
	"rates": "DOUBLE", "year": "SMALLINT", "bits": "TINYINT", "bool": "BOOLEAN", "iso": "DATE", "moment": "TIMESTAMP",
	"nothing": "INTEGER"}

// typeOf is the type of a column in a Parquet file.
func typeOf(kind string) string { return cmp.Or(columnTypes[kind], "VARCHAR") }

// copyTo is the statement that writes the file as Parquet.
func (f *file) copyTo(path string) string {
	casts, rows := make([]string, f.Width), make([]string, 0, len(f.Records)+1)
	for j, h := range f.Header {
		casts[j] = fmt.Sprintf("CAST(c%d AS %s) AS %s", j, typeOf(f.types[j]), sqltext.Ident(h.Text))
	}
	values := func(cells []cell) {
		out := make([]string, f.Width)
		for j := range out {
			switch out[j] = "NULL"; {
			case cells == nil || cells[j].Kind == nothing:
			case typeOf(f.types[j]) == "VARCHAR":
				out[j] = sqltext.String(cells[j].Text)
			default:
				out[j] = sqltext.String(cells[j].Is)
			}
		}
		rows = append(rows, "("+strings.Join(out, ", ")+")")
	}
	names := make([]string, f.Width)
	for j := range names {
		names[j] = fmt.Sprintf("c%d", j)
	}
	for _, rec := range f.Records {
		values(rec.Cells)
	}
	where := ""
	if len(rows) == 0 {
		values(nil)
		where = " WHERE false"
	}
	return "COPY (SELECT " + strings.Join(casts, ", ") + " FROM (VALUES " + strings.Join(rows, ", ") + ") t(" +
		strings.Join(names, ", ") + ")" + where +
		") TO " + sqltext.String(path) + " (FORMAT parquet)"
}
