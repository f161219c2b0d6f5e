package allow_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/address"
	"thalweg/internal/base/allow"
	"thalweg/internal/base/fault"
)

// What is not listed is refused, however it is spelled.
func TestAddresses(t *testing.T) {
	t.Parallel()
	p := &allow.Policy{
		Read:      []string{"s3://bucket/in/", "https://files.example.com/data/", "sftp://files.example.com/in"},
		Write:     []string{"s3://bucket/out"},
		Hosts:     []string{"open.example.com", "port.example.com:8080"},
		Databases: []string{"postgres://db.example.com/shop", "sqlite:///data/x.db", "redis://db.example.com/3"},
	}
	for name, read := range map[string]bool{
		"s3://bucket/in/a.csv":                             true,
		"s3://bucket/in/*.csv":                             true,
		"s3://bucket/in/../secret.csv":                     false,
		"s3://bucket/i*/a.csv":                             false,
		"s3://bucket/input/a.csv":                          false,
		"s3://other/in/a.csv":                              false,
		"s3://bucket/out/a.csv":                            true,
		"s3://bucket/output/a.csv":                         false,
		"https://files.example.com/data/a.csv":             true,
		"https://FILES.example.com:443/data/a.csv?x=1":     true,
		"https://files.example.com./data/a.csv":            true,
		"http://files.example.com/data/a.csv":              false,
		"https://files.example.com:444/data/a.csv":         false,
		"https://files.example.com/data/../x":              false,
		"https://files.example.com/data/%2e%2e/x":          false,
		"https://files.example.com/database/a.csv":         false,
		"https://files.example.com@evil.com/data/a.csv":    false,
		"https://evil.com/https://files.example.com/data/": false,
		"https://files.example.com.evil.com/data/a.csv":    false,
		"https://169.254.169.254/latest/meta-data/":        false,
		"http://0251.0376.0251.0376/":                      false,
		"http://2852039166/":                               false,
		"http://[::ffff:169.254.169.254]/":                 false,
		"http://open.example.com/any":                      true,
		"http://port.example.com:8080/any":                 true,
		"http://port.example.com/any":                      false,
		"sftp://me@files.example.com/in/a.csv":             true,
		"sftp://me@files.example.com/inner/a.csv":          false,
		"postgres://me@db.example.com:5432/shop":           true,
		"postgres://me@db.example.com/shopping":            false,
		"postgres://db.example.com,evil.com/shop":          false,
		"postgres://evil.com/shop":                         false,
		"redis://me@db.example.com:6379/3":                 true,
		"redis://db.example.com/30":                        false,
		"redis://db.example.com:6380/3":                    false,
		"rediss://db.example.com/3":                        false,
		"sqlite:///data/x.db":                              true,
		"sqlite:///data/../etc/x.db":                       false,
		"sqlite://x.db":                                    false,
	} {
		loc, err := address.Parse(name)
		if err != nil && read {
			require.NoError(t, err, name)
		}
		if err != nil {
			continue // nobody opens it
		}
		require.Equal(t, read, p.ReadAddress(loc) == nil, name)
		if err := p.ReadAddress(loc); err != nil {
			require.Equal(t, fault.Forbidden, fault.Of(err).Code)
		}
	}
	for name, write := range map[string]bool{"s3://bucket/out/a.csv": true, "s3://bucket/in/a.csv": false,
		"sftp://me@files.example.com/in/a.csv": false, "postgres://db.example.com/shop": true} {
		loc, err := address.Parse(name)
		require.NoError(t, err)
		require.Equal(t, write, p.WriteAddress(loc) == nil, name)
	}
	require.NoError(t, (*allow.Policy)(nil).WriteAddress(address.Location{URL: "s3://any/thing"}))
}

