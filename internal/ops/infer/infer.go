package infer

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/base/action"

	"thalweg/internal/base/address"
	"thalweg/internal/base/allow"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
)

// ColumnsMax is the most columns of a file.
const ColumnsMax = 1_000

// FilesMax is the most files that are looked at together.
const FilesMax = 10_000

// Options of an inference.
type Options struct {
	Separator   string // of CSV; "": the one that cuts the records evenly
	Header      Header
	MemoryBytes int64
	Threads     int
	Policy      *allow.Policy // of the local files that may be read; nil: all
	WorkDir     string        // for spill and scratch files: private, exists
	Dir         string        // relative names are seen from it; "": the working directory
	// Fetch makes a copy of a remote file on this machine. nil: there are none.
	Fetch func(ctx context.Context, url string) (path string, err error)
	// List lists the files of a server that match a pattern: at most so many.
	List func(ctx context.Context, pattern string, most int) ([]string, error)
	// Told renders the actions and settings of a note for the comments of the script. nil: they stay marks.
	Told func(text string) string
}

// Header says whether a CSV file has one.
type Header int

// The ways to know.
const (
	HeaderGuess Header = iota
	HeaderYes
	HeaderNo
)

// Proposal describes files that are read together, as a script would read them.
type Proposal struct {
	URLs      []string // as they were given: names and patterns
	Files     []string // that they stand for, without those of another kind
	Parquet   bool
	Format    filespec.Format // of what records are taken from: JSON, sheets; "": none of both
	Encoding  string          // CSV: what the script has to say of it; "": UTF-8
	Separator byte            // CSV
	HasHeader bool            // CSV
	Above     int             // CSV: records above the header, or without one above the first
	Decimal   string          // CSV: what is before the digits of numbers, if not a point
	Thousands string          // CSV: what is between thousands, if anything
	Zone      string          // CSV: of instants whose layout has none
	Rows      int64
	BadRows   int64 // of them; those that cannot be read with the types proposed
	Columns   []Column
	Notes     []string // about the files as a whole
	told      func(text string) string
	dir       string  // relative names are seen from it
	Doubts    []Doubt // what is left out or guessed

	seed         maphash.Seed
	texts        map[string]string // where the plain text of each file is, or the CSV that was made of it
	called       map[string]string // what the script calls files whose names mean something else there
	spec         filespec.Spec     // by which CSV is made of records
	from         filespec.Spec     // of which part of a file, without columns
	byPosition   bool              // CSV: columns cannot be found by their headers
	someBroken   bool              // some text has bytes that are no UTF-8
	copiedBytes  int64             // see copied
	badStructure int64
	firstBad     error
}

// Column is a proposed column.
type Column struct {
	Name      string // for expressions
	Source    string // in the file: header or Parquet name; "" without a header
	Index     int
	Type      expr.Type // Invalid: cannot be read, left out of the script
	Format    string    // CSV datetime: the layout
	Nullable  bool
	NullTexts []string // CSV: texts that stand for a missing value, "" the empty cell
	Optional  bool     // some of the files are without it
	Evidence  string

	key           string // in the script
	placed        bool   // its header and its index find it
	left          string // why it is left out
	guess         string // what of it is guessed
	label         string // what the header calls a column that is found by its index or its letters
	behind, empty string // of the evidence
	misfits       int64
}

// unzoned reports an instant whose text does not say its zone.
func (c *Column) unzoned() bool {
	return c.Type == expr.Instant && c.Format != "" && !expr.Zoned(c.Format)
}

