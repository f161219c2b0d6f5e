package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"thalweg/internal/base/fault"
)

// Disk says what was measured on.
type Disk struct {
	Dir        string `json:"dir"`
	FileSystem string `json:"file_system,omitempty"`
	Device     string `json:"device,omitempty"`
	Scheduler  string `json:"scheduler,omitempty"`
	Rotates    bool   `json:"rotates,omitempty"`
	Bytes      int64  `json:"bytes"` // of the largest file that was written
	Flushes    int    `json:"flushes"`
}

const (
	blockBytes  = 1 << 20
	recordBytes = 4096 // of small writes, and what direct access is aligned to
	diskMost    = 1 << 30
	roomPart    = 10 // of what is free, one of so many
	flushTimes  = 3  // as long as others, for the slowest ones
)

// scratch returns a file on the disk of a directory. It has no name any more, so it is gone however this ends.
func scratch(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".thalweg-bench-*")
	if err != nil {
		f := &fault.Error{Kind: fault.Environment, Message: "create a file in " + dir, Err: err}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			f.Kind, f.Hint = fault.Script, "name a directory that there is, on the disk to be measured, with {{set dir}}"
		}
		return nil, f
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close() // the error before it counts
		return nil, &fault.Error{Kind: fault.Environment, Message: "remove the file of the measurement", Err: err}
	}
	return f, nil
}

// disk measures a file below a directory.
func (m *measuring) disk(ctx context.Context, dir string) (err error) {
	m.Disk.Dir = dir
	free, err := room(dir)
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "look at the disk of " + dir, Err: err}
	}
	m.diskNames(dir)
	size := min(diskMost, free/roomPart) / blockBytes * blockBytes
	if size == 0 {
		m.miss("disk", fmt.Sprintf("%s has room for %d MiB only", dir, free>>20))
		return nil
	}
	f, err := scratch(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d := diskFile{m: m, f: f, most: size, block: aligned(blockBytes)}
	for i := range d.block {
		d.block[i] = byte(i * i >> 3)
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{{"through the cache", d.cached}, {"direct", d.direct}, {"flushed", d.flushed}} {
		m.tell(ctx, "disk: "+step.name, 0, 0)
		if err := step.do(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return &fault.Error{Kind: fault.Environment, Message: "measure the disk of " + dir + ", " + step.name, Err: err}
		}
	}
	return nil
}

// aligned returns memory that direct access takes.
func aligned(bytes int) []byte {
	all := make([]byte, bytes+recordBytes)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(all))) % recordBytes)
	return all[off : off+bytes]
}

// diskFile is the file that is measured with.
type diskFile struct {
	m     *measuring
	f     *os.File
	most  int64
	wrote int64
	block []byte
}

// write writes blocks for a while, and ends with a flush, which counts.
func (d *diskFile) write(ctx context.Context) (mbPerS float64, err error) {
	begun, at := time.Now(), int64(0)
	for ; at < d.most && (at == 0 || time.Since(begun) < d.m.each); at += blockBytes {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if _, err := d.f.WriteAt(d.block, at); err != nil {
			return 0, err
		}
	}
	if err := flush(d.f); err != nil {
		return 0, err
	}
	d.wrote = max(d.wrote, at)
	d.m.Disk.Bytes = d.wrote
	return float64(at) / micro / time.Since(begun).Seconds(), nil
}

// read reads what was written, again from its begin if that is soon done.
func (d *diskFile) read(ctx context.Context) (mbPerS float64, err error) {
	begun, n := time.Now(), int64(0)
	for ; n == 0 || time.Since(begun) < d.m.each; n += blockBytes {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if _, err := d.f.ReadAt(d.block, n%d.wrote); err != nil {
			return 0, err
		}
	}
	return float64(n) / micro / time.Since(begun).Seconds(), nil
}

func (d *diskFile) both(ctx context.Context, way string) error {
	for _, of := range []struct {
		name string
		do   func(context.Context) (float64, error)
	}{{"disk_write_" + way, d.write}, {"disk_read_" + way, d.read}} {
		var rates []float64
		for range d.m.repeats {
			rate, err := of.do(ctx)
			if err != nil {
				return err
			}
			rates = append(rates, rate)
		}
		d.m.add(of.name, "MB/s", rates...)
	}
	return nil
}

func (d *diskFile) cached(ctx context.Context) error { return d.both(ctx, "cached") }

func (d *diskFile) direct(ctx context.Context) error {
	if err := past(d.f, true); err != nil {
		d.m.miss("disk past the cache (direct)", "the file system refuses it: "+err.Error())
		return nil
	}
	if err := d.both(ctx, "direct"); err != nil {
		if ctx.Err() != nil {
			return err
		}
		d.m.miss("disk past the cache (direct)", "the file system refuses it: "+err.Error())
	}
	return past(d.f, false)
}

// flushed measures small writes, each of which is on the disk before the next.
func (d *diskFile) flushed(ctx context.Context) error {
	var took []time.Duration
	for begun := time.Now(); len(took) == 0 || time.Since(begun) < flushTimes*d.m.each; {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := time.Now()
		if _, err := d.f.WriteAt(d.block[:recordBytes], int64(len(took))*recordBytes%d.wrote); err != nil {
			return err
		}
		if err := flush(d.f); err != nil {
			return err
		}
		took = append(took, time.Since(at))
	}
	d.m.Disk.Flushes = len(took)
	d.m.addQuantiles("disk_flush", took)
	return nil
}

// quantileLeast is how many values the slowest of a hundred is told of.
const quantileLeast = 100

// addQuantiles adds the median and the slowest of a hundred. The latter needs a hundred of them.
func (m *measuring) addQuantiles(name string, took []time.Duration) {
	slices.Sort(took)
	m.add(name+"_p50", "us", micros(quantile(took, 0.5)))
	if len(took) >= quantileLeast {
		m.add(name+"_p99", "us", micros(quantile(took, 0.99)))
	} else {
		m.miss(name+"_p99", fmt.Sprintf("there were %d only in the time that it had", len(took)))
	}
}

// quantile is the value that a part of sorted ones is at most.
func quantile(sorted []time.Duration, part float64) time.Duration {
	return sorted[max(int(math.Ceil(part*float64(len(sorted))))-1, 0)]
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / milli }

// diskNames says what a directory is on.
func (m *measuring) diskNames(dir string) {
	longest := -1
	var number string
	for line := range strings.SplitSeq(m.root.said("proc/self/mountinfo"), "\n") {
		const id, where = 2, 4
		before, after, _ := strings.Cut(line, " - ")
		words, of := strings.Fields(before), strings.Fields(after)
		if len(words) <= where || len(of) < 2 {
			continue
		}
		at := strings.TrimSuffix(words[where], "/") + "/"
		if strings.HasPrefix(strings.TrimSuffix(dir, "/")+"/", at) && len(at) >= longest {
			longest, number = len(at), words[id]
			m.Disk.FileSystem, m.Disk.Device = of[0], of[1]
		}
	}
	device, err := filepath.EvalSymlinks(m.root.path("sys/dev/block", number))
	if number == "" || err != nil {
		return // in memory, or over a network
	}
	queue := tree(device)
	if queue.there("partition") {
		queue = tree(filepath.Dir(device))
	}
	m.Disk.Scheduler, m.Disk.Rotates = chosen(queue.said("queue/scheduler")), queue.said("queue/rotational") == "1"
}
