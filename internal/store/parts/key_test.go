package parts

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
)

func TestCheckKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"a", "a/b", "ws/00001/02-node/7.1.parquet", "bucket=3/x", "..a", "a..", "...", "-", "_", ".x",
		strings.Repeat("k", MaxSegmentBytes), strings.Repeat("k/", MaxKeyBytes/2-1) + "kk",
	} {
		require.NoError(t, CheckKey(key), key)
		require.NoError(t, CheckPrefix(key), key)
	}
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.", "./a", `a\b`, "a b", "a\x00",
		"a\nb", "ä", "a:b", "C:a", "%2e%2e/a", "~", "*",
		strings.Repeat("k", MaxSegmentBytes+1), strings.Repeat("k/", MaxKeyBytes/2) + "k",
	} {
		err := CheckKey(key)
		require.Error(t, err, key)
		require.Equal(t, fault.Bug, fault.Of(err).Kind)
	}
	for _, prefix := range []string{"", "a/", "a/b/", ".", "..", "a/.."} { // a name may begin with dots
		require.NoError(t, CheckPrefix(prefix), prefix)
	}
	for _, prefix := range []string{"/", "/a", "../", "../a", "a//", "a/../b", "a b", "a\x00",
		strings.Repeat("k", MaxKeyBytes+1)} {
		require.Error(t, CheckPrefix(prefix), prefix)
	}
}

// The same judgement in other words: split, look at each segment.
func FuzzCheckKey(f *testing.F) {
	for _, seed := range []string{"a/b", "../x", "", "a//b", "ws/1/n/0.parquet"} {
		f.Add(seed)
	}
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.=-"
	f.Fuzz(func(t *testing.T, key string) {
		good := len(key) <= MaxKeyBytes
		for _, s := range strings.Split(key, "/") {
			good = good && s != "" && s != "." && s != ".." && len(s) <= MaxSegmentBytes &&
				strings.Trim(s, allowed) == ""
		}
		if got := CheckKey(key) == nil; got != good {
			t.Fatalf("%q: allowed %v, should be %v", key, got, good)
		}
		if good && CheckPrefix(key[:len(key)/2]) != nil {
			t.Fatalf("the beginning of %q is no prefix", key)
		}
	})
}

func TestChecksum(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{ // check values of CRC-32C
		"":          "crc32c:00000000",
		"123456789": "crc32c:e3069283",
	} {
		sum, n, err := Checksum(strings.NewReader(content))
		require.NoError(t, err)
		require.Equal(t, want, sum)
		require.Equal(t, int64(len(content)), n)
	}
	broken := errors.New("broken")
	_, _, err := Checksum(iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
}
