package bill_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/ops/bill"
	"thalweg/internal/ops/price"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

var noon = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)

// worker is the sheet of a worker of two slots that was there for an hour: half an hour of work, a quarter of waits,
// the rest other.
func worker(name, host, machine string, more ...func(*sheet.Sheet)) sheet.Sheet {
	s := sheet.Sheet{Worker: name, Host: host, Machine: machine, Cores: 2, Slots: 2, From: noon, To: noon.Add(time.Hour),
		Presence: 3600, Shares: map[string]float64{"work": 3000, "parts": 500, "commits": 100, "claims": 10,
			"nothing_to_take": 1790, "other": 1800}}
	for _, m := range more {
		m(&s)
	}
	return s
}

func halved(s *sheet.Sheet) { // it worked for another run half of the time
	for name := range s.Shares {
		s.Shares[name] /= 2
	}
	s.Elsewhere = 3600
}

func later(s *sheet.Sheet) { s.From, s.To = s.From.Add(time.Hour), s.To.Add(time.Hour) }

func of(worked, lost time.Duration) state.Spent { return state.Spent{Worked: worked, Lost: lost} }

func basis(t *testing.T) bill.Basis {
	t.Helper()
	book, err := price.Published()
	require.NoError(t, err)
	return bill.Basis{Book: book}
}

func TestBills(t *testing.T) {
	t.Parallel()
	const large = "c7g.large" // $0.0725 an hour
	none := []bill.Node{}
	services := func(b *bill.Basis) {
		b.Services = []bill.Service{{Machine: large, Count: 3}}
		b.Others = []bill.Hourly{{Name: "balancer", PerHour: 22_500}}
	}
	for name, c := range map[string]struct {
		sheets []sheet.Sheet
		nodes  []bill.Node
		basis  func(*bill.Basis)
		want   string // worked, waited, lost; services; whole; unpriced; bring-up
	}{
		"a machine": {[]sheet.Sheet{worker("w", "h", large)}, none, nil,
			"1800s $0.03625, 1800s $0.03625, 0s $0; -; $0.0725; 0s; -"},
		"what was lost was paid": {[]sheet.Sheet{worker("w", "h", large)},
			[]bill.Node{{"a", of(time.Hour, 900*time.Second)}}, nil,
			"1800s $0.03625, 1350s $0.027187, 450s $0.009063; -; $0.0725; 0s; -"},
		"a lease behind a worker's death was not": {[]sheet.Sheet{worker("w", "h", large)},
			[]bill.Node{{"a", of(time.Hour, time.Hour)}}, nil,
			"1800s $0.03625, 900s $0.018125, 900s $0.018125; -; $0.0725; 0s; -"},
		"unknown machine": {[]sheet.Sheet{worker("w", "h", "")}, none, nil, "1800s -, 1800s -, 0s -; -; -; 3600s; -"},
		"no price":        {[]sheet.Sheet{worker("w", "h", "rack")}, none, nil, "1800s -, 1800s -, 0s -; -; -; 3600s; -"},
		"mixed": {[]sheet.Sheet{worker("v", "g", ""), worker("w", "h", large)}, none, nil,
			"3600s $0.03625, 3600s $0.03625, 0s $0; -; $0.0725; 3600s; -"},
		"one host is paid once": {[]sheet.Sheet{worker("v", "h", large), worker("w", "h", large)}, none, nil,
			"1800s $0.03625, 1800s $0.03625, 0s $0; -; $0.0725; 0s; -"},
		"one after the other is paid twice": {[]sheet.Sheet{worker("v", "h", large), worker("w", "h", large, later)}, none,
			nil, "3600s $0.0725, 3600s $0.0725, 0s $0; -; $0.145; 0s; -"},
		"another run pays its part": {[]sheet.Sheet{worker("w", "h", large, halved)}, none, services,
			"900s $0.018125, 900s $0.018125, 0s $0; 1800s $0.12; $0.15625; 0s; -"},
		"services are paid while anybody is there": {
			[]sheet.Sheet{worker("v", "g", large), worker("w", "h", large), worker("x", "h", large, later)}, none, services,
			"5400s $0.10875, 5400s $0.10875, 0s $0; 7200s $0.48; $0.6975; 0s; -"},
		"services without workers' prices": {[]sheet.Sheet{worker("w", "h", "")}, none, services,
			"1800s -, 1800s -, 0s -; 3600s $0.24; $0.24; 3600s; -"},
		"bring-up is apart": {[]sheet.Sheet{worker("v", "g", large), worker("w", "h", large), worker("x", "h", large, later)},
			none, func(b *bill.Basis) {
				services(b)
				b.BringUp = new(6 * time.Minute)
			}, "5400s $0.10875, 5400s $0.10875, 0s $0; 7200s $0.48; $0.6975; 0s; 1800s $0.0385"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := basis(t)
			if c.basis != nil {
				c.basis(&b)
			}
			got := bill.Of(c.sheets, c.nodes, b)
			require.Equal(t, c.want, fmt.Sprintf("%s, %s, %s; %s; %s; %gs; %s", partOf(&got.Worked), partOf(&got.Waited),
				partOf(&got.Lost), partOf(got.Services), usd(got.Total), got.Unpriced, partOf(got.BringUp)))
			require.Equal(t, got.Unpriced == 0, got.Complete())
			text, err := json.Marshal(got)
			require.NoError(t, err)
			var back bill.Bill
			require.NoError(t, json.Unmarshal(text, &back))
			require.Equal(t, *got, back)
		})
	}
	require.Nil(t, bill.Of(nil, none, basis(t)))
}

