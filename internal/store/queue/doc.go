// Package queue owns hints: messages that say that a batch can probably be
// taken, and signals: messages that ask to look at a run now. It holds the
// interface; queue/inproc is the queue inside one process, queue/rabbitmq the
// one that processes share, and queue/queuetest the suite that every queue passes.
//
// It promises little, on purpose: a hint that Publish has accepted is given
// to some receiver at least once while the queue and its backend live. It may
// come late, twice, or for a batch that is long done, and after a crash it may
// not come at all. State decides what is true, and the coordinator publishes
// again what is missing. A signal may be lost.
//
// What can fail: ErrClosed; the context's error; for a shared queue
// *fault.Error of kind Environment when the broker cannot be reached or
// accepts nothing.
package queue
