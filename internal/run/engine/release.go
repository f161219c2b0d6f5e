package engine

/*
#include <malloc.h>
#include <stddef.h>

// DuckDB's copy of jemalloc, where it has one.
extern int duckdb_je_mallctl(const char *name, void *old, size_t *oldlen, void *new, size_t newlen) __attribute__((weak));

// thalweg_release gives pages that nobody uses back to the system: 4096 stands
// for all of jemalloc's arenas.
static void thalweg_release(void) {
	if (duckdb_je_mallctl) {
		duckdb_je_mallctl("arena.4096.purge", NULL, NULL, NULL, 0);
	}
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}
*/
import "C"

import (
	"bytes"
	"os"
	"strconv"
)

// releaseBytes is the growth since the last release after which memory is released again. Less would not pay:
// pages that are given back have to be got again.
const releaseBytes = 128 << 20

// release gives the memory back that tasks have left. The allocators below
// DuckDB keep it for themselves: half of what a run held at its peak was theirs.
func (p *Instances) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held := residentBytes(); held < p.released+releaseBytes {
		return
	}
	releasePages()
	p.released = residentBytes()
}

// Release gives the memory back that tasks have left, however little it is.
func (p *Instances) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	releasePages()
	p.released = residentBytes()
}

// releasePages gives back what the allocators below DuckDB keep.
func releasePages() { C.thalweg_release() }

// residentBytes returns the resident memory of this process, 0 where the system does not say.
func residentBytes() int64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
