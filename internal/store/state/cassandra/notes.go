package cassandra

import (
	"context"
	"fmt"
	"time"

	"thalweg/internal/base/fault"
	driver "thalweg/internal/store/cassandra"
	"thalweg/internal/store/state"
)

// millis is a moment as a column has it; nil for none.
func millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

// conditional executes one conditional statement.
func (o *operation) conditional(ctx context.Context, text string, args ...any) (applied bool, err error) {
	return o.compared(ctx, map[string]any{}, text, args...)
}

// compared is conditional, and puts what is there into a map if it is not as the condition says.
func (o *operation) compared(ctx context.Context, there map[string]any, text string, args ...any) (applied bool,
	err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	start := time.Now()
	defer func() { o.told(start, Request{Conditional: true, Lost: err == nil && !applied, Err: err}) }()
	applied, err = o.session.Query(text, args...).SerialConsistency(o.session.Serial).MapScanCASContext(ctx, there)
	return applied, driver.Asked(ctx, err)
}

// until repeats what may be done twice while it is not known whether it was.
func (o *operation) until(ctx context.Context, fn func() error) error {
	unknown, pause := error(nil), firstPause
	for left := unknownTries; ; left-- {
		err := fn()
		if err == nil {
			return nil
		}
		if passes(err) {
			unknown = err
		}
		if left == 1 || !passes(err) || ctx.Err() != nil {
			return afterUnknown(unknown, err)
		}
		if err := wait(ctx, pause); err != nil {
			return afterUnknown(unknown, err)
		}
		pause = min(2*pause, longestPause)
	}
}

// PutNote implements state.Store.
func (s *Store) PutNote(ctx context.Context, workspace string, n state.Note) error {
	o := s.operation("PutNote", fmt.Sprintf("put note %q on %q in workspace %q", n.Name, n.Topic, workspace))
	if err := n.Check(); err != nil {
		return o.explain(err)
	}
	return o.explain(o.putNote(ctx, workspace, n))
}

// noteKey names a note.
type noteKey struct{ workspace, topic, name string }

// putNote puts a note. It is conditional, as its removal is: moments of writes
// that are and that are not conditional come from different clocks. One that this
// process has put before it expects to be there.
func (o *operation) putNote(ctx context.Context, workspace string, n state.Note) error {
	data := n.Data
	if data == nil {
		data = []byte{}
	}
	at := noteKey{workspace, n.Topic, n.Name}
	err := o.until(ctx, func() error {
		_, there := o.noted.get(at)
		for ; ; there = !there {
			if there {
				applied, err := o.conditional(ctx, `UPDATE state_notes SET run = ?, node = ?, data = ?, time = ?
					WHERE workspace = ? AND topic = ? AND name = ? IF EXISTS`,
					n.Run, n.Node, data, millis(n.Time), workspace, n.Topic, n.Name)
				if applied || err != nil {
					return err
				}
				continue
			}
			applied, err := o.conditional(ctx, `INSERT INTO state_notes (workspace, topic, name, run, node, data, time)
				VALUES (?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS`,
				workspace, n.Topic, n.Name, n.Run, n.Node, data, millis(n.Time))
			if applied || err != nil {
				return err
			}
		}
	})
	if err == nil {
		o.noted.put(at, struct{}{})
	}
	return err
}

// RemoveNote implements state.Store.
func (s *Store) RemoveNote(ctx context.Context, workspace string, n state.Note) error {
	o := s.operation("RemoveNote", fmt.Sprintf("remove note %q on %q in workspace %q", n.Name, n.Topic, workspace))
	data := n.Data
	if data == nil {
		data = []byte{}
	}
	s.noted.forget(noteKey{workspace, n.Topic, n.Name})
	return o.explain(o.until(ctx, func() error {
		_, err := o.conditional(ctx, `DELETE FROM state_notes WHERE workspace = ? AND topic = ? AND name = ?
			IF run = ? AND node = ? AND data = ? AND time = ?`,
			workspace, n.Topic, n.Name, n.Run, n.Node, data, millis(n.Time))
		return err
	}))
}

