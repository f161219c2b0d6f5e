package peek

import (
	"cmp"
	"time"
)

// Limits of a pool. Zero values are defaults.
type Limits struct {
	Children      int           // at once; default 2
	ChildBytes    int64         // of memory that a child has at most; default 512 MiB
	Wait          time.Duration // that a question waits for memory and a child; default 30 s
	Time          time.Duration // that a page or a query takes; default 30 s
	Rows          int           // of a page; default 1,000
	PageBytes     int           // of a page's cells; default 4 MiB
	CellBytes     int           // of a cell of a page, the rest is cut off; default 64 KiB
	LongTime      time.Duration // that a profile, difference, trace or check takes; default 2 min
	DownloadTime  time.Duration // default 10 min
	DownloadBytes int64         // default 4 GiB
	SpillBytes    int64         // of a child on the disk; default 4 GiB
	Idle          time.Duration // after which a child ends that nobody asks; default 1 min
}

func (l Limits) withDefaults() Limits {
	const spillBytes = 4 << 30
	l.Children = cmp.Or(l.Children, 2)
	l.ChildBytes = cmp.Or(l.ChildBytes, 512<<20)
	l.Wait = cmp.Or(l.Wait, 30*time.Second)
	l.Time = cmp.Or(l.Time, 30*time.Second)
	l.Rows = cmp.Or(l.Rows, 1_000)
	l.PageBytes = cmp.Or(l.PageBytes, 4<<20)
	l.CellBytes = cmp.Or(l.CellBytes, 64<<10)
	l.LongTime = cmp.Or(l.LongTime, 2*time.Minute)
	l.DownloadTime = cmp.Or(l.DownloadTime, 10*time.Minute)
	l.DownloadBytes = cmp.Or(l.DownloadBytes, spillBytes)
	l.SpillBytes = cmp.Or(l.SpillBytes, spillBytes)
	l.Idle = cmp.Or(l.Idle, time.Minute)
	return l
}

const (
	// childBytesMin is the least memory with which a child begins.
	childBytesMin = 192 << 20
	// grace is the time from telling a child to stop to killing it.
	grace = time.Second
	// silence is the time without a sign of life after which a child is killed. One whose reader is slow gives none.
	silence = 5 * time.Minute
	// yieldAfter is how long a question goes on for whose memory a run waits: most pages are answered by then.
	yieldAfter = time.Second / 2
	// nice is by how much children give way to batches.
	nice = 10
	// engineShare of a child's memory, one of so many, is DuckDB's limit: some of its buffers, Go and its threads come
	// on top. goShare is Go's.
	engineShare, goShare = 2, 4
	// leftShare of a child's memory is what a query may leave behind in it: else the child ends.
	leftShare = 4
	// filesMax limits the files that a child has open.
	filesMax = 4_096
	// cpuMax limits the processor time of a child's life.
	cpuMax = time.Hour
	// threadsMax limits the threads of a query.
	threadsMax = 2
)
