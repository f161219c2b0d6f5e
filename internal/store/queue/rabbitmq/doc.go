// Package rabbitmq is the queue that processes share: hints in durable quorum
// queues of a RabbitMQ broker, one for each priority, and signals through a
// fanout exchange to a queue of each process's own.
//
// It promises what package queue asks for. A hint is pulled when a receiver is
// free for it, so none waits in a process that is busy. It is acknowledged when
// its claim is decided, so no patience of a broker limits how long a batch may
// take. Hints that a process holds when it dies, or its connection ends, come
// again. Publish returns when the broker has confirmed, or fails within
// answerTimeout. The connections, one to publish and one to receive, are
// renewed by themselves, and what is needed in the broker is declared each time.
// While there is none, Shared is false, Publish fails at once, and hints that are
// kept (Keep) are received in this process; they are dropped when the broker is back.
//
// What can fail: ErrClosed; the context's error; *fault.Error of kind Environment.
// Passwords are in no error and no log.
package rabbitmq
