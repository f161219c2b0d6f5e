package cluster

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/store/cassandra"
	"thalweg/internal/store/queue/rabbitmq"
)

// asWritten is a configuration with its places.
func asWritten(t *testing.T, text string) written {
	t.Helper()
	text = "version: 1\n" + text
	cfg, diags := clusterconfig.Parse("cluster.yaml", "/etc/cluster.yaml", text, clusterconfig.Options{})
	require.Empty(t, diags)
	return written{cfg, text}
}

type written struct {
	*clusterconfig.Config
	text string
}

// requireWrong: whoever has written the configuration has to act, and is told where, by what
// the text there begins with, and how.
func (w written) requireWrong(t *testing.T, err error, at, message, hint string) {
	t.Helper()
	f := fault.Of(err)
	require.Equal(t, fault.Script, f.Kind, "%v", err)
	require.Equal(t, "cluster.yaml", f.Place.File, "%v", err)
	line := strings.Split(w.text, "\n")[f.Place.Line-1]
	require.True(t, strings.HasPrefix(line[f.Place.Column-1:], at), "%s is at %s", err, line[f.Place.Column-1:])
	require.Contains(t, f.Message, message)
	require.Contains(t, f.Hint, hint)
	require.NotContains(t, err.Error()+f.Hint, "hush")
}

func TestWrongReplication(t *testing.T) {
	t.Parallel()
	one, six := map[string]int{"eu": 1}, map[string]int{"eu": 3, "us": 3}
	for name, tc := range map[string]struct {
		says          string
		keeps, there  map[string]int
		at            string
		message, hint string // "": nothing is wrong
	}{
		"enough": {"replication: {eu: 3}", nil, six, "", "", ""},
		"too many": {"replication: 3", nil, one, "3}", "3 copies of each row are asked for, and there is 1 node",
			"write replication: 1,"},
		"too many by default": {"keyspace: x", nil, one, "{hosts", "3 copies of each row", "write replication: 1,"},
		"too many in one": {"replication: {eu: 4, us: 3}", nil, six, "4, us",
			"4 copies of each row are asked for in datacenter eu, and there are 3 nodes", "write eu: 3,"},
		"too many in the own": {"datacenter: eu, replication: 2", nil, one, "2}", "in datacenter eu",
			"write replication: {eu: 1},"},
		"nowhere": {"replication: {asia: 1}", nil, six, "1}", "there is no datacenter asia, only eu, us",
			"nodetool status"},
		"not where it asks": {"datacenter: eu, replication: {us: 3}", nil, six, "{us",
			"no copies are kept in datacenter eu", "replication: {eu: 3}"},
		"as it is":         {"replication: 1", map[string]int{"eu": 1}, one, "", "", ""},
		"as it is, unsaid": {"keyspace: x", map[string]int{"eu": 1}, one, "", "", ""},
		"a node has left":  {"replication: {eu: 3}", map[string]int{"eu": 3}, map[string]int{"eu": 2}, "", "", ""},
		"corrected": {"replication: 1", map[string]int{"": 3}, one, "1}",
			"keyspace thalweg is there and cannot be used: 3 copies: 2 nodes are needed",
			"`ALTER KEYSPACE thalweg WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`"},
		"grown": {"replication: {eu: 3}", map[string]int{"eu": 1}, six, "{eu", "keeps 1 copy in eu",
			"'NetworkTopologyStrategy', 'eu': 3}` by cqlsh, then `nodetool repair --full thalweg`"},
		"grown by a number": {"replication: 3", map[string]int{"eu": 1}, six, "3}", "keeps 1 copy in eu",
			"'NetworkTopologyStrategy', 'eu': 3}"},
		"stops for a repair": {"replication: 3", map[string]int{"": 1}, six, "3}", "keeps 1 copy, and",
			"`replication: 1`; or have it keep what is asked for: `ALTER KEYSPACE thalweg WITH replication = " +
				"{'class': 'SimpleStrategy', " +
				"'replication_factor': 3}` by cqlsh, then `nodetool repair --full thalweg` on each node; stop all " +
				"workers until the repair has ended"},
		"a number for each datacenter": {"replication: 3", six, six, "", "", ""},
		"grown by a number in each": {"replication: 3", map[string]int{"eu": 1, "us": 1}, six, "3}",
			"asks for 3 copies in eu, 3 copies in us",
			"'eu': 3, 'us': 3}"},
		"no nodes for a number in each": {"replication: 3", map[string]int{"eu": 1, "us": 1},
			map[string]int{"eu": 3, "us": 1},
			"3}", "in datacenter us, and there is 1 node", "us: 1}"},
		"a datacenter more": {"replication: {eu: 3}", six, six, "", "", ""},
		"copies more":       {"datacenter: eu, replication: 1", map[string]int{"eu": 3}, six, "", "", ""},
		"more here and fewer there": {"replication: {eu: 3}", map[string]int{"eu": 1, "us": 3}, six, "{eu",
			"keeps 1 copy in eu, 3 copies in us",
			"'eu': 3, 'us': 3}"},
		"anywhere before": {"replication: {eu: 3, us: 3}", map[string]int{"": 3}, six, "{eu", "keeps 3 copies",
			"'eu': 3, 'us': 3}"},
		"gone with a datacenter": {"keyspace: x", six, one, "{hosts", "cannot be used",
			"keep fewer copies: ALTER KEYSPACE … WITH replication, to at most"},
		"of no use": {"replication: 3", map[string]int{"": 3}, one, "3}",
			"cannot be used: 3 copies: 2 nodes are needed", "'replication_factor': 1}`"},
		"of no use, by itself": {"keyspace: x", map[string]int{"eu": 3}, one, "{hosts",
			"cannot be used: 3 copies in eu", "'eu': 1}`"},
	} {
		cfg := asWritten(t, "state:\n  cassandra: {hosts: [a], "+tc.says+"}\n")
		err := enoughNodes(cfg.Config, cfg.State.Cassandra.Replication, tc.there)
		if tc.keeps != nil {
			err = keepsEnough(cfg.Config, tc.keeps, tc.there)
		}
		if tc.message == "" {
			require.NoError(t, err, name)
			continue
		}
		t.Log(name)
		cfg.requireWrong(t, err, tc.at, tc.message, tc.hint)
	}
}

