package parts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Stage is a directory in which one attempt writes parts before Put takes
// them. Nobody else's files are in it, so whoever may write there can still
// read nothing of another attempt.
type Stage struct {
	Dir  string
	next atomic.Int64 // number of the next file
}

// File gives the path of a new file in the stage that does not exist yet.
func (s *Stage) File(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("stage a part: %w", err)
	}
	return filepath.Join(s.Dir, fmt.Sprintf("%06d", s.next.Add(1))), nil
}

// Close removes the directory with the files that Put did not take. It may be
// called more than once.
func (s *Stage) Close() error {
	if err := os.RemoveAll(s.Dir); err != nil {
		return fmt.Errorf("remove what was staged: %w", err)
	}
	return nil
}