// Files reads all of some files, which may be named by patterns.
func Files(ctx context.Context, urls []string, o Options) (*Proposal, error) {
	p := &Proposal{URLs: urls, told: o.Told, dir: o.Dir, seed: maphash.MakeSeed(), texts: map[string]string{},
		called: map[string]string{}}
	if err := p.expand(ctx, o); err != nil {
		return nil, err
	}
	for _, name := range p.Files {
		if err := p.locate(ctx, name, o); err != nil {
			return nil, err
		}
	}
	if len(p.Files) == 0 {
		return nil, &fault.Error{Kind: fault.UserData, Message: "no file is named", Hint: "name files, or patterns of files"}
	}
	if p.Parquet = address.Parquet(p.Files[0]); p.Parquet {
		return p, p.propose(ctx, &parquetFiles{Proposal: p, at: map[string]int{}}, o)
	}
	var err error
	if p.Format, err = p.formatOf(p.Files[0]); err != nil {
		return nil, err
	}
	if p.Format != "" {
		return p, p.propose(ctx, &recordFiles{Proposal: p, plain: map[string]string{}}, o)
	}
	return p, p.propose(ctx, &csvFiles{Proposal: p}, o)
}

// kind is a kind of files: CSV, records or Parquet. A proposal is made for each in the same steps.
type kind interface {
	// survey looks at the files, leaves out those that cannot be read with the first, and finds the columns of all.
	survey(ctx context.Context, o Options) ([]inputFile, error)
	// choose gives each column its type.
	choose()
	// read reads the files as a run would. again is true if a column was given another type, so that it has to be read
	// once more.
	read(ctx context.Context, o Options) (again bool, err error)
}

// inputFile is one file, and what a pass over it has told.
type inputFile struct {
	name     string
	at       map[int]int // its field, by column of the proposal
	encoding string      // CSV
	shape    shape       // CSV
	found    scanned     // CSV, and what is made of records
}

// propose finds the columns of the files, and checks what is proposed for them.
func (p *Proposal) propose(ctx context.Context, k kind, o Options) error {
	list, err := k.survey(ctx, o)
	if err != nil {
		return err
	}
	p.sayAlike(list)
	k.choose()
	p.nameColumns()
	for again := true; again; {
		if again, err = k.read(ctx, o); err != nil {
			return err
		}
	}
	for i := range p.Columns {
		if c := &p.Columns[i]; c.Type != expr.Invalid {
			c.Evidence += c.behind + c.empty
		}
	}
	p.sayColumns()
	return nil
}

// without names the files that do not have a column, a few of them; "": all have it.
func without(list []inputFile, column int) string {
	const namedMax = 3
	var names []string
	for _, f := range list {
		if !f.has(column) {
			names = append(names, f.name)
		}
	}
	return listed(names, namedMax)
}

// expand lists the files that names and patterns stand for.
func (p *Proposal) expand(ctx context.Context, o Options) error {
	var list []script.FileURL
	p.URLs = slices.Clone(p.URLs)
	for i, u := range p.URLs {
		err := mayLook(u, o)
		if err != nil {
			return err
		}
		if p.URLs[i], err = scriptName(ctx, o, u); err != nil {
			return err
		}
		list = append(list, script.FileURL{URL: p.URLs[i]})
	}
	at := files.Places{Dir: o.Dir, Policy: o.Policy, Listed: map[string][]string{}}
	for _, u := range p.URLs {
		if files.RemotePattern(u) && o.List != nil {
			found, err := o.List(ctx, u, FilesMax)
			if err != nil {
				return err
			}
			at.Listed[u] = found
		}
	}
	list, err := files.Expand(ctx, at, list)
	if err != nil {
		return err
	}
	if len(list) > FilesMax {
		return &fault.Error{Kind: fault.UserData,
			Message: fmt.Sprintf("these are %d files; at most %d are looked at together", len(list), FilesMax),
			Hint:    "name some of them"}
	}
	for _, u := range list {
		p.Files = append(p.Files, u.URL)
		if name, err := scriptName(ctx, o, u.URL); err == nil && name != u.URL {
			p.called[u.URL] = name
		}
	}
	return nil
}

// mayLook refuses local names, and patterns in directories, at which nothing may be looked: whether there is anything
// is not told either.
func mayLook(name string, o Options) error {
	if address.Remote(name) || address.Database(name) {
		return nil
	}
	path, err := address.LocalIn(o.Dir, name)
	if at := strings.IndexAny(path, "*?["); err == nil && at >= 0 && o.Policy != nil {
		if strings.Contains(path[at:], "..") {
			return fault.New(fault.Script, "%s: a pattern has no .. behind its wildcards", name)
		}
		path = filepath.Dir(path[:at] + "-")
	}
	if err != nil {
		return err
	}
	return o.Policy.MayRead(path)
}

