package sandbox

import "time"

// protocol is the version of what parent and child say. They are the same
// program; a mistake in how one is started is found by it.
const protocol = 1

// Limits.
const (
	frameHeadMax = 8 << 20   // bytes: an error with its detail
	frameBodyMax = 256 << 20 // bytes
	bareHeadMax  = 256 << 10 // bytes of a frame of a child that may be hostile: see Kind
	bareBodyMax  = 4 << 20   // likewise
	bareCallsMax = 2         // calls of such a child at once
	rangeMax     = 256 << 10 // bytes of a part that one frame carries
	listMax      = 1_000     // keys that one frame carries
	// GraceDefault is the time that a cancelled execution has to come back. It is less than the executor's,
	// which gives up on a later one.
	GraceDefault = 700 * time.Millisecond
	// SilenceDefault limits the time without a message of a child. A child sends one each beatEvery.
	SilenceDefault = 60 * time.Second
	beatEvery      = time.Second
	// startTimeout bounds a child's start, until it has said hello.
	startTimeout = time.Minute
	// startsMax limits the tries of a start before an attempt fails for it. The pauses between are
	// startFirst, and twice as long each time up to startLongest.
	startsMax    = 5
	startFirst   = 100 * time.Millisecond
	startLongest = 5 * time.Second
	// idleGrace is the time that a child without a batch has to end by itself.
	idleGrace = 300 * time.Millisecond
	// endTimeout limits the wait for the end of a child that was killed.
	endTimeout = 5 * time.Second
	// discardTimeout bounds the removal of what was made in vain.
	discardTimeout = 10 * time.Second
	// batchesMax limits the batches that a child executes: what its libraries leak ends with it.
	batchesMax = 1_000
	// heldMax limits the growth of a child's memory since its start, between two batches.
	heldMax = 256 << 20
	// outputMax limits the latest output of a child that is kept.
	outputMax = 8 << 10
	// openRunsMax limits the runs that a child keeps open.
	openRunsMax = 8
)
