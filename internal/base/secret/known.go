package secret

import (
	"cmp"
	"io"
	"net/url"
	"sort"
	"strings"
	"sync"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// Mask replaces a secret that has no name.
const Mask = address.Mask

const (
	minKnownBytes = 4
	// maxKnown bounds what is remembered: a text can have any number of addresses.
	maxKnown = 10_000
)

// Known holds the secrets of a command. It may be used by many goroutines at once.
type Known struct {
	mu     sync.Mutex
	shown  map[string]string // by value
	whole  *strings.Replacer // of the values; nil: to be made
	pieces *strings.Replacer // of what they fall into, too; likewise
}

// New knows nothing yet.
func New() *Known { return &Known{shown: map[string]string{}} }

// Add makes a value known; shown stands for it in texts.
func (k *Known) Add(value, shown string) {
	if k == nil || len(value) < minKnownBytes {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.shown[value]; ok || len(k.shown) >= maxKnown {
		return
	}
	k.shown[value], k.whole, k.pieces = shown, nil, nil
}

// Learn makes the secrets known that a text has in places that say so.
func (k *Known) Learn(text string) {
	if k == nil {
		return
	}
	for _, value := range address.SecretsIn(text) {
		k.addFound(value)
	}
	for _, value := range keyedValues(text) {
		k.addFound(value)
	}
}

// LearnArgument is Learn for an argument of the command line, NAME=VALUE included.
func (k *Known) LearnArgument(arg string) {
	k.Learn(arg)
	if name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--param="), "="); ok {
		if n := address.NameOf(name); n >= address.Likely || n == address.Perhaps && address.LooksRandom(value) {
			k.addFound(value)
		}
	}
}

// LearnKeyed is Learn for the value of a key of a document, which is what the text of it means.
func (k *Known) LearnKeyed(name, value string) {
	if k != nil && address.HasSecretWord(name) && hidden(address.NameOf(name), value) {
		k.addFound(value)
	}
}

// addFound adds a value in the form that it has, and in the one that it stands for.
func (k *Known) addFound(value string) {
	k.Add(value, Mask)
	if plain, err := url.PathUnescape(value); err == nil {
		k.Add(plain, Mask)
	}
}

// Text is a text for people without secrets, and without what they fall into. The known ones go first: what the
// rules leave of one would not be recognised.
func (k *Known) Text(text string) string { return address.RedactText(k.Hide(text)) }

// Stored is a text without secrets that programs read again, such as a name, an address or a script. Pieces stay: the
// name of a database is one of its address, and other names may be like it.
func (k *Known) Stored(text string) string {
	if k != nil {
		text = k.values(&k.whole, forms).Replace(text)
	}
	return address.RedactText(text)
}

// Hide is Text without following its rules.
func (k *Known) Hide(text string) string {
	if k == nil {
		return text
	}
	return k.values(&k.pieces, forms, fragments).Replace(text)
}

// values is the replacer of all known values in the ways in which they may be seen, the longer first; made is where it
// is kept.
func (k *Known) values(made **strings.Replacer, seen ...func(value string) map[string]bool) *strings.Replacer {
	k.mu.Lock()
	defer k.mu.Unlock()
	if *made != nil {
		return *made
	}
	type pair struct{ form, shown string }
	var pairs []pair
	for value, shown := range k.shown {
		for _, as := range seen {
			for form := range as(value) {
				pairs = append(pairs, pair{form, shown})
			}
		}
	}
	sort.Slice(pairs, func(i, j int) bool {
		a, b := pairs[i], pairs[j]
		return cmp.Or(len(b.form)-len(a.form), strings.Compare(a.form, b.form), strings.Compare(a.shown, b.shown)) < 0
	})
	list := make([]string, 0, 2*len(pairs))
	for _, p := range pairs {
		list = append(list, p.form, p.shown)
	}
	*made = strings.NewReplacer(list...)
	return *made
}

// Fault is err, or one without secrets if it has any. Its kind and place stay.
func (k *Known) Fault(err error) error {
	if err == nil {
		return nil
	}
	f := *fault.Of(err)
	text := err.Error()
	f.Place = k.Place(f.Place)
	f.Hint, f.Detail = k.Text(f.Hint), k.Text(f.Detail)
	if hidden := k.Text(text); hidden != text || f.Hint != fault.Of(err).Hint || f.Detail != fault.Of(err).Detail ||
		f.Place != fault.Of(err).Place {
		f.Message, f.Err = hidden, nil
		return &f
	}
	return err
}

// Place is a place without secrets.
func (k *Known) Place(p fault.Place) fault.Place {
	p.File, p.Field, p.Value, p.Expr = k.Text(p.File), k.Text(p.Field), k.Text(p.Value), k.Text(p.Expr)
	p.Raw = k.Text(p.Raw)
	if p.Origin != nil {
		if hidden := k.Place(*p.Origin); hidden != *p.Origin {
			p.Origin = &hidden
		}
	}
	return p
}

// Writer takes secrets out of what is written to w. A secret must not be cut by
// two writes: those who write here write lines, several at once if they like.
func (k *Known) Writer(w io.Writer) io.Writer { return &writer{known: k, w: w} }

type writer struct {
	known *Known
	mu    sync.Mutex
	w     io.Writer
}

func (w *writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := io.WriteString(w.w, w.known.Text(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
