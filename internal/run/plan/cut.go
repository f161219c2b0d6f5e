package plan

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
	"thalweg/internal/run/engine"
	"thalweg/internal/store/state"
)

// Rows that meet by a key are cut by it: each batch has the rows of some keys,
// and all rows of these. A Cut says which; whatever the tables lie like, keyed
// finds the rows. How a table lies only decides what that costs.

// Cut is the share of the keys that one batch works on.
type Cut struct {
	Buckets int `json:"buckets,omitempty"` // power of two; 0: not cut by key
	Bucket  int `json:"bucket,omitempty"`
	// Hash names the function that puts keys into buckets. "": DuckDB's own, in
	// work of versions that named none.
	Hash string `json:"hash,omitempty"`
	// Range, if not nil, has the keys; of these, the bucket's.
	Range *KeyRange `json:"range,omitempty"`
}

// whole reports whether the cut takes all keys.
func (c Cut) whole() bool { return c.Buckets <= 1 && c.Range == nil }

// check refuses work that was cut by a function that this binary does not have.
func (c Cut) check() error {
	if c.Buckets <= 1 || c.Hash == keyHash || c.Hash == "" && engine.Version == unnamedHashVersion {
		return nil
	}
	name := c.Hash
	if name == "" {
		name = "hash() of " + unnamedHashVersion
	}
	return &fault.Error{Kind: fault.Environment,
		Message: fmt.Sprintf("the work was cut into buckets by %s, which this version of Thalweg does not have", name),
		Hint:    "continue the run with the version that began it, or begin a new run"}
}

// keyed is a table as it is read by a key.
type keyed struct {
	table *Table
	key   expr.Order // over the table's fields
}

// keySQL renders the components of the key over the stored columns behind alias.
func (k keyed) keySQL(alias string) []string { return k.table.Layout.keySQL(k.key, alias) }

// keySQL renders the components of a key over the stored columns behind alias.
func (l Layout) keySQL(key expr.Order, alias string) []string {
	return key.KeySQL(func(field string) string {
		c, _ := l.column(field)
		return ident(alias, c.Stored())
	})
}

// keyTypes are the types of a key's components.
func (l Layout) keyTypes(key expr.Order) []expr.Type {
	all := l.types()
	types := make([]expr.Type, len(key))
	for i, k := range key {
		types[i] = all[k.Field]
	}
	return types
}

// matches reports whether the table lies in buckets of this key and hash.
func (k keyed) matches(hash string) bool {
	l := k.table.Layout
	return l.Buckets > 0 && l.Hash == hash && l.BucketKey == bucketKey(hash, k.key, l.types())
}

// scan gives what a batch has to read of its table.
func (k keyed) scan(c Cut, paths Paths) scan {
	return scan{table: k.table, slices: k.slices(c), paths: paths, key: k.key, cut: c}
}

// span is which of the table's buckets a batch reads; nil: it does not lie in any that tell.
func (k keyed) span(c Cut) *bucketSpan {
	if c.Buckets <= 1 || c.Hash == "" || !k.matches(c.Hash) {
		return nil
	}
	return overlap(k.table.Layout.Buckets, c)
}

// lies reports whether a batch of such a cut reads its own share of the table only, at least of what was put into
// buckets.
func (k keyed) lies(c Cut) bool {
	if c.Range != nil {
		return k.clustered() != nil
	}
	return !slices.ContainsFunc(k.table.each(), func(m member) bool { return keyed{m.Table, k.key}.span(c) == nil })
}

// spanOf is which of a part's buckets a batch reads, as scan.piece does; nil: of any.
func (k keyed) spanOf(part int, c Cut) *bucketSpan {
	if asCame(k.table.Parts[part]) {
		return nil
	}
	return keyed{k.table.Holder(part), k.key}.span(c)
}

// slices lists the parts that a batch has to read. Tables of earlier versions
// have a part for each bucket: of these, the ones whose bucket agrees with the
// batch's in the bits that both have.
func (k keyed) slices(c Cut) []PartSlice {
	if c.Range != nil {
		return k.rangeSlices(*c.Range)
	}
	var out []PartSlice
	for _, m := range k.table.each() {
		all := c.whole() || c.Hash != "" || !keyed{m.Table, k.key}.matches("")
		mask, span := min(m.Layout.Buckets, c.Buckets)-1, keyed{m.Table, k.key}.span(c)
		for i, p := range m.Parts {
			if all || p.Bucket < 0 || p.Bucket&mask == c.Bucket&mask {
				s := PartSlice{Part: m.first + i}
				if !asCame(p) { // as scan.piece reads it
					s.buckets = span
				}
				out = append(out, s)
			}
		}
	}
	return out
}

// filter is a condition on rows behind alias that leaves those of the batch,
// "" if scan gives no others.
func (k keyed) filter(c Cut, alias string) string {
	var conditions []string
	if c.Range != nil {
		conditions = append(conditions, c.Range.sql(k.first(alias)))
	}
	if c.Buckets > 1 && slices.ContainsFunc(k.table.each(), func(m member) bool {
		return keyed{m.Table, k.key}.span(c) == nil || m.Layout.Buckets < c.Buckets ||
			slices.ContainsFunc(m.Parts, asCame)
	}) {
		conditions = append(conditions,
			fmt.Sprintf("%s = %d", bucketSQL(c.Hash, k.keySQL(alias), k.table.Layout.keyTypes(k.key), c.Buckets),
				c.Bucket))
	}
	return strings.Join(conditions, " AND ")
}

