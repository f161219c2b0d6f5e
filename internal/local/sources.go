package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"thalweg/internal/files"
	"thalweg/internal/query"
	"thalweg/internal/script"
)

// Sources reads a script's files from the local disk. Python and tag files
// with relative paths are looked for beside the script first, then in the
// working directory. Columns that a script takes from its inputs are
// looked up in them, environment values that it declares in the process's.
func Sources(scriptPath, paramsPath string) script.Sources {
	dir := filepath.Dir(scriptPath)
	return script.Sources{Path: scriptPath, ParamsPath: paramsPath, Columns: files.Columns, Environment: os.LookupEnv, Read: func(ctx context.Context, url string) ([]byte, error) {
		if url == scriptPath || url == paramsPath || filepath.IsAbs(url) || strings.Contains(url, "://") {
			return script.ReadLocal(ctx, url)
		}
		beside := filepath.Join(dir, url)
		if _, err := os.Stat(beside); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return script.ReadLocal(ctx, beside)
		}
		return script.ReadLocal(ctx, url)
	}, Describe: query.Open}
}
