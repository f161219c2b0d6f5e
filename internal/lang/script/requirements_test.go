package script

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequirements(t *testing.T) {
	t.Parallel()
	needs, _, err := readRequirements("lock.txt", strings.Join([]string{
		"# made by a tool", "--index-url https://example.org/simple", "NumPy==1.26.4 \\", "    --hash=sha256:00 \\",
		"    --hash=sha256:01", "Ruamel_yaml[jinja2] >= 0.17, < 0.19  # why",
		"colorama==0.4.6 ; sys_platform == 'win32'", "six", ""}, "\n"))
	require.NoError(t, err)
	require.Len(t, needs, 4)
	for i, want := range []struct{ name, versions, at string }{
		{"numpy", "==1.26.4", "lock.txt:3"}, {"ruamel-yaml", ">=0.17,<0.19", "lock.txt:6"},
		{"colorama", "==0.4.6", "lock.txt:7"}, {"six", "", "lock.txt:8"}} {
		require.Equal(t, want.name, needs[i].Name)
		require.Equal(t, want.versions, needs[i].Versions)
		require.Equal(t, want.at, needs[i].At)
	}
	require.Equal(t, "numpy==1.26.4 is not installed", needs[0].Unmet(""))
	require.Equal(t, "numpy==1.26.4 is wanted, 2.0 is installed", needs[0].Unmet("2.0"))
	require.Empty(t, needs[2].Unmet(""), "it is for other systems")
	require.NotEmpty(t, needs[2].Unmet("0.5"))
	for _, wrong := range []string{"-r other.txt", "-e .", "name @ https://example.org/a.whl", "./a.whl", "numpy==",
		"numpy=1", "=1"} {
		_, line, err := readRequirements("lock.txt", "six\n"+wrong)
		require.Error(t, err, wrong)
		require.Equal(t, 2, line, wrong)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		need, version string
		met           bool
	}{
		{"a==1.0", "1", true}, {"a==1.0", "1.0.1", false}, {"a==1.0", "1.0+local", true},
		{"a==1.0+cpu", "1.0+gpu", false},
		{"a===1.0", "1", false},
		{"a==1.2.*", "1.2.9", true}, {"a==1.2.*", "1.20", false}, {"a!=1.2.*", "1.2.9", false}, {"a!=1", "2", true},
		{"a>=1.10", "1.9", false}, {"a>=1.10", "1.10", true}, {"a>1", "1.0.1", true}, {"a<2", "2.0rc1", true},
		{"a<=2", "2.0.post1", false},
		{"a~=1.4.2", "1.4.9", true}, {"a~=1.4.2", "1.5", false}, {"a~=1.4", "1.9", true}, {"a==1.0rc1", "1.0", false},
		{"a==1.0rc1", "1.0.rc1", true}, {"a==v1", "1", true},
	} {
		need, err := readRequirement(tc.need)
		require.NoError(t, err, tc.need)
		require.Equal(t, tc.met, need.Unmet(tc.version) == "", "%s with %s", tc.need, tc.version)
	}
}
