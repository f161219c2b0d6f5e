package main

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"thalweg/internal/base/fault"

	"github.com/alecthomas/kong"
)

// checkNumbers refuses negative numbers and times of flags, and numbers that are none.
func checkNumbers(kctx *kong.Context) error {
	for _, flag := range kctx.Flags() {
		at, text := flag.Target, fmt.Sprint(flag.Target.Interface())
		bad := ""
		switch {
		case at.Kind() == reflect.Float64 && (math.IsNaN(at.Float()) || math.IsInf(at.Float(), 0)):
			bad = "is no number"
		case (at.Kind() == reflect.Int || at.Type() == reflect.TypeFor[time.Duration]()) && at.Int() < 0 &&
			text != flag.Default:
			bad = "is below zero"
		}
		if bad != "" {
			return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("--%s %s %s", flag.Name, text, bad)}
		}
	}
	return nil
}
