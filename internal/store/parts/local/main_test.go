//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childVariable makes the test binary a second process that has a store open;
// its value is the store's directory.
const childVariable = "THALWEG_TEST_CHILD"

func TestMain(m *testing.M) {
	if root := os.Getenv(childVariable); root != "" {
		if err := playChild(root); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// playChild stages a file, says where, and lives until its input ends or it
// is killed.
func playChild(root string) error {
	s, err := Open(root)
	if err != nil {
		return err
	}
	stage, err := s.Stage(context.Background())
	if err != nil {
		return err
	}
	path, err := stage.File(context.Background())
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte("by the child"), 0o644); err != nil {
		return err
	}
	fmt.Println(path)
	_, err = os.Stdin.Read(make([]byte, 1))
	return errors.Join(err, s.Close())
}
