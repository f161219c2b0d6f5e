package script

import (
	"encoding/json"
	"slices"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/base/secret"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
)

// NodeType names the operation of a node.
type NodeType string

// The node types.
const (
	FileTable    NodeType = "file_table"
	TableTable   NodeType = "table_table"
	LookupTable  NodeType = "table_lookup_table"
	TableFile    NodeType = "table_file"
	Distinct     NodeType = "distinct_table"
	CustomTable  NodeType = "table_custom_tfm_table"
	SQLTable     NodeType = "sql"
	PyTableNode  NodeType = "py_table"
	ProcPyCalc            = "py_calc"
	ProcTag               = "tag_and_denormalize"
	PolicyAuto            = "auto"
	PolicyManual          = "manual"
	PolicyRerun           = "rerun"
	PolicyFail            = "fail"
)

// Script is a loaded, valid script. It is never changed after Load.
type Script struct {
	Path string
	Dir  string // relative names of files and databases are seen from it; "": the working directory
	Name string // what it calls itself; "": it is known by its path
	// hash of the script with its parameters applied, and of the files that it pulls in (Python, tag criteria)
	Fingerprint  string
	Nodes        []*Node        // in the order of the document
	Gates        []*Gate        // in the order of the document
	Looked       [][]FileColumn // the columns of input files that were asked for, in the order in which they were
	Policies     []*DependencyPolicy
	Requirements []Requirement // of its Python code
	Serving                    // when it is run, and who is told
	byName       map[string]*Node
	byTable      map[string]*Node // table name -> node that creates it
	byIndex      map[string]*Index
	definition   []byte
	params       string            // name of the file of parameters; "": none
	texts        map[string]string // of the files that were read, by name
	Given        string            // digest of its environment values that are no secrets; "": it has none
	secrets      map[string]string // environment values that are only in memory, by name
	hidden       *secret.Known     // knows them
}

// Node finds a node by name; nil if there is none.
func (s *Script) Node(name string) *Node { return s.byName[name] }

// Node is one step.
type Node struct {
	Name         string
	Pos          document.Pos
	Type         NodeType
	Desc         string
	Tags         []string // by which people name several nodes at once
	StartPolicy  string   // PolicyAuto, PolicyManual
	RerunPolicy  string   // PolicyRerun, PolicyFail
	Policy       *DependencyPolicy
	Files        *FileReader  // reader of FileTable
	Reader       *TableReader // reader of every other type but SQLTable
	Lookup       *Lookup      // LookupTable
	PyCalc       *PyCalc      // CustomTable with py_calc
	PyTable      *PyTable     // PyTableNode
	Tag          *Tag         // CustomTable with tag_and_denormalize
	Query        *SQLQuery    // SQLTable
	Table        *TableWriter // every type but TableFile
	Out          *FileWriter  // TableFile
	Checks       []*Check     // of the rows that it writes
	BadRows      *BadRows     // nil: the first bad row fails the node
	MaxBatchMSec int          // max_batch_processing_time in milliseconds as given, 0 if not
	Ephemeral    bool         // its table is computed inside its only reader, and not stored
	Answers      []string     // that it uses itself: parameters that people give at gates before it
	Reuse        Reuse        // whether a run may take over what another has computed
	ReuseFiles   []FileURL    // that its Python code reads: it is taken over only if they are the same
	// hash of what this node by itself does: its keys but desc, tags and approvals, its policy, the files it pulls in
	Fingerprint string
}

// Reuse is a node's setting for taking its rows over from an earlier run.
type Reuse int

// What it may say.
const (
	ReuseUnsaid Reuse = iota // if nothing in its Python code speaks against it
	ReuseAlways              // its Python code gives the same for the same rows
	ReuseNever
)

