package clusterconfig

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/bill"
	"thalweg/internal/run/concurrency"
)

// Config is the content of a cluster.yaml. Paths are absolute. Paths are absolute.
type Config struct {
	Path   string // of the file
	State  State
	Parts  Parts
	Queue  *RabbitMQ // nil: workers look at the state every so often
	Worker Worker
	Cost   Cost

	name   string                 // of the file, as people call it
	places map[string]fault.Place // of the values, by path: state.cassandra.hosts
}

// Place returns the place of the value of the first key that exists. If none does, it returns that of the
// section to which the first key belongs.
func (c *Config) Place(keys ...string) fault.Place {
	for _, key := range keys {
		if at, ok := c.places[key]; ok {
			return at
		}
	}
	for key := keys[0]; strings.Contains(key, "."); {
		key = key[:strings.LastIndexByte(key, '.')]
		if at, ok := c.places[key]; ok {
			return at
		}
	}
	return fault.Place{File: cmp.Or(c.name, c.Path)}
}

// State configures the place of runs: one of the two.
type State struct {
	Cassandra *Cassandra
	Directory string
}

// Parts configures the place of tables: one of the three.
type Parts struct {
	Cassandra bool // over the connection of the state
	S3        *S3
	Directory string // "": that of the state
}

// Cassandra configures the connection to the state's services.
type Cassandra struct {
	Hosts              []string
	Keyspace           string
	Datacenter         string         // "": whichever
	Replication        map[string]int // copies by datacenter; "": without datacenters
	Unsaid             bool           // Replication is the default
	Username, Password string
	TLS                *TLS // nil: none
}

// S3 is a bucket, or a part of one.
type S3 struct {
	URL      string // s3://bucket/prefix
	Endpoint string // "": AWS's
	Region   string
	CA       string // file of authorities trusted beside the system's; "": none

	AccessKey, SecretKey string // "": as the AWS tools find them
}

// RabbitMQ configures the connection to the broker.
type RabbitMQ struct {
	Hosts              []string // host:port
	Username, Password string
	VHost              string
	TLS                *TLS // nil: none
}

// TLS configures the encryption of connections.
type TLS struct {
	CA, Cert, Key string // files; "": the system's authorities, no certificate of one's own
	ServerName    string // "": the host's
}

// Worker configures each worker, unless its command line says otherwise.
type Worker struct {
	Scratch string // directory for files that are private to a machine; "": ScratchDefault
	Cache   int64  // bytes of parts that are kept in it
	Memory  int64  // bytes; 0: a share of the machine's
	Cores   int    // 0: all
	Drain   time.Duration
	Metrics string // host:port; "": nowhere
	Python  string // interpreter; "": python3
	Machine string // type of machine; "": as its firmware says, if it does
	// Concurrency fixes the amount of work at once; measuring finds what it does not fix.
	Concurrency concurrency.Fixed
}

// Cost says what is paid beside the machines of workers.
type Cost struct {
	bill.Basis        // without a book
	Prices     string // file of prices, which go before the published ones; "": none
}

// Defaults of what a file does not say.
const (
	CacheDefaultBytes = 20 << 30
	DrainDefault      = time.Minute
	KeyspaceDefault   = "thalweg"
	CassandraReplicas = 3
	VHostDefault      = "/"
	rabbitPort        = "5672"
	rabbitSecurePort  = "5671"
	cassandraPort     = "9042"
	DefaultName       = "cluster.yaml" // where somebody looks for one first
	maxFileBytes      = 1 << 20
	cacheMinBytes     = 64 << 20
	drainMax          = 24 * time.Hour
	coresMax          = 4096
	replicasMax       = 9
	servicesMax       = 100_000
	bringUpMax        = 24 * time.Hour
)

// Dir is the directory that the file is in.
func (c *Config) Dir() string { return filepath.Dir(c.Path) }

// PartsDirectory returns the directory in which parts are kept as files; "" if they are not.
func (c *Config) PartsDirectory() string {
	switch {
	case c.Parts.Directory != "":
		return c.Parts.Directory
	case c.State.Directory != "" && c.Parts.S3 == nil:
		return filepath.Join(c.State.Directory, "parts")
	}
	return ""
}
