package runs

import (
	"context"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/app/view"
	"thalweg/internal/app/workerprocess"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/bill"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// Limits of what is billed.
const (
	billedAtOnce = 8     // runs whose sheets are read at once
	billedMost   = 5_000 // runs
)

// CostOptions say which runs of a workspace are billed, and how they are put together.
type CostOptions struct {
	By    string    // see view.CostsBy
	Since time.Time // those that began then or later; zero: all
	Runs  []int64   // only these; none: all
}

// ReadPrices reads what bills rest on: see workerprocess.ReadPrices.
func (s *Service) ReadPrices(getenv func(name string) string, dir string) error {
	return workerprocess.ReadPrices(s.Home, getenv, dir)
}

// price adds what a run cost in money, where it is known.
func (s *Service) price(ctx context.Context, key state.RunKey, to *view.Cost) error {
	b, err := workerprocess.Bill(ctx, s.Home, key, nil)
	to.Price(b)
	return err
}

// priceAll does so for several runs.
func (s *Service) priceAll(ctx context.Context, runs []view.ListedRun) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(billedAtOnce)
	for i, r := range runs {
		group.Go(func() error {
			return s.price(ctx, state.RunKey{Workspace: r.Workspace, Run: r.Run}, &runs[i].Cost)
		})
	}
	return group.Wait()
}

// Costs says what runs of a workspace cost, also those that were dropped.
func (s *Service) Costs(ctx context.Context, workspace string, o CostOptions) (view.Costs, error) {
	out := view.Costs{By: o.By, Groups: []view.CostGroup{}}
	runs, err := s.billed(ctx, workspace, o)
	if err != nil {
		return out, err
	}
	bills, sheets := make([]*bill.Bill, len(runs)), make([][]sheet.Sheet, len(runs))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(billedAtOnce)
	for i, r := range runs {
		group.Go(func() error {
			key := state.RunKey{Workspace: workspace, Run: r.Run}
			nodes, err := s.nodes(reading, key)
			if err == nil {
				sheets[i], err = sheet.Of(reading, s.Home.State, key)
			}
			bills[i] = bill.Of(sheets[i], bill.NodesOf(nodes), s.Home.Costs.Basis)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return out, err
	}
	machines, services := bill.Twice(sheets)
	if out.Twice.Machines = machines.Seconds(); len(s.Home.Costs.Services)+len(s.Home.Costs.Others) > 0 {
		out.Twice.Services = services.Seconds()
	}
	groups := map[view.CostName]*view.CostSum{}
	in := func(of view.CostName) *view.CostSum {
		if groups[of] == nil {
			groups[of] = &view.CostSum{}
		}
		return groups[of]
	}
	for i, r := range runs {
		out.Total.Add(bills[i])
		if o.By != view.CostsByNode {
			in(groupOf(r, o.By)).Add(bills[i])
		} else if bills[i] != nil {
			for _, n := range bills[i].Nodes {
				in(view.CostName{Script: r.Script, Node: n.Node}).AddNode(bills[i], n)
			}
		}
	}
	for of, sum := range groups {
		out.Groups = append(out.Groups, view.CostGroup{CostName: of, CostSum: *sum})
	}
	view.SortCosts(o.By, out.Groups)
	return out, nil
}

// billed lists the runs that are billed.
func (s *Service) billed(ctx context.Context, workspace string, o CostOptions) ([]view.ListedRun, error) {
	if !slices.Contains(view.CostsBy(), o.By) {
		return nil, fault.New(fault.Script, "costs are not put together by %q", o.By).Suggest(o.By, view.CostsBy())
	}
	var out []view.ListedRun
	if len(o.Runs) > 0 {
		numbers := slices.Compact(slices.Sorted(slices.Values(o.Runs)))
		for _, n := range numbers {
			run, err := s.Find(ctx, workspace, strconv.FormatInt(n, 10))
			if err != nil {
				return nil, err
			}
			r, err := history.One(ctx, s.Home.State, run.RunKey, history.ListOptions{All: true})
			if err != nil {
				return nil, err
			}
			if !r.Created.Before(o.Since) {
				out = append(out, r)
			}
		}
		return out, nil
	}
	for from := int64(0); ; {
		page, next, err := history.ListPage(ctx, s.Home.State, workspace,
			history.ListOptions{All: true, Limit: runsPage, From: from, Since: o.Since})
		if err != nil {
			return nil, err
		}
		if out = append(out, page...); len(out) > billedMost {
			return nil, &fault.Error{Kind: fault.Script,
				Message: "more than " + strconv.Itoa(billedMost) + " runs are meant: that is too many at once",
				Hint:    "say since when: {{set since=7d}}"}
		}
		if from = next; from == 0 {
			return out, nil
		}
	}
}

// runsPage is the number of runs that are listed at once.
const runsPage = 500

// groupOf returns what a run is put together with.
func groupOf(r view.ListedRun, by string) view.CostName {
	switch by {
	case view.CostsByScript:
		return view.CostName{Script: r.Script}
	case view.CostsByDay:
		return view.CostName{Day: r.Created.UTC().Format(time.DateOnly)}
	case view.CostsByWorkspace:
		return view.CostName{Workspace: r.Workspace}
	}
	return view.CostName{Run: r.Run, Script: r.Script, Day: r.Created.UTC().Format(time.DateOnly)}
}
