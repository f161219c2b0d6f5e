package main

import (
	"bytes"
	"testing"

	"thalweg/internal/app/view"

	"github.com/stretchr/testify/require"
)

// Nothing is said of a disk where parts are kept by a service.
func TestGcSpeaksOfDisksThatAreThere(t *testing.T) {
	t.Parallel()
	for _, onDisk := range []bool{true, false} {
		for _, dry := range []bool{true, false} {
			var out bytes.Buffer
			(&gcCmd{DryRun: dry}).print(&console{stdout: &out}, view.Collection{OnDisk: onDisk})
			require.Contains(t, out.String(), "parts of dead attempts")
			require.Equal(t, onDisk, bytes.Contains(out.Bytes(), []byte("disk")), out.String())
		}
	}
}
