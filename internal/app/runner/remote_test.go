package runner_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/remotetest"
)

// remoteCrashScript reads and writes nothing but files of other machines.
const remoteCrashScript = `
nodes:
  load:
    type: file_table
    r:
      urls: ["https://HTTPS/items.csv", "s3://data/in/items.csv"]
      csv: { hdr_line_idx: 0, first_data_line_idx: 1 }
      columns: { id: { csv: { col_hdr: id }, col_type: int } }
    w: { name: items, fields: { id: { expression: r.id, type: int } } }
  to_s3:
    type: table_file
    r: { table: items, expected_batches_total: 2 }
    w:
      url_template: "s3://data/out/{batch_idx|string}.csv"
      columns: &columns [ { name: id, expression: r.id, type: int, csv: { header: id, format: "%d" } } ]
  to_sftp:
    type: table_file
    r: { table: items }
    w: { url_template: "SFTP/new/all.csv", columns: *columns }
`

// machines are the servers that the script names, before any run.
type machines struct {
	https *remotetest.HTTPS
	s3    *remotetest.S3
	sftp  *remotetest.SFTP
	dir   string // where the victim works
}

func newMachines(t *testing.T) *machines {
	dir := t.TempDir()
	m := &machines{https: remotetest.NewHTTPS(t, dir), s3: remotetest.NewS3(t), sftp: remotetest.NewSFTP(t, dir),
		dir: filepath.Join(dir, "work")}
	require.NoError(t, os.WriteFile(filepath.Join(m.https.Dir, "items.csv"), []byte("id\n1\n2\n"), 0o600))
	m.s3.Put(t, "in/items.csv", "id\n3\n4\n")
	require.NoError(t, os.Mkdir(m.dir, 0o700))
	script := strings.NewReplacer("https://HTTPS", "https://"+m.https.Addr, "SFTP", "sftp://joe@"+
		m.sftp.Addr+m.sftp.Dir).Replace(remoteCrashScript)
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "script.yaml"), []byte(script), 0o600))
	return m
}

func (m *machines) victim(t *testing.T, at string, resume bool) *exec.Cmd {
	cmd := victimCmd(t, m.dir, at, resume)
	cmd.Env = append(cmd.Env, "THALWEG_TEST_CA="+m.https.CAFile, "THALWEG_TEST_S3="+m.s3.Endpoint, "THALWEG_TEST_KEY="+
		m.sftp.KeyFile, "THALWEG_TEST_HOSTS="+m.sftp.KnownHosts,
		"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "AWS_CONFIG_FILE="+os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE="+os.DevNull, "AWS_EC2_METADATA_DISABLED=true")
	return cmd
}

// stored lists what the servers have besides the inputs.
func (m *machines) stored(t *testing.T) map[string]string {
	out := map[string]string{}
	list, err := m.s3.Backend.ListBucket(m.s3.Bucket, nil, gofakes3.ListBucketPage{})
	require.NoError(t, err)
	for _, o := range list.Contents {
		if o.Key != "in/items.csv" {
			out["s3 "+o.Key], _ = m.s3.Get(t, o.Key)
		}
	}
	names, err := filepath.Glob(filepath.Join(m.sftp.Dir, "new", "*"))
	require.NoError(t, err)
	hidden, err := filepath.Glob(filepath.Join(m.sftp.Dir, "new", ".*"))
	require.NoError(t, err)
	for _, name := range append(names, hidden...) {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		out["sftp "+filepath.Base(name)] = string(data)
	}
	return out
}

// TestRemoteCrashPoints kills the process at each crash point each time that
// it is passed, and resumes: the servers end up as if nothing had happened.
func TestRemoteCrashPoints(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	want := map[string]string{"s3 out/00000.csv": "id\n1\n2\n", "s3 out/00001.csv": "id\n3\n4\n",
		"sftp all.csv": "id\n1\n2\n3\n4\n"}
	for _, point := range job.CrashPoints() {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			for n := 1; n == 1 || !testing.Short(); n++ { // -short: only the first time
				m := newMachines(t)
				text, err := m.victim(t, fmt.Sprintf("%s:%d", point, n), false).CombinedOutput()
				if err != nil {
					requireKilled(t, err, text)
					m.s3.WaitUntilAlone(t)
					for name, data := range m.stored(t) {
						if !strings.HasPrefix(name, "sftp .") {
							require.Equal(t, want[name], data, "%s is whole under its final name", name)
						}
					}
					var again []byte
					again, err = m.victim(t, "run", true).CombinedOutput()
					require.NoError(t, err, string(again))
					text = again
				} else if n == 1 {
					t.Fatal("the crash point is never passed")
				} else {
					return
				}
				require.Equal(t, "complete\n", string(text))
				require.Equal(t, want, m.stored(t))
				require.Empty(t, m.s3.OpenUploads(t))
				left, err := os.ReadDir(filepath.Join(m.dir, instance.DefaultDir, "remote"))
				require.NoError(t, err)
				require.Empty(t, left)
			}
		})
	}
}