// FileReaders lists what the node reads of files: of a file_table its urls, of
// a sql node the files of its scan_file calls.
func (n *Node) FileReaders() []*FileReader {
	if n.Files != nil {
		return []*FileReader{n.Files}
	}
	if n.Query == nil || n.Query.Info == nil {
		return nil
	}
	var out []*FileReader
	for _, f := range n.Query.Info.Files {
		out = append(out, f.Reader)
	}
	return out
}

// Sources lists the nodes whose tables this one reads: the reader's first, then
// the lookup's, then those of Named.
func (n *Node) Sources(*Script) []*Node { return sources(n) }

// Named lists the nodes whose tables this one reads beside its reader's and its
// lookup's, each once, in the order in which the node names them: those of a
// query, then those that its checks compare with.
func (n *Node) Named() []*Node {
	var out []*Node
	seen := map[*Node]bool{}
	add := func(source *Node) {
		if source != nil && !seen[source] {
			seen[source] = true
			out = append(out, source)
		}
	}
	if n.Query != nil {
		for _, in := range n.Query.Inputs {
			add(in.Creator)
		}
	}
	for _, source := range n.CheckedTables() {
		add(source)
	}
	return out
}

// PythonCode lists the Python sources that the node pulls in, nil for nodes without Python.
func (n *Node) PythonCode() []PyFile {
	switch {
	case n.PyCalc != nil:
		return n.PyCalc.Code
	case n.PyTable != nil:
		return n.PyTable.Code
	}
	return nil
}

// FileReader reads input files.
type FileReader struct {
	Pos     document.Pos
	URLs    []FileURL
	Parquet bool // else CSV
	CSV     CSVReader
	// JSON, Excel: what is taken of its records (package records), of which CSV is made that is read; "": the file is
	// read
	Records string
	Table   string         // of the databases that URLs name, each with a # and what of it is read behind its address
	Query   string         // instead of Table
	Columns []*InputColumn // in the order of the document
	// of the first file, the headers or names that Columns were taken from (types); nil: the script lists Columns
	First []string
	// Tolerant: records that cannot be read are put aside (Node.BadRows), so
	// they are no reason not to plan.
	Tolerant bool
}

// Database reports whether tables of databases are read.
func (r *FileReader) Database() bool { return r.Table != "" || r.Query != "" }

// FileURL is an input file and where the script names it.
type FileURL struct {
	URL     string
	Pattern string // with the parts that are columns, where URL has a *; "": there are none
	Pos     document.Pos
}

// CSVReader says how to read CSV.
type CSVReader struct {
	HeaderRecord    int              // hdr_line_idx; -1: none. Blank lines do not count
	FirstDataRecord int              // first_data_line_idx
	Separator       byte             // default ','
	Made            *filespec.Spec   // the files are no CSV: CSV is made of them, see FileReader.Records; without columns
	ByHeader        bool             // columns are found by header text, else by index
	Charset         filespec.Charset // encoding
	Zone            string           // of timestamptz whose layout has none
}

// Numbers holds the notation of numbers in CSV files.
type Numbers struct {
	Comma bool // is between whole and decimal digits, else a point
	// stands between groups of three whole digits, or is left out; "": nothing may. A space is any of those that people
	// use for it
	Thousands string
}

// InputColumn is a column of an input file: r.<Name>.
type InputColumn struct {
	Name string
	Pos  document.Pos
	Type expr.Type
	// text as given: CSV: col_default_value, for an empty cell; Parquet: parquet.default_value, for a null
	Default string
	Header  string  // CSV by header
	Index   int     // CSV by index
	Placed  bool    // CSV by header: of the columns with this header, which may be empty, the one at Index
	Format  string  // CSV: Go scan verb or Go time layout; "" is none
	Parquet string  // Parquet column name
	Numbers Numbers // CSV, numbers without a format

	Path     string // JSON: to its value in a record; Excel: its header
	Optional bool   // a file may be without it: then it is as if its cells were empty
	File     string // WholeName, or if Part the name of a part: it is taken from the files' names, and is not in them
	Part     bool

	// Round says that digits which the type does not keep are rounded off; else they
	// are an error, but for datetimes and decimal2 in Capillaries' forms.
	Round bool
	Zone  string // CSV, timestamptz: the zone of texts whose layout has none

	Short bool // it is given in a short form of Thalweg's own, read as strictly as it says

	Nullable        bool     // else an empty cell or a null is Default or the type's zero value
	NullTexts       []string // CSV, nullable: texts that are NULL; "" is the empty cell without quotes
	QuotedEmptyNull bool     // CSV, nullable: "" in quotes is NULL, else it is an empty text
}

