package document

// Limits of what a document may be. They keep hostile or mistaken input from
// taking the process down; a real one stays far below.
const (
	MaxBytes             = 16 << 20  // after parameters were put in
	MaxDepthLevels       = 64        // nesting of maps and lists
	MaxValuesCount       = 2_000_000 // values after YAML aliases are followed
	MaxDiagnosticsCount  = 500       // problems reported of one load
	MaxShownTextChars    = 60        // text quoted in a message
	maxRenderedLineChars = 120       // source line shown under a message
)
