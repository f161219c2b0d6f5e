package state

import "testing"

func TestActionsNameTheWorkspace(t *testing.T) {
	t.Parallel()
	for workspace, want := range map[string]string{DefaultWorkspace: "{{do nodes run=3 tag=x}}",
		"": "{{do nodes run=3 tag=x}}", "other": "{{do nodes run=3 tag=x workspace=other}}"} {
		if got := (RunKey{Workspace: workspace, Run: 3}).Do("nodes", "tag", "x").String(); got != want {
			t.Errorf("%s: %s", workspace, got)
		}
	}
	if got := (RunKey{Workspace: "other", Run: 3}).Beside("gc").String(); got != "{{do gc workspace=other}}" {
		t.Error(got)
	}
}
