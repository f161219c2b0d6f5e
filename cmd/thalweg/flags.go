package main

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// mayBeEmpty lists the options and arguments that mean something when they are empty, or when a value of theirs
// is. All others are refused: what is left of a shell's variable that is not set would select everything.
var mayBeEmpty = map[string]string{
	"comment": "none is recorded",
	"note":    "none is recorded",
	"reason":  "none is recorded; orders that need one refuse",
	"param":   "a parameter's value may be an empty text, its name may not",
	"words":   "a command line that is completed may end in an empty word",
}

// mayBeBlank lists those whose value may be a blank, which is none elsewhere.
var mayBeBlank = []string{"separator"}

// emptyError says that an option or argument has an empty value.
type emptyError struct {
	what string // --node, the argument <run>
	item string // the list that has an empty item; "": all of it is empty
	path bool
}

// Error implements error.
func (e *emptyError) Error() string {
	if e.item != "" {
		return fmt.Sprintf("%s has an empty item: %q", e.what, e.item)
	}
	return e.what + " is empty"
}

// hint says what to write instead.
func (e *emptyError) hint() string {
	const hint = "a variable of the shell that is not set makes such a value; leave it out if nothing is to be " +
		"chosen by it"
	if e.path {
		return "write . for the current directory; " + hint
	}
	return hint
}

// filled is a mapper that refuses what is empty.
type filled struct{ kong.Mapper }

// Decode implements kong.Mapper.
func (m filled) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if err := checkFilled(ctx); err != nil {
		return err
	}
	return m.Mapper.Decode(ctx, target)
}

// checkFilled looks at the words that a value is about to be read from.
func checkFilled(ctx *kong.DecodeContext) error {
	v := ctx.Value
	blank := func(s string) bool { return strings.TrimSpace(s) == "" }
	if slices.Contains(mayBeBlank, v.Name) {
		blank = func(s string) bool { return s == "" }
	}
	_, optional := mayBeEmpty[v.Name]
	what := "--" + v.Name
	if v.Flag == nil {
		what = "the argument <" + v.Name + ">"
	}
	for _, t := range ctx.Scan.PeekAll() {
		word, ok := t.Value.(string)
		if !ok || !t.IsValue() {
			break
		}
		switch list := listOf(v, word); {
		case optional && !v.IsMap():
		case blank(word):
			return &emptyError{what: what, path: v.Tag.Type == "path"}
		case slices.ContainsFunc(list, func(item string) bool {
			name, value, pair := strings.Cut(item, "=")
			return blank(item) || v.IsMap() && (blank(name) || !optional && pair && blank(value))
		}):
			return &emptyError{what: what, item: word}
		}
		if v.Flag != nil || !v.IsCumulative() {
			break // the other words are not its own
		}
	}
	return nil
}

// listOf gives the items of a word that is a list.
func listOf(v *kong.Value, word string) []string {
	sep := v.Tag.Sep
	switch {
	case v.IsMap():
		sep = v.Tag.MapSep
	case !v.IsSlice() || v.Flag == nil:
		return nil
	}
	if sep == -1 {
		return []string{word}
	}
	return strings.Split(strings.ReplaceAll(word, `\`+string(sep), "x"), string(sep))
}

// refuseEmpty lets a value of the grammar be read only from what is not empty.
func refuseEmpty(node kong.Visitable, next kong.Next) error {
	if v, ok := node.(*kong.Value); ok && !v.IsBool() {
		v.Mapper = filled{v.Mapper}
	}
	return next(nil)
}

// decodePath reads a flag of type "path".
func decodePath(ctx *kong.DecodeContext, target reflect.Value) error {
	var path string
	if err := ctx.Scan.PopValueInto("path", &path); err != nil {
		return err
	}
	target.SetString(kong.ExpandPath(path))
	return nil
}

// ignoreEmptyVariable makes an environment variable that is set and empty count as
// one that is not set, for every flag that has one.
func ignoreEmptyVariable(node kong.Visitable, next kong.Next) error {
	if flag, ok := node.(*kong.Flag); ok {
		flag.Tag.Envs = slices.DeleteFunc(flag.Tag.Envs, func(name string) bool {
			value, set := os.LookupEnv(name)
			return set && value == ""
		})
		flag.Envs = flag.Tag.Envs
	}
	return next(nil)
}
