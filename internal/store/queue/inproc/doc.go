// Package inproc is the queue inside one process: the embedded default. It
// owns the hints in memory and nothing else.
//
// It promises what package queue asks for, first in, first out
// among those of one priority. A hint for a
// batch that is waiting already is merged with it, so a reconciler may publish
// the same hints again and again; one for a batch that was received and is
// being decided on is a new hint. The number of waiting hints is limited: at
// the limit, Publish waits until a receiver has made room. So whoever
// publishes more than the limit needs a receiver in another goroutine.
//
// What can fail: ErrClosed, the context's error. After Close the waiting
// hints are gone.
package inproc
