package securetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// TB is the part of testing.TB that this package uses.
type TB interface {
	require.TestingT
	Cleanup(f func())
	TempDir() string
}

// lifetime of certificates.
const lifetime = time.Hour

// Authority signs certificates.
type Authority struct {
	t    TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	File string // its certificate
}

// Files of a certificate, in PEM form.
type Files struct {
	Cert, Key string
	Pair      tls.Certificate
}

// NewAuthority makes one.
func NewAuthority(t TB) *Authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	is := template("an authority")
	is.IsCA, is.BasicConstraintsValid, is.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, is, is, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &Authority{t: t, cert: cert, key: key, File: write(t, "ca.pem", "CERTIFICATE", der)}
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-lifetime),
		NotAfter:  now.Add(lifetime)}
}

func write(t TB, name, kind string, der []byte) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

// Pool trusts the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Sign makes a certificate for servers of these names and addresses, and for clients.
func (a *Authority) Sign(names ...string) Files {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	is := template("somebody")
	is.KeyUsage, is.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth,
		x509.ExtKeyUsageClientAuth}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			is.IPAddresses = append(is.IPAddresses, ip)
		} else {
			is.DNSNames = append(is.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, is, a.cert, &key.PublicKey, a.key)
	require.NoError(a.t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	return Files{Cert: write(a.t, "cert.pem", "CERTIFICATE", der), Key: write(a.t, "key.pem", "PRIVATE KEY", secret),
		Pair: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
}

// Server returns the configuration of a server with a certificate that asks its clients for one, too.
func (a *Authority) Server(names ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{a.Sign(names...).Pair},
		ClientCAs:  a.Pool(),
		ClientAuth: tls.RequireAndVerifyClientCert}
}

// Terminate listens with TLS and passes what it hears on to a service without,
// until the test ends. It answers with the address.
func Terminate(t TB, cfg *tls.Config, target string) string {
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	require.NoError(t, err)
	var all sync.WaitGroup
	e := &end{open: map[net.Conn]bool{}}
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { e.pass(c, target) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		e.closeAll()
		all.Wait()
	})
	return l.Addr().String()
}

// Reset listens with TLS and asks for a certificate, and resets each connection behind the
// handshake without a word, until the test ends. It answers with the address.
func Reset(t TB, cfg *tls.Config) string {
	cfg = cfg.Clone()
	cfg.ClientAuth = tls.RequestClientCert
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(10 * time.Second))
			_ = tls.Server(c, cfg).Handshake()
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// end of TLS.
type end struct {
	mu   sync.Mutex
	over bool
	open map[net.Conn]bool
}

func (e *end) pass(c net.Conn, target string) {
	defer c.Close() // whoever talks notices
	there, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer there.Close()
	if !e.add(c, there) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(c, there) // ends with either connection
		_ = c.Close()
	})
	_, _ = io.Copy(there, c)
	_ = there.Close()
	back.Wait()
}

func (e *end) add(conns ...net.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range conns {
		e.open[c] = true
	}
	return !e.over
}

func (e *end) closeAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	for c := range e.open {
		_ = c.Close()
	}
}
