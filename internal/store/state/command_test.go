package state

import "testing"

func TestCommandNamesTheWorkspace(t *testing.T) {
	t.Parallel()
	for workspace, want := range map[string]string{DefaultWorkspace: "thalweg nodes --run 3",
		"other": "thalweg nodes --run 3 --workspace other"} {
		if got := (RunKey{Workspace: workspace, Run: 3}).Command("nodes --run 3"); got != want {
			t.Errorf("%s: %s", workspace, got)
		}
	}
}
