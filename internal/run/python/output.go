package python

import (
	"bytes"
	"log/slog"
	"sync"
	"time"
)

// output takes what an interpreter prints: the end is kept for messages, and
// some of it is logged at debug level.
type output struct {
	logger *slog.Logger
	stream string

	mu      sync.Mutex
	tail    []byte
	line    []byte // begun, for the log
	second  time.Time
	logged  int // lines in this second
	dropped int64
}

// Write never fails: what formulas print must not hurt them.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(b)
	o.keep(b)
	for len(b) > 0 {
		line, rest, found := bytes.Cut(b, []byte{'\n'})
		if room := maxLoggedLineBytes - len(o.line); room > 0 {
			o.line = append(o.line, line[:min(room, len(line))]...)
		}
		if found {
			o.log()
			o.line = o.line[:0]
		}
		b = rest
	}
	return n, nil
}

func (o *output) keep(b []byte) {
	if len(b) >= maxOutputTailBytes {
		o.tail = append(o.tail[:0], b[len(b)-maxOutputTailBytes:]...)
		return
	}
	if over := len(o.tail) + len(b) - maxOutputTailBytes; over > 0 {
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
	o.tail = append(o.tail, b...)
}

func (o *output) log() {
	now := time.Now()
	if now.Sub(o.second) >= time.Second {
		if o.dropped > 0 {
			o.logger.Debug("python printed more", "stream", o.stream, "lines_not_logged", o.dropped)
		}
		o.second, o.logged, o.dropped = now, 0, 0
	}
	if o.logged >= maxLoggedLinesASec {
		o.dropped++
		return
	}
	o.logged++
	o.logger.Debug("python printed", "stream", o.stream, "line", string(o.line))
}

// Tail returns the last of what was printed.
func (o *output) Tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(bytes.ToValidUTF8(o.tail, []byte("?")))
}
