package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"thalweg/internal/apiclient"
	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// throughServer returns the script as the server is asked about it. If the file is here, that is its text, with the
// files beside it that it is made of; else its name on the server.
func (f *scriptFlags) throughServer(ctx context.Context, a *console) (*apiclient.Client, apiclient.Script, error) {
	out := apiclient.Script{Name: filepath.ToSlash(filepath.Clean(f.Script)), Params: maps.Clone(f.Param)}
	maps.DeleteFunc(out.Params, func(name, _ string) bool { return strings.HasPrefix(name, app.SpareParam) })
	if is, err := os.Stat(f.Script); err == nil && is.Mode().IsRegular() {
		if out, err = f.sent(ctx, out); err != nil {
			return nil, out, err
		}
	}
	client, err := a.serverClient()
	return client, out, err
}

// sent adds the texts of a script that is here.
func (f *scriptFlags) sent(ctx context.Context, out apiclient.Script) (apiclient.Script, error) {
	root := ""
	if !filepath.IsLocal(f.Script) { // of what is not below the working directory, the directory is of no use there
		root, out.Name = filepath.Dir(f.Script), filepath.Base(f.Script)
	}
	texts, err := (&app.ScriptService{}).TextsOf(ctx, app.NamedScript{Path: f.Script, Params: f.Param})
	if err != nil {
		return out, err
	}
	out.Text = texts[filepath.Clean(f.Script)]
	delete(texts, filepath.Clean(f.Script))
	if out.Text == "" {
		return out, &fault.Error{Kind: fault.Script, Message: f.Script + " is empty"}
	}
	out.Files = map[string]string{}
	for path, text := range texts {
		if name, err := filepath.Rel(root, path); err == nil && app.CheckTextName(filepath.ToSlash(name)) == nil {
			out.Files[filepath.ToSlash(name)] = text
		}
	}
	return out, nil
}

// placesHere names files in an answer as the script is named here. Of one that is not below the working directory, the
// server knows the name without its directory.
func (f *scriptFlags) placesHere(ds view.Diagnostics) view.Diagnostics {
	if filepath.IsLocal(f.Script) {
		return ds
	}
	return ds.Renamed(func(file string) string {
		if !filepath.IsLocal(file) {
			return file
		}
		return filepath.Join(filepath.Dir(f.Script), file)
	})
}
