// Package outfile writes the rows of a SELECT as files in the forms that DuckDB's COPY
// does not write alone: text that is compressed as a whole, directories of files, cut
// at a size or partitioned by columns, Excel sheets; and the manifests that say what
// files there are.
//
// DuckDB writes text into a pipe, and what is at the other end of it makes the file while
// the text comes: nothing lies on a disk twice. The same rows give the same bytes, whoever
// writes them and however fast: nothing in a file says when it was made, and the text is
// compressed and cut in pieces whose ends follow from its bytes.
//
// What a form cannot hold exactly is a failure that names row and column. A failure of the
// disk is reported before the failure of the COPY that it ends.
package outfile