// What is asked for is never had by taking rows away from where they may be.
func TestRaisingLeavesNoDatacenter(t *testing.T) {
	t.Parallel()
	six := map[string]int{"eu": 3, "us": 3}
	cfg := asWritten(t, "state:\n  cassandra: {hosts: [a], replication: {eu: 3}}\n")
	err := keepsEnough(cfg.Config, map[string]int{"": 1}, six)
	cfg.requireWrong(t, err, "{eu", "keeps 1 copy,", "write into the configuration what it keeps: `replication: 1`")
	require.NotContains(t, fault.Of(err).Hint, "ALTER")
	gone := asWritten(t, "state:\n  cassandra: {hosts: [a], keyspace: x}\n")
	require.NotContains(t, fault.Of(keepsEnough(gone.Config, six, map[string]int{"eu": 3})).Hint, "'eu'")
}

// A keyspace that keeps more than is asked for is used as it is, and that is said.
func TestKeepsMore(t *testing.T) {
	t.Parallel()
	six := map[string]int{"eu": 3, "us": 3}
	for says, keeps := range map[string]map[string]int{
		"replication: {eu: 3}": six, "replication: 1": six, "datacenter: eu, replication: 1": {"eu": 3},
		"replication: 2": {"": 3}} {
		cfg := asWritten(t, "state:\n  cassandra: {hosts: [a], "+says+"}\n")
		require.NoError(t, keepsEnough(cfg.Config, keeps, six), says)
		cfg.requireWrong(t, keepsMore(cfg.Config, keeps),
			says[strings.LastIndex(says, "replication: ")+len("replication: "):],
			"and the configuration asks for", "write into the configuration what it keeps: `replication: ")
		require.NotContains(t, fault.Of(keepsMore(cfg.Config, keeps)).Hint, "ALTER", says)
	}
	for says, keeps := range map[string]map[string]int{
		"replication: 3": six, "keyspace: x": six, "replication: {eu: 3, us: 3}": six,
		"replication: {us: 3}": {"eu": 3}} {
		require.NoError(t, keepsMore(asWritten(t, "state:\n  cassandra: {hosts: [a], "+says+"}\n").Config, keeps), says)
	}
}

func TestWrongLogin(t *testing.T) {
	t.Parallel()
	in := func(state, queue string) written {
		return asWritten(t,
			"state: {cassandra: {hosts: [a]"+state+"}}\nqueue: {rabbitmq: {"+queue+
				"}}\nparts: {s3: {url: s3://b/x, access_key: me, secret_key: hush}}\n")
	}
	named, bare, byURL := in(", username: me, password: hush", "hosts: a, username: me, password: hush, vhost: v"),
		in("", "hosts: a"),
		in("", `url: "amqp://me:hush@a/v"`)
	refused := func(err error) error {
		return &fault.Error{Kind: fault.Environment, Message: "connect", Err: fmt.Errorf("log in: %w", err)}
	}
	unknown := refused(&net.DNSError{Name: "a", IsNotFound: true})
	named.requireWrong(t, instance.WrongCassandra(named.Config, refused(cassandra.ErrLogin)), "hush", "do not accept",
		"username and password")
	believed := instance.WrongCassandra(named.Config,
		refused(&cassandra.LoginError{Said: "Provided username me and/or password are incorrect"}))
	named.requireWrong(t, believed, "hush", "do not accept", "username and password")
	require.ErrorContains(t, believed, "the password: Provided username me")
	bare.requireWrong(t, instance.WrongCassandra(bare.Config, refused(cassandra.ErrNoLogin)), "{hosts",
		"wants a user name",
		"password_file")
	bare.requireWrong(t, instance.WrongCassandra(bare.Config, unknown), "[a]", "there is no host a", "address")
	named.requireWrong(t, instance.WrongBroker(named.Config, refused(rabbitmq.ErrLogin)), "hush", "does not accept",
		"username and password")
	byURL.requireWrong(t, instance.WrongBroker(byURL.Config, refused(rabbitmq.ErrLogin)), "\"amqp", "does not accept",
		"username and password")
	named.requireWrong(t, instance.WrongBroker(named.Config, refused(rabbitmq.ErrVHost)), "v}", "into vhost v",
		"rabbitmqctl add_vhost v")
	byURL.requireWrong(t, instance.WrongBroker(byURL.Config, unknown), "\"amqp", "there is no host a", "address")
	named.requireWrong(t, instance.WrongBucket(named.Config, refused(fs.ErrPermission)), "hush",
		"refuses", "secret_key")
	named.requireWrong(t, instance.WrongBucket(named.Config, unknown), "s3://", "there is no host a", "address")

	// What may pass is left as it is.
	for _, passing := range []error{refused(context.DeadlineExceeded),
		refused(&net.DNSError{Name: "a", IsTimeout: true})} {
		for _, err := range []error{instance.WrongCassandra(named.Config, passing),
			instance.WrongBroker(named.Config, passing),
			instance.WrongBucket(named.Config,
				passing)} {
			require.Equal(t, passing, err)
		}
	}
}
