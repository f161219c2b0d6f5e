package hub_test

import (
	"math/rand/v2"
	"testing"

	"thalweg/internal/store/queue"
	"thalweg/internal/test/queuetest"
	"thalweg/internal/test/queuetest/hub"
)

func TestHub(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(*testing.T) queue.Queue { return hub.New(hub.Faults{}).Join() })
}

// Hints that come twice and in any order are within what a queue promises.
func TestUntidyHub(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, func(*testing.T) queue.Queue {
		return hub.New(hub.Faults{Shuffle: 20, Rand: rand.New(rand.NewPCG(1, 2))}).Join()
	})
}
