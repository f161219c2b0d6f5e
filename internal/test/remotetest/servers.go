package remotetest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/pkg/sftp"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// TB is the part of testing.TB that servers use.
type TB interface {
	require.TestingT
	Cleanup(func())
}

// HTTPS serves a directory. A request for which Before returns true has been
// answered by it.
type HTTPS struct {
	Addr   string
	CAFile string
	Dir    string
	Before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	Hits   atomic.Int64
}

// NewHTTPS serves dir/www; dir also gets the CA's certificate.
func NewHTTPS(t TB, dir string) *HTTPS {
	h := &HTTPS{Dir: filepath.Join(dir, "www"), CAFile: filepath.Join(dir, "ca.pem")}
	require.NoError(t, os.MkdirAll(h.Dir, 0o755))
	files := http.FileServer(http.Dir(h.Dir))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.Hits.Add(1)
		if before := h.Before.Load(); before != nil && (*before)(w, r) {
			return
		}
		files.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	h.Addr = s.Listener.Addr().String()
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	require.NoError(t, os.WriteFile(h.CAFile, block, 0o600))
	return h
}

// Intercept sets Before.
func (h *HTTPS) Intercept(f func(http.ResponseWriter, *http.Request) bool) { h.Before.Store(&f) }

// S3 is an S3-compatible service with one bucket, in memory.
type S3 struct {
	Endpoint string
	Bucket   string
	Backend  *s3mem.Backend
	Before   atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	service  http.Handler
	mu       sync.Mutex
	requests []string
	open     map[net.Conn]bool
}

// NewS3 starts the service.
func NewS3(t TB) *S3 {
	s := &S3{Bucket: "data", Backend: s3mem.New(), open: map[net.Conn]bool{}}
	require.NoError(t, s.Backend.CreateBucket(s.Bucket))
	fake := gofakes3.New(s.Backend).Server()
	s.service = fake
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
		s.mu.Unlock()
		if before := s.Before.Load(); before != nil && (*before)(w, r) {
			return
		}
		fake.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Config.ConnState = s.connState
	server.Start()
	t.Cleanup(server.Close)
	s.Endpoint = server.URL
	return s
}

// Intercept sets Before.
func (s *S3) Intercept(f func(http.ResponseWriter, *http.Request) bool) { s.Before.Store(&f) }

// Serve carries a request out, past Before.
func (s *S3) Serve(w http.ResponseWriter, r *http.Request) { s.service.ServeHTTP(w, r) }

// Requests lists what was asked for so far.
func (s *S3) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.requests...)
}

// Put stores an object.
func (s *S3) Put(t TB, key, content string) {
	_, err := s.Backend.PutObject(s.Bucket, key, nil, strings.NewReader(content), int64(len(content)), nil)
	require.NoError(t, err)
}

// Get reads an object; ok is false if there is none.
func (s *S3) Get(t TB, key string) (content string, ok bool) {
	o, err := s.Backend.GetObject(s.Bucket, key, nil)
	if err != nil {
		return "", false
	}
	data, err := io.ReadAll(o.Contents)
	require.NoError(t, err)
	require.NoError(t, o.Contents.Close())
	return string(data), true
}

func (s *S3) connState(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(s.open, conn)
	default:
		s.open[conn] = true
	}
}

// WaitUntilAlone waits until nobody is connected: what a process asked for
// just before it was killed has been done then.
func (s *S3) WaitUntilAlone(t TB) {
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.open) == 0
	}, 5*time.Minute, time.Millisecond, "clients stay connected")
}

// OpenUploads lists the keys of uploads that were begun and neither completed
// nor aborted.
func (s *S3) OpenUploads(t TB) (keys []string) {
	reply, err := http.Get(s.Endpoint + "/" + s.Bucket + "?uploads")
	require.NoError(t, err)
	defer reply.Body.Close() // read only: nothing can be lost
	if reply.StatusCode == http.StatusNotFound {
		return nil // this service says so when there are none
	}
	require.Equal(t, http.StatusOK, reply.StatusCode)
	var list struct {
		Upload []struct{ Key string }
	}
	require.NoError(t, xml.NewDecoder(reply.Body).Decode(&list))
	for _, u := range list.Upload {
		keys = append(keys, u.Key)
	}
	return keys
}

