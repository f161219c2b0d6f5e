package outputs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"thalweg/internal/app/view"
	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
)

// OutputThere is something that is there already and that a node may replace.
type OutputThere struct {
	URL      string
	Bytes    int64     // -1: not known
	Modified time.Time // zero: not known
	Mode     string    // of a table of a database: what becomes of its rows
	Unsure   error     // why it could not be looked at: it may not be there
}

// outputsThereMax is the most files of one node that are listed.
const outputsThereMax = 10_000

// OutputsThere lists what is there already of the files or the table that a node may write:
// files of all runs and batches, where its url_template names them. What cannot be looked at is listed, too.
func OutputsThere(ctx context.Context, client *remote.Client, s *script.Script, n *script.Node) ([]OutputThere, error) {
	if n.Out.Target != nil {
		return tableThere(ctx, client, s, n)
	}
	t, err := outputTarget(s.Dir, n)
	if err != nil {
		return nil, err
	}
	if t.local {
		return localThere(t)
	}
	const run, batch = 1_234_567_891, 1_234_567_892
	pattern := strings.NewReplacer("1234567891", "*", "1234567892", "*").
		Replace(script.ExpandURL(n.Out.URL, run, batch))
	found, err := client.List(ctx, pattern, outputsThereMax)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return []OutputThere{{URL: address.Redact(n.Out.URL), Bytes: -1, Unsure: err}}, nil
	}
	var out []OutputThere
	for _, f := range found {
		out = append(out, OutputThere{URL: address.Redact(f.URL), Bytes: f.Version.Bytes, Modified: f.Version.ModTime})
	}
	return out, nil
}

func localThere(t Target) (out []OutputThere, err error) {
	add := func(path string) error {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return &fault.Error{Kind: fault.Environment, Message: "look whether " + t.Shown + " is there", Err: err}
		}
		out = append(out, OutputThere{URL: path, Bytes: info.Size(), Modified: info.ModTime()})
		return nil
	}
	if t.Other == nil {
		return out, add(t.At)
	}
	// a directory of a run's own is that of run 1 here: others are not replaced
	entries, err := os.ReadDir(filepath.Dir(t.At))
	if err != nil {
		return nil, nil //nolint:nilerr // nothing is there to be replaced
	}
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(t.At), e.Name())
		if t.Other.MatchString(filepath.ToSlash(path)) && len(out) < outputsThereMax {
			if err := add(path); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// Replaced lists the output files and tables of nodes that are there already, of this machine or others.
func Replaced(ctx context.Context, client *remote.Client, s *script.Script, nodes []*script.Node) (out []view.Replaced,
	err error) {
	for _, n := range nodes {
		if n.Out == nil {
			continue
		}
		found, err := OutputsThere(ctx, client, s, n)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			one := view.Replaced{What: f.URL}
			switch {
			case f.Unsure != nil:
				one.Note = "it may be there: " + f.Unsure.Error()
			case f.Mode != "":
				one.Note = "a table: mode " + f.Mode
			case !f.Modified.IsZero() && f.Bytes >= 0:
				one.Note = fmt.Sprintf("%s of %s", format.Size(f.Bytes), f.Modified.Local().Format(time.DateTime))
			}
			out = append(out, one)
		}
	}
	return out, nil
}
