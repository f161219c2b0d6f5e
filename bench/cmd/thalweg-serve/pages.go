package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"thalweg/bench/generate/history"
	"thalweg/bench/internal/idle"
	"thalweg/internal/app/instance"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
)

const (
	inWorkspace = "/v1/workspaces/" + workspace
	ofRun       = inWorkspace + "/runs/1"
	pageRows    = 100
	loadFiles   = 10
)

// page is a page of rows.
type page struct {
	Rows [][]*string `json:"rows"`
}

var errWrongPage = errors.New("the page has other rows")

// rows measures pages of a long table, cold (the server has just begun) and 50 times.
func rows(ctx context.Context, o options, out *figures) error {
	urls, err := o.items(loadFiles, max(1, o.Size/loadFiles))
	if err != nil {
		return err
	}
	cmd, err := o.loading(ctx, urls)
	if err != nil {
		return err
	}
	if out.Steps["load"], err = work(cmd); err != nil {
		return err
	}
	if o.Pages {
		return o.with(ctx, func(s *server) error { return s.show(ctx) })
	}
	for name, from := range map[string]int{"row 1": 0, "row 9,000,000": o.Size / 10 * 9} {
		err := o.with(ctx, func(s *server) (err error) {
			var last page
			path := fmt.Sprintf("%s/tables/items/rows?from=%d&limit=%d", ofRun, from, pageRows)
			out.Steps[name], out.Steps[name+", cold"], err = o.measure(ctx, s, path, &last)
			if err == nil && (len(last.Rows) == 0 || *last.Rows[0][0] != strconv.Itoa(from)) {
				err = fmt.Errorf("from row %d: %w", from, errWrongPage)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// with starts a server, does something and stops it.
func (o options) with(ctx context.Context, do func(*server) error) (err error) {
	s, err := o.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return do(s)
}

// fill makes a state directory. Nothing is written through to the disk meanwhile.
func (o options) fill(ctx context.Context, with func(state.Store) error) error {
	home, err := instance.Open(ctx, o.state(), true)
	if err == nil {
		err = home.Close()
	}
	if err != nil {
		return err
	}
	store, err := sqlite.OpenScratch(ctx, filepath.Join(o.state(), "state.db"))
	if err != nil {
		return err
	}
	return errors.Join(with(store), store.Close())
}

// runs measures pages of a workspace of many runs.
func runs(ctx context.Context, o options, out *figures) error {
	began := time.Now()
	err := o.fill(ctx, func(s state.Store) error { return history.Runs(ctx, s, o.Size) })
	if err != nil {
		return err
	}
	out.Steps["fill"] = time.Since(began).Seconds()
	at := func(run int) string { return url.QueryEscape(history.Began(run).Format(time.RFC3339)) }
	return o.with(ctx, func(s *server) error {
		if o.Pages {
			return s.show(ctx)
		}
		list := inWorkspace + "/runs?limit=" + strconv.Itoa(pageRows)
		var middle struct {
			Next string `json:"next"`
		}
		if err := s.ask(ctx, http.MethodGet, list+"&until="+at(o.Size/2), nil, &middle); err != nil {
			return err
		}
		return o.each(ctx, s, out, map[string]string{
			"first":  list,
			"middle": list + "&cursor=" + url.QueryEscape(middle.Next),
			"status": list + "&status=failed",
			"script": list + "&script=script7",
			"text":   list + "&text=" + url.QueryEscape("NUMBER "+strconv.Itoa(o.Size/50)),
			"until":  list + "&until=" + at(o.Size/20),
			"since":  list + "&since=" + at(o.Size-50) + "&until=" + at(o.Size-10),
			"matrix": inWorkspace + "/matrix?limit=" + strconv.Itoa(pageRows),
		})
	})
}

// each measures requests.
func (o options) each(ctx context.Context, s *server, out *figures, paths map[string]string) (err error) {
	for name, path := range paths {
		if out.Steps[name], _, err = o.measure(ctx, s, path, nil); err != nil {
			return err
		}
	}
	_, out.Counts["server MB"], err = s.memory()
	return err
}

// node measures what is shown of a node of many batches.
func node(ctx context.Context, o options, out *figures) error {
	err := o.fill(ctx, func(s state.Store) error {
		return idle.Drive(ctx, s, state.Run{RunKey: state.RunKey{Workspace: workspace}, Created: time.Now()},
			state.NodeSpec{Name: "n", Kind: "file_table", Table: "n"}, o.Size)
	})
	if err != nil {
		return err
	}
	return o.with(ctx, func(s *server) error {
		at := ofRun + "/nodes/n"
		return o.each(ctx, s, out, map[string]string{
			"node": at, "run": ofRun, "all batches": at + "/batches",
			"batches":           at + "/batches?limit=100",
			"batches, the last": at + "/batches?limit=100&cursor=" + strconv.Itoa(max(1, o.Size-100)),
			"failed batches":    at + "/batches?limit=100&status=failed",
			"batch":             at + "/batches/" + strconv.Itoa(o.Size/2),
			"timeline":          at + "/timeline",
			"why":               ofRun + "/why",
			"events":            ofRun + "/events?after=" + strconv.Itoa(o.Size),
		})
	})
}