// TestWhatAKillLeavesIsRemovedByOthers kills the process at each crash point, and
// has another run of the same state directory clean up behind it.
func TestWhatAKillLeavesIsRemovedByOthers(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for _, point := range []job.CrashPoint{job.Executed, job.Published} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			for n := 2; n <= 4; n++ { // the batches behind the table's
				m := newMachines(t)
				text, err := m.victim(t, fmt.Sprintf("%s:%d", point, n), false).CombinedOutput()
				if point == job.Published && n == 4 {
					break
				}
				requireKilled(t, err, text)
				m.s3.WaitUntilAlone(t)
				require.NoError(t, os.WriteFile(filepath.Join(m.dir, "script.yaml"), []byte(otherScript), 0o600))
				text, err = m.victim(t, "run", false).CombinedOutput()
				require.NoError(t, err, string(text))
				require.Empty(t, m.s3.OpenUploads(t))
				for name := range m.stored(t) {
					require.False(t, strings.HasPrefix(name, "sftp ."), name)
				}
				requireNothingAnnounced(t, m.dir)
			}
		})
	}
}

// otherScript has nothing to do with what was killed.
const otherScript = `
nodes:
  load:
    type: file_table
    r: { urls: [script.yaml], csv: { first_data_line_idx: 0, separator: "|" }, ` +
	`columns: { text: { csv: { col_idx: 0 }, col_type: string } } }
    w: { name: lines, fields: { text: { expression: r.text, type: string } } }
`

// requireNothingAnnounced checks that state knows of nothing that is left anywhere.
func requireNothingAnnounced(t *testing.T, dir string) {
	t.Helper()
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	runs, err := state.All(t.Context(), home.State.Runs, "main")
	require.NoError(t, err)
	for _, r := range runs {
		left, err := state.OfNodes(t.Context(), home.State, r.RunKey, home.State.Publications)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// A kill between beginning an upload and hearing its name: the next attempt
// finds it at the server.
func TestKilledBeforeTheUploadHadAName(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	m := newMachines(t)
	cmd := m.victim(t, "run", false)
	started := make(chan *os.Process, 1)
	var once sync.Once
	m.s3.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && r.URL.Query().Has("uploads") {
			once.Do(func() { _ = (<-started).Kill() }) // the service goes on
		}
		return false
	})
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	started <- cmd.Process
	requireKilled(t, cmd.Wait(), out.Bytes())
	m.s3.WaitUntilAlone(t)
	require.NotEmpty(t, m.s3.OpenUploads(t))
	text, err := m.victim(t, "run", true).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Empty(t, m.s3.OpenUploads(t))
	requireNothingAnnounced(t, m.dir)
}

// Earlier versions noted uploads in files of the state directory.
func TestUploadsThatEarlierVersionsNotedAreEnded(t *testing.T) {
	t.Parallel()
	m := newMachines(t)
	for _, key := range []string{"named", "unnamed"} {
		reply, err := http.Post(m.s3.Endpoint+"/data/out/"+key+"?uploads", "", nil)
		require.NoError(t, err)
		body, err := io.ReadAll(reply.Body)
		require.NoError(t, errors.Join(err, reply.Body.Close()))
		id := ""
		if _, rest, ok := strings.Cut(string(body), "<UploadId>"); ok && key == "named" {
			id, _, _ = strings.Cut(rest, "<")
		}
		dir := filepath.Join(m.dir, instance.DefaultDir, "remote", "main-7", "out")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		note := fmt.Sprintf(`{"bucket":"data","key":"out/%s","begun":%q,"upload":%q}`, key,
			time.Now().UTC().Format(time.RFC3339), id)
		require.NoError(t, os.WriteFile(filepath.Join(dir, key+".json"), []byte(note), 0o600))
	}
	require.Len(t, m.s3.OpenUploads(t), 2)
	text, err := m.victim(t, "run", false).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Empty(t, m.s3.OpenUploads(t))
	require.NoDirExists(t, filepath.Join(m.dir, instance.DefaultDir, "remote", "main-7"))
}
