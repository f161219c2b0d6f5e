package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// connIdleMax is the time for which an unused connection is kept.
const connIdleMax = 30 * time.Second

// sftpConn is a connection to a server as a user.
type sftpConn struct {
	*sftp.Client
	net   *writeTimedConn
	ssh   *ssh.Client
	since time.Time // when it was last used
}

// close ends the connection and waits for its goroutines. Breaking the
// connection first keeps a silent server from delaying it.
func (c *sftpConn) close() {
	_ = c.net.Close() // what is lost with it has failed or is finished
	_ = c.Client.Close()
	_ = c.ssh.Close()
	_ = c.Client.Wait()
	_ = c.ssh.Wait()
}

// connPool keeps connections that may be used again.
type connPool struct {
	mu   sync.Mutex
	idle map[string][]*sftpConn
}

// take gives an idle connection, nil if there is none.
func (p *connPool) take(key string) *sftpConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := len(p.idle[key]); n > 0; n = len(p.idle[key]) {
		c := p.idle[key][n-1]
		p.idle[key] = p.idle[key][:n-1]
		if time.Since(c.since) < connIdleMax {
			return c
		}
		c.close()
	}
	return nil
}

func (p *connPool) put(key string, c *sftpConn) {
	c.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle[key] = append(p.idle[key], c)
}

func (p *connPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range p.idle {
		for _, c := range list {
			c.close()
		}
	}
	p.idle = map[string][]*sftpConn{}
}

// with runs op on a connection to the server of loc. The end of ctx breaks the
// connection, and with it whatever op waits for.
func (b *sftpBackend) with(ctx context.Context, loc address.Location, op func(c *sftpConn) error) error {
	key := loc.User + "@" + loc.Host
	c := b.pool.take(key)
	if c == nil {
		var err error
		if c, err = b.connect(ctx, loc); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = c.net.Close() })
	err := op(c)
	if !stop() || lostConnection(err) || err != nil && !answered(err) {
		c.close()
	} else {
		b.pool.put(key, c)
	}
	return sftpFault(err)
}

// connect opens a connection, with the host's key verified.
func (b *sftpBackend) connect(ctx context.Context, loc address.Location) (*sftpConn, error) {
	signers, err := b.signers(loc.User)
	if err != nil {
		return nil, err
	}
	conn, err := b.c.policy.Dialer(b.c.cfg.ConnectTimeout, loc.Host).DialContext(ctx, "tcp", loc.Host)
	if err != nil {
		return nil, connectFault(err)
	}
	timed := &writeTimedConn{Conn: conn, idle: b.c.cfg.IdleTimeout}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	c, err := b.handshake(timed, loc, signers)
	if err != nil {
		return nil, errors.Join(err, ignoreClosed(conn.Close()))
	}
	return c, nil
}

// handshake makes an SFTP session of a network connection.
func (b *sftpBackend) handshake(conn *writeTimedConn, loc address.Location, signers []ssh.Signer) (*sftpConn, error) {
	if err := conn.SetReadDeadline(time.Now().Add(b.c.cfg.ConnectTimeout)); err != nil {
		return nil, connectFault(err)
	}
	host := &hostCheck{b: b}
	cc, chans, reqs, err := ssh.NewClientConn(conn, loc.Host, &ssh.ClientConfig{
		User: loc.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signers...)},
		HostKeyCallback: host.check, HostKeyAlgorithms: b.algorithms(loc.Host), ClientVersion: "SSH-2.0-thalweg",
	})
	if err != nil {
		return nil, host.explain(err, loc)
	}
	client := ssh.NewClient(cc, chans, reqs)
	session, err := sftp.NewClient(client, sftp.UseConcurrentWrites(true))
	if err != nil {
		err = errors.Join(err, ignoreClosed(client.Close()))
		_ = client.Wait()
		f := &fault.Error{Kind: fault.Environment, Message: "the server offers no SFTP", Err: err,
			Hint: "check the address; the server must allow the subsystem sftp to the user"}
		if lostConnection(err) {
			return nil, broken(err, "the connection failed")
		}
		return nil, f
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return nil, connectFault(err)
	}
	return &sftpConn{Client: session, net: conn, ssh: client}, nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// lostConnection reports an error of the network rather than of the server.
func lostConnection(err error) bool {
	var n net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &n) ||
		errors.Is(err, sftp.ErrSSHFxConnectionLost) || errors.Is(err, sftp.ErrSSHFxNoConnection)
}
