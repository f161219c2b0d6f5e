package records

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/unpack"
	"thalweg/internal/lang/filespec"
)

// Limits of workbooks.
const (
	// sharedBytesMax bounds the texts of a workbook that cells share: they are in memory.
	sharedBytesMax = 1 << 30
	// partBytesMax bounds the parts of a workbook that are read whole, but for those texts.
	partBytesMax = 64 << 20
)

// workbook is an Excel file that is open for reading.
type workbook struct {
	files  map[string]*zip.File
	sheets []sheet
	from04 bool // days are counted from 1904
	shared []string
	styles []style
}

type sheet struct {
	name, file string
	hidden     bool
}

// style is the meaning of a cell's number.
type style uint8

const (
	plain style = iota
	day
	dayTime
	clock   // a time of no day
	elapsed // hours, minutes or seconds that are counted on beyond a day's
)

// openWorkbook reads all of a workbook but its sheets.
func openWorkbook(in io.ReaderAt, bytes int64) (*workbook, error) {
	archive, err := zip.NewReader(in, bytes)
	if form, unread := unpack.CompressionIn(in); err != nil && unread == nil && form != filespec.Plain {
		f := fault.New(fault.UserData, "the file is compressed, and workbooks are not read so")
		f.Hint = PackedHint
		return nil, f
	}
	if err != nil {
		return nil, badBook("the file is no Excel workbook (.xlsx), or was not copied whole: %s", err)
	}
	w := &workbook{files: map[string]*zip.File{}}
	for _, f := range archive.File {
		w.files[strings.TrimPrefix(f.Name, "/")] = f
	}
	if w.files["xl/workbook.xml"] == nil {
		f := fault.New(fault.UserData, "the file is an archive, but no Excel workbook (.xlsx)")
		f.Hint = "unpack a zip archive first: unzip -p FILE > NAME.csv; .xls, .xlsb and .ods files are opened in " +
			"Excel or LibreOffice and saved as .xlsx"
		return nil, f
	}
	for _, read := range []func() error{w.readSheets, w.readStyles, w.readShared} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// PackedHint is the way out of a workbook that is compressed once more.
const PackedHint = "unpack it first with gunzip or unzstd: a workbook is compressed as it is"

func badBook(format string, args ...any) error {
	f := fault.New(fault.UserData, format, args...)
	f.Hint = "open it in Excel or LibreOffice and save it as .xlsx; .xls, .xlsb and .ods files are not read"
	return f
}

// part reads a part of the workbook token by token; one that is not there is empty.
func (w *workbook) part(name string, most int64, each func(d *xml.Decoder, e xml.StartElement) error) (err error) {
	f := w.files[name]
	if f == nil {
		return nil
	}
	in, err := f.Open()
	if err != nil {
		return badBook("%s in the workbook cannot be read: %s", name, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	limited := &io.LimitedReader{R: in, N: most}
	d := xml.NewDecoder(limited)
	d.CharsetReader = func(string, io.Reader) (io.Reader, error) {
		return nil, errors.New("its parts are not in UTF-8")
	}
	for {
		token, err := d.RawToken()
		switch {
		case limited.N <= 0:
			return badBook("%s in the workbook has more than %d MiB", name, most>>20)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return badBook("%s in the workbook cannot be read: %s", name, err)
		}
		if e, ok := token.(xml.StartElement); ok {
			if err := each(d, e); err != nil {
				return err
			}
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func (w *workbook) readSheets() error {
	targets := map[string]string{}
	err := w.part("xl/_rels/workbook.xml.rels", partBytesMax, func(_ *xml.Decoder, e xml.StartElement) error {
		if e.Name.Local == "Relationship" {
			target := attribute(e, "Target")
			if strings.HasPrefix(target, "/") {
				target = target[1:]
			} else {
				target = path.Join("xl", target)
			}
			targets[attribute(e, "Id")] = target
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.part("xl/workbook.xml", partBytesMax, func(_ *xml.Decoder, e xml.StartElement) error {
		switch e.Name.Local {
		case "workbookPr":
			on := attribute(e, "date1904")
			w.from04 = on == "1" || on == "true"
		case "sheet":
			for _, a := range e.Attr {
				if a.Name.Local == "id" && a.Name.Space != "" {
					w.sheets = append(w.sheets, sheet{attribute(e, "name"), targets[a.Value],
						attribute(e, "state") != "" && attribute(e, "state") != "visible"})
				}
			}
		}
		return nil
	})
}

// quietFormat matches the parts of a number format that say nothing of time: texts, escaped characters, and
// brackets, such as colours.
var quietFormat = regexp.MustCompile(`"[^"]*"|\\.|_.|\*.|\[[^\]]*\]`)

// countedOn is an hour, a minute or a second of an elapsed time. LibreOffice writes [HH].
var countedOn = regexp.MustCompile(`^\[(?i:h+|m+|s+)\]$`)

func styleOf(id int, custom map[int]string) style {
	switch {
	case id >= 14 && id <= 17, id >= 27 && id <= 31, id == 36, id >= 50 && id <= 54, id == 57, id == 58:
		return day
	case id == 22:
		return dayTime
	case id == 46: // [h]:mm:ss
		return elapsed
	case id >= 18 && id <= 21, id >= 32 && id <= 35, id == 45, id == 47, id == 55, id == 56:
		return clock
	}
	format := quietFormat.ReplaceAllStringFunc(custom[id], func(quiet string) string {
		if countedOn.MatchString(quiet) {
			return quiet
		}
		return ""
	})
	format, _, _ = strings.Cut(strings.ToLower(format), ";")
	if strings.Contains(format, "general") {
		return plain
	}
	if strings.Contains(format, "[") {
		return elapsed
	}
	days, hours := strings.ContainsAny(format, "yd"), strings.ContainsAny(format, "hs")
	switch {
	case days && hours:
		return dayTime
	case days:
		return day
	case hours:
		return clock
	case strings.Contains(format, "mmm"):
		return day
	}
	return plain
}

func (w *workbook) readStyles() error {
	custom := map[int]string{}
	inCells := false
	return w.part("xl/styles.xml", partBytesMax, func(_ *xml.Decoder, e xml.StartElement) error {
		switch e.Name.Local {
		case "numFmt":
			if id, err := strconv.Atoi(attribute(e, "numFmtId")); err == nil {
				custom[id] = attribute(e, "formatCode")
			}
		case "cellXfs":
			inCells = true
		case "cellStyles", "dxfs":
			inCells = false
		case "xf":
			if id, err := strconv.Atoi(attribute(e, "numFmtId")); inCells {
				if err != nil {
					id = 0
				}
				w.styles = append(w.styles, styleOf(id, custom))
			}
		}
		return nil
	})
}

func (w *workbook) readShared() error {
	kept := 0
	return w.part("xl/sharedStrings.xml", sharedBytesMax, func(d *xml.Decoder, e xml.StartElement) error {
		if e.Name.Local != "si" {
			return nil
		}
		text, err := richText(d, "si")
		if err != nil {
			return err
		}
		if kept += len(text); kept > sharedBytesMax {
			return badBook("the texts of the workbook have more than %d MiB", sharedBytesMax>>20)
		}
		w.shared = append(w.shared, text)
		return nil
	})
}

// richText reads what is in an element: all of its t elements, but those of how it is read aloud.
func richText(d *xml.Decoder, end string) (string, error) {
	var b strings.Builder
	inText, aloud := false, 0
	for {
		token, err := d.RawToken()
		if err != nil {
			return "", badBook("a text of the workbook cannot be read: %s", err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			inText = t.Name.Local == "t"
			if t.Name.Local == "rPh" {
				aloud++
			}
		case xml.EndElement:
			inText = false
			switch t.Name.Local {
			case end:
				return unescaped(b.String()), nil
			case "rPh":
				aloud--
			}
		case xml.CharData:
			if inText && aloud == 0 {
				b.Write(t)
			}
		}
	}
}

var escapedRune = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

// unescaped puts characters in the place of their _xHHHH_.
func unescaped(text string) string {
	if !strings.Contains(text, "_x") {
		return text
	}
	return escapedRune.ReplaceAllStringFunc(text, func(s string) string {
		n, err := strconv.ParseUint(s[2:6], 16, 16)
		if err != nil || !utf8.ValidRune(rune(n)) || n == 0 {
			return s
		}
		return string(rune(n))
	})
}

// Sheet is one of a workbook's.
type Sheet struct {
	Name   string
	Hidden bool
}

// Sheets lists the sheets of a workbook in their order.
func Sheets(in io.ReaderAt, size int64) (out []Sheet, err error) {
	book, err := openWorkbook(in, size)
	if err != nil {
		return nil, err
	}
	for _, s := range book.sheets {
		out = append(out, Sheet{s.name, s.hidden})
	}
	return out, nil
}

// find is the sheet that is meant: by its name, its number from 1, or the first.
func (w *workbook) find(name string, number int) (sheet, error) {
	var names []string
	for i, s := range w.sheets {
		if name != "" && s.name == name || name == "" && i+1 == max(number, 1) {
			if w.files[s.file] == nil {
				return s, badBook("sheet %q is no table of cells", s.name)
			}
			return s, nil
		}
		names = append(names, strconv.Quote(s.name))
	}
	f := fault.New(fault.UserData, "the workbook has no sheet %q", name)
	if name == "" {
		f.Message = fmt.Sprintf("the workbook has no sheet number %d", max(number, 1))
	}
	f.Hint = "its sheets are " + strings.Join(names, ", ")
	return sheet{}, f
}
