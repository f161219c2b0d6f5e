package infer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/io/files"
)

// cutOf finds how the records of a file are to be cut. Commas that cut only numbers and quoted texts of
// another separator's fields are no separator: without them the file may be refused, but not cut wrongly.
func cutOf(ctx context.Context, f *text, candidates []byte, o Options) (shape, [][]string, error) {
	s, records, err := evenest(ctx, f, candidates, o)
	if err != nil || s.separator != ',' || s.fields == 1 {
		return s, records, err
	}
	others := slices.DeleteFunc(slices.Clone(candidates), func(c byte) bool { return c == ',' })
	for _, c := range others {
		r := rival{fewest: s.fields}
		if err := r.look(ctx, f, c); err != nil {
			return s, nil, err
		}
		if r.wins() {
			return evenest(ctx, f, others, o)
		}
	}
	return s, records, nil
}

// rival is a separator that may be meant where commas cut records, too.
type rival struct {
	fewest  int  // fields that commas make
	fields  int  // of its first record of several; 0: there was none yet
	spare   bool // the last of them is empty
	above   int  // records of one field, or one that is filled, before that one
	records int
	uneven  int
	within  bool // commas are in numbers and quoted texts
	named   bool // commas are in other texts of the first record
	other   bool // commas are elsewhere
}

// look cuts a file's head by the separator.
func (r *rival) look(ctx context.Context, f *text, separator byte) error {
	for c, err := range files.EachCells(ctx, f, f.size, separator, 0, f.name) {
		if err != nil {
			return err
		}
		if c.Offset >= headBytes || r.records > headRecords || r.above > titlesMax || r.other {
			break
		}
		r.add(c)
	}
	return nil
}

func (r *rival) add(c *files.Cells) {
	width, filled := 0, 0
	if c.Bad == nil {
		width = c.Len()
	}
	for i := range width {
		filled += min(len(c.Value(i)), 1)
	}
	if r.fields == 0 && filled < 2 {
		r.above++
		return
	}
	spare := width > 0 && len(c.Value(width-1)) == 0
	first := r.fields == 0
	if first {
		r.fields, r.spare = width, spare
	}
	r.records++
	if width != r.fields && !(width == r.fields+1 && spare) && !(width == r.fields-1 && r.spare) {
		r.uneven++
		return
	}
	for i := range width {
		switch value := string(c.Value(i)); {
		case !strings.Contains(value, ","):
		case c.Quoted(i) || numberWithComma(value):
			r.within = true
		case first:
			r.named = true
		default:
			r.other = true
		}
	}
}

// wins reports whether commas do not separate. Names with commas are proof only where the rival cuts more often.
func (r *rival) wins() bool {
	return r.fields > 1 && r.within && !r.other && (!r.named || r.fields > r.fewest) &&
		100*r.uneven <= unevenMax*r.records
}

// numberWithComma reports a number, or what is made of digits, with one comma or those between thousands.
func numberWithComma(value string) bool {
	value = strings.Trim(value, " \u00a0%€$£")
	reads := func(form numberForm) bool {
		_, ok := numberText([]byte(value), form)
		return ok
	}
	return strings.Count(value, ",") == 1 && looksLikeValue(value) || slices.ContainsFunc(numberForms[:], reads)
}

// guess keeps what people should look at: a table of one column that may have more, or a header below titles, and
// a header that looks like data, or like a title.
func (s *shape) guess(ctx context.Context, f *text, candidates []byte, records [][]string, o Options) error {
	if o.Header == HeaderGuess && s.header && headerIsDoubtful(records) {
		s.guesses = append(s.guesses, "the first record of "+f.name+
			" was taken for a header, though it looks like the few below it ({{set no-header}} if it is data)")
	}
	if s.fields > 1 {
		if at := laterHeader(records); o.Header == HeaderGuess && at > 0 {
			s.guesses = append(s.guesses, fmt.Sprintf("record %d of %s, %s, may be the header: its names are above values, "+
				"those of the first record are not (see hdr_line_idx)", s.skip+at+1, f.name, someQuoted(records[at])))
		}
		return nil
	}
	if n := textsAboveValues(records); o.Header == HeaderGuess && !s.header && n > 1 {
		s.guesses = append(s.guesses, grouped(int64(n))+" texts at the top of "+f.name+
			" were taken for data, like the values below them: see hdr_line_idx if the last one is a header")
	}
	if o.Separator != "" {
		return nil
	}
	best, most := byte(0), 1
	for _, c := range candidates {
		all, err := loose(ctx, f, c)
		if err != nil {
			return err
		}
		cut := slices.DeleteFunc(slices.Clone(all), func(rec []string) bool { return len(rec) < 2 })
		if n := commonLength(cut); 2*len(cut) > len(all) && n > most {
			best, most = c, n
		}
	}
	if most > 1 {
		s.guesses = append(s.guesses, f.name+" was read as one column, though "+quoted(string(best))+
			" cuts most of its records: see {{set separator}}, and hdr_line_idx if there are titles above the header")
	}
	return nil
}

// textsAboveValues counts the texts at the top of a column of values.
func textsAboveValues(records [][]string) (n int) {
	for n < len(records) && n <= titlesMax && kindOfCell(records[n][0]) == word {
		n++
	}
	if n == 0 || n > titlesMax || !nameAboveValues(records[n-1:], 0) {
		return 0
	}
	return n
}
