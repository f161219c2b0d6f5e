package simulate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/simulate"
)

func TestSpeedsAreMeasuredNotNamed(t *testing.T) {
	t.Parallel()
	s, err := simulate.ReadSpeed("b.json", []byte(`{"host": "b", "machine": "c8g.large", "core_speed": 1.25, "disk": {}}`))
	require.NoError(t, err)
	require.Equal(t, simulate.Speed{Host: "b", Machine: "c8g.large", CoreSpeed: 1.25}, s)
	for text, want := range map[string]string{
		`{"host": "b", "machine": "c8g.large"}`: "no speed is taken from a name",
		`{"core_speed": null}`:                  "it has no core_speed",
		`{"core_speed": 0}`:                     "from 0.01 to 100",
		`{"core_speed": -1}`:                    "from 0.01 to 100",
		`{"core_speed": 1e400}`:                 "cannot be read",
		`{"core_speed": "2"}`:                   "cannot be read",
		`[]`:                                    "cannot be read",
		``:                                      "cannot be read",
	} {
		_, err := simulate.ReadSpeed("b.json", []byte(text))
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "b.json", text)
	}
}
