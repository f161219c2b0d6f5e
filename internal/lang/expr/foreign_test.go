package expr

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a hint proposes has to be there, and what it is proposed for must not.
func TestForeignFunctionsAreProposedByFunctionsOfOurs(t *testing.T) {
	t.Parallel()
	called := regexp.MustCompile(`[a-zA-Z_][\w.]*\(`)
	for _, f := range foreignFunctions() {
		for _, call := range called.FindAllString(f.here, -1) {
			require.Contains(t, functionTable(), strings.TrimSuffix(call, "("), f.names)
		}
		for name := range strings.FieldsSeq(f.names) {
			require.NotContains(t, functionTable(), name)
			require.Equal(t, strings.ToLower(name), name)
		}
	}
}

func TestLayoutsOfOtherProgramsAreWrittenAsGoHasThem(t *testing.T) {
	t.Parallel()
	for layout, want := range map[string]string{
		"yyyy-MM-dd HH:mm:ss":   "this one is 2006-01-02 15:04:05",
		"yyyy-mm-dd":            "this one is 2006-01-02",
		"mm/dd/yyyy":            "this one is 01/02/2006",
		"DD.MM.YYYY":            "this one is 02.01.2006",
		"YYYY-MM-DD HH24:MI:SS": "this one is 2006-01-02 15:04:05",
		"%Y-%m-%d %H:%M:%S":     "this one is 2006-01-02 15:04:05",
		"yyyy-MM-dd'T'HH:mm:ss": "this one is 2006-01-02T15:04:05",
		"day": "the year is 2006, the month 01, the day 02, the hour 15, the minute 04, " +
			"the second 05",
	} {
		require.Equal(t, want, goLayout(layout), layout)
	}
}
