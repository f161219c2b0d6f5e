package script

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/base/similar"
	"thalweg/internal/lang/expr"
)

// nodeDraft is a node while it is being put together.
type nodeDraft struct {
	numbers    Numbers // of its input files
	node       *Node
	key        *document.Value // its name
	path       string
	o          *object // its keys
	r, l, p, w *object

	fields   []*fieldDraft // of the table that it creates
	indexes  []indexDraft  // of the same
	uses     nodeUses      // of answers
	pulled   []pulledFile  // files that its meaning depends on, other than Python code
	fieldsOK bool          // whether the names of all fields are known

	reads      map[string]expr.Type // r.*
	readsOK    bool                 // whether r.* could be determined
	readsOrder []string
	looks      map[string]expr.Type // l.*
	looksOK    bool
	looksOrder []string
	calcs      map[string]expr.Type // p.*
	calcsOK    bool
	calcsOrder []string
}

// pulledFile is a file that a node pulls in.
type pulledFile struct {
	url string
	src *document.Source
}

// fieldDraft is a field before its expression is checked.
type fieldDraft struct {
	field *Field
	o     *object
	infer bool // its type is that of the expression
}

// indexDraft is an index before its key is read.
type indexDraft struct {
	index *Index
	e     *document.Entry
}

func nodeTypes() []string {
	return []string{string(FileTable), string(TableTable), string(LookupTable), string(TableFile), string(Distinct),
		string(CustomTable), string(SQLTable), string(PyTableNode)}
}

// node reads the keys that all nodes have and opens the parts.
func (l *loader) node(e *document.Entry) {
	path := join("nodes", e.Name)
	l.nodeName(e, path)
	if e.Value.Kind == document.Map {
		own(e)
	}
	o := l.object(e.Value, path, nodeShape)
	if o == nil {
		return
	}
	o.at = e.Key
	n := &Node{Name: e.Name, Pos: l.pos(e.Key)}
	d := &nodeDraft{node: n, key: e.Key, path: path, o: o, uses: l.usesOf(n)}
	n.Type = l.nodeType(o)
	n.Desc = o.str("desc")
	n.Tags = l.tags(o)
	n.StartPolicy = o.choice("start_policy", PolicyAuto)
	n.RerunPolicy = l.rerunPolicy(o, n)
	n.Ephemeral = o.boolean("ephemeral")
	n.Reuse, n.ReuseFiles = l.reuse(o)
	o.str("handler_exe_type")
	if n.MaxBatchMSec = o.integer("max_batch_processing_time", 0); n.MaxBatchMSec < 0 {
		l.WarnAt(o.get("max_batch_processing_time"), o.keyPath("max_batch_processing_time"),
			"max_batch_processing_time is negative: the default is used").Hint = "it is in milliseconds"
		n.MaxBatchMSec = 0
	}
	l.badRows(d)
	l.parts(d)
	l.nodes = append(l.nodes, d)
	l.drafts[n] = d
	l.script.Nodes = append(l.script.Nodes, n)
	l.script.byName[n.Name] = n
	l.nodePolicy(d)
}

// tagsMax limits the number of tags of a node.
const tagsMax = 50

// tagWord matches a tag: tags are typed on command lines, several with commas between them.
var tagWord = regexp.MustCompile(`^[\pL\pN_][\pL\pN_.:/-]*$`)

// tags reads the words by which people name several nodes at once.
func (l *loader) tags(o *object) (out []string) {
	for _, name := range o.names("tags") {
		switch {
		case !tagWord.MatchString(name.name):
			l.ErrorAt(name.at, o.keyPath("tags"), "%s is not a tag", document.Quote(name.name)).Hint =
				"a tag is letters, digits and _ . : / - without blanks"
		case slices.Contains(out, name.name):
			l.WarnAt(name.at, o.keyPath("tags"), "tag %s is there twice", document.Quote(name.name))
		default:
			out = append(out, name.name)
		}
	}
	if len(out) > tagsMax {
		l.ErrorAt(o.get("tags"), o.keyPath("tags"), "a node may have %d tags, and has %d", tagsMax, len(out))
	}
	return out
}

// reuse reads whether a run may take the node over: true, false, or the files
// that its Python code reads.
func (l *loader) reuse(o *object) (Reuse, []FileURL) {
	v := o.get("reuse")
	switch {
	case v == nil:
		return ReuseUnsaid, nil
	case v.Kind == document.List:
		var read []FileURL
		for _, u := range o.texts("reuse") {
			if address.Remote(u.Text) {
				l.ErrorAt(u, o.keyPath("reuse"), "%s is on another machine: Python code cannot read it, and it "+
					"cannot be looked at",
					document.Quote(address.Redact(u.Text))).Hint = "name the files of this machine that the node's " +
					"Python code opens"
			}
			read = append(read, FileURL{URL: u.Text, Pos: l.pos(u)})
		}
		return ReuseAlways, read
	case o.boolean("reuse"):
		return ReuseAlways, nil
	}
	return ReuseNever, nil
}

