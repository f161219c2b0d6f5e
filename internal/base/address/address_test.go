package address

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a:b@c":                          "a:b@c",
		"/tmp/x?token=1":                 "/tmp/x?token=1",
		"s3://b/k":                       "s3://b/k",
		"s3://b/x:y@z":                   "s3://b/x:y@z",
		"https://u@h/x":                  "https://xxxxx@h/x", // a token in the place of a user
		"sftp://u@h/x":                   "sftp://u@h/x",
		"htps://u:p@h/x":                 "htps://u:xxxxx@h/x",
		"s3:/u:p/q@h/x":                  "s3:/u:xxxxx@h/x",
		"http:/h/x?X-Amz-Signature=q":    "http:/h/x?X-Amz-Signature=xxxxx",
		"https://u:p@h/x?a=1":            "https://u:xxxxx@h/x?a=1",
		"https://u:%zz@h/x":              "https://u:xxxxx@h/x",
		"https://h/%zz?token=q":          "https://h/%zz?token=xxxxx",
		"https://h/x?access_token=q&b=":  "https://h/x?access_token=xxxxx&b=",
		"https://h/x?X%2DAmz=1&Sig%6E=2": "https://h/x?X%2DAmz=1&Sig%6E=xxxxx",
		"https://h/x?%73ig=2":            "https://h/x?%73ig=xxxxx",
		"https://h/x#access_token=q&a=1": "https://h/x#access_token=xxxxx&a=1",
		"https://h/x?a=1#top":            "https://h/x?a=1#top",
		"https://h/x?sig=1#token=2":      "https://h/x?sig=xxxxx#token=xxxxx",
		"http://h/x.csv;token=q":         "http://h/x.csv;token=xxxxx",
		"http://h/x.csv;pw=q?pass=1&b=2": "http://h/x.csv;pw=xxxxx&b=2",
		"http://h/x?passengers=2&dsn=q":  "http://h/x?passengers=2&dsn=xxxxx",
		"http://joe:pass127.0.0.1/x":     "http://joe:xxxxx/x", // the @ was forgotten
		"http://joe:pass127.0.0.1:80/x":  "http://joe:xxxxx/x",
		"s3://joe:passbucket/x":          "s3://joe:xxxxx/x",
		"ftp://joe:passh":                "ftp://joe:xxxxx",
		"http://{host}:{port}/x":         "http://{host}:{port}/x",
		"http://h/x?token={env.TOKEN}":   "http://h/x?token={env.TOKEN}", // a reference is no secret
		"http://h/x?token={ env.T }":     "http://h/x?token={ env.T }",
		"http://h/x?key=v1-{env.KEY}":    "http://h/x?key=v1-{env.KEY}",
		"http://{env.LOGIN}@h/x":         "http://{env.LOGIN}@h/x",
		"http://joe:{env.PW}@h/x@y":      "http://joe:{env.PW}@h/x@y",
		"http://joe:q:1@2/3?4#5%6@h/x":   "http://joe:xxxxx@h/x", // a password that is not escaped
		"sftp://joe:SE@C/RET@h:1/x":      "sftp://joe:xxxxx@h:1/x",
		"http://h/x?token={t}&sig=a{t}":  "http://h/x?token={t}&sig=xxxxx",
		"http://h/x?sig={t}b.":           "http://h/x?sig=xxxxx.",
		"http://[::1]:80/x":              "http://[::1]:80/x",
		"c:/a:b/x":                       "c:/a:b/x",
	} {
		require.Equal(t, want, Redact(in))
	}
}

func TestRedactHidesPasswords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := "S" + rapid.StringMatching(`[a-z0-9@/:?#%]{6,20}`).Draw(t, "secret") + "S"
		scheme := rapid.SampledFrom([]string{"https", "sftp", "http", "HTTPS"}).Draw(t, "scheme")
		shown := Redact(scheme + "://joe:" + secret + "@host.example/data.csv")
		require.NotContains(t, shown, secret)
	})
}

func TestLocal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a.csv": "a.csv", "/x/a b.csv": "/x/a b.csv", "file:///x/a%20b.csv": "/x/a b.csv", "FILE://localhost/x": "/x",
		"c:/x": "c:/x",
	} {
		got, err := Local(in)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, in := range []string{"", "file://x.csv", "file://other/x.csv", "https://h/x", "s3://b/k", "file:///%zz"} {
		_, err := Local(in)
		require.Error(t, err, in)
	}
}

func TestStringHidesSecretsWithSigns(t *testing.T) {
	t.Parallel()
	hide := func(text string) string { return strings.ReplaceAll(text, "a b%@/word", "{env.P}") }
	require.NotContains(t, Location{URL: "http://u:a b%@/word@h/x", Hide: hide}.String(), "word")
}

