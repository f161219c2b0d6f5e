package main

import (
	"context"

	"thalweg/internal/app"
	"thalweg/internal/base/fault"

	"github.com/alecthomas/kong"
)

// placeFlags say where a command's state is: in a directory, or in a cluster.
type placeFlags struct {
	State   string `help:"State directory." default:"${state}" type:"path" env:"THALWEG_STATE" placeholder:"DIR"`
	Cluster string `help:"Configuration of a cluster." type:"path" env:"THALWEG_CLUSTER" placeholder:"FILE"`

	keep     bool          // see app.Place
	children *app.Children // see app.Place
	away     *app.Outage   // has the process wait for services of the cluster that are away; nil: it fails
}

// config is the configuration of the cluster that is named; nil without one.
func (p placeFlags) config(a *console) (*app.Config, error) {
	if p.Cluster == "" {
		return nil, nil
	}
	return app.LoadCluster(p.Cluster, a.process())
}

// openHome opens the state. create makes a state directory that is not there; what a
// cluster needs is made by cluster init. settings say what the command may use.
func (p placeFlags) openHome(ctx context.Context, a *console, create bool, settings ...func(*app.Process)) (*app.App,
	error) {
	return p.openObserved(ctx, a, create, app.Observers{}, settings...)
}

// openObserved is openHome with somebody who is told what a cluster's services do.
func (p placeFlags) openObserved(ctx context.Context, a *console, create bool, told app.Observers,
	settings ...func(*app.Process)) (*app.App, error) {
	if a.server != "" {
		return a.elsewhereApp()
	}
	cfg, err := p.config(a)
	if err != nil {
		return nil, err
	}
	a.cluster = a.cluster || cfg != nil
	return app.Open(ctx, app.Place{Dir: p.State, Create: create, Cluster: cfg, Keep: p.keep, Observers: told, Children: p.children,
		Away: p.away, Told: a.away.text, Warn: a.warnFault}, a.process(settings...))
}

// hooksDir is the directory that may have hooks of all runs.
func (p placeFlags) hooksDir(a *console) (string, error) {
	if p.Cluster == "" {
		return p.State, nil
	}
	cfg, err := app.LoadCluster(p.Cluster, a.process())
	if err != nil {
		return "", err
	}
	return cfg.Dir(), nil
}

// settlePlace decides between a directory and a cluster where both are named: what is on
// the command line counts, not what the environment has for other commands.
func settlePlace(a *console, kctx *kong.Context, args []string) (at commandPlace, err error) {
	said := map[string]bool{}
	for _, p := range kctx.Path {
		if p.Flag != nil {
			said[p.Flag.Name] = true
		}
	}
	var state, cluster *kong.Flag
	config := ""
	for _, f := range kctx.Flags() {
		switch f.Name {
		case "state":
			state = f
		case "cluster":
			cluster = f
		case "config":
			if n := kctx.Selected(); f.Target.String() != "" && n != nil && n.Name == "worker" {
				config = f.Target.String()
			}
		}
	}
	if config != "" {
		cluster.Target.SetString(config)
		said["cluster"] = true
	}
	at = placeOf(a.commands, kctx, args, config)
	if state == nil || cluster == nil {
		return at, nil
	}
	switch {
	case said["state"] && said["cluster"]:
		return at, &fault.Error{Kind: fault.Script, Message: "--state and --cluster exclude each other",
			Hint: "name a state directory or the configuration of a cluster"}
	case said["state"]:
		cluster.Target.SetString("")
	}
	return at, nil
}
