package peek

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
)

// served lists who is served while the line has one place, in their order.
func served(l *line, names map[*asked]string) (order []string) {
	for len(l.working) > 0 {
		a := l.working[0]
		order = append(order, names[a])
		l.leave(a)
	}
	return order
}

// Callers are served in turn, pages before what may take long, and neither waits for ever behind the other.
func TestTurnsOfCallers(t *testing.T) {
	t.Parallel()
	l := &line{places: 1}
	names := map[*asked]string{}
	join := func(by string, heavy bool) {
		a := &asked{by: by, heavy: heavy, ready: make(chan struct{})}
		require.NoError(t, l.join(a, "the query"))
		if names[a] = by + " page"; heavy {
			names[a] = by + " sql"
		}
	}
	for range 4 {
		join("ann", true)
	}
	join("bob", true)
	join("ann", false)
	join("eve", false)
	require.Equal(t, []string{"ann sql", "ann page", "eve page", "ann sql", "bob sql", "ann sql", "ann sql"},
		served(l, names))
	join("ann", false)
	join("bob", true)
	for range waitingMax {
		join("ann", false)
	}
	order := served(l, names)
	require.Less(t, indexOf(order, "bob sql"), len(order)-1, "not behind all pages of somebody else")
	require.Greater(t, indexOf(order, "bob sql"), 1)
}

func indexOf(all []string, one string) int {
	for i, text := range all {
		if text == one {
			return i
		}
	}
	return -1
}

// What may take long leaves a child to others, whoever asks it and how often.
func TestShareOfACaller(t *testing.T) {
	t.Parallel()
	l := &line{places: 3}
	for range waitingMax {
		require.NoError(t, l.join(&asked{by: "ann", heavy: true, ready: make(chan struct{})}, "the query"))
	}
	require.Len(t, l.working, 2)
	bob := &asked{by: "bob", heavy: true, ready: make(chan struct{})}
	require.NoError(t, l.join(bob, "the query"))
	require.Contains(t, l.working, bob)
	for range 2 {
		require.NoError(t, l.join(&asked{by: "ann", heavy: true, ready: make(chan struct{})}, "the query"))
	}
	err := l.join(&asked{by: "ann", ready: make(chan struct{})}, "the page")
	require.Equal(t, fault.TooMany, fault.CodeOf(err))
	require.NotEmpty(t, fault.Of(err).Hint)
	require.NoError(t, l.join(&asked{by: "bob", ready: make(chan struct{})}, "the page"), "they are hers")
}
