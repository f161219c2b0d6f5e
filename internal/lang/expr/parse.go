package expr

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Ref is a reference to a column: r.x, l.x, p.x, w.x.
type Ref struct{ Alias, Field string }

// String returns alias.field.
func (r Ref) String() string { return r.Alias + "." + r.Field }

// Expr is a parsed expression. It is never changed after Parse.
type Expr struct {
	src  string
	base int // position of the source's first byte in the syntax tree
	root ast.Expr
	refs []Ref
}

// Source returns the text that was parsed.
func (e *Expr) Source() string { return e.src }

// Refs lists the distinct references in order of first appearance. Constants
// of packages (time.January, wfmodel.RunStart) are not references.
func (e *Expr) Refs() []Ref { return slices.Clone(e.refs) }

// Parse reads an expression and rejects syntax that is outside the language.
// Names and types are Check's business. The error is an *Error.
func Parse(src string) (*Expr, error) {
	if len(src) > MaxSourceBytes {
		return nil, span{MaxSourceBytes, len(src) - MaxSourceBytes}.errorf(
			"the expression has %d bytes, at most %d are allowed", len(src), MaxSourceBytes)
	}
	if strings.TrimSpace(src) == "" {
		return nil, span{0, len(src)}.errorf("the expression is empty")
	}
	if i := strings.IndexByte(src, 0); i >= 0 {
		return nil, span{i, 1}.errorf("a zero byte is not allowed")
	}
	e := &Expr{src: src}
	fset := token.NewFileSet()
	root, err := parser.ParseExprFrom(fset, "", src, 0)
	if err != nil {
		return nil, syntaxError(src, err)
	}
	fset.Iterate(func(f *token.File) bool { e.base = f.Base(); return false })
	e.root = root
	if err := e.walk(root, 1); err != nil {
		return nil, err
	}
	return e, nil
}

// syntaxError turns the first of Go's syntax errors into ours.
func syntaxError(src string, err error) *Error {
	var list scanner.ErrorList
	if !errors.As(err, &list) || len(list) == 0 {
		return span{0, len(src)}.errorf("not an expression: %v", err)
	}
	if word, ok := keywordName(src); ok {
		name := src[word.off : word.off+word.len]
		return word.errorf("%s is a word of the language of expressions: no field can be called that in one", name).
			hint("give the column or field another name where it is defined; columns taken from a file's header "+
				"are called %s_", name)
	}
	first := list[0]
	at := span{min(max(first.Pos.Offset, 0), len(src)), 0}
	if at.off < len(src) {
		at.len = 1
	}
	out := at.errorf("%s", first.Msg)
	out.Message = strings.NewReplacer("'EOF'", "the end of the expression", "expected selector or type assertion",
		"expected the name of a field").Replace(out.Message)
	switch rest := src[at.off:]; {
	case insideText(src, at.off): // nothing is wrong inside of a text but an escape
		out.hint("backslashes are not interpreted; write the text between back-ticks")
	case strings.HasPrefix(rest, "\n"):
		out.hint("a line that goes on must end in an operator or a comma")
	case strings.HasPrefix(rest, "'"):
		out.Message = "text cannot stand between single quotes"
		out.hint("text is written between double quotes or back-ticks")
	case strings.HasPrefix(rest, "=") && strings.TrimSpace(src[:at.off]) == "":
		out.hint("an expression begins without =")
	case strings.HasPrefix(rest, "="):
		out.hint("equality is written ==")
	case strings.HasPrefix(rest, ")") && openParentheses(src) < 0:
		out.Message = "a ) has no ( before it"
		out.hint("each ) needs a (")
	case strings.HasPrefix(rest, "$"):
		out.hint("a field is written r.name, without $")
	case strings.HasPrefix(rest, "~"):
		out.Message = "~ is no operator"
		out.hint("a pattern is looked for by re.MatchString(pattern, s)")
	case strings.HasPrefix(rest, "\"") && strings.HasSuffix(src[:at.off], "f"):
		out.Message = "texts with values in them are not written f\"…\""
		out.hint("put them together with +, or write fmt.Sprintf(`%%s of %%d`, r.name, r.id)")
	case first.Msg == "string literal not terminated":
		out.hint("a text ends with the quote that it begins with")
	case strings.HasPrefix(rest, "[") || strings.HasPrefix(rest, "\""):
		out.hint("a field is written r.name, without quotes and brackets")
	case strings.TrimSpace(rest) == "" && openParentheses(src) > 0:
		out.Message = "a parenthesis is not closed"
		out.hint("each ( needs a )")
	case strings.TrimSpace(rest) == "" && strings.HasSuffix(strings.TrimSpace(src), "%"):
		out.Message = "% is no percentage"
		out.hint("10 percent of x is written x / 10.0, or x * 0.1; %% between two whole numbers is the remainder")
	default:
		foreignSyntax(out, src, rest)
	}
	return out
}

