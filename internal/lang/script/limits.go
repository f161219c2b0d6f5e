package script

// Limits of what a script may be. They keep hostile or mistaken input from
// taking the process down; a real script stays far below.
const (
	MaxPythonBytes           = 64 << 20 // each Python file: data tables are often part of it
	MaxPulledFilesCount      = 1000     // Python and tag criteria files of one script
	MaxReferencesCount       = 100_000  // {param} references in the text
	MaxIncludeLevels         = 16       // files that include each other
	MaxEnvironmentNameChars  = 200
	MaxEnvironmentValueBytes = 64 << 10
	MaxInferredColumnsCount  = 10_000 // columns taken from a file's header
	MaxNodeNameChars         = 200
	MaxScriptNameChars       = 100
	MaxTableNameChars        = 42
	MaxIndexNameChars        = 42
	MaxBatchesCount          = 1_000_000 // expected_batches_total
	MaxRowsetRows            = 100_000   // rowset_size
	MaxLookupReadRows        = 20_000    // idx_read_batch_size, right_lookup_read_batch_size
	MaxTopLimitRows          = 5_000_000 // top.limit
	MaxNullTextsCount        = 100       // null_text of one column
	DefaultRowsetRows        = 1000
	DefaultTopLimitRows      = MaxTopLimitRows
)

// Limits of approvals.
const (
	MaxGateMessageChars = 2000
	MaxRolesCount       = 20
	MaxRoleChars        = 100
	MaxShownTablesCount = 20
	MaxAnswersCount     = 20 // of a gate
)

// Limits of checks.
const (
	MaxChecksCount         = 1000 // of a node
	MaxCheckNameChars      = 200
	MaxAcceptedValuesCount = 10_000  // accepted_values.values
	MaxFailedRows          = 100_000 // max_rows
	DefaultFailedRows      = 1000
)
