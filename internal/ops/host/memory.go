package host

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

const (
	lineBytes  = 64 // of a cache
	chunkBytes = 1 << 20
	wordBytes  = 8
	// beyond is how many times the largest cache memory must be for its own speed to be measured.
	beyond = 4
)

// memory measures bandwidth over one core and all, and latency.
func (m *measuring) memory(ctx context.Context) error {
	need := beyond * m.Facts.Processor.largest()
	switch {
	case need == 0:
		m.miss("memory beyond the caches", "their sizes are not known: figures of memory may be of the cache")
	case need > m.memoryMost:
		m.miss("memory beyond the caches", fmt.Sprintf("the largest cache has %d MiB, and "+
			"%d MiB of memory are used at most: "+
			"figures of memory may be of the cache", m.Facts.Processor.largest()>>20, m.memoryMost>>20))
	}
	bytes := min(max(need, memoryLeast), m.memoryMost)
	m.tell(ctx, "memory: latency", 0, 0)
	if err := m.latency(ctx, make([]uint64, bytes/wordBytes)); err != nil {
		return err
	}
	debug.FreeOSMemory() // so that each thread is given pages of its own, beside its core
	m.tell(ctx, "memory: bandwidth", 0, 0)
	parts := make([][]uint64, m.threads)
	m.onThreads(m.threads, func(t int) {
		parts[t] = make([]uint64, max(int(bytes)/m.threads/chunkBytes, 1)*chunkBytes/wordBytes)
		for at := 0; at < len(parts[t]) && ctx.Err() == nil; at += recordBytes / wordBytes {
			parts[t][at] = uint64(at)
		}
	})
	defer debug.FreeOSMemory()
	for _, of := range []struct {
		name    string
		threads int
		touch   func(part []uint64) uint64
		counted float64 // bytes of a byte that is passed over
	}{
		{"memory_read_one", 1, readWords, 1}, {"memory_read_all", m.threads, readWords, 1},
		{"memory_copy_one", 1, copyWords, 0.5}, {"memory_copy_all", m.threads, copyWords, 0.5},
	} {
		var rates []float64
		for range m.repeats {
			rate, err := m.bandwidth(ctx, parts[:of.threads], of.touch)
			if err != nil {
				return err
			}
			rates = append(rates, rate*of.counted/1e9)
		}
		m.add(of.name, "GB/s", rates...)
	}
	return nil
}

// memoryLeast and others bound what is allocated.
const (
	memoryLeast = 64 << 20
	memoryMost  = 2 << 30
	memoryPart  = 4 // of what is free, one of so many
)

// readWords adds the words of a part up.
func readWords(part []uint64) (sum uint64) {
	var a, b, c, d uint64
	for ; len(part) >= wordBytes; part = part[wordBytes:] {
		p := part[:wordBytes]
		a, b, c, d = a+p[0]+p[4], b+p[1]+p[5], c+p[2]+p[6], d+p[3]+p[7]
	}
	return a + b + c + d
}

// copyWords copies the first half of a part to its second.
func copyWords(part []uint64) uint64 {
	half := len(part) / 2
	copy(part[half:], part[:half])
	return part[half]
}

// onThreads runs do on threads, each on a core of its own where that can be.
func (m *measuring) onThreads(threads int, do func(thread int)) {
	cores := coresIn(m.Facts.Limits.Cores)
	var wait sync.WaitGroup
	for t := range threads {
		wait.Go(func() {
			if m.root == "/" && len(cores) == m.threads {
				_ = pinned(cores[t]) // else where the kernel puts it
			}
			do(t)
		})
	}
	wait.Wait()
}

// bandwidth has a thread for each part pass over it, and returns bytes a second.
func (m *measuring) bandwidth(ctx context.Context, parts [][]uint64, touch func([]uint64) uint64) (float64, error) {
	bytes, sums := make([]float64, len(parts)), make([]uint64, len(parts))
	begun := time.Now()
	m.onThreads(len(parts), func(t int) {
		part, at, n, sum := parts[t], 0, 0.0, uint64(0)
		for time.Since(begun) < m.each && ctx.Err() == nil {
			sum += touch(part[at : at+chunkBytes/wordBytes])
			at = (at + chunkBytes/wordBytes) % len(part)
			n += chunkBytes
		}
		bytes[t], sums[t] = n, sum
	})
	took := time.Since(begun).Seconds()
	total := 0.0
	for t := range parts {
		total += bytes[t]
		m.sink += sums[t] // what is not used would not be computed
	}
	return total / took, ctx.Err()
}

// latency follows pointers through memory in random order: each load waits for the one before.
func (m *measuring) latency(ctx context.Context, words []uint64) error {
	const least, times = 32 << 10, 8
	whole := len(words) * wordBytes
	var sizes []int
	for size := least; size < whole; size *= times {
		sizes = append(sizes, size)
	}
	for _, size := range append(sizes, whole) {
		if err := ring(ctx, words, size/lineBytes); err != nil {
			return err
		}
		var times []float64
		for range m.repeats {
			ns, err := m.chase(ctx, words)
			if err != nil {
				return err
			}
			times = append(times, ns)
		}
		m.add(fmt.Sprintf("memory_latency_%s", sizeName(size)), "ns", times...)
	}
	return nil
}

// sizeName is a size in a name of a figure: 32k, 256k, 2m.
func sizeName(bytes int) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%dk", bytes>>10)
	}
	return fmt.Sprintf("%dm", bytes>>20)
}

// ring has the first word of each of n lines name the next, in one cycle through all of them (Sattolo's shuffle).
func ring(ctx context.Context, words []uint64, n int) error {
	const step = lineBytes / wordBytes
	for i := range n {
		words[i*step] = uint64(i * step)
	}
	x := uint64(workBegins)
	for i := n - 1; i > 0; i-- {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		j := int(x % uint64(i))
		words[i*step], words[j*step] = words[j*step], words[i*step]
		if i%(1<<14) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// chase follows the ring for a while, and returns nanoseconds a step.
func (m *measuring) chase(ctx context.Context, words []uint64) (float64, error) {
	const steps = 1 << 13
	at, n := uint64(0), 0
	begun := time.Now()
	for time.Since(begun) < m.each/2 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		for range steps {
			at = words[at]
		}
		n += steps
	}
	took := time.Since(begun)
	m.sink += at
	return float64(took.Nanoseconds()) / float64(n), nil
}