// written are the names that the script has: those that were given, or where files are left out those of the others.
func (p *Proposal) written() []string {
	if len(p.Notes) == 0 || len(p.Files) == len(p.texts) {
		return p.URLs
	}
	out := make([]string, len(p.Files))
	for i, name := range p.Files {
		out[i] = cmp.Or(p.called[name], name)
	}
	return out
}

// scriptName returns a file's name for a script; characters that scripts give a meaning become wildcards.
func scriptName(ctx context.Context, o Options, name string) (string, error) {
	what := ""
	switch at := strings.IndexByte(name, '<'); {
	case strings.ContainsAny(name, "{}"):
		what = "braces, in which scripts have parameters"
	case at >= 0 && strings.Contains(name[at:], ">") && exists(o.Dir, name):
		what = "parts in < >, which scripts take for columns"
	default:
		return name, nil
	}
	pattern := strings.Map(func(r rune) rune {
		if strings.ContainsRune("{}<>", r) {
			return '?'
		}
		return r
	}, name)
	if address.Remote(name) || !exists(o.Dir, name) {
		return "", unnameable(name, what,
			"rename the file, or name it by a pattern with ? for such characters, if no other file matches")
	}
	list, err := files.Expand(ctx, files.Places{Dir: o.Dir, Policy: o.Policy}, []script.FileURL{{URL: pattern}})
	if err != nil {
		return "", err
	}
	if len(list) > 1 || list[0].URL != name {
		return "", unnameable(name, what, "rename the file: as "+pattern+
			", which would name it in a script, other files are called as well")
	}
	return pattern, nil
}

// exists reports whether there is a local file of that very name.
func exists(dir, name string) bool {
	path, err := address.LocalIn(dir, name)
	if err == nil && !address.Remote(name) {
		_, err = os.Lstat(path)
	}
	return err == nil
}

// locate says where a file can be read.
func (p *Proposal) locate(ctx context.Context, name string, o Options) (err error) {
	path := name
	switch {
	case address.Database(name):
		return &fault.Error{Kind: fault.Script, Place: fault.Place{File: address.Redact(name)},
			Message: "it is the address of a database, whose tables say their types",
			Hint: "a script reads one without infer: r: {urls: [ADDRESS], table: NAME, types: {}}; " +
				action.Do("validate", "script", "SCRIPT", "connect", "").String() + " tries it"}
	case address.Remote(name) && o.Fetch == nil:
		return &fault.Error{Kind: fault.Bug, Place: fault.Place{File: name},
			Message: "there is nobody to fetch remote files"}
	case address.Remote(name):
		path, err = o.Fetch(ctx, name)
	default:
		path, err = address.LocalIn(o.Dir, name)
		if err == nil && o.Policy != nil {
			path, err = p.copied(ctx, name, path, o)
		}
	}
	if err != nil {
		return err
	}
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return openFault(name, err)
	case st.IsDir():
		return &fault.Error{Kind: fault.UserData, Place: fault.Place{File: name}, Message: "it is a folder, not a file",
			Hint: "name the files in it, in quotes: '" + strings.TrimSuffix(name, "/") + "/*.csv'"}
	case !st.Mode().IsRegular():
		return notRegular(name)
	}
	f, err := os.Open(path)
	if err != nil {
		return openFault(name, err)
	}
	p.texts[name] = path
	return f.Close()
}

// copiedBytesMax bounds the copies of local files that are looked at for others.
const copiedBytesMax = 16 << 30

