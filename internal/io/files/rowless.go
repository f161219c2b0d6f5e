package files

import (
	"context"
	"errors"
	"fmt"
	"io"

	"thalweg/internal/lang/script"
)

// Rowless tells of the files among slices that have no data rows although they are there:
// each of them may be the wrong file, or be read in the wrong way. Results of databases may
// have no rows, and so may files of 0 bytes that need no header.
func Rowless(ctx context.Context, r *script.FileReader, list []Slice) ([]string, error) {
	if r.Database() {
		return nil, nil
	}
	found := make([]string, len(list))
	err := eachInOrder(ctx, len(list), func(ctx context.Context, i int) (err error) {
		found[i], err = list[i].rowless(ctx, r)
		return err
	})
	var out []string
	for _, text := range found {
		if text != "" {
			out = append(out, text)
		}
	}
	return out, err
}

// rowless says that the file has no rows, "" if it has some. Slices of a file that is cut have.
func (s Slice) rowless(ctx context.Context, r *script.FileReader) (string, error) {
	switch {
	case r.Parquet && s.Count == 0, r.Records != "" && s.FileBytes == 0:
		return "input file " + s.URL + " has no rows", nil
	case r.Parquet, s.Offset > 0 || s.Length < s.FileBytes:
		return "", nil
	case s.FileBytes == 0 && r.CSV.HeaderRecord < 0:
		return "", nil
	case s.FileBytes == 0:
		return "input file " + s.URL + " is empty: it has 0 bytes and no header, and was read as no rows", nil
	}
	head, err := readHead(r, s.source())
	if err != nil {
		return "", err
	}
	some, err := s.hasRecord(ctx, r, head)
	switch skipped := skippedRecords(r); {
	case err != nil || some:
		return "", err
	case head.fields == 0:
		return fmt.Sprintf("input file %s has no records: its %d bytes are blank lines, and it was read as no rows",
			s.URL, s.FileBytes), nil
	case r.CSV.ByHeader && skipped == r.CSV.HeaderRecord+1:
		return fmt.Sprintf("input file %s has no rows: nothing follows its header", s.URL), nil
	default:
		return fmt.Sprintf("input file %s has no rows: its data begins behind %s, and it has no more", s.URL,
			counted(skipped, "record")), nil
	}
}

// hasRecord reports whether there is a record of data, sound or not.
func (s Slice) hasRecord(ctx context.Context, r *script.FileReader, head csvHead) (bool, error) {
	f, err := s.source().open()
	if err != nil {
		return false, err
	}
	defer f.Close()
	w := s.source().walk(f, head.start, s.FileBytes-head.start, r.CSV.Separator, 0, make([]byte, 0, headBlockBytes))
	if _, err = w.next(ctx); errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}
