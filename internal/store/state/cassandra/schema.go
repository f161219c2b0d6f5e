package cassandra

import (
	"context"
	"errors"
	"fmt"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"thalweg/internal/base/fault"
	driver "thalweg/internal/store/cassandra"
)

// schemaVersion is that of the tables, and of what is in them.
const schemaVersion = 1

// Seconds after which a deletion may be forgotten. What is removed from notes
// may come back: they are hints. They are read over what was removed, so that goes soon.
const (
	graceUsual = 864_000
	graceNotes = 10_800
)

// Statements make the tables of the state, if they are not there. They are
// executed in order, in the keyspace.
func Statements() []string {
	with := func(grace int, more string) string {
		return fmt.Sprintf(" WITH gc_grace_seconds = %d AND default_time_to_live = 0%s", grace, more)
	}
	// partitions are rewritten for as long as they live
	leveled := " AND compaction = {'class': 'LeveledCompactionStrategy'}"
	return []string{
		// rows: all partitions that have a revision. run is 0 for a workspace's, node is '' for a run's. See keys.go.
		`CREATE TABLE IF NOT EXISTS state_rows (workspace text, run bigint, node text, kind tinyint, n1 bigint, n2 bigint,
			rev bigint, data blob, more blob, sums blob, parts blob, files blob, checks blob, pubs blob,
			PRIMARY KEY ((workspace, run, node), kind, n1, n2))` + with(graceUsual, leveled),
		`CREATE TABLE IF NOT EXISTS state_plans (workspace text, run bigint, node text, digest text, slice int, kind tinyint, n bigint,
			data blob, work blob, PRIMARY KEY ((workspace, run, node, digest, slice), kind, n))` + with(graceUsual, ""),
		`CREATE TABLE IF NOT EXISTS state_plan_slices (workspace text, run bigint, node text, digest text, slice int,
			PRIMARY KEY ((workspace, run, node), digest, slice))` + with(graceUsual, ""),
		`CREATE TABLE IF NOT EXISTS state_notes (workspace text, topic text, name text, run bigint, node text, data blob, time bigint,
			PRIMARY KEY ((workspace, topic), name))` + with(graceNotes, leveled),
		`CREATE TABLE IF NOT EXISTS state_blobs (digest text, chunk int, data blob, PRIMARY KEY ((digest), chunk))` +
			with(graceUsual, ""),
		`CREATE TABLE IF NOT EXISTS state_workspaces (one tinyint, workspace text, PRIMARY KEY ((one), workspace))` +
			with(graceUsual, ""),
		`CREATE TABLE IF NOT EXISTS state_schema (one tinyint PRIMARY KEY, version int)` + with(graceUsual, ""),
	}
}

// Init makes the keyspace and its tables where they are missing, and says of
// which version they are. It may be repeated. replication is copies by
// datacenter; without one, so many copies as are given under "".
func Init(ctx context.Context, cfg driver.Config, replication map[string]int) error {
	keyspace := cfg.Keyspace
	cfg.Keyspace = ""
	bare, err := driver.Open(cfg)
	if err != nil {
		return err
	}
	err = driver.MakeKeyspace(ctx, bare, keyspace, replication)
	bare.Close()
	if err != nil {
		return err
	}
	cfg.Keyspace = keyspace
	s, err := driver.Open(cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	return InitTables(ctx, s)
}

// InitTables does what Init does in a keyspace that is there.
func InitTables(ctx context.Context, s *driver.Session) error {
	if err := s.Make(ctx, Statements()); err != nil {
		return err
	}
	var version int
	_, err := s.Query(`INSERT INTO state_schema (one, version) VALUES (0, ?) IF NOT EXISTS`, schemaVersion).
		SerialConsistency(s.Serial).MapScanCASContext(ctx, map[string]any{"version": &version})
	if err != nil {
		return s.Fault("say of which version the tables of the state are", err)
	}
	return checkSchema(ctx, s)
}

// checkSchema refuses tables of another version.
func checkSchema(ctx context.Context, s *driver.Session) error {
	var version int
	err := s.Query(`SELECT version FROM state_schema WHERE one = 0`).ScanContext(ctx, &version)
	var request gocql.RequestError
	switch {
	case errors.Is(err, gocql.ErrNotFound), errors.As(err, &request) && request.Code() == gocql.ErrCodeInvalid:
		return &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("keyspace %s has no tables of the state",
			s.Keyspace), Err: err,
			Hint: "{{do cluster-init}} makes them"}
	case err != nil:
		return s.Fault("read of which version the tables of the state are", err)
	case version > schemaVersion:
		return otherVersion(s, version, "use the newer program that made it")
	case version < schemaVersion:
		return otherVersion(s, version, "stop all workers and run {{do cluster-init}} with this program")
	}
	return nil
}

func otherVersion(s *driver.Session, version int, hint string) error {
	return &fault.Error{Kind: fault.Environment, Hint: hint,
		Message: fmt.Sprintf("the state in keyspace %s is of version %d, and this program needs version %d", s.Keyspace,
			version, schemaVersion)}
}

// Keyspaces lists those that have tables of the state.
func Keyspaces(ctx context.Context, s *driver.Session) ([]string, error) {
	return driver.KeyspacesWith(ctx, s, "state_schema")
}

// noKeyspace says that there is no such keyspace, if nothing else is wrong: the
// driver says that it could not connect.
func noKeyspace(ctx context.Context, cfg driver.Config) error {
	keyspace := cfg.Keyspace
	cfg.Keyspace = ""
	s, err := driver.Open(cfg)
	if err != nil {
		return nil
	}
	defer s.Close()
	var name string
	err = s.Query(`SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?`,
		keyspace).Consistency(gocql.One).ScanContext(ctx, &name)
	if !errors.Is(err, gocql.ErrNotFound) {
		return nil
	}
	return &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("there is no keyspace %s", keyspace),
		Hint: "{{do cluster-init}} makes it"}
}
