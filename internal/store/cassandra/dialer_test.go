package cassandra

import (
	"context"
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/securetest"
)

// A node answers a login alike when it does not believe it and when it cannot read its users:
// what it says is kept, and the latter passes.
func TestLogin(t *testing.T) {
	t.Parallel()
	const driver = "gocql: unable to create session: unable to discover protocol version: "
	for text, passes := range map[string]bool{
		"Provided username me and/or password are incorrect":                              false,
		"Error during authentication of user me : Unable to perform authentication":       true,
		"Unable to perform authentication: Cannot achieve consistency level LOCAL_QUORUM": true,
		"Operation timed out - received only 0 responses.":                                true,
		"gocql: no response to connection startup within timeout":                         true,
	} {
		d := Config{Username: "me", Password: "hush"}.dialer()
		_, _, err := d.Challenge(nil)
		require.NoError(t, err)
		err = connecting(d.why(errors.New(driver + text)))
		require.Contains(t, err.Error(), text)
		require.NotContains(t, err.Error(), driver)
		require.Equal(t, fault.Environment, fault.Of(err).Kind)
		require.Equal(t, passes, fault.Passes(err), text)
		require.Equal(t, !passes, errors.Is(err, ErrLogin), text)

		err = d.why(errors.New(driver + text + " hush"))
		require.NotContains(t, err.Error(), "hush")
		require.Equal(t, passes, fault.Passes(err), text)
	}
}

// A node that ends the connection of a client without a certificate may want one.
func TestNoCertificate(t *testing.T) {
	t.Parallel()
	authority := securetest.NewAuthority(t)
	address := securetest.Reset(t, authority.Server("127.0.0.1"))
	_, err := Open(Config{Hosts: []string{address}, TLS: &tls.Config{RootCAs: authority.Pool()}})
	require.Contains(t, fault.Of(err).Hint, "may want a certificate of the client", "%v", err)
}

// Who looks for a host that is not there goes when he is told to.
func TestLookUpEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	err := Config{}.dialer().unknownHost(ctx, []string{"nowhere.invalid:9042"}, errors.New("none"))
	require.ErrorContains(t, err, "nowhere.invalid")
	require.ErrorContains(t, err, "cancel")
	effort.Promised(t, began, connectTimeout)
}
