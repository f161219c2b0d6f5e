package sandbox

import "time"

// protocol is the version of what parent and child say. They are the same
// program; a mistake in how one is started is found by it.
const protocol = 1

// Limits.
const (
	frameHeadMax = 8 << 20   // bytes: an error with its detail
	frameBodyMax = 256 << 20 // bytes
	rangeMax     = 256 << 10 // bytes of a part that one frame carries
	listMax      = 1_000     // keys that one frame carries
	// GraceDefault is how long a cancelled execution may take to come back. It
	// is less than what the executor gives, which leaves behind what takes longer.
	GraceDefault = 700 * time.Millisecond
	// SilenceDefault is how long a child may say nothing. It says something each beatEvery.
	SilenceDefault = 60 * time.Second
	beatEvery      = time.Second
	// startTimeout bounds a child's start, until it has said hello.
	startTimeout = time.Minute
	// startsMax is how often a start is tried before an attempt fails for it;
	// the pauses between are startFirst, and twice as long each time up to startLongest.
	startsMax    = 5
	startFirst   = 100 * time.Millisecond
	startLongest = 5 * time.Second
	// idleGrace is what a child that has no batch may take to end by itself.
	idleGrace = 300 * time.Millisecond
	// endTimeout is what a child may take to end when it is killed.
	endTimeout = 5 * time.Second
	// discardTimeout bounds the removal of what was made in vain.
	discardTimeout = 10 * time.Second
	// batchesMax is how many batches a child executes: what its libraries leak ends with it.
	batchesMax = 1_000
	// heldMax is how much more than at its start a child may hold between two batches.
	heldMax = 256 << 20
	// outputMax is how much of what a child prints last is kept.
	outputMax = 8 << 10
	// openRunsMax is how many runs a child keeps open.
	openRunsMax = 8
)
