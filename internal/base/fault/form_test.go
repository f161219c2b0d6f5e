package fault_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
)

// What another version has stored is no defect, and who meets it is told what to do.
func TestOtherForm(t *testing.T) {
	for has, hint := range map[int]string{
		3: "use the newer program that wrote it, or another state",
		0: "use the program that wrote it, or another state",
	} {
		f := fault.OtherForm("the plan of a node", has, 2)
		require.Equal(t, fault.Environment, f.Kind)
		require.Equal(t, hint, f.Hint)
		require.Contains(t, f.Error(), "this program knows forms up to 2")
	}
}