// asCame reports whether a part of a table in buckets has its rows as they came.
func asCame(p state.Part) bool { return len(p.Keys) > 0 }

// overlap is which of a table's buckets have rows of the cut's: buckets are
// the high bits of the hash, so those of two counts lie within one another.
func overlap(buckets int, c Cut) *bucketSpan {
	if buckets >= c.Buckets {
		each := buckets / c.Buckets
		return &bucketSpan{c.Bucket * each, (c.Bucket+1)*each - 1}
	}
	at := c.Bucket / (c.Buckets / buckets)
	return &bucketSpan{at, at}
}

// bucketSpan is the buckets from first to last.
type bucketSpan struct{ first, last int }

func (s bucketSpan) sql() string {
	return fmt.Sprintf("%s BETWEEN %d AND %d", engine.BucketColumn, s.first, s.last)
}

const (
	// keyHash names keyHashSQL in plans. What it gives is fixed for all time: rows
	// that it has put into buckets are looked for there by later versions. Another
	// function gets another name.
	keyHash = "thalweg-1"
	// KeyHash is keyHash for the record of a run.
	KeyHash = keyHash
	// keyHashBits is the number of bits of the key's hash.
	keyHashBits = 32
	// unnamedHashVersion is the only release of DuckDB that was ever linked while
	// plans did not name the hash: its own hash() was used.
	unnamedHashVersion = "duckdb-1.5.5"
	// keyRule names what KeySQL makes of values: tables that another rule put into
	// buckets have them in other ones.
	keyRule = "exact"
)

// bucketKey fingerprints a bucketing: the hash, the rule for keys, and the
// components' fields, types and modifiers.
func bucketKey(hash string, key expr.Order, types map[string]expr.Type) string {
	if hash == "" {
		hash = engine.Version // DuckDB does not promise that its hash stays the same
	}
	parts := []string{hash, keyRule}
	for _, k := range key {
		parts = append(parts, fmt.Sprintf("%s:%s:%d:%t", k.Field, types[k.Field], k.Length, k.IgnoreCase))
	}
	return strings.Join(parts, " ")
}

// bucketSQL gives the bucket of a row whose key components are keys, as an
// expression in [0, buckets). Equal keys have equal buckets.
func bucketSQL(hash string, keys []string, types []expr.Type, buckets int) string {
	if hash == "" {
		return fmt.Sprintf("(hash(%s) & %d)", strings.Join(keys, ", "), buckets-1)
	}
	return fmt.Sprintf("(%s >> %d)", keyHashSQL(keys, types), keyHashBits-bits.Len(uint(buckets-1)))
}

// Numbers of keyHashSQL: odd, and so small that nothing overflows 63 bits.
const (
	hashLow   = 766_309_469   // times the low 32 bits of a component
	hashHigh  = 905_170_391   // times the high ones
	hashStep  = 122_949_823   // from component to component, within 30 bits
	hashTerm  = 1<<55 - 1     // bits that are kept of a component
	hashFinal = 1_640_531_527 // 2^32 / golden ratio squared: neighbours end far apart
)

// keyHashSQL is the hash of a key: an expression in [0, 2^32). Components are
// numbers of 64 bits first: whole numbers themselves, decimals in hundredths,
// moments in milliseconds (timestamptz in microseconds, dates in days) since 1970, texts and decimals with digits by
// the first four bytes of the MD5 of their UTF-8, floats by their shortest decimal form. That needs no function of
// DuckDB whose results it does not document but for that form; a test holds them.
func keyHashSQL(keys []string, types []expr.Type) string {
	terms := make([]string, len(keys))
	for i, k := range keys {
		low, high := hashFactors(i)
		n := hashedNumber(types[i], k)
		product := fmt.Sprintf("%s * %d", n, low)
		if !hashedText(types[i]) { // of those the number has no high bits
			product = fmt.Sprintf("(%[1]s & 4294967295) * %[2]d + ((%[1]s >> 32) & 4294967295) * %[3]d", n, low, high)
		}
		terms[i] = fmt.Sprintf("coalesce((%s) & %d, 0)", product, int64(hashTerm))
	}
	sum := "(" + strings.Join(terms, " + ") + ")"
	return fmt.Sprintf("((xor(%[1]s, %[1]s >> 32) & 4294967295) * %[2]d & 4294967295)", sum, hashFinal)
}

// hashFactors tells the components of a key apart: (1, 2) is not (2, 1).
func hashFactors(component int) (low, high int64) {
	const mask = 1<<30 - 1
	step := int64(component) * hashStep * 2
	return (hashLow + step) & mask, (hashHigh + step) & mask
}

// hashedText reports the types whose components are hashed as text.
func hashedText(t expr.Type) bool {
	_, _, exact := t.Exact()
	return exact || t == expr.String || t == expr.Float
}

// hashedNumber is a component as a BIGINT: equal ones are equal.
func hashedNumber(t expr.Type, sql string) string {
	text := ""
	switch t {
	case expr.String:
		text = sql
	case expr.Float:
		text = fmt.Sprintf("CASE WHEN isnan(%[1]s) THEN 'nan' WHEN %[1]s = 0 THEN '0' ELSE CAST(%[1]s AS VARCHAR) END",
			sql)
	case expr.Bool:
		return "CAST(" + sql + " AS BIGINT)"
	default:
		if text = engine.TransportSQL(t, sql); !hashedText(t) {
			return text
		}
	}
	return "CAST(md5_number(" + text + ") & 4294967295 AS BIGINT)"
}
