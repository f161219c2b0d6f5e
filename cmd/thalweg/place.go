package main

import (
	"context"

	"github.com/alecthomas/kong"

	"thalweg/internal/app/fleet"
	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
)

// placeFlags say where a command's state is: in a directory, or in a cluster.
type placeFlags struct {
	State   string `help:"State directory." default:"${state}" type:"path" env:"THALWEG_STATE" placeholder:"DIR"`
	Cluster string `help:"Configuration of a cluster, instead of a state directory." type:"path" env:"THALWEG_CLUSTER" placeholder:"FILE"`

	keep bool    // see instance.ClusterOptions
	away *outage // has the process wait for services of the cluster that are away; nil: it fails
}

// config is the configuration of the cluster that is named; nil without one.
func (p placeFlags) config(a *app) (*clusterconfig.Config, error) {
	if p.Cluster == "" {
		return nil, nil
	}
	return instance.LoadCluster(p.Cluster, a.known)
}

// openHome opens the state. create makes a state directory that is not there; what a
// cluster needs is made by cluster init.
func (p placeFlags) openHome(ctx context.Context, a *app, create bool) (*instance.Instance, error) {
	return p.openObserved(ctx, a, create, instance.ClusterOptions{})
}

// openObserved is openHome with somebody who is told what a cluster's services do.
func (p placeFlags) openObserved(ctx context.Context, a *app, create bool,
	opts instance.ClusterOptions) (*instance.Instance,
	error) {
	if p.Cluster == "" {
		home, err := instance.Open(ctx, p.State, create)
		if err == nil {
			home.Told = a.away.text
		}
		return home, err
	}
	cfg, err := instance.LoadCluster(p.Cluster, a.known)
	if err != nil {
		return nil, err
	}
	opts.Keep, a.cluster = p.keep, true
	open := func() (*instance.Instance, error) { return instance.OpenCluster(ctx, cfg, opts) }
	if p.away != nil {
		once := open
		open = func() (*instance.Instance, error) { return p.away.open(ctx, once) }
	}
	home, err := open()
	if err != nil {
		return nil, err
	}
	home.Told = a.away.text
	if err := fleet.WrongDatacenter(home); err != nil {
		a.warnFault(err)
	}
	return home, nil
}

// hooksDir is the directory that may have hooks of all runs.
func (p placeFlags) hooksDir(a *app) (string, error) {
	if p.Cluster == "" {
		return p.State, nil
	}
	cfg, err := instance.LoadCluster(p.Cluster, a.known)
	if err != nil {
		return "", err
	}
	return cfg.Dir(), nil
}

// settlePlace decides between a directory and a cluster where both are named: what is on
// the command line counts, not what the environment has for other commands.
func settlePlace(a *app, kctx *kong.Context, args []string) (at commandPlace, err error) {
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
			if f.Target.String() != "" {
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