// Notes implements state.Store.
func (s *Store) Notes(ctx context.Context, workspace, topic, after string, limit int) (notes []state.Note, err error) {
	o := s.operation("Notes", fmt.Sprintf("list notes on %q in workspace %q", topic, workspace))
	limit = pageLimit(limit)
	err = o.query(ctx, limit,
		`SELECT name, run, node, data, time FROM state_notes WHERE workspace = ? AND topic = ? AND name > ? LIMIT ?`,
		[]any{workspace, topic, after, limit},
		func(scan func(...any) error) error {
			n := state.Note{Topic: topic}
			var at *int64
			err := scan(&n.Name, &n.Run, &n.Node, &n.Data, &at)
			if at != nil {
				n.Time = time.UnixMilli(*at).UTC()
			}
			notes = append(notes, n)
			return err
		})
	return notes, o.explain(err)
}

// Fleet is the id of the processes that share the state: the same for all, whoever asks first.
func (s *Store) Fleet(ctx context.Context) (id string, err error) {
	o := s.operation("Fleet", "read the fleet's id")
	err = o.query(ctx, 1, `SELECT data FROM state_notes WHERE workspace = '' AND topic = ? AND name = ?`,
		[]any{state.TopicFleet, state.FleetName},
		func(scan func(...any) error) error { return scan(&id) })
	if err != nil || id != "" {
		return id, o.explain(err)
	}
	return id, o.explain(o.until(ctx, func() (err error) {
		id, err = o.makeFleet(ctx)
		return err
	}))
}

// makeFleet writes an id unless there is one, and gives the one that there is.
func (o *operation) makeFleet(ctx context.Context) (id string, err error) {
	mine, there := state.NewFleet(), map[string]any{}
	applied, err := o.compared(ctx, there,
		`INSERT INTO state_notes (workspace, topic, name, run, node, data, time) VALUES ('', ?, ?, 0, '', ?, ?) IF NOT EXISTS`,
		state.TopicFleet, state.FleetName, []byte(mine), time.Now().UnixMilli())
	if err != nil || applied {
		return mine, err
	}
	data, _ := there["data"].([]byte)
	if len(data) == 0 {
		return "", fault.New(fault.Bug, "the note that has the fleet's id has none")
	}
	return string(data), nil
}

// blobChunk is the number of bytes of a blob in a row.
const blobChunk = 512 << 10

// putBlob stores a content under its digest, unless it is there. The row -1
// comes last, and says that all are there.
func (o *operation) putBlob(ctx context.Context, b state.Blob) error {
	if _, there, err := o.blob(ctx, b.Digest, true); there || err != nil {
		return err
	}
	return o.until(ctx, func() error {
		for i := 0; i*blobChunk < len(b.Content); i++ {
			chunk := b.Content[i*blobChunk : min((i+1)*blobChunk, len(b.Content))]
			if err := o.write(ctx, `INSERT INTO state_blobs (digest, chunk, data) VALUES (?, ?, ?)`, b.Digest, i,
				chunk); err != nil {
				return err
			}
		}
		return o.write(ctx, `INSERT INTO state_blobs (digest, chunk, data) VALUES (?, -1, ?)`, b.Digest, []byte{})
	})
}

// blob reads what is stored under a digest, or with brief only whether it is.
func (o *operation) blob(ctx context.Context, digest string, brief bool) (content []byte, there bool, err error) {
	text := `SELECT chunk, data FROM state_blobs WHERE digest = ?`
	if brief {
		text += ` AND chunk = -1`
	}
	if digest == "" { // no key of a partition
		return nil, false, nil
	}
	err = o.query(ctx, atOnce, text, []any{digest}, func(scan func(...any) error) error {
		var chunk int
		var data []byte
		err := scan(&chunk, &data)
		there = there || chunk == -1
		content = append(content, data...)
		return err
	})
	return content, there, err
}

// Blob implements state.Store.
func (s *Store) Blob(ctx context.Context, digest string) ([]byte, error) {
	o := s.operation("Blob", "read blob "+digest)
	if err := ctx.Err(); err != nil {
		return nil, o.explain(err)
	}
	content, there, err := o.blob(ctx, digest, false)
	if err == nil && !there {
		err = state.ErrNotFound
	}
	if err != nil {
		return nil, o.explain(err)
	}
	return content, nil
}
