package cassandra

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/klauspost/compress/zstd"

	"thalweg/internal/base/fault"
)

// The first byte of a stored document says how the rest is written.
const (
	asJSON = 1
	asZstd = 2 // JSON, compressed
)

// Limits of documents.
const (
	packFrom     = 512       // bytes of JSON that are worth compressing
	documentsMax = 256 << 20 // bytes of JSON; more is damage
)

// codec compresses; both halves may be used by many at once, and have no goroutines.
type codec struct {
	in  *zstd.Decoder
	out *zstd.Encoder
}

func newCodec() (codec, error) {
	out, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true))
	if err != nil {
		return codec{}, fmt.Errorf("make a compressor: %w", err)
	}
	in, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(documentsMax))
	if err != nil {
		return codec{}, fmt.Errorf("make a decompressor: %w", err)
	}
	return codec{in: in, out: out}, nil
}

// pack writes a value.
func (c codec) pack(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fault.New(fault.Bug, "what is to be stored in the state cannot be written: %v", err)
	}
	if len(text) < packFrom {
		return append([]byte{asJSON}, text...), nil
	}
	return c.out.EncodeAll(text, []byte{asZstd}), nil
}

// unpack reads a value; nothing leaves it as it is.
func (c codec) unpack(stored []byte, v any) error {
	if len(stored) == 0 {
		return nil
	}
	text := stored[1:]
	switch stored[0] {
	case asJSON:
	case asZstd:
		var err error
		if text, err = c.in.DecodeAll(text, nil); err != nil {
			return fault.New(fault.Environment, "what is stored in the state cannot be decompressed: %v", err)
		}
	default:
		return fault.New(fault.Environment, "what is stored in the state is of form %d: of a newer program, or damaged",
			stored[0])
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fault.New(fault.Environment, "what is stored in the state is damaged: %v", err)
	}
	return nil
}

// stored gives the time as the store keeps it: UTC, whole milliseconds.
func stored(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}