// openParentheses counts those that are not closed.
func openParentheses(src string) (open int) {
	eachToken(src, func(_ span, tok token.Token) bool {
		switch tok {
		case token.LPAREN:
			open++
		case token.RPAREN:
			open--
		}
		return true
	})
	return open
}

// foreignWords are operators of SQL and Python, and what they are here.
var foreignWords = map[string]string{
	"and": "and is written &&", "or": "or is written ||", "not": "not is written !",
	"is": "NULL is found by is_null(x)", "when": caseHint, "then": caseHint, "case": caseHint,
	"if": "it is written iif(condition, x, y)", "else": "it is written iif(condition, x, y)",
	"in":    "x IN (1, 2) is written x == 1 || x == 2",
	"like":  "LIKE is re.MatchString(pattern, s), strings.Contains(s, part) or strings.HasPrefix(s, part)",
	"ilike": "re.MatchString(`(?i)…`, s)", "between": "x BETWEEN a AND b is written x >= a && x <= b",
	"over": "windows are written in a sql node", "as": "the name is the key in front of the expression",
}

const caseHint = "CASE WHEN condition THEN x ELSE y END is written iif(condition, x, y)"

// foreignSyntax explains what is an expression in other languages.
func foreignSyntax(err *Error, src, rest string) {
	word := rest
	if i := strings.IndexFunc(rest, func(r rune) bool { return !unicode.IsLetter(r) }); i >= 0 {
		word = rest[:i]
	}
	if hint := foreignWords[strings.ToLower(word)]; hint != "" {
		err.Length = len(word)
		err.Message = `"` + word + `" is no word of expressions`
		err.Hint = hint
		return
	}
	switch {
	case strings.HasPrefix(rest, "?"):
		err.Message = "? is no operator"
		err.hint("c ? x : y is written iif(c, x, y)")
	case strings.HasPrefix(rest, ">") && strings.HasSuffix(src[:err.Offset], "<"):
		err.Offset, err.Length = err.Offset-1, len("<>")
		err.Message = "<> is no operator"
		err.hint("inequality is written !=")
	case strings.HasPrefix(rest, ":"):
		err.hint("a value gets another type by int(x), float(x), decimal2(x) or string(x)")
	default:
		err.Hint = "an expression consists of operators, literals, fields such as r.name, and function calls"
	}
}

// eachToken calls visit for the tokens of an expression until it says false.
func eachToken(src string, visit func(at span, tok token.Token) bool) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, []byte(src), func(token.Position, string) {}, 0)
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF || !visit(span{file.Offset(pos), len(text)}, tok) {
			return
		}
	}
}

// insideText reports whether a byte is inside of a text, behind its opening quote.
func insideText(src string, off int) (inside bool) {
	eachToken(src, func(at span, tok token.Token) bool {
		inside = (tok == token.STRING || tok == token.CHAR) && at.off < off && off < at.off+at.len
		return !inside && at.off < off
	})
	return inside
}

// keywordName finds the first name behind a dot that is a keyword of Go's: r.select.
func keywordName(src string) (name span, found bool) {
	before := token.ILLEGAL
	eachToken(src, func(at span, tok token.Token) bool {
		if name, found = at, before == token.PERIOD && tok.IsKeyword(); found {
			return false
		}
		before = tok
		return true
	})
	return name, found
}

func (e *Expr) span(n ast.Node) span {
	off := min(max(int(n.Pos())-e.base, 0), len(e.src))
	end := min(max(int(n.End())-e.base, off), len(e.src))
	return span{off, end - off}
}

func (e *Expr) text(s span) string { return e.src[s.off : s.off+s.len] }

// walk rejects unsupported syntax and collects references.
func (e *Expr) walk(n ast.Expr, depth int) *Error {
	at := e.span(n)
	if depth > MaxDepthLevels {
		return at.errorf("nested deeper than %d levels", MaxDepthLevels)
	}
	switch n := n.(type) {
	case *ast.ParenExpr:
		return e.walk(n.X, depth+1)
	case *ast.UnaryExpr:
		if n.Op != token.SUB && n.Op != token.NOT {
			return at.errorf("unary operator %s is not supported", n.Op)
		}
		return e.walk(n.X, depth+1)
	case *ast.BinaryExpr:
		return e.walkBinary(n, depth)
	case *ast.BasicLit:
		return e.walkLiteral(n)
	case *ast.Ident:
		return nil
	case *ast.SelectorExpr:
		return e.walkSelector(n)
	case *ast.CallExpr:
		return e.walkCall(n, depth)
	}
	if _, star := n.(*ast.StarExpr); star && strings.HasSuffix(e.src[:at.off], "*") {
		return at.errorf("** is no operator").
			hint("x to the power of 2 is x * x; other powers are computed in a sql node, or in Python with py_calc")
	}
	if index, ok := n.(*ast.IndexExpr); ok {
		return at.errorf("%s is not supported", describe(n)).hint("%s", indexHint(index))
	}
	return at.errorf("%s is not supported", describe(n)).
		hint("an expression consists of operators, literals, fields such as r.name, and function calls")
}

