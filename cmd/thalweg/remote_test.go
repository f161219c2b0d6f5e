package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"thalweg/internal/test/redistest"
	"thalweg/internal/test/remotetest"
)

// scriptTB lets servers live as long as a test script.
type scriptTB struct{ ts *testscript.TestScript }

func (t scriptTB) Errorf(format string, args ...any) { t.ts.Fatalf(format, args...) }
func (t scriptTB) FailNow()                          { t.ts.Fatalf("failed") }
func (t scriptTB) Cleanup(f func())                  { t.ts.Defer(f) }
func (t scriptTB) Helper()                           {}
func (t scriptTB) Logf(format string, args ...any)   { t.ts.Logf(format, args...) }
func (t scriptTB) Skip(args ...any)                  { t.ts.Fatalf("%v", args) }

// s3Services are the S3 services of test scripts, by their endpoints.
type s3Services map[string]*remotetest.S3

// s3Key is where a test script keeps them.
type s3Key struct{}

// cmdServers starts an HTTPS server of srv/www, an S3 service with what is in
// srv/s3 in bucket "data", and an SFTP server: servers. It sets HTTPS, SFTP
// (address and directory srv/sftp), and S3, and puts them into the files named.
func cmdServers(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: servers FILE …")
	}
	tb, dir := scriptTB{ts}, ts.MkAbs("srv")
	https := remotetest.NewHTTPS(tb, dir)
	ts.Setenv("HTTPS", "https://"+https.Addr)
	ts.Setenv("CA", https.CAFile)
	sftp := remotetest.NewSFTP(tb, dir)
	ts.Setenv("SFTP", "sftp://joe@"+sftp.Addr+sftp.Dir)
	ts.Setenv("KEY", sftp.KeyFile)
	ts.Setenv("KNOWN", sftp.KnownHosts)
	s3 := remotetest.NewS3(tb)
	ts.Setenv("S3", s3.Endpoint)
	for _, v := range [][2]string{{"AWS_ACCESS_KEY_ID", "id"}, {"AWS_SECRET_ACCESS_KEY", "AWS-SECRET"},
		{"AWS_CONFIG_FILE", os.DevNull}, {"AWS_SHARED_CREDENTIALS_FILE", os.DevNull},
		{"AWS_EC2_METADATA_DISABLED", "true"}} {
		ts.Setenv(v[0], v[1])
	}
	expandFiles(ts, args)
	root := filepath.Join(dir, "s3")
	ts.Check(os.MkdirAll(root, 0o755))
	ts.Check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		s3.Put(tb, rel, string(data))
		return err
	}))
	services := ts.Value(s3Key{}).(s3Services)
	services[s3.Endpoint] = s3
}

// expandFiles puts the script's environment into files that name it.
func expandFiles(ts *testscript.TestScript, names []string) {
	for _, name := range names {
		path := ts.MkAbs(name)
		data, err := os.ReadFile(path)
		ts.Check(err)
		ts.Check(os.WriteFile(path, []byte(os.Expand(string(data), ts.Getenv)), 0o644))
	}
}

// cmdRedis starts a server of Redis, and puts its address and port into the files named, as
// REDIS and PORT: redis FILE …
func cmdRedis(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: redis FILE …")
	}
	s := redistest.Start(scriptTB{ts})
	ts.Setenv("REDIS", s.URL)
	ts.Setenv("PORT", s.Port)
	expandFiles(ts, args)
}

// cmdS3get copies an object to a file, or with ! checks that there is none:
// s3get KEY [FILE]. s3get by itself checks that no upload is open.
func cmdS3get(ts *testscript.TestScript, neg bool, args []string) {
	s3 := ts.Value(s3Key{}).(s3Services)[ts.Getenv("S3")]
	content, ok := s3.Get(scriptTB{ts}, args[0])
	if ok == neg {
		ts.Fatalf("%s: there is such an object: %v", args[0], ok)
	}
	if ok {
		ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(content), 0o644))
	}
}

// cmdS3put stores an object: s3put FILE KEY.
func cmdS3put(ts *testscript.TestScript, neg bool, args []string) {
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Value(s3Key{}).(s3Services)[ts.Getenv("S3")].Put(scriptTB{ts}, args[1], string(data))
}

// cmdS3ls prints the keys of all objects to the file: s3ls FILE.
func cmdS3ls(ts *testscript.TestScript, neg bool, args []string) {
	s3 := ts.Value(s3Key{}).(s3Services)[ts.Getenv("S3")]
	list, err := s3.Backend.ListBucket(s3.Bucket, nil, gofakes3.ListBucketPage{})
	ts.Check(err)
	var keys strings.Builder
	for _, o := range list.Contents {
		keys.WriteString(o.Key + "\n")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(keys.String()), 0o644))
}

func TestCapillariesKeys(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]map[string]string{
		"": {}, "joe:/k/joe": {"joe": "/k/joe"}, "joe:/k/joe, ann:/k/ann": {"joe": "/k/joe", "ann": "/k/ann"},
		`{"joe": "/k:1"}`: {"joe": "/k:1"},
	} {
		got, err := capillariesKeys(in)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"joe", "joe:", ":x", "{", "a:b,,"} {
		_, err := capillariesKeys(in)
		require.Error(t, err, in)
	}
}