func TestMistyped(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"s3:/b/k", "http:/h/x", "joe:pass@h/x", "joe:pass@h:22/x", "h/x?token=1",
		"h/x?a=1&X-Amz-Signature=1",
		"tok@127.0.0.1:1234/x.csv", "tok@127.0.0.1/x.csv", "tok@h.example/x", "tok@h:80/x", "h/x;token=1"} {
		require.NotEmpty(t, Mistyped(name), name)
	}
	for _, name := range []string{"", "a.csv", "c:/x", "/a:b@c/x", "./joe:pass@h/x", "x?.csv", "a@b/c", "10:30",
		"{dir}/x_*.csv", "https://joe:pass@h/x", "file:///x", "a=b/c"} {
		require.Empty(t, Mistyped(name), name)
	}
}

func TestRedactText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`urls: ["http://h/f?token={env.T}"], fields: {`:  `urls: ["http://h/f?token={env.T}"], fields: {`,
		"urls: [http://h/f?token={env.T}]":               "urls: [http://h/f?token={env.T}]",
		"r: {urls: http://h/f?sig={ env.T }}":            "r: {urls: http://h/f?sig={ env.T }}",
		"(see http://{env.L}@h/x(1).)":                   "(see http://{env.L}@h/x(1).)",
		"r: {urls: http://h/f?token=abc}":                "r: {urls: http://h/f?token=xxxxx}",
		`error: "https://u:p@h/x": no`:                   `error: "https://u:xxxxx@h/x": no`,
		"from https://tok@h/x?sig=1&b=2, to s3:/u:p@b/k": "from https://xxxxx@h/x?sig=xxxxx&b=2, to s3:/u:xxxxx@b/k",
		"https://h/x?token=abc: no (s3:/b/x?sig=1).":     "https://h/x?token=xxxxx: no (s3:/b/x?sig=xxxxx).",
		"see joe:secret@host/x and h/x?token=abc":        "see joe:xxxxx@host/x and h/x?token=xxxxx",
		"at 10:30 a@b.c wrote x:y@z":                     "at 10:30 a@b.c wrote x:y@z",
		"see tok12345678@h.example/x, joe@h.example/x":   "see xxxxx@h.example/x, xxxxx@h.example/x",
		"in/a@v1.2/x and a@2024.01/x":                    "in/a@v1.2/x and a@2024.01/x",
		"https:///u:p@h/x":                               "https:///u:xxxxx@h/x",
		"cannot open http//u:pass@h/x":                   "cannot open http//u:xxxxx@h/x",
		"h/x#token=abc is a place":                       "h/x#token=xxxxx is a place",
		"SELECT a FROM t WHERE b = 'x' AND c=1":          "SELECT a FROM t WHERE b = 'x' AND c=1",
		"script.yaml:3:5: error: x":                      "script.yaml:3:5: error: x",
	} {
		require.Equal(t, want, RedactText(in))
		require.Equal(t, want, RedactText(want), "once more")
	}
}

func TestParquet(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a.parquet": true, "A.PQ": true, "x/a.parq": true, "s3://b/a.parquet": true, "https://h/a.pq?sig=1": true,
		"a.csv": false, "pq": false, "a.pq?x": false, "https://h/a.csv?f=a.pq": false,
	} {
		require.Equal(t, want, Parquet(name), name)
	}
}

func TestSeparator(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.tsv": "\t", "x/A.TAB": "\t", "a.psv": "|", "https://h/a.tsv?x=1": "\t", "a.csv": "", "a.tsv/b": "",
		"tsv": "", "": "",
	} {
		require.Equal(t, want, Separator(name), name)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Location{
		"https://h:8443/a%20b.csv?x=1":    {Scheme: "https", Host: "h:8443"},
		"S3://bucket/dir/a b+c%20?#.csv":  {Scheme: "s3", Bucket: "bucket", Path: "dir/a b+c%20?#.csv"},
		"sftp://joe@h/data/a%20b.csv":     {Scheme: "sftp", Host: "h:22", User: "joe", Path: "/data/a b.csv"},
		"sftp://joe@[::1]/a":              {Scheme: "sftp", Host: "[::1]:22", User: "joe", Path: "/a"},
		"sftp://joe@[::1]:2022/a":         {Scheme: "sftp", Host: "[::1]:2022", User: "joe", Path: "/a"},
		"http://joe:{env.PW}@h:80/x":      {Scheme: "http", Host: "h:80"},
		"https://{env.LOGIN}@h/x":         {Scheme: "https", Host: "h"},
		"http://{env.HOST}/x?t={env.T}":   {Scheme: "http", Host: "env.HOST"},
		"sftp://joe@h:2022/../etc/x.conf": {Scheme: "sftp", Host: "h:2022", User: "joe", Path: "/../etc/x.conf"},
	} {
		got, err := Parse(in)
		require.NoError(t, err, in)
		want.URL = in
		require.Equal(t, want, got, in)
	}
	for in, message := range map[string]string{
		"s3://bucket":                 "names no object",
		"s3://bucket/":                "names no object",
		"s3:///key":                   "names no object",
		"s3://b/k?X-Amz-Signature=pw": "signed query",
		"https:///x":                  "is not a URL",
		"https://h/%zz":               "is not a URL",
		"sftp://h/x":                  "names no user",
		"sftp://joe:pw@h/x":           "has a password",
		"sftp://joe@h":                "is not an SFTP address",
		"sftp://joe@h/a?b":            "is not an SFTP address",
		"sftp://joe@h/a%00b":          "control character",
		"https://h/a\nb":              "control character",
		"gopher://h/x":                "not known",
		"x.csv":                       "not known",
		"s3://b/" + strings.Repeat("k", nameBytesMax): "too long",
	} {
		_, err := Parse(in)
		require.ErrorContains(t, err, message)
		require.NotContains(t, err.Error(), "pw")
	}
}

