package inspect

import (
	"bytes"
	"encoding/json"

	"thalweg/internal/app/view"
	"thalweg/internal/store/state"
)

// CheckedView returns what the checks found over the tables of a run as programs see it, with failing rows as objects.
func CheckedView(run state.Run, found []CheckFound) (view.Checked, error) {
	out := view.Checked{Run: run.Run, Workspace: run.Workspace, Checks: make([]view.CheckedRow, len(found))}
	for i, f := range found {
		results := []view.CheckResult{f.CheckResult}
		one := view.CountChecks(results, f.Node)
		out.Counts.Passed += one.Passed
		out.Counts.Warned += one.Warned
		out.Counts.Failed += one.Failed
		row := view.CheckedRow{Check: view.ChecksOf(f.Node, results)[0]}
		if f.Before != nil {
			row.InRun = view.CheckStatus(*f.Before)
		}
		var lines bytes.Buffer
		if err := f.Failing.WriteJSON(&lines); err != nil {
			return out, err
		}
		for line := range bytes.Lines(lines.Bytes()) {
			row.Rows = append(row.Rows, json.RawMessage(bytes.TrimSpace(line)))
		}
		out.Checks[i] = row
	}
	return out, nil
}