// SFTP serves the machine's files to one user with one key.
type SFTP struct {
	Addr       string
	User       string
	KeyFile    string // the user's private key
	KnownHosts string
	Dir        string // an absolute directory to keep files in
	HostKey    ssh.PublicKey
	admit      func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error)
	conns      sync.WaitGroup
	mu         sync.Mutex
	hostKeys   []ssh.Signer
	open       map[net.Conn]bool
}

// NewSFTP starts a server; dir gets the key, the known hosts and the files.
func NewSFTP(t TB, dir string) *SFTP {
	s := &SFTP{User: "joe", KeyFile: filepath.Join(dir, "joe_key"), KnownHosts: filepath.Join(dir, "known_hosts"),
		Dir: filepath.Join(dir, "sftp"), open: map[net.Conn]bool{}}
	require.NoError(t, os.MkdirAll(s.Dir, 0o755))
	user := NewKey(t, s.KeyFile)
	host := NewKey(t, filepath.Join(dir, "host_key"))
	s.HostKey = host.PublicKey()
	s.admit = func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if c.User() == s.User && string(key.Marshal()) == string(user.PublicKey().Marshal()) {
			return nil, nil
		}
		return nil, fmt.Errorf("not this key")
	}
	s.HasHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.Addr = l.Addr().String()
	s.Know(t, s.Addr)
	s.conns.Go(func() { s.accept(l) })
	t.Cleanup(func() {
		_ = l.Close()
		s.Cut()
		s.conns.Wait()
	})
	return s
}

// HasHostKey gives the host one more key, for the connections to come.
func (s *SFTP) HasHostKey(key ssh.Signer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hostKeys = append(s.hostKeys, key)
}

// config is for one connection.
func (s *SFTP) config() *ssh.ServerConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &ssh.ServerConfig{PublicKeyCallback: s.admit}
	for _, key := range s.hostKeys {
		c.AddHostKey(key)
	}
	return c
}

// Cut breaks all connections.
func (s *SFTP) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
}

// Know adds the host's key for an address to the known hosts.
func (s *SFTP) Know(t TB, addr string) {
	f, err := os.OpenFile(s.KnownHosts, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = fmt.Fprintln(f, knownhosts.Line([]string{addr}, s.HostKey))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// NewKey writes a new private key.
func NewKey(t TB, path string) ssh.Signer {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	signer, err := ssh.NewSignerFromKey(private)
	require.NoError(t, err)
	return signer
}

func (s *SFTP) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open[conn] = true
		s.mu.Unlock()
		s.conns.Go(func() {
			s.serve(conn)
			_ = conn.Close()
			s.mu.Lock()
			delete(s.open, conn)
			s.mu.Unlock()
		})
	}
}

func (s *SFTP) serve(conn net.Conn) {
	server, channels, requests, err := ssh.NewServerConn(conn, s.config())
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { ssh.DiscardRequests(requests) })
	for ch := range channels {
		if ch.ChannelType() != "session" {
			_ = ch.Reject(ssh.UnknownChannelType, "")
			continue
		}
		channel, requests, err := ch.Accept()
		if err != nil {
			return
		}
		wg.Go(func() {
			for r := range requests {
				ok := r.Type == "subsystem" && len(r.Payload) > 4 && string(r.Payload[4:]) == "sftp"
				_ = r.Reply(ok, nil)
				if ok {
					wg.Go(func() {
						if server, err := sftp.NewServer(channel); err == nil {
							_ = server.Serve()
						}
						_ = channel.Close()
					})
				}
			}
		})
	}
}
