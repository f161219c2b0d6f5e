package state

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// diagram holds the states and moves of one drawing of docs/state-machine.md.
type diagram struct {
	begin []Status
	end   []Status
	moves []string // "from --> to"
}

var arrow = regexp.MustCompile(`^\s*(\S+) --> (\S+)(?: :.*)?$`)

// readDiagrams finds the drawing below each heading.
func readDiagrams(t *testing.T) map[string]*diagram {
	t.Helper()
	text, err := os.ReadFile("../../../docs/state-machine.md")
	require.NoError(t, err)
	drawings := map[string]*diagram{}
	heading, drawn := "", false
	for _, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "## "):
			heading = strings.TrimPrefix(line, "## ")
		case line == "```mermaid":
			drawn = true
			drawings[heading] = &diagram{}
		case line == "```":
			drawn = false
		case drawn && strings.TrimSpace(line) != "stateDiagram-v2":
			parts := arrow.FindStringSubmatch(line)
			require.NotNil(t, parts, "not an arrow: %q", line)
			drawings[heading].add(parts[1], parts[2])
		}
	}
	return drawings
}

func (d *diagram) add(from, to string) {
	switch {
	case from == "[*]":
		d.begin = append(d.begin, Status(to))
	case to == "[*]":
		d.end = append(d.end, Status(from))
	default:
		d.moves = append(d.moves, from+" --> "+to)
	}
}

func TestDiagramsShowTheTransitions(t *testing.T) {
	t.Parallel()
	drawings := readDiagrams(t)
	begin := map[string]Status{"run": Running, "node": Pending, "batch": Pending, "attempt": Claimed}
	require.Len(t, drawings, len(transitions))
	for thing, table := range transitions {
		d := drawings[thing]
		require.NotNil(t, d, "no drawing of a %s", thing)
		var moves []string
		for from, targets := range table {
			for _, to := range targets {
				moves = append(moves, fmt.Sprintf("%s --> %s", from, to))
			}
		}
		sort.Strings(moves)
		sort.Strings(d.moves)
		require.Equal(t, moves, d.moves, "moves of a %s", thing)
		require.Equal(t, []Status{begin[thing]}, d.begin, "beginning of a %s", thing)
		slices.Sort(d.end)
		require.Equal(t, resting(thing), d.end, "ends of a %s", thing)
	}
}

// resting lists the states from which a thing does not move by itself.
func resting(thing string) []Status {
	seen := map[Status]bool{}
	for from, targets := range transitions[thing] {
		seen[from] = true
		for _, to := range targets {
			seen[to] = true
		}
	}
	var all []Status
	for s := range seen {
		if s.Terminal() || thing == "attempt" && len(transitions[thing][s]) == 0 {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	return all
}

func TestCanMove(t *testing.T) {
	t.Parallel()
	require.True(t, CanMove("batch", Pending, Claimed))
	require.False(t, CanMove("batch", Pending, Succeeded), "work that nobody claimed")
	require.False(t, CanMove("run", Complete, Stopped))
	require.False(t, CanMove("attempt", Succeeded, Lost), "what was committed stays so")
	require.True(t, Settles(Running, Succeeded))
	require.False(t, Settles(Succeeded, Running), "that takes an order")
	require.False(t, CanMove("attempt", Lost, Succeeded), "fencing")
	require.False(t, CanMove("table", Pending, Running), "no such thing")
}
