// Package remote moves whole files between this machine and others: it reads
// http, https, s3 and sftp, and writes s3 and sftp. DuckDB and Python only
// ever see the local copies.
//
// It owns connections, credentials, and what is done about transfers that
// break. A Client reads small files into memory (Read), keeps copies of a
// run's inputs (Spool), lists files (List), and puts output files in place in two
// steps (Stage, then Staged.Publish), so that the second can be part of a commit.
//
// It promises:
//   - a copy is either whole or not there: it has the size that the server
//     declared, comes from one version of the file, and is renamed into place;
//   - a transfer that broke goes on where it stopped if the server can say
//     that the file is still the same, and begins again otherwise; tries are
//     bounded, with growing random pauses, and only what may pass by itself is
//     tried again: broken connections, timeouts, 408, 429 and 5xx;
//   - connecting, waiting and standing still are timed, a transfer that moves
//     is not;
//   - nothing appears under a final name before Publish, which may be done
//     again with the same content;
//   - host keys and certificates are always verified;
//   - secrets of addresses and keys are in no error and no log line.
//
// What can fail is a *fault.Error: fault.Script for addresses that cannot be,
// fault.UserData (wrapping fs.ErrNotExist) for files that are not there,
// fault.Environment for the rest. Goroutines live inside calls, except those
// of idle connections, which Close ends.
package remote
