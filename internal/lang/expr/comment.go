package expr

import (
	"go/scanner"
	"go/token"
)

// Comment says where an expression has a comment, nil if nowhere. Go's syntax has them,
// and Capillaries', so that 7 // 2 is 7: who writes it may mean Python's quotient.
func (e *Expr) Comment() *Error {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(e.src))
	s.Init(file, []byte(e.src), func(token.Position, string) {}, scanner.ScanComments)
	for {
		pos, tok, text := s.Scan()
		switch tok {
		case token.EOF:
			return nil
		case token.COMMENT:
			at := span{file.Offset(pos), len(text)}
			return at.errorf("%s is a comment: it is not computed", shorten(text)).
				hint("a quotient is written with one /, and that of two ints is whole; else take the comment out of " +
					"the expression")
		}
	}
}
