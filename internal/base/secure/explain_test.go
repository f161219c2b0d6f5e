package secure_test

import (
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/secure"
	"thalweg/internal/test/securetest"
)

func TestHint(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "plain words\n")
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-served
	})
	authority, stranger := securetest.NewAuthority(t), securetest.NewAuthority(t)
	address := securetest.Terminate(t, authority.Server("127.0.0.1"), l.Addr().String())
	own := []tls.Certificate{authority.Sign("me").Pair}
	talk := func(address string, cfg *tls.Config) error {
		c, err := tls.Dial("tcp", address, cfg)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
		return err
	}
	require.NoError(t, talk(address, &tls.Config{RootCAs: authority.Pool(), Certificates: own}))
	require.Contains(t, secure.Hint(talk(address, &tls.Config{RootCAs: stranger.Pool(), Certificates: own})),
		"ca: FILE")
	require.Contains(t, secure.Hint(talk(address, &tls.Config{RootCAs: authority.Pool(), Certificates: own,
		ServerName: "x.example"})),
		"server_name")
	require.Contains(t, secure.Hint(talk(address, &tls.Config{RootCAs: authority.Pool()})), "cert: FILE")
	require.Contains(t, secure.Hint(talk(l.Addr().String(), &tls.Config{RootCAs: authority.Pool()})),
		"does not speak TLS")
	require.Empty(t, secure.Hint(io.EOF))
}

// A server that ends the connection of a client without a certificate before its refusal is read.
func TestHintOfReset(t *testing.T) {
	t.Parallel()
	authority := securetest.NewAuthority(t)
	address := securetest.Reset(t, authority.Server("127.0.0.1"))
	talk := func(cfg *tls.Config) error {
		var asked secure.Asked
		c, err := tls.Dial("tcp", address, asked.Watch(cfg))
		if err != nil {
			return asked.Missed(0, err)
		}
		defer c.Close()
		return asked.Missed(c.Read(make([]byte, 1)))
	}
	require.Contains(t, secure.Hint(talk(&tls.Config{RootCAs: authority.Pool()})),
		"may want a certificate of the client")
	require.NoError(t, talk(&tls.Config{RootCAs: authority.Pool(),
		Certificates: []tls.Certificate{authority.Sign("me").Pair}}), "it has one")
}