// InFile reports whether files have the column.
func (c *InputColumn) InFile() bool { return c.File == "" }

// Exact reports whether a value that the type cannot hold exactly is an error.
func (c *InputColumn) Exact() bool {
	return !c.Round && (c.Short || c.Type != expr.DateTime && c.Type != expr.Decimal)
}

// ScanSQL renders the reading of a CSV cell's text, in the rules of the column's form.
func (c *InputColumn) ScanSQL(text string) (string, error) {
	if c.Short || c.Type == expr.Instant || c.Type != expr.Decimal && c.Type.IsDecimal() {
		return expr.ScanExactSQL(c.Type, c.Format, text, expr.Exactly{Round: c.Round, Zone: c.Zone})
	}
	return expr.ScanSQL(c.Type, c.Format, text)
}

// Zoned reports whether the column's datetimes have zones of their own.
func (c *InputColumn) Zoned() bool {
	return c.Type == expr.DateTime && c.Parquet == "" && c.Format != "" && expr.Zoned(c.Format)
}

// TableReader reads a table, or several one behind the other: r.*.
type TableReader struct {
	Creators        []*Node // of the tables, in the order in which their rows come
	ExpectedBatches int     // ≥ 1: upper bound on parallelism, exact when the output name has {batch_idx}
	RowsetSize      int
}

// Reads reports whether n's table is read.
func (r *TableReader) Reads(n *Node) bool { return r != nil && slices.Contains(r.Creators, n) }

// Fields are those of the tables together. One that a table does not have is
// NULL in its rows.
func (r *TableReader) Fields() []*Field {
	if len(r.Creators) == 1 {
		return r.Creators[0].Table.Fields
	}
	var out []*Field
	of := map[string]*Field{}
	for _, n := range r.Creators {
		for _, f := range n.Table.Fields {
			if of[f.Name] == nil {
				c := *f
				of[f.Name] = &c
				out = append(out, &c)
			}
			of[f.Name].Nullable = of[f.Name].Nullable || f.Nullable
		}
	}
	return out
}

// Lookup joins a second table: l.*.
type Lookup struct {
	Pos        document.Pos
	Index      *Index
	JoinOn     []string // fields of r, positionally against Index.Key
	Group      bool
	NullsMatch bool           // nulls: match; else a key with a NULL in it matches nothing
	Left       bool           // join_type: left, else inner
	Filter     *expr.Compiled // over l.*; nil: none
}

// Index is an index definition of a table.
type Index struct {
	Name   string
	Pos    document.Pos
	Node   *Node // creator of the table
	Unique bool
	Key    expr.Order
}

// TableWriter creates a table.
type TableWriter struct {
	Pos     document.Pos
	Name    string
	Having  *expr.Compiled // over w.*; nil: none
	Fields  []*Field       // in the order of the document
	Indexes []*Index
}

