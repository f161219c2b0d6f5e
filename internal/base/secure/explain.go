package secure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
)

// remoteError is the operation of what the other side says about the handshake.
const remoteError = "remote error"

// Hint says what can be done about an error of a connection with TLS, in the
// words of a cluster's configuration; "" if it is none.
func Hint(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var remote *net.OpError
	var missed *missedError
	var verify *tls.CertificateVerificationError
	switch {
	case errors.As(err, &unknown):
		return "name the authority that has signed the server's certificate: tls: {ca: FILE}"
	case errors.As(err, &name):
		return "connect by a name that the server's certificate has, or say which one that is: tls: {server_name: NAME}"
	case errors.As(err, &invalid):
		if invalid.Reason == x509.Expired {
			return "the server needs a new certificate, or this machine's clock is wrong"
		}
		return "the server needs another certificate: this one may not be used for servers"
	case errors.As(err, &record):
		return "the server does not speak TLS at this port: name the port at which it does, or leave out tls"
	case errors.As(err, &remote) && remote.Op == remoteError:
		return "the server refuses this side's certificate, or wants one: tls: {cert: FILE, key: FILE}, signed by an " +
			"authority that it knows"
	case errors.As(err, &missed):
		return "the server may want a certificate of the client: tls: {cert: FILE, key: FILE}, signed by an " +
			"authority that it knows"
	case errors.As(err, &verify):
		return "check the server's certificate, and the authorities of tls: {ca: FILE}"
	}
	return ""
}
