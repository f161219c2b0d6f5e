package address

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ template, value, want string }{
		{"http://joe:{env.X}@host/x.csv", "p@s/s:w?r#d% é\n",
			"http://joe:p%40s%2Fs%3Aw%3Fr%23d%25%20%C3%A9%0A@host/x.csv"},
		{"http://joe:{env.X}@host/x.csv", "p%40ss%zz%4", "http://joe:p%40ss%25zz%254@host/x.csv"},
		{"http://{env.X}@host", "joe:a@b", "http://joe:a%40b@host"},
		{"http://{env.X}:pw@host", "a:b", "http://a%3Ab:pw@host"},
		{"http://{env.X}/x.csv", "token@evil.example/y", "http://token%40evil.example%2Fy/x.csv"},
		{"http://{env.X}/x.csv", "host:8080", "http://host:8080/x.csv"},
		{"http://{env.X}/x@y", "a@b", "http://a%40b/x@y"},
		{"http://host/{env.X}/x.csv", "T0/B0@c?d#e", "http://host/T0/B0@c%3Fd%23e/x.csv"},
		{"http://host/x?t={env.X}&u=1", "a&b=c+d#e%2Bf", "http://host/x?t=a%26b%3Dc%2Bd%23e%2Bf&u=1"},
		{"http://host/x?{env.X}", "sv=1&sig=a%2Bb=#c", "http://host/x?sv=1&sig=a%2Bb=%23c"},
		{"http://host/x#{env.X}", "a#b", "http://host/x#a%23b"},
		{"postgres://u:{env.X}@[::1]:5432/{env.X}?host={env.X}", "a/b@c",
			"postgres://u:a%2Fb%40c@[::1]:5432/a/b@c?host=a/b@c"},
		{"{env.X}", "https://joe:pw@host/x?y", "https://joe:pw@host/x?y"},
		{"{env.X}/x", "https://host", "https://host/x"},
		{"{env.B}/x?t={env.X}", "a&b#c", "https://joe:p@host/x?t=a%26b%23c"},
		{"{env.B}/{env.X}/y", "a?b#c", "https://joe:p@host/a%3Fb%23c/y"},
		{"{env.B}{env.X}", ":80@evil", "https://joe:p@host:80%40evil"},
		{"http://{env.X}?mail=a@b", "host:80", "http://host:80?mail=a@b"},
		{"http://{env.X}#a@b", "host:80", "http://host:80#a@b"},
		{"http://{env.Y}:{ env.X }@host", "{env.X}", "http://{env.Y}:%7Benv.X%7D@host"},
	} {
		got := Fill(c.template, func(name string) (string, bool) {
			if name == "B" {
				return "https://joe:p@host", true
			}
			return c.value, name == "X"
		})
		require.Equal(t, c.want, got, c.template)
	}
}

// FuzzFill wants that no value leaves the component in which it stands.
func FuzzFill(f *testing.F) {
	f.Add("p@ss:w/o?r#d %41%4\n")
	f.Fuzz(func(t *testing.T, value string) {
		fill := func(template string) *url.URL {
			u, err := url.Parse(Fill(template, func(string) (string, bool) { return value, true }))
			require.NoError(t, err)
			return u
		}
		means := func(escaped string) string {
			out, err := url.PathUnescape(escaped)
			require.NoError(t, err)
			return out
		}
		want := means(inUser.encode(value))
		u := fill("http://joe:{env.X}@host/path?a=b#c")
		password, _ := u.User.Password()
		require.Equal(t, []string{"joe", want, "host", "/path", "a=b", "c"},
			[]string{u.User.Username(), password, u.Host,
				u.Path, u.RawQuery, u.Fragment})
		u = fill("http://host/path/{env.X}?a=b#c")
		require.Equal(t, []string{"host", "/path/" + want, "a=b", "c"},
			[]string{u.Host, u.Path, u.RawQuery, u.Fragment})
		u = fill("http://host/path?t={env.X}&a=b#c")
		require.Equal(t, []string{"host", "/path", want, "b", "c"}, []string{u.Host, u.Path, u.Query().Get("t"),
			u.Query().Get("a"), u.Fragment})
		for _, form := range Encodings(value) {
			require.Equal(t, want, means(form))
		}
	})
}
