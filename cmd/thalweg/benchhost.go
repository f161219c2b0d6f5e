package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"thalweg/internal/app/benches"
	"thalweg/internal/base/fault"
)

type benchHostCmd struct {
	Seconds   float64 `help:"Time of full load; everything else takes a share of it." default:"60" placeholder:"N"`
	Dir       string  `help:"Directory whose disk is measured; nothing stays in it." default:"." type:"path"`
	Machine   string  `help:"Type of this machine, where its firmware does not have it." placeholder:"TYPE"`
	Reference string  `help:"Host on which runs were carried out, as --json printed it there: core_speed is times that of its cores." placeholder:"FILE" type:"path"`
	Peer      string  `help:"Measure the network to 'bench host --listen' there, too." placeholder:"HOST:PORT"`
	Listen    string  `help:"Only answer those who measure the network to here, until it is interrupted." placeholder:"HOST:PORT"`
	TokenFile string  `help:"File with what both sides of --peer know: 16 characters or more." placeholder:"FILE" type:"path"`
	JSON      bool    `name:"json" help:"Print a JSON object, which 'simulate --machine', 'capacity plan --speeds' and 'capacity compare' take."`
}

// secondsMost bounds the time of full load.
const secondsMost = 3600

// Run implements kong's command.
func (c *benchHostCmd) Run(ctx context.Context, a *console) error {
	if err := c.check(a); err != nil {
		return err
	}
	var token []byte
	if c.Peer != "" || c.Listen != "" {
		text, err := readSmall(c.TokenFile)
		if err != nil {
			return err
		}
		token = bytes.TrimSpace(text)
	}
	if c.Listen != "" {
		return c.answer(ctx, a, token)
	}
	reference, err := c.reference()
	if err != nil {
		return err
	}
	o := benches.HostOptions{Machine: c.Machine, Load: seconds(c.Seconds), Dir: c.Dir}
	if c.Peer != "" {
		o.Peer = &benches.HostPeer{Addr: c.Peer, Token: token}
	}
	working, end := a.showProgress(ctx)
	h, err := benches.MeasureHost(working, o)
	end()
	if err != nil {
		return err
	}
	if reference != nil {
		if err := h.Against(*reference, c.Reference); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(a.stdout, h)
	}
	a.printTables(benches.HostTables(h))
	a.printTexts("what to change", benches.HostChanges(h))
	a.printTexts("what the rules rest on", benches.HostAdvice(h))
	a.printTexts("what could not be seen or measured", benches.HostUnseen(h))
	return nil
}

func (c *benchHostCmd) check(a *console) error {
	switch {
	case math.IsNaN(c.Seconds) || c.Seconds <= 0 || c.Seconds > secondsMost:
		return fault.New(fault.Script, "--seconds %g: it is above 0 and at most %d", c.Seconds, secondsMost)
	case (c.Peer != "" || c.Listen != "") && c.TokenFile == "":
		return &fault.Error{Kind: fault.Script, Message: "--peer and --listen go with --token-file",
			Hint: "both sides have the same file, such as of 'openssl rand -hex 32'"}
	case c.Peer == "" && c.Listen == "" && c.TokenFile != "":
		return fault.New(fault.Script, "--token-file goes with --peer or --listen")
	}
	for _, name := range []string{"seconds", "dir", "machine", "reference", "peer", "json"} {
		if c.Listen != "" && a.typed[name] {
			return fault.New(fault.Script, "--listen measures nothing itself: --%s does not go with it", name)
		}
	}
	return nil
}

// reference reads the host that cores are compared with; nil: there is none.
func (c *benchHostCmd) reference() (*benches.Host, error) {
	if c.Reference == "" {
		return nil, nil
	}
	text, err := readSmall(c.Reference)
	if err != nil {
		return nil, err
	}
	h, err := benches.ReadHost(c.Reference, text)
	if err != nil {
		return nil, err
	}
	same := h
	return &h, same.Against(h, c.Reference) // before a minute is spent
}

// answer serves those who measure, until it is interrupted.
func (c *benchHostCmd) answer(ctx context.Context, a *console, token []byte) error {
	l, err := benches.ListenForHosts(ctx, c.Listen, token)
	if err != nil {
		return err
	}
	begun := time.Now()
	fmt.Fprintf(a.stderr, "listening on %s, TCP and UDP; interrupt it to end\n", plain(l.Addr()))
	err = l.Serve(ctx)
	a.note("listened for %s", span(time.Since(begun)))
	return err
}
