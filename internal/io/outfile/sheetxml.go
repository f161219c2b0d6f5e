package outfile

import (
	"archive/zip"
	"bufio"
	"bytes"
	_ "embed"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// emptySheet is a workbook of one empty sheet, with the styles of sheetStyles. excelize has made it (its test
// does so again): in the program the library would take milliseconds of each start, for the same bytes.
//
//go:embed empty.xlsx
var emptySheet []byte

// Parts of the empty workbook, and the name of its sheet.
const (
	sheetPath     = "xl/worksheets/sheet1.xml"
	workbookPath  = "xl/workbook.xml"
	emptySheetTag = `name="Sheet1"`
)

const (
	sheetBegin = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n" +
		`<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>`
	sheetEnd = `</sheetData></worksheet>`
)

// styled is a number, or a moment as one, with its style.
type styled struct {
	value float64
	style int
}

// writeSheet writes an Excel file whose rows fill gives. Nothing in it says when it was made.
func writeSheet(to io.Writer, name string, fill func(*sheetRows) error) (err error) {
	from, err := zip.NewReader(bytes.NewReader(emptySheet), int64(len(emptySheet)))
	if err != nil {
		return err
	}
	z := zip.NewWriter(to)
	for _, part := range from.File {
		if err := copyPart(z, part, name, fill); err != nil {
			return err
		}
	}
	return z.Close()
}

func copyPart(z *zip.Writer, part *zip.File, sheet string, fill func(*sheetRows) error) (err error) {
	w, err := z.Create(part.Name)
	if err != nil {
		return err
	}
	if part.Name == sheetPath {
		rows := &sheetRows{to: bufio.NewWriterSize(w, readBytes)}
		rows.text(sheetBegin)
		if err := fill(rows); err != nil {
			return err
		}
		rows.text(sheetEnd)
		return rows.to.Flush()
	}
	r, err := part.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if part.Name == workbookPath {
		var b strings.Builder
		if err := xml.EscapeText(&b, []byte(sheet)); err != nil {
			return err
		}
		text = bytes.Replace(text, []byte(emptySheetTag), []byte(`name="`+b.String()+`"`), 1)
	}
	_, err = w.Write(text)
	return err
}

// sheetRows writes the rows of a sheet. What goes wrong is said by the flush in the end, and by add.
type sheetRows struct{ to *bufio.Writer }

func (r *sheetRows) text(s string) { _, _ = r.to.WriteString(s) } // the writer keeps its error

// add writes a row.
func (r *sheetRows) add(row int, cells []any) error {
	number := strconv.Itoa(row)
	r.text(`<row r="` + number + `">`)
	for i, v := range cells {
		if v == nil {
			continue
		}
		if err := r.cell(columnLetters(i)+number, v); err != nil {
			return err
		}
	}
	_, err := r.to.WriteString("</row>")
	return err
}

// columnLetters name a column of a sheet, from 0: A, B, …, Z, AA.
func columnLetters(i int) (name string) {
	for i++; i > 0; i = (i - 1) / 26 {
		name = string(rune('A'+(i-1)%26)) + name
	}
	return name
}

func (r *sheetRows) cell(at string, value any) error {
	switch v := value.(type) {
	case bool:
		r.text(`<c r="` + at + `" t="b"><v>` + map[bool]string{true: "1", false: "0"}[v] + "</v></c>")
	case styled:
		style := ""
		if v.style != 0 {
			style = ` s="` + strconv.Itoa(v.style) + `"`
		}
		r.text(`<c r="` + at + `"` + style + `><v>` + plainly(v.value) + "</v></c>")
	case string:
		r.text(`<c r="` + at + `" t="inlineStr"><is><t xml:space="preserve">` +
			sheetText.Replace(codeLike.ReplaceAllString(v, "_x005F$0")) + "</t></is></c>")
	default:
		return fmt.Errorf("a cell cannot be a %T", value)
	}
	return nil
}

// codeLike matches texts that readers of sheets take for a character's code.
var codeLike = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

var sheetText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")

// plainly writes a number with an exponent only where it would be long without one: readers such
// as openpyxl take 1e+06 for a float, and 1000000 for a whole number.
func plainly(v float64) string {
	if size := math.Abs(v); size < 1e15 && (size >= 1e-5 || size == 0) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