// indexHint says how what somebody wanted of an index is written.
func indexHint(n *ast.IndexExpr) string {
	alias, isName := n.X.(*ast.Ident)
	if key, ok := n.Index.(*ast.BasicLit); ok && isName && key.Kind == token.STRING {
		if name, err := strconv.Unquote(key.Value); err == nil && token.IsIdentifier(name) {
			return "the field is written " + alias.Name + "." + name
		}
		return "a field is written " + alias.Name + ".name, without quotes and brackets"
	}
	return "what is within a list or a struct is a column of its own where the file is read: its path is items[0] or " +
		"address.city"
}

func (e *Expr) walkBinary(n *ast.BinaryExpr, depth int) *Error {
	if !supportedBinary(n.Op) {
		err := span{int(n.OpPos) - e.base, len(n.Op.String())}.errorf("operator %s is not supported", n.Op)
		switch n.Op {
		case token.AND:
			err.hint("did you mean &&?")
		case token.OR:
			err.hint("did you mean ||?")
		}
		return err
	}
	for _, operand := range operands(n) {
		if err := e.walk(operand, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// operands returns X and Y of n; of a chain of && or of || all its terms, so
// that a hundred conditions in a row are one level.
func operands(n *ast.BinaryExpr) []ast.Expr {
	if n.Op != token.LAND && n.Op != token.LOR {
		return []ast.Expr{n.X, n.Y}
	}
	reversed := []ast.Expr{n.Y}
	left := n.X
	for {
		l, ok := left.(*ast.BinaryExpr)
		if !ok || l.Op != n.Op {
			break
		}
		reversed = append(reversed, l.Y)
		left = l.X
	}
	out := append(reversed, left)
	slices.Reverse(out)
	return out
}

func supportedBinary(op token.Token) bool {
	switch op {
	case token.ADD, token.SUB, token.MUL, token.QUO, token.REM, token.LAND, token.LOR,
		token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		return true
	}
	return false
}

func (e *Expr) walkLiteral(n *ast.BasicLit) *Error {
	at := e.span(n)
	switch n.Kind {
	case token.STRING:
		return nil
	case token.INT:
		if strings.Trim(n.Value, "0123456789") != "" {
			return at.errorf("number %s is not supported", n.Value).hint("only decimal digits are")
		}
		return nil
	case token.FLOAT:
		return nil
	case token.CHAR:
		return at.errorf("%s is not supported", n.Value).hint("text is written between double quotes or back-ticks")
	}
	return at.errorf("literal %s is not supported", n.Value)
}

func (e *Expr) walkSelector(n *ast.SelectorExpr) *Error {
	alias, ok := n.X.(*ast.Ident)
	if !ok {
		return e.span(n).errorf("only one level, alias.field, is supported")
	}
	if packages(alias.Name) {
		return nil
	}
	ref := Ref{alias.Name, n.Sel.Name}
	if !slices.Contains(e.refs, ref) {
		e.refs = append(e.refs, ref)
	}
	return nil
}

func (e *Expr) walkCall(n *ast.CallExpr, depth int) *Error {
	switch f := n.Fun.(type) {
	case *ast.Ident:
	case *ast.SelectorExpr:
		if _, ok := f.X.(*ast.Ident); !ok {
			err := e.span(f).errorf("methods of values cannot be called").
				hint("functions are name(…) or package.Name(…)")
			if hint, known := foreignHint(f.Sel.Name); known {
				err.Hint = hint
			}
			return err
		}
	default:
		return e.span(n.Fun).errorf("%s cannot be called", describe(n.Fun)).
			hint("functions are name(…) or package.Name(…)")
	}
	if n.Ellipsis.IsValid() {
		return span{int(n.Ellipsis) - e.base, 3}.errorf("… after an argument is not supported")
	}
	for _, a := range n.Args {
		if err := e.walk(a, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// describe names a kind of syntax for people.
func describe(n ast.Expr) string {
	switch n.(type) {
	case *ast.IndexExpr, *ast.IndexListExpr:
		return "an index [ ]"
	case *ast.SliceExpr:
		return "a slice [ : ]"
	case *ast.CompositeLit:
		return "a composite literal { }"
	case *ast.FuncLit, *ast.FuncType:
		return "a function literal"
	case *ast.StarExpr:
		return "a pointer *"
	case *ast.TypeAssertExpr:
		return "a type assertion"
	case *ast.BinaryExpr, *ast.UnaryExpr, *ast.ParenExpr:
		return "an expression in parentheses or with operators"
	case *ast.CallExpr:
		return "the result of a call"
	case *ast.BasicLit:
		return "a literal"
	}
	return "this syntax"
}
