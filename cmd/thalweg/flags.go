package main

import (
	"errors"
	"os"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"
)

// decodePath reads a flag of type "path". An empty one is what is left of a shell's
// variable that is not set: taken for a path it would be the current directory.
func decodePath(ctx *kong.DecodeContext, target reflect.Value) error {
	var path string
	if err := ctx.Scan.PopValueInto("path", &path); err != nil {
		return err
	}
	if path == "" {
		return errors.New("the path is empty; write . for the current directory")
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