func TestBeside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ base, name, want string }{
		{"script.yaml", "py/a.py", ""},
		{"/x/script.yaml", "py/a.py", "/x/py/a.py"},
		{`c:\x\script.yaml`, "a.py", `c:\x\a.py`},
		{"/x/script.yaml", "/a.py", ""},
		{"/x/script.yaml", "https://h/a.py", ""},
		{"https://h/x/script.yaml?sig=a/b#c/d", "a.py", "https://h/x/a.py"},
		{"https://h/x/script.yaml", "../lib/a b.py", "https://h/lib/a%20b.py"},
		{"https://h/script.yaml", "../../a.py", "https://h/a.py"},
		{"https://h", "a.py", ""},
		{"s3://b/x/y/script.yaml", "a b.py", "s3://b/x/y/a b.py"},
		{"s3://b/script.yaml", "a.py", "s3://b/a.py"},
		{"sftp://joe@h:22/x/script.yaml", "./a.py", "sftp://joe@h:22/x/a.py"},
	} {
		require.Equal(t, c.want, Beside(c.base, c.name), "%s beside %s", c.name, c.base)
	}
}

func TestParsePattern(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct{ base, glob, file, address string }{
		"s3://bucket/in/*.csv": {"s3://bucket", "in/*.csv", "in/a b%.csv", "s3://bucket/in/a b%.csv"},
		"s3://bucket/a?[b-d]":  {"s3://bucket", "a?[b-d]", "x", "s3://bucket/x"},
		"SFTP://joe@h:22/in/?%20%2A.csv": {"sftp://joe@h:22", `/in/? \*.csv`, "/in/a b%.csv",
			"sftp://joe@h:22/in/a%20b%25.csv"},
		"sftp://joe@[::1]/x": {"sftp://joe@[::1]", "/x", "/x", "sftp://joe@[::1]/x"},
	} {
		p, err := ParsePattern(in)
		require.NoError(t, err, in)
		require.Equal(t, want.base, p.Base, in)
		require.Equal(t, want.glob, p.Glob, in)
		require.Equal(t, want.address, p.Address(want.file), in)
		require.Equal(t, in, p.URL)
	}
	for in, message := range map[string]string{
		"in/*.csv":                "is not one whose files can be listed",
		"https://h/*.csv?token=x": "does not list its files",
		"s3://bucket":             "names no files",
		"s3://bucket/in/":         "names no files",
		"s3://key:secret@b/*":     "names no object",
		"s3://bucket/[":           "cannot be read",
		"sftp://h/*":              "names no user",
		"sftp://joe:secret@h/*":   "has a password",
		"sftp://joe@h/a\nb":       "control character",
	} {
		_, err := ParsePattern(in)
		require.ErrorContains(t, err, message, in)
		require.NotContains(t, err.Error(), "secret")
	}
	require.Equal(t, `\*\?\[a]\\`, QuoteGlob(`*?[a]\`))
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"postgres://u@h:1/d":                        "postgres://u@h:1/d",
		"postgres://u:p@h/d":                        "postgres://u:xxxxx@h/d",
		"postgres://u:{env.PW}@h/d#a.b":             "postgres://u:{env.PW}@h/d#a.b",
		"mysql://u:p:q@h/d#t":                       "mysql://u:xxxxx@h/d#t",
		"sqlite://a/b.db#t":                         "sqlite://a/b.db#t",
		"sqlite://a:10.db#t":                        "sqlite://a:10.db#t", // a file has no login
		"sqlite:///a:b@c.db":                        "sqlite:///a:b@c.db",
		"sqlite://a@b.db":                           "sqlite://a@b.db",
		"sqlite://u:p@h/d":                          "sqlite://u:xxxxx@h/d",
		"postgres://h/d?sslmode=require&password=x": "postgres://h/d?sslmode=require&password=xxxxx",
	} {
		require.Equal(t, want, Redact(in))
		_, err := Parse(in)
		require.NoError(t, err)
	}
	require.True(t, Password("postgres://u:p@h/d"))
	require.False(t, Password("postgres://u:{env.PW}@h/d"))
	require.False(t, Password("postgres://u@h/d"))
	for _, in := range []string{"postgres://h", "postgres://h/", "mysql://u@h:1", "sqlite://", "sqlite://:memory:",
		"sqlite://:memory:#t", "sqlite://file:a.db", "sqlite://file::memory:?cache=shared", "sqlite://a.db?mode=ro"} {
		_, err := Parse(in)
		require.Error(t, err, in)
	}
	require.Equal(t, "postgres://h/d#a%20b", OfTable("postgres://h/d", "a b"))
}
