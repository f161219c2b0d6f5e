package expr_test

import (
	"fmt"
	"go/token"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
	"thalweg/internal/test/effort"
)

const (
	openRows   = 24
	openTrials = 24 // expressions over one table
)

// operand is one side of an operation: a column of a file, an int or a constant.
type operand struct {
	src    string
	values []*big.Rat // by row
}

// TestChaosOpenDecimals compares operations on decimals of files, of any digits
// before and after the point, with exact arithmetic.
func TestChaosOpenDecimals(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	g := generator{rand.New(rand.NewPCG(diffSeed(t), 11))}
	compared, raised := 0, 0
	for range effort.Of(2, 6, 400) {
		columns := []operand{g.fileDecimals("a"), g.fileDecimals("b"), g.fileDecimals("c"), g.wholes("i")}
		fillOpen(t, db.Exec, columns)
		var trials []trial
		rows := make([]map[string]any, openRows)
		for i := range rows {
			rows[i] = map[string]any{}
			for _, c := range columns {
				rows[i][c.src] = c.values[i].RatString()
			}
		}
		for range openTrials {
			tr := openTrial(t, g, columns)
			compared += openRows - len(tr.skip)
			raised += len(tr.must)
			trials = append(trials, tr)
		}
		runTrials(t, db, trials, rows)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d values, %d others that must raise", compared, raised)
	require.Greater(t, compared, 4*raised)
}

// fileDecimals makes a column of a random DECIMAL that a file may have.
func (g generator) fileDecimals(name string) operand {
	scale := g.IntN(23)
	o := operand{src: "r." + name + fmt.Sprintf("_%d_%d", min(38, scale+1+g.IntN(16)), scale)}
	for range openRows {
		o.values = append(o.values, g.digits(columnDigits(o.src), scale))
	}
	return o
}

// columnDigits reads the digits that a column's name tells.
func columnDigits(src string) (digits int) {
	var scale int
	_, _ = fmt.Sscanf(src[strings.Index(src, "_"):], "_%d_%d", &digits, &scale)
	return digits
}

func (g generator) wholes(name string) operand {
	o := operand{src: "r." + name}
	for range openRows {
		o.values = append(o.values, new(big.Rat).SetInt64(g.integer()))
	}
	return o
}

// digits makes a number of at most so many digits, scale of them after the point.
func (g generator) digits(most, scale int) *big.Rat {
	n := 1 + g.IntN(most)
	var b strings.Builder
	for range n {
		b.WriteByte(pick(g, "0123456789", "0123456789", "9", "05", "04")[0])
		if g.IntN(3) > 0 {
			s := b.String()
			b.Reset()
			b.WriteString(s[:len(s)-1] + string("0123456789"[g.IntN(10)]))
		}
	}
	m, _ := new(big.Int).SetString(b.String(), 10)
	if g.IntN(3) == 0 {
		m.Neg(m)
	}
	return new(big.Rat).SetFrac(m, pow(scale))
}

// constant is a decimal of at most 16 digits after the point.
func (g generator) decimalConstant() operand {
	scale := g.IntN(17)
	v := g.digits(scale+1+g.IntN(21), scale)
	o := operand{src: fmt.Sprintf(`decimal2("%s")`, v.FloatString(scale))}
	for range openRows {
		o.values = append(o.values, v)
	}
	return o
}

func fillOpen[R any](t *testing.T, exec func(string, ...any) (R, error), columns []operand) {
	t.Helper()
	var b strings.Builder
	for i := range openRows {
		fmt.Fprintf(&b, "%s SELECT %d AS id", map[bool]string{true: "CREATE OR REPLACE TABLE r AS",
			false: " UNION ALL"}[i == 0], i)
		for _, c := range columns {
			name, kind := strings.TrimPrefix(c.src, "r."), "BIGINT"
			var digits, scale int
			if n, _ := fmt.Sscanf(name[1:], "_%d_%d", &digits, &scale); n == 2 {
				kind = fmt.Sprintf("DECIMAL(%d,%d)", digits, scale)
			}
			fmt.Fprintf(&b, ", CAST('%s' AS %s) AS %s", c.values[i].FloatString(scale), kind, name)
		}
	}
	_, err := exec(b.String())
	require.NoError(t, err)
}

// openTrial makes an operation on a column of a file and something else.
func openTrial(t *testing.T, g generator, columns []operand) trial {
	t.Helper()
	x, y := columns[0], pick(g, columns[0], columns[1], columns[2], columns[3], g.decimalConstant(),
		g.decimalConstant())
	if g.IntN(2) == 0 {
		x, y = y, x
	}
	tok := pick(g, token.ADD, token.SUB, token.MUL, token.MUL, token.QUO, token.LSS, token.LEQ, token.GTR,
		token.EQL, token.NEQ)
	round := g.IntN(2) == 0
	tr := trial{src: x.src + " " + tok.String() + " " + y.src}
	third := columns[2]
	if g.IntN(4) == 0 {
		tr.src = strings.Replace(tr.src, columns[0].src, "coalesce("+columns[0].src+", decimal2(0))", 1)
	}
	chain := tok == token.MUL && g.IntN(3) == 0
	if chain {
		tr.src += " * " + third.src
	}
	scope := expr.Scope{"r": {}}
	for _, c := range columns {
		scope["r"][strings.TrimPrefix(c.src, "r.")] = map[bool]expr.Type{true: expr.Int,
			false: expr.Decimal}[c.src == "r.i"]
	}
	e, err := expr.Parse(tr.src)
	require.NoError(t, err, tr.src)
	c, err := e.Check(scope, expr.Mode{Round: round, Unstored: func(r expr.Ref) bool { return r.Field != "i" }})
	if err != nil {
		require.Contains(t, err.Error(), "division by zero", tr.src)
		return openTrial(t, g, columns)
	}
	tr.sql = c.SQL(column, "")
	for i := range openRows {
		want, verdict := openResult(tok, x.values[i], y.values[i], round)
		if chain && verdict == computed {
			want, verdict = openResult(tok, want.(dec).rat, third.values[i], round)
		}
		if verdict != computed {
			tr.skip = append(tr.skip, i)
		}
		if verdict == raises {
			tr.must = append(tr.must, i)
		}
		tr.want = append(tr.want, want)
	}
	return tr
}

const (
	computed = iota
	mayRaise // more digits than documented
	raises
)

// openResult returns the expected result of an operation, and whether the operation must, may or cannot give
// it.
func openResult(tok token.Token, x, y *big.Rat, round bool) (any, int) {
	beyond := func(limit int, values ...*big.Rat) bool {
		for _, v := range values {
			if new(big.Rat).Abs(v).Cmp(new(big.Rat).SetInt(pow(limit))) >= 0 {
				return true
			}
		}
		return false
	}
	v, verdict := new(big.Rat), computed
	switch tok {
	case token.ADD, token.SUB:
		if v.Add(x, y); tok == token.SUB {
			v.Sub(x, y)
		}
		if beyond(16, x, y, v) {
			verdict = mayRaise
		}
	case token.MUL:
		if v.Mul(x, y); !round {
			v = roundTo(v, 16)
		}
		if beyond(22, v) {
			verdict = mayRaise
		}
	case token.QUO:
		if y.Sign() == 0 {
			return nil, raises
		}
		v = roundTo(v.Quo(x, y), 16)
		if beyond(14, y) || beyond(16, x) || beyond(22, v) {
			verdict = mayRaise
		}
	default:
		c := x.Cmp(y)
		return map[token.Token]bool{token.LSS: c < 0, token.LEQ: c <= 0, token.GTR: c > 0, token.EQL: c == 0,
			token.NEQ: c != 0}[tok], computed
	}
	if round {
		if v = roundTo(v, 2); beyond(16, v) {
			verdict = raises
		}
	}
	return dec{v, 2}, verdict
}
