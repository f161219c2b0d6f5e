package remote_test

import (
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/remotetest"
)

// newClient is a client that tries again quickly.
func newClient(t *testing.T, cfg remote.Config) *remote.Client {
	cfg.Pause, cfg.PauseMax, cfg.IdleTimeout = time.Millisecond, 10*time.Millisecond, effort.Patience
	c := remote.New(cfg)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func requireFault(t *testing.T, err error, kind fault.Kind, retryable bool, message, hint string) {
	t.Helper()
	require.Error(t, err)
	f := fault.Of(err)
	require.Equal(t, kind, f.Kind, "%v", err)
	require.Equal(t, retryable, f.Retryable, "%v", err)
	require.Contains(t, err.Error(), message)
	require.Contains(t, f.Hint, hint)
	require.NotEmpty(t, f.Place.File)
	require.NotContains(t, err.Error()+f.Hint, "SECRET")
}

func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	s := remotetest.NewHTTPS(t, t.TempDir())
	putFile(t, filepath.Join(s.Dir, "a"), "hello")
	c := newClient(t, remote.Config{CAPath: s.CAFile})
	url := "https://" + s.Addr + "/a?sig=SECRET"
	for _, test := range []struct {
		status    int
		kind      fault.Kind
		retryable bool
		message   string
		hits      int64
	}{
		{404, fault.Script, false, "404 not found: file does not exist", 1},
		{410, fault.Script, false, "410 gone", 1},
		{401, fault.Environment, false, "401 unauthorized: permission denied", 1},
		{403, fault.Environment, false, "403 forbidden: permission denied", 1},
		{400, fault.Environment, false, "Bad Request", 1},
		{501, fault.Environment, false, "Not Implemented", 1},
		{408, fault.Environment, true, "408 request timeout (tried 6 times)", 6},
		{429, fault.Environment, true, "429 too many requests (tried 6 times)", 6},
		{500, fault.Environment, true, "500 internal server error (tried 6 times)", 6},
		{503, fault.Environment, true, "503 service unavailable (tried 6 times)", 6},
	} {
		before := s.Hits.Load()
		s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(test.status)
			return true
		})
		_, err := c.Read(t.Context(), url, 100, nil)
		requireFault(t, err, test.kind, test.retryable, test.message, "check the")
		require.Equal(t, test.hits, s.Hits.Load()-before, "requests for %d", test.status)
	}
	// Twice out of order, then fine.
	var n atomic.Int64
	s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if n.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	got, err := c.Read(t.Context(), url, 100, nil)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
}