// copied copies a local file that o.Policy lets be read: it is opened several times, and what is at its path may be
// another file by then.
func (p *Proposal) copied(ctx context.Context, name, path string, o Options) (_ string, err error) {
	f, err := o.Policy.Open(path)
	var irregular *allow.NotRegularError
	switch {
	case errors.As(err, &irregular) && irregular.Mode.IsDir():
		return path, nil // which is said
	case errors.As(err, &irregular):
		return "", notRegular(name)
	case err != nil:
		return "", openFault(name, err)
	}
	defer f.Close() // read only
	to, err := os.CreateTemp(o.WorkDir, "local-")
	if err != nil {
		return "", &fault.Error{Kind: fault.Environment, Message: "copy a file to look at it", Err: err}
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	n, err := io.CopyN(to, &cancelled{ctx, f}, copiedBytesMax-p.copiedBytes+1)
	p.copiedBytes += n
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil && !errors.Is(err, io.EOF):
		return "", &fault.Error{Kind: fault.Environment, Message: "copy " + name + " to look at it", Err: err,
			Hint: "has the disk room for temporary files?"}
	case p.copiedBytes > copiedBytesMax:
		return "", &fault.Error{Kind: fault.Script, Place: fault.Place{File: name},
			Message: fmt.Sprintf("the files have more than %d bytes together", int64(copiedBytesMax)),
			Hint:    "name some of them, or look at them beside the server"}
	}
	return to.Name(), nil
}

// notRegular refuses what cannot be read as a file: opening a pipe would wait for ever.
func notRegular(name string) error {
	return &fault.Error{Kind: fault.UserData, Place: fault.Place{File: name}, Message: "it is not a regular file",
		Hint: "name a file, not a pipe or a device"}
}

// Range is the part of a sheet that the table is in, as the script says it; "": all of it.
func (p *Proposal) Range() string { return p.from.Range }

// nameColumns chooses the names of the columns in the script and its expressions.
func (p *Proposal) nameColumns() {
	used := map[string]bool{}
	for _, c := range p.Columns {
		used[c.Source] = used[c.Source] || !c.placed && c.label == "" && c.Source != ""
	}
	keys := make([]string, len(p.Columns))
	for i := range p.Columns {
		c := &p.Columns[i]
		if c.key = c.Source; c.Source == "" || c.placed || c.label != "" {
			base := script.Identifiers([]string{cmp.Or(strings.TrimSpace(c.title()), fmt.Sprintf("col_%d", i))})[0]
			c.key = base
			for n := 2; used[c.key]; n++ {
				c.key = fmt.Sprintf("%s_%d", base, n)
			}
			used[c.key] = true
		}
		keys[i] = c.key
	}
	for i, name := range script.Identifiers(keys) {
		p.Columns[i].Name = name
	}
}

// reader is that of the script which is proposed, with the columns that it reads: what is verified is what runs do.
func (p *Proposal) reader(ctx context.Context) (*script.FileReader, []*Column, error) {
	for _, name := range p.written() {
		if strings.ContainsAny(name, "{}") {
			return nil, nil, unnameable(name, "braces, in which scripts have parameters", "rename the file")
		}
	}
	var text strings.Builder
	if err := p.WriteScript(&text, false); err != nil {
		return nil, nil, err
	}
	s, diags := script.Load(ctx, script.Sources{Path: proposalName,
		Read: func(context.Context, string) ([]byte, error) { return []byte(text.String()), nil }})
	if diags.HasErrors() {
		return nil, nil, p.refused(diags.Render())
	}
	r := s.Nodes[0].Files
	for _, u := range r.URLs {
		if u.Pattern != "" {
			return nil, nil, unnameable(u.URL, "parts in < >, which scripts take for columns",
				"name the files by a pattern with * for such parts")
		}
	}
	r.URLs, r.Tolerant, r.Pos = nil, false, document.Pos{} // nobody has seen the script yet
	for _, c := range r.Columns {
		c.Pos = document.Pos{}
	}
	for _, name := range p.Files {
		r.URLs = append(r.URLs, script.FileURL{URL: name})
	}
	if p.Format != "" {
		var err error
		if p.spec, err = filespec.Decode(r.Records); err != nil {
			return nil, nil, err
		}
	}
	var columns []*Column
	for i := range p.Columns {
		if c := &p.Columns[i]; c.Type != expr.Invalid {
			c.Name = r.Columns[len(columns)].Name
			columns = append(columns, c)
		}
	}
	return r, columns, nil
}

