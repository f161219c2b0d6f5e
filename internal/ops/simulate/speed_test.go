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
		`{"host": "b", "machine": "c8g.large"}`:               "b.json:1:1: it has no core_speed, and no speed is taken from a name",
		`{"core_speed": null}`:                                "b.json:1:16: it has no core_speed",
		`{"core_speed": 0}`:                                   "b.json:1:16: core_speed is from 0.01 to 100",
		`{"core_speed": -1}`:                                  "from 0.01 to 100",
		`{"core_speed": 1e400}`:                               "from 0.01 to 100",
		`{"core_speed": NaN}`:                                 "b.json:1:16",
		"{\"core_speed\": 1,\n \"core_speed\": 2}":            "b.json:2:2: core_speed is there twice",
		"{\"core_speed\": 1,\n \"machine\": [\"c8g.large\"]}": "b.json:2:13: machine is a text, not a list",
		`{"Core_speed": 1}`:                                   "it has no core_speed",
		`{"core_speed": "2"}`:                                 "b.json:1:16: core_speed is a number, not text",
		`{"core_speed": 1} {}`:                                "b.json:1:19",
		`[]`:                                                  "b.json:1:1: the speed of a host is a JSON object, not a list",
		``:                                                    "b.json",
		"{\"core_speed\": 1, \"host\": \"\xff\"}":             "b.json:1:28: the text is not UTF-8",
	} {
		_, err := simulate.ReadSpeed("b.json", []byte(text))
		require.ErrorContains(t, err, want, text)
	}
}
