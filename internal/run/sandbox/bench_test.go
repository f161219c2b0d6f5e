package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a batch costs that does nothing: one call, and one with what a batch asks for.
func BenchmarkCalls(b *testing.B) {
	for _, scenes := range []string{"pid", "room announce"} {
		b.Run(scenes, func(b *testing.B) {
			at := newBench(b, nil)
			for b.Loop() {
				_, err := at.execute(scenes)
				require.NoError(b, err)
			}
		})
	}
}
