package python

import "time"

// Defaults of Config.
const (
	DefaultRowTimeout     = time.Minute
	DefaultGroupTimeout   = 10 * time.Minute
	DefaultMaxGroupBytes  = 256 << 20
	DefaultImportTimeout  = 2 * time.Minute
	DefaultChunkTarget    = 50 * time.Millisecond
	DefaultMaxChunkBytes  = 4 << 20
	DefaultRecycleBytes   = 1 << 30 // without a MemoryBytes; else three quarters of it
	DefaultMaxResultBytes = 1 << 30
)

// Limits that are not configured.
const (
	MinMemoryBytes = 64 << 20 // an interpreter alone maps some 20 MiB (CPython) or 75 MiB (PyPy, which is given twice)

	maxChunkRows = 1 << 16
	maxCallRows  = 1 << 16 // of a call without groups
	// a chunk has at most so many times the rows of the largest one that came back
	chunkGrowthFactor   = 4
	maxWindowChunks     = 1024                   // chunks of a Run between next and emit
	maxProgramsInMemory = 8                      // of one process; the one unused for longest is forgotten
	maxChunksInProcess  = 2                      // one is computed, one waits in the pipe
	maxQueuedMessages   = 4 * maxChunksInProcess // a chunk has at most a new and a forgotten program before it
	maxOutputTailBytes  = 16 << 10
	maxCrashLogBytes    = 32 << 10
	maxLoggedLineBytes  = 400
	maxLoggedLinesASec  = 20 // of one process, at debug level
	// of a process's memory: with more, PyPy meets the limit in the midst of a collection, and aborts
	nurseryShare    = 256
	minNurseryBytes = 512 << 10
	maxNurseryBytes = 4 << 20 // what PyPy takes where it finds no cache
	pageBytes       = 4096
	pipeBytes       = 1 << 20 // wished for
	joinBelowBytes  = 1 << 20

	startTimeout    = 30 * time.Second       // from starting a process to its first message
	stopGrace       = time.Second            // from closing a process's input to killing it
	deathGrace      = 5 * time.Second        // from the end of a process's stream to its own
	killGrace       = 2 * time.Second        // from asking a row to stop to killing its process
	dumpGrace       = 500 * time.Millisecond // from asking for a stack to killing the process
	cancelGrace     = 250 * time.Millisecond // that a chunk nobody waits for may still take
	outputWait      = 2 * time.Second        // for pipes that a process's children keep open
	stallTimeout    = 5 * time.Minute        // for a process that neither computes nor takes or gives values
	watchMin        = 5 * time.Millisecond
	watchMax        = 250 * time.Millisecond
	watchParts      = 20 // of RowTimeout between two looks
	memoryInterval  = 100 * time.Millisecond
	recycleInterval = 5 * time.Second
	// times its memory after the first chunk: a process that is simply large is not replaced for it
	recycleGrowth = 1.5

	oldestMajor, oldestMinor = 3, 9
)
