package script

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const served = `environment:
  HOOK: {secret: true}
  KEY: {secret: true}
  TEAM: {default: data}
notify:
  - {url: "{env.HOOK}", secret: "{env.KEY}", headers: {Authorization: "Bearer {env.KEY}", X-Team: "{env.TEAM}"}}
schedule: {cron: "0 6 * * *", name: early}
nodes:
  read: {type: file_table, r: {urls: ["in/{scheduled_date}.csv", "{scheduled_time}", "{watched_file}"]}, w: t}
`

func environment(name string) (string, bool) {
	value, ok := map[string]string{"HOOK": "https://example.test/T0P5ECRET", "KEY": "whsec_c2VjcmV0c2VjcmV0"}[name]
	return value, ok
}

// How a script is served can be read without its inputs and without the
// parameters that schedules give; its secrets stay references.
func TestServingIsReadByItself(t *testing.T) {
	t.Parallel()
	s, diags := LoadServing(context.Background(), Sources{Path: "script.yaml", Read: memory{"script.yaml": served}.read,
		Environment: environment})
	require.NoError(t, diags.Err())
	require.Len(t, s.Notify, 1)
	h := s.Notify[0]
	require.Equal(t, "{env.HOOK}", h.URL)
	require.Equal(t, "{env.KEY}", h.Secret)
	require.Equal(t, map[string]string{"Authorization": "Bearer {env.KEY}", "X-Team": "data"}, h.Headers)
	require.Equal(t, "early", s.Schedules[0].Name)

	_, diags = Load(context.Background(), Sources{Path: "script.yaml", Read: memory{"script.yaml": served}.read,
		Environment: environment})
	require.Contains(t, diags.Render(),
		"a schedule gives it to the runs that it begins; by hand: {{set param=scheduled_date=VALUE}}")
}

// A run may be resumed, and its tables read, whatever becomes of its hooks.
func TestServingIsNoPartOfTheFingerprint(t *testing.T) {
	t.Parallel()
	const plain = "nodes:\n  read: {type: file_table, r: {urls: [\"{scheduled_date}.csv\"], columns: {id: " +
		"int}}, w: t}\n"
	load := func(text string) *Script {
		s, diags := Load(context.Background(), Sources{Path: "script.yaml", Read: memory{"script.yaml": text}.read,
			Offered: Offers(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))})
		require.NoError(t, diags.Err())
		return s
	}
	a, b := load(plain), load("deadline: 2h\nnotify: {command: [echo]}\nschedule: 0 6 * * *\nwatch: in/*.csv\n"+plain)
	require.Equal(t, a.Fingerprint, b.Fingerprint)
	require.Equal(t, a.Node("read").Fingerprint, b.Node("read").Fingerprint)
	require.NotEqual(t, a.Fingerprint, load(strings.ReplaceAll(plain, "{scheduled_date}", "2026-01-03")).Fingerprint)
	require.Equal(t, a.Fingerprint, load(strings.ReplaceAll(plain, "{scheduled_date}", "2026-01-02")).Fingerprint)
}

func TestAFileOfHooksHasNothingElse(t *testing.T) {
	t.Parallel()
	read := memory{"hooks.yaml": "notify: {on: done, command: [echo]}\n",
		"more.yaml": "notify: {command: [echo]}\nnodes: {}\n"}.read
	hooks, diags := LoadHooks(context.Background(), Sources{Path: "hooks.yaml", Read: read})
	require.NoError(t, diags.Err())
	require.Equal(t, []string{"echo"}, hooks[0].Command)
	_, diags = LoadHooks(context.Background(), Sources{Path: "more.yaml", Read: read})
	require.ErrorContains(t, diags.Err(), "the keys notify and environment only")
}

// What included files say of being served has no effect, and is said to have none.
func TestServingOfIncludedFiles(t *testing.T) {
	t.Parallel()
	files := memory{"script.yaml": "include: [inner.yaml]\nschedule: 0 6 * * *\n",
		"inner.yaml": "schedule: 0 7 * * *\ndeadline: 2h\nnodes:\n  read: {type: file_table, r: {urls: [x.csv], " +
			"columns: {id: int}}, w: t}\n"}
	s, diags := Load(context.Background(), Sources{Path: "script.yaml", Read: files.read})
	require.NoError(t, diags.Err())
	require.Len(t, s.Schedules, 1)
	require.Equal(t, "0 6 * * *", s.Schedules[0].Name)
	require.Empty(t, s.Deadline)
	require.Contains(t, diags.Render(), "schedule has no effect in an included file")
}

// What a warning is about has no effect, and nothing else: a hook, schedule or
// watch with one is served.
func TestServingWithWarnings(t *testing.T) {
	t.Parallel()
	const text = `notify: {command: [echo], template: slack, colour: red}
schedule: {cron: "0 6 * * *", colour: red}
watch: {files: "in/*.csv", marker: "{file}.done", stable_for: 5s}
nodes: {}
`
	s, diags := LoadServing(context.Background(), Sources{Path: "script.yaml", Read: memory{"script.yaml": text}.read})
	require.NoError(t, diags.Err())
	require.Len(t, diags, 4)
	require.Len(t, s.Notify, 1)
	require.Len(t, s.Schedules, 1)
	require.Len(t, s.Watches, 1)
}
