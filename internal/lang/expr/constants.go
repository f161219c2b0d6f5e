package expr

import (
	"strconv"
	"time"
)

// typedValue is a named constant of the language.
type typedValue struct {
	typ Type
	val any
}

// packageConstants lists time.January … time.December, time.UTC, and the
// states of runs and nodes that dependency rules compare with.
func packageConstants() map[string]typedValue {
	all := map[string]typedValue{
		"time.UTC":                         {Location, time.UTC},
		"wfmodel.RunNone":                  {Int, int64(0)},
		"wfmodel.RunStart":                 {Int, int64(1)},
		"wfmodel.RunComplete":              {Int, int64(2)},
		"wfmodel.RunStop":                  {Int, int64(3)},
		"wfmodel.NodeBatchNone":            {Int, int64(0)},
		"wfmodel.NodeBatchStart":           {Int, int64(1)},
		"wfmodel.NodeBatchSuccess":         {Int, int64(2)},
		"wfmodel.NodeBatchFail":            {Int, int64(3)},
		"wfmodel.NodeBatchRunStopReceived": {Int, int64(104)},
	}
	for m := time.January; m <= time.December; m++ {
		all["time."+m.String()] = typedValue{Month, m}
	}
	return all
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }
