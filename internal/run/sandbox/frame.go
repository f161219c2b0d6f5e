package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
)

// kind is the type of a frame.
type kind string

// The kinds of frames.
const (
	kindCall   kind = "call"   // wants an answer
	kindAnswer kind = "answer" // to the call with its number
	kindCancel kind = "cancel" // nobody wants the call's work any more; its answer still comes
	kindTell   kind = "tell"   // wants none
)

// head begins a frame.
type head struct {
	Kind   kind       `json:"k"`
	ID     uint64     `json:"id,omitempty"`
	Method string     `json:"m,omitempty"`
	Error  *wireError `json:"e,omitempty"`
}

// frame is a head and a body, which is JSON or, where the method says so, bytes.
type frame struct {
	head
	body []byte
}

// framePrefix is the two lengths that a frame begins with.
const framePrefix = 8

// writeFrame writes a frame in one go.
func writeFrame(w io.Writer, f frame) error {
	text, err := json.Marshal(f.head)
	if err != nil {
		return fmt.Errorf("encode the head of a frame: %w", err)
	}
	if len(text) > frameHeadMax || len(f.body) > frameBodyMax {
		return fmt.Errorf("%w: head %d bytes, body %d bytes", errFrameTooLarge, len(text), len(f.body))
	}
	start := make([]byte, framePrefix, framePrefix+len(text))
	binary.BigEndian.PutUint32(start, uint32(len(text)))       //nolint:gosec // at most frameHeadMax
	binary.BigEndian.PutUint32(start[4:], uint32(len(f.body))) //nolint:gosec // at most frameBodyMax
	buffers := net.Buffers{append(start, text...), f.body}
	if _, err := buffers.WriteTo(w); err != nil {
		return fmt.Errorf("write a frame: %w", err)
	}
	return nil
}

// readFrame reads the next frame, of so many bytes at most; io.EOF where there is none.
func readFrame(r io.Reader, headMax, bodyMax uint32) (f frame, err error) {
	var start [framePrefix]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return f, err
	}
	text, body := binary.BigEndian.Uint32(start[:]), binary.BigEndian.Uint32(start[4:])
	if text > headMax || body > bodyMax {
		return f, fmt.Errorf("%w: head %d bytes, body %d bytes", errFrameTooLarge, text, body)
	}
	all := make([]byte, int(text)+int(body))
	if _, err := io.ReadFull(r, all); err != nil {
		return f, fmt.Errorf("read a frame: %w", err)
	}
	if err := json.Unmarshal(all[:text], &f.head); err != nil {
		return f, fmt.Errorf("decode the head of a frame: %w", err)
	}
	f.body = all[text:]
	return f, nil
}
