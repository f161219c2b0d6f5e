// Package peek answers questions about tables in child processes of this
// program, so that a query that eats memory, spins or crashes costs its child
// and nothing else: DuckDB knows no untrusted user inside itself.
//
// It owns both sides. The parent (Pool) finds in the state what a question
// reads, takes memory for it from the directory's ledger (see budget.Guest),
// and gives a child statements, files and limits. The child (Serve) opens
// DuckDB and sends rows back. Who asks for SQL, pages of a table, profiles or
// downloads gets a bare child: it has no environment, no state and no
// connection but the one to its parent, may read the directories of the tables
// that it is asked about and write its own, and is believed nothing. It serves
// the same tables again while they are asked about, and SQL of one caller only.
// Differences, traces and checks need the state and the parts: their child is
// lent both, to be read.
//
// It promises:
//
//   - There are at most Limits.Children children, with Limits.ChildBytes each.
//   - They give way to batches: what is asked is ended, half a second after it was begun, if a run of any process of
//     the directory waits for memory.
//   - Callers have children in turn. What may take long has all but one at most of one caller, and pages go before it.
//   - A question that takes longer than its time, or whose caller has gone, is interrupted, and a second later its
//     child is killed, with all that it has started.
//   - Pages are in the table's canonical order. Texts of cells hold all digits; what was cut off is marked.
//   - A page of a table that is stored in its order reads the row groups that it lies in, and nothing else.
//   - Nothing is left after Close: no process, no file.
//
// What can fail: questions, with a *fault.Error that says whether the query, the machine or a limit is to blame.
// Where the system cannot hold a child to its files or keep it from the network, the log says so, once.
// Landlock holds plain TCP; of MPTCP and UDP it knows nothing.
package peek
