package instance_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/secret"
	"thalweg/internal/ops/metrics"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/retrying"
	"thalweg/internal/test/statetest"
	"thalweg/internal/test/statetest/hostile"
)

// A store in all that is put around it is a store.
func TestConformanceOfDecoratedStores(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	stores := map[string]*hostile.Store{}
	statetest.Run(t, func(t *testing.T) state.Store {
		mu.Lock()
		defer mu.Unlock()
		if stores[t.Name()] == nil {
			stores[t.Name()] = hostile.New()
		}
		measured := metrics.New("").State(stores[t.Name()].Open())
		atOnce := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
		return instance.RedactingStore(retrying.New(measured, retrying.Config{Pause: atOnce}), secret.New())
	})
}

const (
	aSecret = "hunter2"
	aText   = "with " + aSecret
)

// tells reports whether a value has the secret, or the text that has it as bytes.
func tells(t *testing.T, value any) bool {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return strings.Contains(string(text), aSecret) ||
		strings.Contains(string(text), base64.StdEncoding.EncodeToString([]byte(aText)))
}

// What is stored for people has no secrets; what callers passed is theirs and keeps them.
func TestRedactingStore(t *testing.T) {
	t.Parallel()
	known := secret.New()
	known.Add(aSecret, "***")
	var passed state.Op
	s := instance.RedactingStore(state.Around(nil, func(_ context.Context, op state.Op,
		_ func(context.Context) error) error {
		passed = op
		return nil
	}), known)
	ctx, now := t.Context(), time.Time{}
	failure := state.Failure{Message: aText, Place: fault.Place{Value: aText, Raw: aText}}
	outcome := state.Outcome{Files: []state.File{{URL: aText}}, Checks: []state.CheckResult{{Message: aText}},
		Stats: state.Stats{Warnings: []string{aText}, Repeats: []state.Repeat{{First: aText}}}}
	piece := state.PlanPiece{Inputs: []state.Input{{Address: aText}}}
	publications := []state.Publication{{Address: aText, Temp: aText}}
	blob := state.NewBlob([]byte(aText))
	run := state.Run{Description: aText, Pins: []state.Pin{{Name: aText, Digest: blob.Digest}}}
	note := state.Note{Data: []byte(aText)}
	for name, call := range map[string]func() error{
		"CreateRun":    func() error { _, err := s.CreateRun(ctx, run, nil, blob); return err },
		"BeginCommand": func() error { return s.BeginCommand(ctx, state.RunKey{}, state.Command{Cause: &failure}) },
		"StagePlan":    func() error { return s.StagePlan(ctx, state.NodeKey{}, "", piece) },
		"AdoptPlan": func() error {
			_, err := s.AdoptPlan(ctx, state.NodeKey{}, state.Adoption{Rest: piece})
			return err
		},
		"MoveNode": func() error {
			return s.MoveNode(ctx, state.NodeKey{}, state.Move{Failure: &failure, Gate: []byte(aText)})
		},
		"Announce": func() error { return s.Announce(ctx, state.Claim{}, publications, now) },
		"Commit":   func() error { return s.Commit(ctx, state.Claim{}, outcome, now) },
		"Fail":     func() error { return s.Fail(ctx, state.Claim{}, failure, outcome, now) },
		"Retry":    func() error { return s.Retry(ctx, state.Claim{}, failure, outcome.Stats, now, now) },
		"PutNote":  func() error { return s.PutNote(ctx, "", note) },
	} {
		passed = state.Op{}
		require.NoError(t, call(), name)
		require.Equal(t, state.Method(name), passed.Method)
		require.False(t, tells(t, passed.Args), name)
	}
	require.NoError(t, s.RemoveNote(ctx, "", note))
	require.Equal(t, note, *state.Pointer[state.Note](passed.Args), "it is removed as it was read")
	for _, mine := range []any{failure, outcome, piece, publications, blob, run, note} {
		require.True(t, tells(t, mine), "%T", mine)
	}
}
