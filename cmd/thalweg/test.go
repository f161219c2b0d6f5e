package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/base/fault"
)

type testCmd struct {
	Script  string `arg:"" help:"Script whose tests are in SCRIPT.test.yaml."`
	Tests   string `help:"File with the tests." placeholder:"FILE"`
	Params  string `help:"File with parameters that the tests do not give." placeholder:"FILE"`
	Lenient bool   `help:"Do not fail for unknown and repeated keys of the script."`
	Match   string `help:"Run only tests whose names match." name:"run" placeholder:"REGEXP"`
	Python  string `help:"Interpreter for Python formulas." default:"python3" placeholder:"PROGRAM"`
	Memory  string `help:"Memory for each test." default:"1GB" placeholder:"SIZE"`
	JSON    bool   `name:"json" help:"Print a JSON object for each test."`
	remoteFlags
}

// differencesShown of a test; --json has all.
const differencesShown = 20

func (c *testCmd) Run(ctx context.Context, a *console) (err error) {
	match, err := regexp.Compile(c.Match)
	if err != nil {
		return &fault.Error{Kind: fault.Script, Message: "--run is no regular expression", Err: err}
	}
	memory, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	suite, err := app.Tests(c.Tests, c.Script, a.known)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "thalweg-test-")
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "make a directory for tests", Err: err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	client, err := c.client(nil)
	if err != nil {
		return err
	}
	defer client.Close()
	o := app.TestOptions{Process: app.Process{Remote: client, Interpreter: c.Python, Keeper: ownExecutable,
		Known: a.known, MemoryBytes: memory}, ParamsPath: c.Params, Lenient: c.Lenient, WorkDir: work}
	ran, failed := 0, 0
	for _, one := range suite.Cases {
		if !match.MatchString(one.Name) {
			continue
		}
		res, err := app.Test(ctx, suite, one, o)
		if err != nil {
			return err
		}
		ran++
		if len(res.Differences) > 0 {
			failed++
		}
		if err := c.show(a, suite, res); err != nil {
			return err
		}
	}
	switch {
	case ran == 0:
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("no test's name matches %q", c.Match),
			Hint: "without --run all tests run, and each says its name"}
	case failed > 0:
		fmt.Fprintf(a.stderr, "%d of %s failed\n", failed, counted(ran, "test", "tests"))
		return errReported{exitUsers}
	}
	fmt.Fprintf(a.stderr, "%s passed\n", counted(ran, "test", "tests"))
	return nil
}

func (c *testCmd) show(a *console, s *app.Suite, res app.TestResult) error {
	ok := len(res.Differences) == 0
	if c.JSON {
		return printJSON(a.stdout, res.View(s))
	}
	verdict := a.paint("ok  ", green)
	if !ok {
		verdict = a.paint("FAIL", red)
	}
	fmt.Fprintf(a.stdout, "%s  %s  (%s:%d, %s)\n", verdict, res.Case.Name, s.Path, res.Case.Line,
		res.Elapsed.Round(time.Millisecond))
	for i, d := range res.Differences {
		if i == differencesShown {
			fmt.Fprintf(a.stdout, "        and %d more\n", len(res.Differences)-i)
			break
		}
		fmt.Fprintln(a.stdout, "        "+d)
	}
	return nil
}