func partOf(p *bill.Part) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%gs %s", p.Seconds, usd(p.USD))
}

func usd(m *price.Money) string {
	if m == nil {
		return "-"
	}
	text, _ := m.MarshalJSON()
	return "$" + string(text)
}

func TestBillsSayWhatTheyRestOn(t *testing.T) {
	t.Parallel()
	b := basis(t)
	b.Services = []bill.Service{{Machine: "rack", Count: 2}}
	got := bill.Of([]sheet.Sheet{worker("v", "g", ""), worker("w", "h", "c7g.large"), worker("x", "i", "c7g.large")}, nil,
		b)
	require.False(t, got.Complete())
	require.Len(t, got.Machines, 2)
	require.Equal(t, bill.Machine{Workers: 1, Seconds: 3600}, got.Machines[0])
	line, _ := b.Book.Find("c7g.large")
	require.Equal(t, bill.Machine{Machine: "c7g.large", Workers: 2, Seconds: 7200, PerHour: &line.PerHour,
		USD: new(2 * line.PerHour), Date: line.Date, Source: line.Source}, got.Machines[1])
	require.Equal(t, []string{line.Date}, got.Dates)
	require.Equal(t, []bill.Beside{{Name: "rack", Count: 2}}, got.Beside)
	require.Nil(t, got.Services.USD)
	require.Equal(t, 3600.0, got.Services.Seconds)
}

// Nodes have all that was worked and lost, whatever is rounded; worked, waited and lost are the machines' time.
func TestBillsAddUp(t *testing.T) {
	t.Parallel()
	b := basis(t)
	rapid.Check(t, func(t *rapid.T) {
		var sheets []sheet.Sheet
		var own price.Money
		seconds := 0.0
		for i := range rapid.IntRange(1, 4).Draw(t, "workers") {
			s := worker(fmt.Sprint(i), fmt.Sprint(i), rapid.SampledFrom([]string{"c7g.large", "c8g.medium"}).Draw(t, "machine"))
			s.Slots = rapid.IntRange(1, 7).Draw(t, "slots")
			s.Shares["work"] = rapid.Float64Range(0, 1e5).Draw(t, "work")
			line, _ := b.Book.Find(s.Machine)
			own += line.PerHour.For(time.Duration(float64(s.SlotTime())/float64(s.Slots) + 0.5))
			seconds += s.SlotTime().Seconds() / float64(s.Slots)
			sheets = append(sheets, s)
		}
		var nodes []bill.Node
		for i := range rapid.IntRange(1, 9).Draw(t, "nodes") {
			nodes = append(nodes, bill.Node{Name: fmt.Sprint(i),
				Spent: of(time.Duration(rapid.Int64Range(1, 1e12).Draw(t, "worked")),
					time.Duration(rapid.Int64Range(1, 1e12).Draw(t, "lost")))})
		}
		got := bill.Of(sheets, nodes, b)
		require.Equal(t, own, *got.Total)
		require.Equal(t, own, *got.Worked.USD+*got.Waited.USD+*got.Lost.USD)
		require.InDelta(t, seconds, got.Worked.Seconds+got.Waited.Seconds+got.Lost.Seconds, 1e-4)
		var worked, lost price.Money
		for _, n := range got.Nodes {
			worked, lost = worked+*n.Worked.USD, lost+*n.Lost.USD
		}
		require.Equal(t, *got.Worked.USD, worked)
		require.Equal(t, *got.Lost.USD, lost)
	})
}

// A sheet that ends when it begins costs nothing, also beside others of its host.
func TestABillOfNoTime(t *testing.T) {
	t.Parallel()
	short := worker("b", "h", "c7g.large", func(s *sheet.Sheet) {
		s.From = noon.Add(time.Minute)
		s.To, s.Presence, s.Shares = s.From, 0, map[string]float64{"work": 0}
	})
	alone := bill.Of([]sheet.Sheet{worker("a", "h", "c7g.large")}, nil, basis(t))
	both := bill.Of([]sheet.Sheet{worker("a", "h", "c7g.large"), short}, nil, basis(t))
	require.Equal(t, *alone.Total, *both.Total)
	require.Equal(t, alone.Worked, both.Worked)
}

