package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"

	"thalweg/internal/base/action"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// hostCheck verifies the key of one connection's host and remembers why it
// was refused: what the SSH library returns is only text.
type hostCheck struct {
	b       *sftpBackend
	refused error
	passed  bool
}

func (h *hostCheck) check(host string, remote net.Addr, key ssh.PublicKey) error {
	err := h.b.known(host, remote, key)
	h.passed = err == nil
	if err != nil {
		h.refused = h.b.hostKeyFault(err, host, key)
	}
	return h.refused
}

// explain classifies a failed handshake.
func (h *hostCheck) explain(err error, loc address.Location) error {
	switch {
	case h.refused != nil:
		return h.refused
	case lostConnection(err):
		return broken(err, "the connection failed")
	case h.passed:
		return &fault.Error{Kind: fault.Environment,
			Message: fmt.Sprintf("the server does not accept the key of user %s",
				loc.User), Err: err,
			Hint: fmt.Sprintf("check that the server knows the key; name another one with %s",
				action.Setting("sftp-key", loc.User+"=FILE"))}
	}
	return &fault.Error{Kind: fault.Environment, Message: "the server and this machine do not agree on SSH", Err: err,
		Hint: fmt.Sprintf("check the address, and that %s has the host's key", h.b.knownHosts)}
}

// hostKeyFault says why a host's key is refused, and what to write into the
// file of known hosts if it should not be.
func (b *sftpBackend) hostKeyFault(err error, host string, key ssh.PublicKey) error {
	line := knownhosts.Line([]string{host}, key)
	print := key.Type() + " " + ssh.FingerprintSHA256(key)
	var wrong *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	switch {
	case errors.As(err, &revoked):
		return &fault.Error{Kind: fault.Environment,
			Message: fmt.Sprintf("the key of host %s is revoked: %s", host, print),
			Hint:    "do not trust the server before its administrator explains it"}
	case errors.As(err, &wrong) && len(wrong.Want) > 0:
		w := wrong.Want[0]
		return &fault.Error{Kind: fault.Environment,
			Message: fmt.Sprintf("the key of host %s is %s, but %s:%d has another one: %s", host, print,
				w.Filename, w.Line, w.Key.Type()+" "+ssh.FingerprintSHA256(w.Key)),
			Hint: "somebody may pretend to be the server; if its administrator confirms the new fingerprint, replace " +
				"that line by: " + line}
	case errors.As(err, &wrong):
		return &fault.Error{Kind: fault.Environment,
			Message: fmt.Sprintf("the key of host %s is not known: %s", host, print),
			Hint:    fmt.Sprintf("if that is the server's fingerprint, add this line to %s: %s", b.knownHosts, line)}
	}
	return &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("the key of host %s cannot be verified: %s", host,
		print), Err: err}
}

// loadKnownHosts reads the file of known hosts. None at all knows no host.
func loadKnownHosts(path string) (ssh.HostKeyCallback, error) {
	known, err := knownhosts.New(path)
	if errors.Is(err, fs.ErrNotExist) {
		return func(string, net.Addr, ssh.PublicKey) error { return &knownhosts.KeyError{} }, nil
	}
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "the file of known hosts cannot be read", Err: err,
			Hint: "mend it, or name another one with {{set known-hosts}}"}
	}
	return known, nil
}

// algorithms lists the kinds of keys that are known of a host, so that the
// server shows one of them rather than one that nobody can compare.
func (b *sftpBackend) algorithms(host string) []string {
	var wrong *knownhosts.KeyError
	if !errors.As(b.known(host, nowhere{}, noKey{}), &wrong) {
		return nil
	}
	var out []string
	for _, w := range wrong.Want {
		list := []string{w.Key.Type()}
		if w.Key.Type() == ssh.KeyAlgoRSA {
			list = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
		}
		for _, a := range list {
			if !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// noKey is nobody's: asking for it lists the keys that a host has.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return nil }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.ErrUnsupported }

type nowhere struct{}

func (nowhere) Network() string { return "tcp" }
func (nowhere) String() string  { return "0.0.0.0:0" } // the host's name is what counts, but an address is demanded
