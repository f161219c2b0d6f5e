package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/io/remote"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/store/cassandra"
	"thalweg/internal/store/queue/rabbitmq"
	statecassandra "thalweg/internal/store/state/cassandra"
)

// What is wrong with a cluster's configuration, as its services see it: whoever has written it
// has to act, and is told where. What may pass, such as a host that is down, is not of these.

// Wrong is an error of the configuration, at the first of some keys that is there.
func Wrong(c *clusterconfig.Config, message, hint string, err error, keys ...string) error {
	return &fault.Error{Kind: fault.Script, Place: c.Place(keys...), Message: message, Hint: hint, Err: err}
}

// WrongFile is a path of the configuration at which there is something else, or nothing, or that may not be used.
func WrongFile(c *clusterconfig.Config, err error, hint string, keys ...string) error {
	f := fault.Of(err)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrNotExist) || f.Kind == fault.Script &&
		f.Place.File == "" {
		return Wrong(c, f.Message, hint, f.Err, keys...)
	}
	return err
}

// unknownHost is a host that has no address; nil if that is not why something failed.
func unknownHost(c *clusterconfig.Config, err error, keys ...string) error {
	var unknown *net.DNSError
	if !errors.As(err, &unknown) || !unknown.IsNotFound {
		return nil
	}
	return Wrong(c, "there is no host "+unknown.Name, "write its name as this machine knows it, or its address",
		nil, keys...)
}

// WrongCassandra says where the configuration is wrong, if that is why no session could be opened.
func WrongCassandra(c *clusterconfig.Config, err error) error {
	const at = "state.cassandra."
	switch {
	case errors.Is(err, cassandra.ErrLogin):
		return Wrong(c, "connect to Cassandra: "+cassandra.ErrLogin.Error(), "check username and password",
			saidOfLogin(err), at+"password", at+"password_file", at+"username")
	case errors.Is(err, cassandra.ErrNoLogin):
		return Wrong(c, "connect to Cassandra: "+cassandra.ErrNoLogin.Error(),
			"add them: username, and password or password_file", nil,
			at+"username", strings.TrimSuffix(at, "."))
	}
	return cmp.Or(unknownHost(c, err, at+"hosts"), err)
}

// saidOfLogin returns the text with which a node refused the login; nil: none.
func saidOfLogin(err error) error {
	var login *cassandra.LoginError
	if errors.As(err, &login) {
		return errors.New(login.Said)
	}
	return nil
}

// WrongBroker is wrongCassandra for the broker.
func WrongBroker(c *clusterconfig.Config, err error) error {
	const at = "queue.rabbitmq."
	q := c.Queue
	switch {
	case errors.Is(err, rabbitmq.ErrLogin):
		return Wrong(c, rabbitmq.ErrLogin.Error(),
			"check username and password; guest is accepted from the broker's own host only", nil,
			at+"password", at+"password_file", at+"url", at+"username")
	case errors.Is(err, rabbitmq.ErrVHost):
		return Wrong(c, fmt.Sprintf("the broker does not let the user into vhost %s", q.VHost),
			fmt.Sprintf("name a vhost that is there, or make it: `rabbitmqctl add_vhost %s`, "+
				"and let the user in: `rabbitmqctl set_permissions -p %s USER '.*' '.*' '.*'`", q.VHost, q.VHost),
			nil, at+"vhost", at+"url")
	}
	return cmp.Or(unknownHost(c, err, at+"hosts", at+"url"), err)
}

// WrongBucket is wrongCassandra for a bucket.
func WrongBucket(c *clusterconfig.Config, err error) error {
	const at = "parts.s3."
	if err == nil || c.Parts.S3 == nil {
		return err
	}
	var known *fault.Error
	switch {
	case errors.Is(err, fs.ErrPermission):
		return Wrong(c, "the bucket's service refuses this user",
			"check access_key and secret_key, or what the AWS tools take in their place, and what that "+
				"user may do", err, at+"secret_key", at+"secret_key_file", at+"url")
	case remote.S3Status(err) == http.StatusNotFound && errors.As(err, &known):
		return Wrong(c, known.Message, known.Hint, nil, at+"url")
	}
	return cmp.Or(unknownHost(c, err, at+"endpoint", at+"url"), err)
}

// othersMax is the most keyspaces of other clusters that are named.
const othersMax = 5

// absent says that there is no such keyspace, if that is why it cannot be opened: the driver does not.
func absent(ctx context.Context, c *clusterconfig.Config, cfg cassandra.Config) error {
	keyspace := cfg.Keyspace
	if cfg.Keyspace = ""; keyspace == "" || ctx.Err() != nil {
		return nil
	}
	bare, err := cassandra.OpenWithin(ctx, cfg)
	if err != nil {
		return nil
	}
	defer bare.Close()
	if copies, err := cassandra.Replication(ctx, bare, keyspace); err != nil || len(copies) > 0 {
		return nil
	}
	return NoKeyspace(ctx, c, bare)
}

// NoKeyspace says that there is no such keyspace, and where there are clusters: to make
// another one helps nobody who has mistyped its name.
func NoKeyspace(ctx context.Context, c *clusterconfig.Config, s *cassandra.Session) error {
	const key = "state.cassandra.keyspace"
	keyspace := c.State.Cassandra.Keyspace
	message := "there is no keyspace " + keyspace + " in Cassandra"
	others, err := statecassandra.Keyspaces(ctx, s)
	if err != nil || len(others) == 0 {
		return noCluster(c, message, key)
	}
	if near := similar.Mistyped(keyspace, others); near != "" {
		return Wrong(c, message, "did you mean "+near+"? Else "+initHint(c), nil, key)
	}
	more := len(others) - othersMax
	text := strings.Join(others[:min(len(others), othersMax)], ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return Wrong(c, message+"; there are clusters in "+text, "name the one that is meant; for a new one, "+
		initHint(c), nil, key)
}
