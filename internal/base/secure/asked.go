package secure

import (
	"crypto/tls"
	"errors"
	"io"
	"sync/atomic"
	"syscall"
)

// Asked knows of one connection of a client whether the server has asked for a certificate that
// the client has not got. By TLS 1.3 the client's handshake is over before the server refuses
// that, and what the server says of it may be lost with the connection.
type Asked struct {
	asked atomic.Bool
	heard atomic.Bool // something behind the handshake
}

// Watch gives the connection's own copy of a configuration.
func (a *Asked) Watch(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	if cfg == nil || len(cfg.Certificates) > 0 || cfg.GetClientCertificate != nil {
		return cfg
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		a.asked.Store(true)
		return new(tls.Certificate), nil // none
	}
	return cfg
}

// Missed is told how a handshake, a reading or a writing went, and how much was read. It gives the error that
// Hint knows if the server has ended the connection without a word, having asked; else nil.
func (a *Asked) Missed(read int, err error) error {
	if read > 0 {
		a.heard.Store(true)
	}
	if err == nil || a.heard.Load() || !a.asked.Load() {
		return nil
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return &missedError{err}
		}
	}
	return nil
}

// missedError is the end of a connection whose client had no certificate.
type missedError struct{ err error }

// Error implements error.
func (e *missedError) Error() string {
	return "the server has asked for a certificate, got none, and ended the connection: " + e.err.Error()
}

// Unwrap returns how it ended.
func (e *missedError) Unwrap() error { return e.err }
