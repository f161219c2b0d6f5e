package runtime

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"thalweg/internal/app/sources"
	"thalweg/internal/base/address"
	"thalweg/internal/lang/script"
)

// Reload loads the script from where the run was begun with it; nil if it is
// not there any more.
func (t *Runtime) Reload(ctx context.Context, rec PinnedRun) (*script.Script, *script.Sources, error) {
	at := address.SeenFrom(rec.Dir, rec.Run.ScriptPath)
	if !address.Remote(at) {
		if _, err := os.Stat(at); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil
		}
	}
	src := t.Process.Sources(rec.Policy, rec.Dir, rec.Run.ScriptPath, rec.Run.ParamsPath)
	src.Known, src.Params, src.Offered, src.Lenient = t.Process.Known, rec.Params, rec.Offered, rec.Lenient
	src.Literal = rec.Literal
	src.Read = sources.Remembered(src.Read)
	s, diags := script.Load(ctx, src)
	if diags.HasErrors() {
		return nil, nil, &sources.InvalidScriptError{Diagnostics: diags}
	}
	return s, &src, nil
}
