package files

// Limits, with their units in the names.
const (
	// MaxRecordBytes is the longest CSV record. DuckDB keeps buffers of a
	// multiple of it for each thread.
	MaxRecordBytes = 8 << 20

	// readerLineBytes is the longest line that DuckDB accepts: rewriting may
	// double the quotes of a record.
	readerLineBytes = 2*MaxRecordBytes + 64<<10

	// readerBufferBytes is DuckDB's buffer per CSV scan. Measured on 331 MB:
	// 8 to 32 MB read equally fast with 1 and 2 threads; smaller costs less
	// memory, but a line has to fit.
	readerBufferBytes = readerLineBytes

	// pieceBytes is the size of the pieces into which a file with line ends
	// inside quotes is cut. One piece is read by one thread, which never has
	// to guess whether it starts inside quotes. DuckDB hands out 8 MB at a time.
	pieceBytes = 4 << 20

	// HeadBytesMax bounds what lies before the first data record.
	HeadBytesMax = 16 << 20

	// scanBlockBytes is the size of the blocks in which the scanner reads a file.
	scanBlockBytes = 256 << 10

	// maxOpenFiles bounds the files that one call has open together.
	maxOpenFiles = 16

	// shownValueRunes limits the characters of an offending value that an error shows.
	shownValueRunes = 80

	// shownRecordRunes limits the characters of the record that an error shows.
	shownRecordRunes = 1_000
)