func (l *loader) nodeName(e *document.Entry, path string) {
	switch name := e.Name; {
	case strings.TrimSpace(name) == "":
		l.ErrorAt(e.Key, path, "a node needs a name")
	case len([]rune(name)) > MaxNodeNameChars:
		l.ErrorAt(e.Key, path, "the node's name is longer than %d characters", MaxNodeNameChars)
	case strings.ContainsAny(name, ",/\\") ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		l.ErrorAt(e.Key, path, "the node's name %s contains a character that lists and addresses of nodes cannot hold",
			document.Quote(name)).Hint = "use letters, digits and underscores"
	case strings.HasPrefix(name, GatePrefix):
		l.ErrorAt(e.Key, path, "the node's name %s begins with %s, as only gates do", document.Quote(name), GatePrefix)
	case !isWord(name):
		l.WarnAt(e.Key, path, "the node's name %s has other characters than letters, digits and underscores",
			document.Quote(name)).Hint = "it has to be quoted on command lines and in addresses"
	}
}

// nodeType reads the type. After an error it is what was most likely meant, so
// that the node's other problems are found too; "" if that is not clear.
func (l *loader) nodeType(o *object) NodeType {
	v := o.one("type", document.OneOf(nodeTypes()))
	switch {
	case v == nil:
		return likelyType(o)
	case slices.Contains(nodeTypes(), v.Text):
		return NodeType(v.Text)
	}
	wrong := l.ErrorAt(v, o.keyPath("type"), "there is no node type %s", document.Quote(v.Text))
	wrong.Hint = document.DidYouMean(v.Text, nodeTypes())
	if name := strings.ToLower(strings.TrimSpace(v.Text)); name == ProcPyCalc || name == ProcTag {
		wrong.Hint = fmt.Sprintf("%s is a processor: write type: %s and custom_proc_type: %s", name, CustomTable, name)
		return CustomTable
	}
	if t := likelyType(o); t != "" {
		return t
	}
	return NodeType(similar.Nearest(v.Text, nodeTypes()))
}

// likelyType tells a node's type by keys that no other type has.
func likelyType(o *object) NodeType {
	inside := func(part, key string) bool {
		v := o.get(part)
		if v == nil {
			return false
		}
		for _, e := range v.Entries {
			if strings.EqualFold(e.Name, key) {
				return true
			}
		}
		return false
	}
	switch {
	case inside("r", "urls"):
		return FileTable
	case inside("w", "url_template"):
		return TableFile
	case o.has("l"):
		return LookupTable
	case o.has("query") || o.has("query_url"):
		return SQLTable
	case inside("p", "function"):
		return PyTableNode
	case o.has("p"):
		return CustomTable
	}
	return ""
}

func (l *loader) rerunPolicy(o *object, n *Node) string {
	if n.Type != Distinct {
		return o.choice("rerun_policy", PolicyRerun)
	}
	if o.choice("rerun_policy", PolicyRerun) != PolicyFail {
		if v := o.get("rerun_policy"); v != nil {
			l.ErrorAt(v, o.keyPath("rerun_policy"), "a distinct_table must have rerun_policy fail")
		} else {
			l.ErrorAt(o.where(), o.path, "a distinct_table must say rerun_policy: fail")
		}
	}
	return PolicyFail
}

// notIn leaves out the keys that a shape has.
func notIn(s *shape, keys []string) []string {
	return slices.DeleteFunc(keys, func(key string) bool { return s.index(key) >= 0 })
}

