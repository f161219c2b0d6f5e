package main

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"

	"thalweg/internal/app"

	"github.com/alecthomas/kong"
)

// A parser for all commands takes several times as long to make as to use, and most command
// lines are right: so there is one for the command that is named. What it cannot read, and
// what is asked about all commands, is for the parser of all
// (docs/decisions/0065-cold-start.md).

// newParser makes the parser of a grammar: of cli, or of one command.
func newParser(ctx context.Context, a *console, grammar any, exit func(int)) (*kong.Kong, error) {
	return kong.New(grammar,
		kong.Name("thalweg"),
		kong.Description("Turns raw files into customer-ready data: runs scripts of loads, lookups, formulas "+
			"and outputs."),
		kong.Vars{"state": app.DefaultDir, "workspace": app.DefaultWorkspace},
		kong.Writers(a.stdout, a.stderr),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}),
		kong.ExplicitGroups(commandGroups),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(a),
		kong.NamedMapper("path", kong.MapperFunc(decodePath)),
		kong.PostBuild(func(k *kong.Kong) error {
			return errors.Join(kong.Visit(k.Model, ignoreEmptyVariable), kong.Visit(k.Model, refuseEmpty))
		}),
	)
}

// parse reads a command line. env is what it says of environments. exited is the code with
// which the parser itself has answered; -1: it has not.
func (a *console) parse(ctx context.Context, args []string) (kctx *kong.Context, env *environmentFlags, exited int,
	err error) {
	exited = -1
	exit := func(code int) { exited = code }
	all := &cli{}
	full := sync.OnceValues(func() (*kong.Kong, error) { return newParser(ctx, a, all, exit) })
	a.commands = func() *kong.Application {
		k, err := full()
		if err != nil {
			return &kong.Application{Node: &kong.Node{}} // it is said below: every test makes this parser
		}
		return k.Model
	}
	if grammar := grammarOf(args); grammar.IsValid() {
		if k, err := newParser(ctx, a, grammar.Addr().Interface(), exit); err == nil {
			if kctx, err := k.Parse(args); err == nil {
				return kctx, grammar.Field(0).Addr().Interface().(*environmentFlags), exited, nil
			}
		}
	}
	exited = -1
	parser, err := full()
	if err != nil {
		return nil, nil, exited, err
	}
	if kctx, err = parser.Parse(args); err != nil && exited < 0 {
		err = cmp.Or(refusedServer(err), usageFault(parser, args, err))
	}
	return kctx, &all.environmentFlags, exited, err
}

// grammarOf is the grammar of the command that args begin with; none if another is needed: for
// help, for what is no command, and for the command that speaks of all.
func grammarOf(args []string) (grammar reflect.Value) {
	if len(args) == 0 || slices.Contains(args, "--help") || slices.Contains(args, "-h") || args[0] == "__complete" {
		return grammar
	}
	field, ok := commandField(reflect.TypeFor[cli](), args[0])
	if !ok {
		return grammar
	}
	environment := reflect.StructField{Name: "Environments", Type: reflect.TypeFor[environmentFlags](), Tag: `embed:""`}
	return reflect.New(reflect.StructOf([]reflect.StructField{environment, field})).Elem()
}

// commandField finds the field of a command in a grammar.
func commandField(grammar reflect.Type, command string) (reflect.StructField, bool) {
	for i := range grammar.NumField() {
		f := grammar.Field(i)
		if _, is := f.Tag.Lookup("cmd"); !is {
			if f.Anonymous {
				if found, ok := commandField(f.Type, command); ok {
					return found, true
				}
			}
			continue
		}
		name, named := f.Tag.Lookup("name")
		if !named {
			name = strings.ToLower(f.Name)
		}
		if name == command {
			f.Index, f.Offset = nil, 0
			return f, true
		}
	}
	return reflect.StructField{}, false
}