func TestHTTPServersOfManyKinds(t *testing.T) {
	t.Parallel()
	content := noise(2 << 20)
	for name, serve := range map[string]func(w http.ResponseWriter, r *http.Request){
		"says a length and sends less": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(content)))
			_, _ = io.WriteString(w, content[:len(content)/2])
		},
		"says nothing of the version": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, content)
		},
		"says no length": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"v1"`)
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, content)
		},
		"compresses unasked": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("ETag", `W/"v1"`)
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, content)
			_ = z.Close()
		},
		"has only a date": func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "a", time.Unix(1_600_000_000, 0), strings.NewReader(content))
		},
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/a" {
				http.Redirect(w, r, "/b", http.StatusFound)
				return
			}
			http.ServeContent(w, r, "b", time.Unix(1_600_000_000, 0), strings.NewReader(content))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := remotetest.NewHTTPS(t, t.TempDir())
			var hits atomic.Int64
			s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(name, "says a length") && hits.Add(1) > 2 {
					http.ServeContent(w, r, "a", time.Time{}, strings.NewReader(content))
					return true
				}
				serve(w, r)
				return true
			})
			proxy := remotetest.NewProxy(t, s.Addr)
			proxy.Plan(remotetest.Break{Down: 1 << 20})
			c := newClient(t, remote.Config{CAPath: s.CAFile})
			dir := t.TempDir()
			got, err := c.Spool(dir, nil).Ensure(t.Context(), "https://"+proxy.Addr+"/a", "")
			require.NoError(t, err)
			requireCopy(t, content, got)
			again, err := newClient(t, remote.Config{CAPath: s.CAFile}).Spool(dir, nil).Ensure(t.Context(),
				"https://"+proxy.Addr+"/a", got.Version)
			require.NoError(t, err, "it is still the same")
			requireCopy(t, content, again)
		})
	}
}

func TestHTTPFileThatChangesWhileItIsRead(t *testing.T) {
	t.Parallel()
	changeWhileRead(t, false)
	changeWhileRead(t, true)
}

// changeWhileRead breaks a transfer and changes the file before it goes on;
// ignores: the server sends a part without comparing versions.
func changeWhileRead(t *testing.T, ignores bool) {
	t.Helper()
	one, two := noise(2<<20), noise(2<<20 + 1)[1:]
	s := remotetest.NewHTTPS(t, t.TempDir())
	var hits atomic.Int64
	s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		content, tag := one, `"1"`
		if hits.Add(1) > 1 {
			content, tag = two, `"2"`
		}
		w.Header().Set("ETag", tag)
		if ignores {
			r.Header.Del("If-Range")
		}
		http.ServeContent(w, r, "a", time.Time{}, strings.NewReader(content))
		return true
	})
	proxy := remotetest.NewProxy(t, s.Addr)
	proxy.Plan(remotetest.Break{Down: 1 << 20})
	got, err := newClient(t, remote.Config{CAPath: s.CAFile}).Spool(t.TempDir(), nil).Ensure(t.Context(),
		"https://"+proxy.Addr+"/a", "")
	require.NoError(t, err)
	requireCopy(t, two, got)
}

func TestHTTPRedirectsThatAreNotFollowed(t *testing.T) {
	t.Parallel()
	s := remotetest.NewHTTPS(t, t.TempDir())
	c := newClient(t, remote.Config{CAPath: s.CAFile})
	s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, map[string]string{"/down": "http://127.0.0.1:1/x", "/round": "/round"}[r.URL.Path],
			http.StatusFound)
		return true
	})
	_, err := c.Read(t.Context(), "https://"+s.Addr+"/down", 10, nil)
	requireFault(t, err, fault.Environment, false, "redirects from https to http", "trust")
	_, err = c.Read(t.Context(), "https://"+s.Addr+"/round", 10, nil)
	requireFault(t, err, fault.Environment, false, "redirects more than 10 times", "address")
}

// TestRedirectsDoNotTellSecrets: the next host does not learn the address that led to it.
func TestRedirectsDoNotTellSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := remotetest.NewHTTPS(t, dir)
	headers := make(chan http.Header, 2)
	s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		headers <- r.Header
		if r.URL.Path == "/a" {
			http.Redirect(w, r, "/b", http.StatusFound)
		}
		return true
	})
	_, err := newClient(t, remote.Config{CAPath: s.CAFile}).Read(t.Context(), "https://"+s.Addr+
		"/a?token=SECRET", 10, nil)
	require.NoError(t, err)
	<-headers
	require.NotContains(t, fmt.Sprint(<-headers), "SECRET")
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := remotetest.NewHTTPS(t, dir)
	putFile(t, filepath.Join(s.Dir, "a"), "hello")
	url := "https://" + s.Addr + "/a?sig=SECRET"
	_, err := newClient(t, remote.Config{}).Read(t.Context(), url, 10, nil)
	requireFault(t, err, fault.Environment, false, "not of an authority that is trusted here", "{{set ca-file")
	require.Equal(t, int64(0), s.Hits.Load())

	_, err = newClient(t, remote.Config{CAPath: s.CAFile}).Read(t.Context(), "https://localhost"+
		s.Addr[strings.LastIndexByte(s.Addr, ':'):]+"/a", 10, nil)
	requireFault(t, err, fault.Environment, false, "certificate is not valid", "certificate")

	// A directory of authorities, with other files in it.
	cas := filepath.Join(dir, "cas")
	data, err := os.ReadFile(s.CAFile)
	require.NoError(t, err)
	putFile(t, filepath.Join(cas, "ours.pem"), string(data))
	putFile(t, filepath.Join(cas, "README"), "no certificate")
	require.NoError(t, os.Symlink("nowhere", filepath.Join(cas, "gone.pem")))
	got, err := newClient(t, remote.Config{CAPath: cas}).Read(t.Context(), url, 10, nil)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))

	for path, message := range map[string]string{
		filepath.Join(dir, "none.pem"): "cannot be read", filepath.Join(cas, "README"): "no PEM certificate",
		t.TempDir(): "no file with PEM certificates",
	} {
		c := newClient(t, remote.Config{CAPath: path})
		require.ErrorContains(t, c.Check(t.Context(), url, nil), message)
		_, err := c.Read(t.Context(), url, 10, nil)
		requireFault(t, err, fault.Environment, false, message, "{{set ca-file")
	}
	_, err = newClient(t, remote.Config{}).Read(t.Context(), "https://"+plainHTTP(t)+"/a", 10, nil)
	requireFault(t, err, fault.Environment, false, "do not agree on TLS", "http://")
}

// plainHTTP is the address of a server without TLS.
func plainHTTP(t *testing.T) string {
	return strings.TrimPrefix(remotetest.NewS3(t).Endpoint, "http://")
}

func TestHostsThatAreNotKnown(t *testing.T) {
	t.Parallel()
	_, err := newClient(t, remote.Config{}).Read(t.Context(), "https://no-such-host.invalid/x", 10, nil)
	require.Error(t, err)
	require.Equal(t, fault.Environment, fault.Of(err).Kind)
}

func TestHostKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := remotetest.NewSFTP(t, dir)
	putFile(t, filepath.Join(s.Dir, "a"), "hello")
	url := "sftp://joe@" + s.Addr + s.Dir + "/a"
	print := ssh.FingerprintSHA256(s.HostKey)
	read := func(known string) error {
		_, err := newClient(t, remote.Config{SFTPKeys: map[string]string{"joe": s.KeyFile}, KnownHosts: known}).
			Read(t.Context(), url, 10, nil)
		return err
	}
	require.NoError(t, read(s.KnownHosts))

	// Nothing is known: the error has the line that the file needs.
	none := filepath.Join(dir, "none")
	err := read(none)
	requireFault(t, err, fault.Environment, false, "is not known: ssh-ed25519 "+print, "add this line to "+none+": ")
	_, line, _ := strings.Cut(fault.Of(err).Hint, none+": ")
	putFile(t, none, line+"\n")
	require.NoError(t, read(none))

	other := remotetest.NewKey(t, filepath.Join(dir, "other")).PublicKey()
	changed := filepath.Join(dir, "changed")
	putFile(t, changed, "# hosts\n"+knownhosts.Line([]string{s.Addr}, other)+"\n")
	requireFault(t, read(changed), fault.Environment, false, "is ssh-ed25519 "+print+", but "+changed+
		":2 has another one: ssh-ed25519 "+ssh.FingerprintSHA256(other), "pretend")

	revoked := filepath.Join(dir, "revoked")
	putFile(t, revoked, "@revoked * "+strings.SplitN(knownhosts.Line([]string{"x"}, s.HostKey), " ",
		2)[1]+"\n"+line+"\n")
	requireFault(t, read(revoked), fault.Environment, false, "is revoked", "trust")

	broken := filepath.Join(dir, "broken")
	putFile(t, broken, "what is this\n")
	requireFault(t, read(broken), fault.Environment, false, "known hosts cannot be read", "{{set known-hosts}}")
}

// TestHostsWithSeveralKeys: a server shows the kind of key that is known of it,
// not the one that comes first in its list.
func TestHostsWithSeveralKeys(t *testing.T) {
	t.Parallel()
	s := remotetest.NewSFTP(t, t.TempDir())
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	unknown, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	s.HasHostKey(unknown)
	putFile(t, filepath.Join(s.Dir, "a"), "hello")
	c := newClient(t, remote.Config{SFTPKeys: map[string]string{"joe": s.KeyFile}, KnownHosts: s.KnownHosts})
	got, err := c.Read(t.Context(), "sftp://joe@"+s.Addr+s.Dir+"/a", 10, nil)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
}

func TestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := remotetest.NewSFTP(t, dir)
	putFile(t, filepath.Join(s.Dir, "a"), "hello")
	url := "sftp://joe@" + s.Addr + s.Dir + "/a"
	home := filepath.Join(dir, "home")
	read := func(cfg remote.Config, url string) error {
		cfg.KnownHosts, cfg.HomeDir = s.KnownHosts, home
		c := newClient(t, cfg)
		_, err := c.Read(t.Context(), url, 10, nil)
		return err
	}
	err := read(remote.Config{}, url)
	requireFault(t, err, fault.Environment, false, "no private key for user joe", "{{set sftp-key=joe=FILE}}")
	key, err := os.ReadFile(s.KeyFile)
	require.NoError(t, err)
	putFile(t, filepath.Join(home, ".ssh", "id_ed25519"), string(key))
	require.NoError(t, read(remote.Config{}, url), "the user's own key")

	wrong := filepath.Join(dir, "wrong")
	remotetest.NewKey(t, wrong)
	requireFault(t, read(remote.Config{SFTPKeys: map[string]string{"joe": wrong}}, url), fault.Environment, false,
		"does not accept the key of user joe", "{{set sftp-key=joe=FILE}}")
	requireFault(t, read(remote.Config{SFTPKeys: map[string]string{"ann": s.KeyFile}},
		strings.Replace(url, "joe", "ann", 1)), fault.Environment, false, "does not accept the key of user ann", "")

	public := filepath.Join(dir, "key.pub")
	putFile(t, public, "ssh-ed25519 SECRET\n")
	requireFault(t, read(remote.Config{SFTPKeys: map[string]string{"joe": public}}, url), fault.Environment, false,
		"not in a format", ".pub")
	requireFault(t, read(remote.Config{SFTPKeys: map[string]string{"joe": filepath.Join(dir, "no")}}, url),
		fault.Environment, false, "cannot be read", "{{set sftp-key}}")
	raw, err := ssh.ParseRawPrivateKey(key)
	require.NoError(t, err)
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(raw, "", []byte("SECRET"))
	require.NoError(t, err)
	lockedFile := filepath.Join(dir, "locked")
	putFile(t, lockedFile, string(pem.EncodeToMemory(locked)))
	requireFault(t, read(remote.Config{SFTPKeys: map[string]string{"joe": lockedFile}}, url), fault.Environment, false,
		"has a passphrase", "without one")
}

func TestSFTPRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := remotetest.NewSFTP(t, dir)
	c := newClient(t, remote.Config{SFTPKeys: map[string]string{"joe": s.KeyFile}, KnownHosts: s.KnownHosts})
	base := "sftp://joe@" + s.Addr + s.Dir
	_, err := c.Read(t.Context(), base, 10, nil)
	requireFault(t, err, fault.Script, false, "not a regular file", "address")
	putFile(t, filepath.Join(s.Dir, "file"), "x")
	_, err = c.Stage(t.Context(), base+"/file/below/x.csv", upload(t, "x"))
	requireFault(t, err, fault.Environment, false, "make the directory", "")
	_, err = c.Read(t.Context(), base+"/none", 10, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestS3Answers(t *testing.T) {
	t.Parallel()
	s := remotetest.NewS3(t)
	s.Put(t, "a", "hello")
	c := newClient(t, remote.Config{S3Endpoint: s.Endpoint})
	answer := func(status int, code string) {
		s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("X-Amz-Bucket-Region", "eu-west-9")
			w.WriteHeader(status)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>because</Message></Error>", code)
			return true
		})
	}
	for _, test := range []struct {
		status        int
		code          string
		kind          fault.Kind
		retryable     bool
		message, hint string
	}{
		{403, "AccessDenied", fault.Environment, false, "answered AccessDenied: because: permission denied",
			"credentials"},
		{403, "SignatureDoesNotMatch", fault.Environment, false, "SignatureDoesNotMatch", "credentials"},
		{404, "NoSuchKey", fault.Script, false, "no such object", "address"},
		{404, "NoSuchBucket", fault.Script, false, "NoSuchBucket: file does not exist", "{{set s3-endpoint}}"},
		{301, "PermanentRedirect", fault.Environment, false, "another region: eu-west-9", "AWS_REGION"},
		{400, "InvalidRequest", fault.Environment, false, "InvalidRequest: because", "{{set s3-endpoint}}"},
		{503, "SlowDown", fault.Environment, true, "503 SlowDown: because (tried 6 times)",
			"check the network and the server"},
		{500, "InternalError", fault.Environment, true, "tried 6 times", "check the network and the server"},
	} {
		answer(test.status, test.code)
		before := len(s.Requests())
		_, err := c.Read(t.Context(), "s3://data/a", 10, nil)
		requireFault(t, err, test.kind, test.retryable, test.message, test.hint)
		want := 1
		if test.retryable {
			want = 6
		}
		require.Len(t, s.Requests()[before:], want, test.code)
	}
}

func TestS3LostAnswerToCompletion(t *testing.T) {
	t.Parallel()
	s := remotetest.NewS3(t)
	c := newClient(t, remote.Config{S3Endpoint: s.Endpoint})
	staged, err := c.Stage(t.Context(), "s3://data/x.csv", upload(t, "content"))
	require.NoError(t, err)
	completed := false
	s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || completed {
			return false
		}
		completed = true
		require.NoError(t, forward(t, s, r))
		hijacked, _, err := w.(http.Hijacker).Hijack()
		require.NoError(t, err)
		require.NoError(t, hijacked.Close())
		return true
	})
	require.NoError(t, staged.Publish(t.Context()))
	require.True(t, completed)
	got, ok := s.Get(t, "x.csv")
	require.True(t, ok)
	require.Equal(t, "content", got)
}

// forward passes a request on to the service itself.
func forward(t *testing.T, s *remotetest.S3, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	again, err := http.NewRequestWithContext(t.Context(), r.Method, s.Endpoint+r.URL.RequestURI(),
		strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	again.Header = r.Header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(again)
	if err != nil {
		return err
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return resp.Body.Close()
}

func TestS3UploadThatCannotBeNotedIsAborted(t *testing.T) {
	t.Parallel()
	s := remotetest.NewS3(t)
	c := newClient(t, remote.Config{S3Endpoint: s.Endpoint})
	u := upload(t, "first")
	gone := errors.New("nobody listens")
	u.Named = func(context.Context, string) error { return gone }
	_, err := c.Stage(t.Context(), "s3://data/x.csv", u)
	require.ErrorIs(t, err, gone)
	require.Empty(t, s.OpenUploads(t))
}

func TestS3StylesOfAddresses(t *testing.T) {
	t.Parallel()
	s := remotetest.NewS3(t)
	s.Put(t, "a", "hello")
	no := false
	var host atomic.Value
	s.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		host.Store(r.Host + r.URL.Path)
		return false
	})
	c := newClient(t, remote.Config{S3Endpoint: strings.Replace(s.Endpoint, "127.0.0.1", "localhost", 1),
		S3PathStyle: &no})
	_, err := c.Read(t.Context(), "s3://data/a", 10, nil)
	if err == nil || host.Load() != nil { // where data.localhost is this machine
		require.Contains(t, host.Load(), "data.localhost")
	}
	got, err := newClient(t, remote.Config{S3Endpoint: s.Endpoint}).Read(t.Context(), "s3://data/a", 10, nil)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	require.Contains(t, host.Load(), "/data/a")
}

// names are secrets in addresses.
type names map[string]string

func (n names) Reveal(s string) string {
	for k, v := range n {
		s = strings.ReplaceAll(s, k, v)
	}
	return s
}

func (n names) Hide(s string) string {
	for k, v := range n {
		s = strings.ReplaceAll(s, v, k)
	}
	return s
}

func TestSecretsOfAddresses(t *testing.T) {
	t.Parallel()
	s := remotetest.NewHTTPS(t, t.TempDir())
	putFile(t, filepath.Join(s.Dir, "SECRET-path/a"), "hello")
	c := newClient(t, remote.Config{CAPath: s.CAFile})
	secrets := names{"{env.P}": "SECRET-path", "{env.H}": "SECRET-host"}
	spool := c.Spool(t.TempDir(), secrets)
	got, err := spool.Ensure(t.Context(), "https://"+s.Addr+"/{env.P}/a", "")
	require.NoError(t, err)
	requireCopy(t, "hello", got)
	for _, url := range []string{"https://" + s.Addr + "/{env.P}/none", "https://{env.H}.invalid/x",
		"https://{env.H}/%zz",
		"sftp://{env.H}/x"} {
		_, err := spool.Ensure(t.Context(), url, "")
		require.Error(t, err)
		require.NotContains(t, err.Error()+fault.Of(err).Hint+fault.Of(err).Place.File, "SECRET")
		require.Contains(t, err.Error(), "{env.")
	}
}

func TestS3ChangesOfTheSameSizeAreSeen(t *testing.T) {
	t.Parallel()
	s := remotetest.NewS3(t)
	s.Put(t, "a", "hello")
	c := newClient(t, remote.Config{S3Endpoint: s.Endpoint})
	dir := t.TempDir()
	got, err := c.Spool(dir, nil).Ensure(t.Context(), "s3://data/a", "")
	require.NoError(t, err)
	s.Put(t, "a", "hullo")
	_, err = c.Spool(dir, nil).Ensure(t.Context(), "s3://data/a", got.Version)
	requireFault(t, err, fault.UserData, false, "changed after the run read it", "new run")
}

// The process died after the service began an upload and before its name was
// noted: it is looked for, and others' uploads are left alone.
func TestS3UploadsWithoutANameAreAborted(t *testing.T) {
	t.Parallel()
	s := remotetest.NewS3(t)
	c := newClient(t, remote.Config{S3Endpoint: s.Endpoint})
	begin := func(key string) {
		reply, err := http.Post(s.Endpoint+"/data/"+key+"?uploads", "", nil)
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		require.Equal(t, http.StatusOK, reply.StatusCode)
	}
	begin("x.csv")
	begin("x.csv.old")
	busy := errors.New("another one is at work")
	left := remote.Leftover{Begun: time.Now(), Alone: func(context.Context) error { return busy }}
	require.ErrorIs(t, c.Abandon(t.Context(), "s3://data/x.csv", left), busy)
	require.Len(t, s.OpenUploads(t), 2)
	left.Alone = func(context.Context) error { // one that begins meanwhile is not looked at any more
		begin("x.csv")
		return nil
	}
	require.NoError(t, c.Abandon(t.Context(), "s3://data/x.csv", left))
	require.ElementsMatch(t, []string{"x.csv", "x.csv.old"}, s.OpenUploads(t))
	require.NoError(t, c.Abandon(t.Context(), "s3://data/x.csv", remote.Leftover{Begun: time.Now().Add(time.Hour)}))
	require.Len(t, s.OpenUploads(t), 2, "begun long before: somebody else's")
}
