package script

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A parameter that the script does not have is told beside those that it has, with their types.
func TestUnknownParametersNameTheKnownOnes(t *testing.T) {
	t.Parallel()
	known := Parameters("r: {urls: [\"{dir_in}/{file|string}\"], rows: \"{limit|number}\", x: '{4}', e: {env.HOME}, " +
		"w: \"{dir_in}/{batch_idx}.csv\"}")
	require.Equal(t, []Parameter{{"dir_in", "string"}, {"file", "string"}, {"limit", "number"}}, known)
	require.Equal(t, "did you mean dir_in? its parameters are dir_in (string), file (string), limit (number)",
		knownParams("dir_im", known))
	require.Equal(t, "the script has no parameters: {x} in it would make one", knownParams("x", nil))
}
