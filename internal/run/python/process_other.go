//go:build unix && !linux

package python

import (
	"fmt"
	"os"
	"time"
)

// sharedFile makes a file that only lives as long as it is open.
func sharedFile(name string, size int64) (*os.File, error) {
	f, err := os.CreateTemp("", "thalweg-python-"+name)
	if err != nil {
		return nil, fmt.Errorf("make a file to share with Python: %w", err)
	}
	if err := os.Remove(f.Name()); err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("make a file to share with Python: %w", err)
	}
	return f, nil
}

func widenPipe(*os.File) {}

func memoryOf(int) (rss, peak int64) { return 0, 0 }

func cpuOf(int) time.Duration { return 0 }

func starvedOf(int) time.Duration { return 0 }

func stateOf(int) byte { return 0 }
