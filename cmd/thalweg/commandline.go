package main

import (
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"thalweg/internal/state"
)

// commandPlace adds the place that a command line has named to the commands that
// are proposed to people: theirs are typed in the same place.
type commandPlace struct {
	words string          // " --cluster FILE"; "": the commands say all, by themselves or by the environment
	takes map[string]bool // commands that can be told
}

// placeOf reads which place was named on the command line.
func placeOf(kctx *kong.Context, cluster string) commandPlace {
	p := commandPlace{words: " --cluster " + shellWord(cluster), takes: map[string]bool{}}
	for _, leaf := range kctx.Model.Leaves(true) {
		for _, group := range leaf.AllFlags(true) {
			for _, f := range group {
				if f.Name == "cluster" {
					p.takes[strings.Fields(leaf.Path())[0]] = true
				}
			}
		}
	}
	return p
}

// inEnvironment adds the environment that was named on the command line to all commands: its
// place of state goes with it.
func (p *commandPlace) inEnvironment(kctx *kong.Context) {
	for _, at := range kctx.Path {
		if at.Flag == nil || at.Flag.Name != "env" {
			continue
		}
		p.words += " --env " + shellWord(at.Flag.Target.String())
		if p.takes == nil {
			p.takes = map[string]bool{}
		}
		for _, leaf := range kctx.Model.Leaves(true) {
			p.takes[strings.Fields(leaf.Path())[0]] = true
		}
	}
}

// proposed finds commands in what people are told: between accents, a text of
// their own, or in a sentence.
var proposed = regexp.MustCompile("`thalweg ([a-z]+)[^`]*`|^thalweg ([a-z]+)(?: .*)?$|\\bthalweg ([a-z]+)\\b(?: --(?:cluster|state) )?")

// here adds the place to the commands of a text.
func (p commandPlace) here(text string) string {
	if p.words == "" {
		return text
	}
	return proposed.ReplaceAllStringFunc(text, func(found string) string {
		m := proposed.FindStringSubmatch(found)
		switch {
		case !p.takes[m[1]+m[2]+m[3]] || strings.Contains(found, " --cluster ") || strings.Contains(found, " --state "):
			return found
		case strings.HasSuffix(found, "`"):
			return strings.TrimSuffix(found, "`") + p.words + "`"
		}
		return found + p.words
	})
}

// command is a command about a run, as it is typed for this place.
func (a *app) command(key state.RunKey, rest string) string { return a.at.here(key.Command(rest)) }

// shellWord quotes a word for a shell where it has to be.
func shellWord(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-+.,:=/@%", r))
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
