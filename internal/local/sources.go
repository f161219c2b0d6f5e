package local

import (
	"context"
	"errors"
	"os"

	"thalweg/internal/address"
	"thalweg/internal/fault"
	"thalweg/internal/files"
	"thalweg/internal/query"
	"thalweg/internal/remote"
	"thalweg/internal/script"
)

// Sources reads a script's files from this machine and, by means of client,
// from others; nil reads no others. Columns that a script takes from its
// inputs are looked up in them, environment values that it declares in the
// process's.
func Sources(client *remote.Client, scriptPath, paramsPath string) script.Sources {
	return script.Sources{Path: scriptPath, ParamsPath: paramsPath, Columns: files.Columns, Environment: os.LookupEnv, Read: func(ctx context.Context, url string) ([]byte, error) {
		if client == nil || !address.Remote(url) {
			return script.ReadLocal(ctx, url)
		}
		text, err := client.Read(ctx, url, script.MaxPythonBytes)
		var f *fault.Error
		if errors.As(err, &f) {
			f.Place = fault.Place{} // the message around it names the file
		}
		return text, err
	}, Describe: query.Open}
}
