package database

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEnumWords(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"a", "it's", "", "x,y", "'"}, enumWords("enum('a','it''s','','x,y','''')"))
	require.Equal(t, []string{"a"}, enumWords("enum('a') x"))
}
