package sandbox

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// Lend gives the stores as a child has them. Closing them closes those that
// they stand for.
func Lend(t testing.TB, store state.Store, from parts.Store) (state.Store, parts.Store) {
	t.Helper()
	ours, theirs, err := socketPair()
	require.NoError(t, err)
	conn, err := fileConn(theirs)
	require.NoError(t, err)
	near, far, held := newPeer(ours), newPeer(conn), newHolds()
	lendHolds(near, held)
	if store != nil {
		lendState(near, store)
	}
	if from != nil {
		lendParts(near, from, held)
	}
	ended := make(chan error, 2)
	go func() { ended <- near.run() }()
	go func() { ended <- far.run() }()
	t.Cleanup(func() {
		require.NoError(t, far.conn.Close())
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
		held.releaseAll()
	})
	farState := &closing{Store: newStoreOf(far), real: store}
	if from == nil {
		return farState, nil
	}
	farParts, err := newPartStore(context.Background(), far)
	require.NoError(t, err)
	return farState, &closingParts{Store: farParts, real: from}
}

type closing struct {
	state.Store
	real state.Store
}

func (c *closing) Close() error { return c.real.Close() }

type closingParts struct {
	parts.Store
	real parts.Store
}

// Far is the store as a child has it, which closes nothing.
func (c *closingParts) Far() parts.Store { return c.Store }

func (c *closingParts) Close() error { return c.real.Close() }

// Carried is an error that has gone over a connection.
func Carried(err error) error { return fromWire(toWire(err)) }