// TestAnyBillsAddUp holds that whatever sheets say, parts are the machines' time and money, nodes have what was worked
// and lost, and sums of runs and of their nodes have what the bills have.
func TestAnyBillsAddUp(t *testing.T) {
	t.Parallel()
	book := basis(t)
	rapid.Check(t, func(t *rapid.T) {
		b := book
		if rapid.Bool().Draw(t, "services") {
			b.Services = []bill.Service{{Machine: rapid.SampledFrom([]string{"c7g.large", "rack"}).Draw(t, "service"), Count: 3}}
			b.Others = []bill.Hourly{{Name: "balancer", PerHour: 22_500}}
		}
		var all, nodes bill.Sum
		var total price.Money
		var seconds, unpriced float64
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			got := bill.Of(anySheets(t), anyNodes(t), b)
			all.Add(got)
			if got == nil {
				continue
			}
			addsUp(t, got)
			total, unpriced = total+value(got.Total), unpriced+got.Unpriced
			seconds += got.Worked.Seconds + got.Waited.Seconds + got.Lost.Seconds
			for _, n := range got.Nodes {
				nodes.AddNode(got, n)
			}
			if len(got.Nodes) == 0 {
				nodes.AddNode(got, bill.Share{Worked: got.Worked, Lost: got.Lost})
			}
		}
		require.Equal(t, total, value(all.Total))
		require.Equal(t, total, value(all.Worked.USD)+value(all.Lost.USD)+of0(all.Waited)+of0(all.Services))
		require.InDelta(t, seconds, all.Seconds(), 1e-4)
		require.InDelta(t, unpriced, all.Unpriced, 1e-4)
		require.Equal(t, value(all.Worked.USD)+value(all.Lost.USD), value(nodes.Total))
		require.InDelta(t, all.Worked.Seconds+all.Lost.Seconds, nodes.Seconds(), 1e-4)
	})
}

func addsUp(t *rapid.T, b *bill.Bill) {
	var machines, worked, lost price.Money
	seconds, unpriced, workedS, lostS := 0.0, 0.0, 0.0, 0.0
	for _, m := range b.Machines {
		machines, seconds = machines+value(m.USD), seconds+m.Seconds
		if m.PerHour == nil {
			unpriced += m.Seconds
		}
		require.GreaterOrEqual(t, m.Seconds, 0.0)
	}
	for _, p := range []bill.Part{b.Worked, b.Waited, b.Lost} {
		require.GreaterOrEqual(t, p.Seconds, 0.0)
		require.GreaterOrEqual(t, value(p.USD), price.Money(0))
	}
	require.Equal(t, machines, value(b.Worked.USD)+value(b.Waited.USD)+value(b.Lost.USD))
	require.Equal(t, machines+of0(b.Services), value(b.Total))
	require.InDelta(t, seconds, b.Worked.Seconds+b.Waited.Seconds+b.Lost.Seconds, 1e-4)
	require.InDelta(t, unpriced, b.Unpriced, 1e-4)
	for _, n := range b.Nodes {
		worked, lost = worked+value(n.Worked.USD), lost+value(n.Lost.USD)
		workedS, lostS = workedS+n.Worked.Seconds, lostS+n.Lost.Seconds
	}
	if len(b.Nodes) > 0 {
		require.Equal(t, value(b.Worked.USD)+value(b.Lost.USD), worked+lost)
		require.InDelta(t, b.Worked.Seconds+b.Lost.Seconds, workedS+lostS, 1e-4)
	}
}

func value(m *price.Money) price.Money {
	if m == nil {
		return 0
	}
	return *m
}

func of0(p *bill.Part) price.Money {
	if p == nil {
		return 0
	}
	return value(p.USD)
}

// anySheets are of workers on few hosts, some of which were there for no time.
func anySheets(t *rapid.T) (out []sheet.Sheet) {
	for i := range rapid.IntRange(0, 5).Draw(t, "workers") {
		from := noon.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "from")) * time.Minute)
		to := from.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "for")) * time.Minute)
		s := sheet.Sheet{Worker: fmt.Sprint(i), Host: rapid.SampledFrom([]string{"g", "h"}).Draw(t, "host"),
			Machine: rapid.SampledFrom([]string{"c7g.large", "c8g.medium", "", "rack"}).Draw(t, "machine"),
			Cores:   rapid.IntRange(0, 4).Draw(t, "cores"), Slots: rapid.IntRange(0, 4).Draw(t, "slots"), From: from, To: to,
			Presence: rapid.Float64Range(0, 400).Draw(t, "presence"), Shares: map[string]float64{},
			Elsewhere: rapid.Float64Range(0, 400).Draw(t, "elsewhere")}
		for _, name := range []string{"work", "parts", "commits", "nothing_to_take", "other"} {
			s.Shares[name] = rapid.Float64Range(0, 1e5).Draw(t, name)
		}
		out = append(out, s)
	}
	return out
}

// anyNodes are some that may have lost nothing.
func anyNodes(t *rapid.T) (out []bill.Node) {
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		out = append(out, bill.Node{Name: fmt.Sprint(i), Spent: of(time.Duration(rapid.Int64Range(1, 1e12).Draw(t, "worked")),
			time.Duration(rapid.SampledFrom([]int64{0, 1, 1e9, 1e13}).Draw(t, "lost")))})
	}
	return out
}
