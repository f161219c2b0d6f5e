package cassandra

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	driver "thalweg/internal/store/cassandra"
)

// probeWorkspace has the rows of probes: no run can have it.
const probeWorkspace = "_doctor"

// Probe holds the times that writing, reading and removing a row took.
type Probe struct{ Write, Read, Remove time.Duration }

// CheckTables refuses a keyspace without the state's tables, or with those of another version.
func CheckTables(ctx context.Context, s *driver.Session) error { return checkSchema(ctx, s) }

// Try writes a row of the state as all changes are written, on a condition,
// reads it as those do who have to see what is being decided, and removes it.
func Try(ctx context.Context, s *driver.Session) (p Probe, err error) {
	store := &Store{session: s}
	o := store.operation("Try", "try to change state in Cassandra")
	at := partition{workspace: probeWorkspace, run: time.Now().UnixMilli(), node: rand.Text()}
	begun := time.Now()
	change := &change{}
	change.puts(at, column{"data", []byte("a row of the doctor")})
	applied, err := o.apply(ctx, change)
	if err != nil {
		return p, driver.Fault("write a row on a condition", err)
	}
	p.Write = time.Since(begun)
	defer func() {
		begun := time.Now()
		limited, stop := context.WithTimeout(context.WithoutCancel(ctx), probeCleanup)
		defer stop()
		// On a condition, as it was written: moments of writes that are and that are not come from different clocks.
		_, failed := o.conditional(limited, `DELETE FROM state_rows
			WHERE workspace = ? AND run = ? AND node = ? AND kind = ? AND n1 = ? AND n2 = ? IF EXISTS`,
			at.with(headPlace.kind, headPlace.n1, headPlace.n2)...)
		if failed != nil {
			err = errors.Join(err, driver.Fault("remove a row", failed))
		}
		p.Remove = time.Since(begun)
	}()
	begun = time.Now()
	o.serial = true
	rows := 0
	err = o.query(ctx, 1, "SELECT rev"+rowsOf+"kind = ?", at.with(int8(kindHead)),
		func(func(...any) error) error { rows++; return nil })
	p.Read = time.Since(begun)
	switch {
	case err != nil:
		return p, driver.Fault("read the row that was written", err)
	case !applied || rows != 1:
		return p, driver.Fault("read the row that was written", fmt.Errorf("there are %d of it", rows))
	}
	return p, nil
}

// probeCleanup limits the removal of a probe's row, whatever came before.
const probeCleanup = 5 * time.Second