// parts opens r, l, p and w with the keys that the node's type allows.
func (l *loader) parts(d *nodeDraft) {
	o, t := d.o, d.node.Type
	if d.r = l.part(d, "r", readerShape); d.r != nil && t != "" {
		switch t {
		case FileTable:
			d.r.misplaced("a file_table reads files",
				notIn(fileReaderShape, append(tableReaderShape.names(), queryReaderShape.names()...))...)
		case SQLTable:
			d.r.misplaced("a sql node reads what tables lists",
				notIn(queryReaderShape, append(tableReaderShape.names(), fileReaderShape.names()...))...)
		case PyTableNode, LookupTable:
			d.r.misplaced("a "+string(t)+" reads tables", notIn(tableReaderShape, fileReaderShape.names())...)
		default:
			d.r.misplaced("a "+string(t)+" reads a table",
				notIn(tableReaderShape, append(fileReaderShape.names(), queryReaderShape.names()...))...)
		}
	}
	if d.w = l.part(d, "w", writerShape); d.w != nil && t != "" {
		if t == TableFile {
			d.w.misplaced("a table_file writes files", slices.DeleteFunc(tableWriterShape.names(),
				func(key string) bool { return key == "approval" })...)
		} else {
			d.w.tableForName(t)
			d.w.misplaced("a "+string(t)+" writes a table", fileWriterShape.names()...)
		}
	}
	if t == "" {
		return
	}
	if t == LookupTable {
		d.l = l.part(d, "l", lookupShape)
	} else {
		o.ignored("only a table_lookup_table looks up", "l")
	}
	if t != CustomTable {
		o.ignored("only a table_custom_tfm_table has a processor", "custom_proc_type")
	}
	if t != CustomTable && t != PyTableNode {
		o.ignored("only a table_custom_tfm_table and a py_table have a processor", "p")
	}
	if t != SQLTable {
		o.misplaced("only a sql node has a query", "query", "query_url", "ordered", "by")
	} else if d.w.has("having") {
		l.ErrorAt(d.w.keys["having"].Key, d.w.keyPath("having"), "a sql node takes no having").Hint =
			"write WHERE, HAVING or QUALIFY in the query"
	}
	if t == FileTable {
		o.ignored("a file_table depends on no node", "dependency_policy")
	}
}

// tableForName reports w: {table: t} of a node that writes a table, and takes it for what
// it means: what reads the table is not wrong.
func (o *object) tableForName(t NodeType) {
	v := o.get("table")
	if v == nil || o.has("name") || o.l.src.Lenient || !isText(v) {
		return
	}
	o.l.ErrorAt(o.keys["table"].Key, o.path, "the table that a %s writes is called by name, not by table",
		t).Hint = "write name: " + v.Text + "; " + lenientHint
	o.drop("table")
	o.add("name", v)
}

func (l *loader) part(d *nodeDraft, key string, s *shape) *object {
	v := d.o.get(key)
	if v == nil {
		if d.node.Type != "" && (d.node.Type != SQLTable || key != "r") {
			d.o.missing(key, "a "+string(d.node.Type)+" needs it")
		}
		return nil
	}
	e := d.o.keys[key]
	if e.Value = d.shortPart(key, v); !e.Value.Made {
		own(e)
	}
	part := l.object(e.Value, d.o.keyPath(key), s)
	if part != nil {
		part.at = d.o.keys[key].Key
	}
	return part
}

// isWord reports whether name has only ASCII letters, digits and underscores.
func isWord(name string) bool {
	for i := range len(name) {
		if name[i] >= 0x80 || !isWordByte(name[i]) {
			return false
		}
	}
	return name != ""
}

// fieldName checks the name of a field or column: it is used as r.name in
// expressions and as a column of a table, where case does not distinguish.
func (l *loader) fieldName(key *document.Value, name, path, what string, seen map[string]*document.Value) {
	if !isWord(name) || (name[0] >= '0' && name[0] <= '9') {
		l.ErrorAt(key, path, "%s is not a name for a %s", document.Quote(name),
			what).Hint = "use letters, digits and underscores, beginning with a letter"
		return
	}
	folded := strings.ToLower(name)
	if first := seen[folded]; first != nil {
		d := l.ErrorAt(key, path, "the name %s is taken: names of %ss that differ only by case are the same",
			document.Quote(name), what)
		if first.Text == name {
			d.Message = "the " + what + " " + document.Quote(name) + " occurs twice"
		}
		if d.Severity != "" {
			d.Related = append(d.Related, l.pos(first))
		}
		return
	}
	seen[folded] = key
}

// columnType reads a key that names a type.
func (l *loader) columnType(o *object, key string) expr.Type {
	v := o.one(key, document.OneOf(typeNames()))
	if v == nil {
		return expr.Invalid
	}
	return l.typeWord(v, o.keyPath(key))
}

// typeWord reads a value that names a type.
func (l *loader) typeWord(v *document.Value, path string) expr.Type {
	if !v.Scalar() {
		l.ErrorAt(v, path, "expected a type, found %s", v.Kind).Hint = document.OneOf(typeNames())
		return expr.Invalid
	}
	t, ok := expr.ParseType(v.Text)
	if !ok {
		d := l.ErrorAt(v, path, "there is no type %s", document.Quote(v.Text))
		if d.Hint = expr.TypeProblem(v.Text); d.Hint == "" {
			d.Hint = document.DidYouMean(v.Text, typeNames())
		}
		if ours := foreignType(v.Text); ours != "" {
			d.Hint = "here it is " + ours
		}
		return expr.Invalid
	}
	return t
}
