package fleet

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(workerSpec); text != "" {
		os.Exit(serve(text))
	}
	os.Exit(m.Run())
}