// Field finds a field by name; nil if there is none.
func (w *TableWriter) Field(name string) *Field {
	for _, f := range w.Fields {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Field is a column of a table.
type Field struct {
	Name    string
	Pos     document.Pos
	Type    expr.Type
	Expr    *expr.Compiled // nil in a table of SQLTable
	Default string         // default_value as text: for left joins without a match; "" is the type's zero value
	ExprPos document.Pos

	Nullable      bool // else Expr is never NULL
	NullUnmatched bool // left joins without a match: l.* is NULL, an aggregate is NULL, and Default does not count
}

// FileWriter writes a file family.
type FileWriter struct {
	Pos       document.Pos
	URL       string // may contain {batch_idx|string} and {run_id|string}
	Having    *expr.Compiled
	Order     expr.Order // nil: as they come
	LimitRows int        // the first so many in Order; 0: all
	Form      FileForm
	Parquet   bool // Form is FormParquet
	Separator string
	CRLF      bool   // line_end: lines of a CSV file end in CRLF, else in LF
	Zone      string // of timestamptz in a CSV file; "": UTC
	Quote     string // QuoteMinimal, QuoteAll or QuoteNone: which values of a CSV file are put in quotes
	Codec     string // of Parquet: gzip, snappy, zstd, uncompressed
	Packing   Packing
	Sheet     string          // of an Excel file
	Index     []*OutputColumn // of an index: the columns of the key; those of Columns that are none are the values
	Manifest  bool            // a file beside the others says what they are
	Target    *DatabaseTarget // not a file: a table of a database, whose address is before the # of URL

	PartitionBy []*OutputColumn // of Columns: each of their values has a directory
	TargetBytes int64           // how large files are to be about; 0: as large as they get

	Columns []*OutputColumn
}

// DatabaseTarget is a table of a database that rows go to.
type DatabaseTarget struct {
	Table string
	Mode  string   // append, replace or merge
	Key   []string // of merge: columns
}

// Packing holds the compression of a whole file.
type Packing struct {
	Compression filespec.Compression
	Level       int // of the compression, or of a Parquet file's codec; 0: the default
}

// Which values of a CSV file are put in quotes.
const (
	QuoteMinimal = "minimal" // those that would not be read back as they are
	QuoteAll     = "all"     // all but NULLs
	QuoteNone    = "none"    // none: one that needs quotes is an error
)

// QuotedAnywhere lists the characters that put a value of a CSV file in quotes
// wherever they stand. A comma does whatever the separator is, as in
// Capillaries; of a longer separator each character does, lest it meets one at
// the value's edge; a NUL ends texts for some readers.
func (w *FileWriter) QuotedAnywhere() string { return "\"\r\n,\x00" + w.Separator }

// NeedsQuotes reports whether readers would take text, unquoted, for another one.
func (w *FileWriter) NeedsQuotes(text string) bool {
	return strings.ContainsAny(text, w.QuotedAnywhere()) || strings.TrimRight(text, " \t") != text || text != "" &&
		text[0] <= ' '
}

// PerBatch reports whether the file name contains the batch index, so that
// each batch writes a file of its own and the count of batches is exact.
func (w *FileWriter) PerBatch() bool { return containsBatchIndex(w.URL) }

// ManifestURL returns the address of the manifest of the files; it may contain {run_id|string}.
func (w *FileWriter) ManifestURL() string {
	if w.Dir() {
		return strings.TrimSuffix(w.URL, "/") + "/" + DirManifest
	}
	return strings.ReplaceAll(w.URL, batchRef, "all") + ".manifest.json"
}

// OutputColumn is a column of an output file.
type OutputColumn struct {
	Name    string // w.<Name> in having and top; #N of the Nth column if that has no name of its own
	Pos     document.Pos
	Type    expr.Type
	Expr    *expr.Compiled
	Header  string // CSV and Excel; the key in lines of JSON
	Format  string // CSV: Go print verb or Go time layout
	Zone    string // CSV, timestamptz: in which it is printed; "": UTC
	Parquet string // Parquet column name

	Nullable bool   // else Expr is never NULL
	NullText string // CSV, nullable: what stands for NULL; "" is the empty cell without quotes
}

// PrintSQL renders the column's text in a CSV file.
func (c *OutputColumn) PrintSQL(sql string) (string, error) {
	if c.Zone != "" {
		return expr.PrintInSQL(c.Type, c.Format, c.Zone, sql, c.Expr.Source())
	}
	return expr.PrintSQL(c.Type, c.Format, sql)
}

// Value is an expression of a node's output, and the name under which its results are written.
type Value struct {
	Name string
	Expr *expr.Compiled
}

// Written lists the fields of n's table or the columns of its file.
func (n *Node) Written() []Value {
	var out []Value
	if n.Table != nil {
		for _, f := range n.Table.Fields {
			out = append(out, Value{f.Name, f.Expr})
		}
	}
	if n.Out != nil {
		for _, c := range n.Out.Columns {
			out = append(out, Value{c.Name, c.Expr})
		}
	}
	return out
}

// Having is the condition for what n writes; nil: none.
func (n *Node) Having() *expr.Compiled {
	switch {
	case n.Table != nil:
		return n.Table.Having
	case n.Out != nil:
		return n.Out.Having
	}
	return nil
}

// SQLQuery is the SELECT of a node of type SQLTable.
type SQLQuery struct {
	Pos    document.Pos // of its text's first character
	Inputs []QueryInput
	// fields of all inputs: the query is evaluated for the rows of some of their values at a time; nil: no
	By      []string
	Ordered bool       // rows have an order that depends on nothing but the rows
	Info    *QueryInfo // nil if Sources.Describe was: such a node cannot run
}

// QueryInput is a table that a query reads, under the name that it has there.
type QueryInput struct {
	Name    string
	Table   string
	Creator *Node
}

// PyCalc computes p.* in Python.
type PyCalc struct {
	Code   []PyFile
	Fields []*PyField // in an order in which each only needs earlier ones
}

// PyFile is a Python source that the script pulls in.
type PyFile struct {
	URL  string
	Text string
}

// PyField is a calculated field: p.<Name>.
type PyField struct {
	Name     string
	Pos      document.Pos
	Type     expr.Type
	Expr     string     // Python text in which r.x and p.x are references; "" in PyTable.Returns
	Refs     []expr.Ref // r.* and p.* that it uses
	Nullable bool       // None is NULL; otherwise None is an error
	Round    bool       // of PyTable.Returns: digits that the type does not keep are rounded off
}

// Forms in which a py_table function gets its rows.
const (
	InputLists  = "lists"  // dict of lists
	InputNumpy  = "numpy"  // dict of arrays
	InputPandas = "pandas" // DataFrame
	InputPolars = "polars" // DataFrame
	InputArrow  = "arrow"  // pyarrow.Table
)

// PyTable computes p.* with a Python function over many rows at once.
type PyTable struct {
	Pos       document.Pos
	Code      []PyFile
	Function  string
	Arguments []PyArgument // given to every call by name
	GroupBy   []string     // fields of r whose equal values make a group; nil: see Whole
	Whole     bool         // without GroupBy: one call gets the whole table, not a batch
	Input     string       // InputLists …
	Columns   []string     // fields of r that are passed
	Returns   []*PyField   // in the order of the document
}

// PyArgument is a constant argument of a function.
type PyArgument struct {
	Name string
	JSON json.RawMessage // text, number, boolean, or a list of them
}

// Tag emits one row for each criterion that holds.
type Tag struct {
	Pos      document.Pos
	Field    string // p.<Field>, a string
	Criteria []TagCriterion
}

// TagCriterion is a tag and its condition over r.*.
type TagCriterion struct {
	Tag  string
	Expr *expr.Compiled
}

// DependencyPolicy decides which run's table a node reads.
type DependencyPolicy struct {
	Name    string
	Pos     document.Pos
	Default bool
	Order   expr.Order
	Rules   []DependencyRule
}

// DependencyRule is one rule of a policy.
type DependencyRule struct {
	Cmd  string         // go, wait, nogo
	Expr *expr.Expr     // over nrs.* and wfmodel.* (see PolicyConstant), whatever name the script uses
	Cond *expr.Compiled // the same with types
}