// refused: what infer writes is a script.
func (p *Proposal) refused(why string) error {
	return &fault.Error{Kind: fault.Bug, Place: fault.Place{File: p.Files[0]},
		Message: "the script that follows from the file is refused: " + why,
		Hint:    "write the script by hand, and report this"}
}

// unnameable: a script that names the file names others.
func unnameable(name, what, hint string) error {
	return &fault.Error{Kind: fault.UserData, Place: fault.Place{File: name}, Message: "the file's name has " + what,
		Hint: hint}
}

// proposalName is the name of the script while it is not written.
const proposalName = "proposal.yaml"

// source is some files open for queries.
type source struct {
	*engine.Instance
	from    string // FROM item
	reader  *script.FileReader
	columns []*Column // that it reads
	slices  []files.Slice
	scratch string
}

// source plans the reading of all files.
func (p *Proposal) source(ctx context.Context, o Options) (*source, error) {
	r, columns, err := p.reader(ctx)
	if err != nil {
		return nil, err
	}
	s := &source{reader: r, columns: columns, scratch: filepath.Join(o.WorkDir, "scratch")}
	// What an earlier reading of the same files left is not this one's.
	if err := errors.Join(os.RemoveAll(s.scratch), os.MkdirAll(s.scratch, 0o700)); err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "make a directory for scratch files", Err: err}
	}
	at := files.Places{Copies: map[string]files.Copy{}}
	for name, text := range p.texts {
		if text != name {
			at.Copies[name] = files.Copy{Path: text}
		}
	}
	plan, err := files.PlanSlicesBy(ctx, s.reader, at, func(int64) int64 { return math.MaxInt64 }, 1)
	if err != nil {
		return nil, err
	}
	for _, batch := range plan {
		s.slices = append(s.slices, batch...)
	}
	return s, nil
}

// open starts an instance that may read the files.
func (p *Proposal) open(ctx context.Context, o Options) (*source, error) {
	s, err := p.source(ctx, o)
	if err != nil {
		return nil, err
	}
	from, prepare, err := files.ReadSQL(s.reader, s.slices, s.scratch, files.Unnumbered)
	var refused *fault.Error
	if errors.As(err, &refused) {
		return nil, unreadable{refused}
	}
	if err != nil {
		return nil, err
	}
	if prepare != nil {
		if err := prepare(ctx); err != nil {
			return nil, err
		}
	}
	s.from = from
	return s, s.start(ctx, o)
}

// row reads the only row of a query as texts. A failure says what is wrong with the file.
func (s *source) row(ctx context.Context, cols []string, from string) ([]sql.NullString, error) {
	cells, err := readRow(ctx, s.Instance, "SELECT "+strings.Join(cols, ", ")+" FROM "+from, len(cols))
	if err == nil {
		return cells, nil
	}
	var found *fault.Error
	if diagnosed := files.Diagnose(ctx, s.Instance, s.reader, s.slices, s.scratch, err); errors.As(diagnosed, &found) {
		return nil, diagnosed
	}
	return nil, fmt.Errorf("look through %s: %w", s.reader.URLs[0].URL, err)
}

// readRow reads the only row of a query as texts.
func readRow(ctx context.Context, in *engine.Instance, query string, columns int) ([]sql.NullString, error) {
	rows, err := in.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	cells := make([]sql.NullString, columns)
	into := make([]any, columns)
	for i := range cells {
		into[i] = &cells[i]
	}
	if rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
	}
	return cells, rows.Err()
}

func number(c sql.NullString) int64 {
	var n int64
	if _, err := fmt.Sscan(c.String, &n); err != nil {
		return 0
	}
	return n
}

// closing joins the failure to close an instance to err.
func closing(in *engine.Instance, err *error) { *err = errors.Join(*err, in.Close()) }
