package sqlite

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"

	"thalweg/internal/base/fault"
)

// applicationID marks the file as ours in SQLite's header ("THLW").
const applicationID = 0x54484c57

// migrations holds one file for each version, in order of name. A file that
// was released is never changed: the next version is a new file.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrate creates or upgrades the schema. Processes that open the same file
// together do it one after the other. Nothing is written to a file that is
// not ours.
func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return fmt.Errorf("list migrations: %w", err)
	}
	err = s.update(ctx, "prepare", func(tx *txn) error {
		version, err := s.schemaVersion(ctx, tx, len(files))
		if err != nil || version == len(files) {
			return err
		}
		for _, name := range files[version:] {
			script, err := migrations.ReadFile(name)
			if err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			if _, err := tx.Tx.ExecContext(ctx, string(script)); err != nil {
				return fmt.Errorf("apply %s: %w", name, err)
			}
		}
		// Pragmas take no parameters; both values are our own numbers.
		_, err = tx.Tx.ExecContext(ctx, "PRAGMA application_id = "+strconv.Itoa(applicationID)+
			"; PRAGMA user_version = "+strconv.Itoa(len(files)))
		return err
	})
	if err != nil {
		return err
	}
	return s.enableLog(ctx)
}

// schemaVersion reads the file's version, 0 for a new file, and refuses a
// file that is not ours or of a later version than latest.
func (s *Store) schemaVersion(ctx context.Context, tx *txn, latest int) (int, error) {
	var application, version, objects int
	err := tx.QueryRowContext(ctx, `SELECT
		(SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version),
		(SELECT count(*) FROM sqlite_schema)`).Scan(&application, &version, &objects)
	if err != nil {
		return 0, err
	}
	switch {
	case application == applicationID && version <= latest:
		return version, nil
	case application == applicationID:
		f := fault.New(fault.Environment, "state file has schema version %d; this program knows versions up to %d",
			version, latest)
		f.Place.File = s.path
		f.Hint = "use the newer program that wrote it, or another directory"
		return 0, f
	case application == 0 && version == 0 && objects == 0:
		return 0, nil
	}
	f := fault.New(fault.Environment, "this SQLite file belongs to another program")
	f.Place.File = s.path
	f.Hint = "give another path or move the file away"
	return 0, f
}

// enableLog switches the file to write-ahead logging. The file remembers it,
// so only the first Open has anything to do.
func (s *Store) enableLog(ctx context.Context) error {
	var mode string
	err := s.untilUnlocked(ctx, func() error {
		return s.write.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
	})
	if err != nil {
		return s.explain(ctx, "enable write-ahead log", err)
	}
	if mode != "wal" {
		f := fault.New(fault.Environment, "the file system does not bear a write-ahead log (journal mode stays %q)",
			mode)
		f.Place.File = s.path
		f.Hint = "state must be on a local disk, not on a network one"
		return f
	}
	return nil
}
