package conformance

import (
	"fmt"
	"time"
)

// cellText writes a value of a query: NULL in capitals, so that it differs
// from empty text; times in UTC.
func cellText(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case time.Time:
		return v.UTC().Format("2006-01-02 15:04:05.999999")
	case []byte:
		return fmt.Sprintf("%x", v)
	case fmt.Stringer:
		return v.String()
	}
	return fmt.Sprint(v)
}
