package samples

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/store/state"
)

// chunkVersion begins the data of a note. The form is stored.
const chunkVersion = 1

// chunk is what a note has: samples of a worker, in order of time, and the runs that it worked on meanwhile.
type chunk struct {
	runs    []state.RunKey
	samples []Sample
}

// runsBytesMax limits the bytes of a note that name runs.
const runsBytesMax = state.NoteBytesMax / 4

// encode writes a chunk: numbers that change little as differences, sizes in KiB.
func (c chunk) encode() []byte {
	out := []byte{chunkVersion}
	out = binary.AppendUvarint(out, uint64(len(c.runs)))
	for _, r := range c.runs {
		out = binary.AppendUvarint(out, uint64(len(r.Workspace)))
		out = append(out, r.Workspace...)
		out = binary.AppendUvarint(out, uint64(r.Run)) //nolint:gosec // from 1 on
	}
	before := make([]int64, fields)
	for _, s := range c.samples {
		at := s.fields()
		for i, n := range at {
			out = binary.AppendVarint(out, n-before[i])
			if differs[i] {
				before[i] = n
			}
		}
	}
	return out
}

var errDamaged = errors.New("the samples of a worker are damaged")

// decode reads what encode has written.
func decode(data []byte) (c chunk, err error) {
	if len(data) == 0 || data[0] != chunkVersion {
		return c, fmt.Errorf("%w: they are of an unknown version", errDamaged)
	}
	r := reader{data: data[1:]}
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		workspace := string(r.take(r.uvarint()))
		c.runs = append(c.runs, state.RunKey{Workspace: workspace, Run: int64(r.uvarint())}) //nolint:gosec // as written
	}
	before := make([]int64, fields)
	for len(r.data) > 0 && !r.bad {
		at := make([]int64, fields)
		for i := range at {
			at[i] = before[i] + r.varint()
			if differs[i] {
				before[i] = at[i]
			}
		}
		c.samples = append(c.samples, sampleFrom(at))
	}
	if r.bad {
		return chunk{}, errDamaged
	}
	return c, nil
}

// fields is the number of figures of a sample. differs says which are written as differences.
const fields = 12

var differs = [fields]bool{0: true, 1: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true}

const kib = 1 << 10

// fields lists the figures of a sample as they are stored.
func (s Sample) fields() [fields]int64 {
	return [fields]int64{s.Time.UnixMilli(), s.Took.Milliseconds(), s.CPU.Milliseconds(), s.ChildrenCPU.Milliseconds(),
		int64(s.Cores), s.Resident / kib, s.ChildrenResident / kib, s.MemoryLimit / kib, s.DiskFree / kib,
		s.DiskTotal / kib, s.Read / kib, s.Written / kib}
}

func sampleFrom(f []int64) Sample {
	ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return Sample{Time: time.UnixMilli(f[0]).UTC(), Took: ms(f[1]), CPU: ms(f[2]), ChildrenCPU: ms(f[3]), Cores: int(f[4]),
		Resident: f[5] * kib, ChildrenResident: f[6] * kib, MemoryLimit: f[7] * kib, DiskFree: f[8] * kib,
		DiskTotal: f[9] * kib, Read: f[10] * kib, Written: f[11] * kib}
}

// reader reads numbers; bad says that they have ended too early.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) uvarint() uint64 {
	n, size := binary.Uvarint(r.data)
	r.skip(size)
	return n
}

func (r *reader) varint() int64 {
	n, size := binary.Varint(r.data)
	r.skip(size)
	return n
}

func (r *reader) skip(size int) {
	if size <= 0 {
		r.bad, r.data = true, nil
		return
	}
	r.data = r.data[size:]
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.data)) {
		r.bad, r.data = true, nil
		return nil
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}