// Files are judged as they are named and as their links lead.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := address.Resolve(t.TempDir())
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, one := range []string{"in", "out", "scripts", "secret"} {
		require.NoError(t, os.Mkdir(at(one), 0o700))
	}
	require.NoError(t, os.WriteFile(at("secret/key"), nil, 0o600))
	require.NoError(t, os.Symlink(at("secret/key"), at("in/link.csv")))
	require.NoError(t, os.Symlink(at("secret"), at("in/dir")))
	require.NoError(t, os.Symlink(at("secret"), at("out/dir")))
	p := &allow.Policy{Read: []string{at("in"), at("one.csv")}, Write: []string{at("out"), at("scripts"), at("scripts/out")},
		Kept: []string{at("scripts")}}
	for name, want := range map[string][2]bool{
		at("in/a.csv"): {true, false}, at("in"): {true, false}, at("one.csv"): {true, false},
		at("one.csv2"): {false, false}, at("inner/a.csv"): {false, false}, at("in/link.csv"): {false, false},
		at("in/dir/key"): {false, false}, at("in/dir/none"): {false, false}, at("out/a.csv"): {true, true},
		at("out/dir/a.csv"): {false, false}, at("out/new/deep/a.csv"): {true, true},
		at("scripts/a.yaml"): {true, false}, at("scripts/out/a.csv"): {true, true}, at("in") + "/../secret/key": {false, false},
		"/proc/self/environ": {false, false}, "/proc/self/root" + at("in/a.csv"): {false, false},
		"/etc/passwd": {false, false},
	} {
		require.Equal(t, want, [2]bool{p.MayRead(name) == nil, p.MayWrite(name) == nil}, name)
	}
}

// A name that is listed does not lead to this machine, to its link or to nobody, unless it says so.
func TestReach(t *testing.T) {
	t.Parallel()
	p := &allow.Policy{Hosts: []string{"files.example.com", "127.0.0.1:9000", "localhost"},
		Read: []string{"https://data.example.com/x"}}
	for _, resolved := range []string{"127.0.0.1:80", "[::1]:80", "169.254.169.254:80", "[fe80::1%eth0]:80", "0.0.0.0:80",
		"[::]:80", "[::ffff:127.0.0.1]:80", "[64:ff9b::a9fe:a9fe]:80", "[fd00:ec2::254]:80", "100.100.100.200:80",
		"224.0.0.1:80", "[::7f00:1]:80"} {
		require.Error(t, p.Reach("files.example.com:80", resolved), resolved)
		require.Error(t, p.Reach("data.example.com:443", resolved), resolved)
	}
	for _, resolved := range []string{"10.0.0.7:80", "93.184.216.34:80", "[2606:2800:220:1::1]:80"} {
		require.NoError(t, p.Reach("files.example.com:80", resolved), resolved)
	}
	require.NoError(t, p.Reach("127.0.0.1:9000", "127.0.0.1:9000"))
	require.NoError(t, p.Reach("localhost:80", "127.0.0.1:80"))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	_, err = p.Dialer(time.Minute, "files.example.com:80").DialContext(t.Context(), "tcp", ln.Addr().String())
	require.ErrorContains(t, err, "its name stands for an address of this machine")
	conn, err := (*allow.Policy)(nil).Dialer(time.Minute, "files.example.com:80").DialContext(t.Context(), "tcp",
		ln.Addr().String())
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

// Variables and commands that are not listed are not there.
func TestVariablesAndCommands(t *testing.T) {
	t.Parallel()
	p := &allow.Policy{Environment: []string{"REGION"}}
	find := p.Environ(func(name string) (string, bool) { return name + "!", true })
	value, ok := find("REGION")
	require.True(t, ok)
	require.Equal(t, "REGION!", value)
	_, ok = find("AWS_SECRET_ACCESS_KEY")
	require.False(t, ok)
	require.Error(t, p.Command())
	require.NoError(t, (&allow.Policy{Commands: true}).Command())
	require.NoError(t, (*allow.Policy)(nil).Command())
}
