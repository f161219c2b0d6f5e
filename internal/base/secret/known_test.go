package secret

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"thalweg/internal/base/fault"
)

func TestTextHidesEveryForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := "S3cr" + rapid.StringMatching(`[a-z0-9/+%"\\ä]{4,20}`).Draw(t, "value")
		before, after := rapid.StringMatching(`[a-z]{0,7}`).Draw(t, "before"),
			rapid.StringMatching(`[a-z]{0,7}`).Draw(t, "after")
		k := New()
		k.Add(value, "{env.X}")
		quoted, err := json.Marshal(before + value + after)
		require.NoError(t, err)
		for _, text := range []string{before + value + after, url.QueryEscape(before + value),
			url.PathEscape(value + after), string(quoted), fmt.Sprintf("%q", value), fmt.Sprintf("%x", value)} {
			require.Contains(t, k.Text(text), "{env.X}", text)
		}
		// In base64 three of its characters at either end may be left: they are shared with what is beside it.
		encoded := base64.StdEncoding.EncodeToString([]byte(before + value + after))
		require.Contains(t, k.Text(encoded), "{env.X}")
	})
}

// What programs read again has words that a secret has, too.
func TestStoredKeepsPieces(t *testing.T) {
	t.Parallel()
	k := New()
	k.Add("postgres://app:pw9zz@db.example.com:5432/shop_2024", "{env.URL}")
	k.Add("first1line\nsecond2line", "{env.KEY}")
	const names = "shop_2024 in out/shop_2024.csv, not db.example.com"
	require.Equal(t, names, k.Stored(names))
	require.Equal(t, names, k.Text(names), "no secret of an address")
	k.Add("aa1/bb2/cc3:dd4/ee5_x", "{env.TOKEN}")
	require.Equal(t, "column ee5_x", k.Stored("column ee5_x"))
	require.Equal(t, "column {env.TOKEN}", k.Text("column ee5_x"))
	require.Equal(t, "at {env.URL}#t", k.Stored("at postgres://app:pw9zz@db.example.com:5432/shop_2024#t"))
	require.NotContains(t, k.Stored("the password is pw9zz"), "pw9zz")
	block := k.Stored("key: |\n  first1line\n  second2line\n")
	require.NotContains(t, block, "1line")
	require.NotContains(t, block, "2line")
	require.Equal(t, "x", (*Known)(nil).Stored("x"))
}

// Columns are called so, too: their types are no secrets, or scripts with them would be stored without them.
func TestTypesAreNoSecrets(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"int", "int?", "string?", "string? = none", "date", "date 2006-01-02",
		"datetime? 2006-01-02 15:04:05", "timestamptz 2006-01-02T15:04:05Z07:00",
		"decimal(18,4)", "decimal(38, 10)?", "list(string)", "struct(a int, b string)?", "decimal2"} {
		for _, text := range []string{"password: " + typ, `{id: int, secret: "` + typ + `", x: int?}`,
			"{id: int, pwd: " + typ + ", x: int?}", "dsn: '" + typ + "'"} {
			k := New()
			k.Learn(text)
			require.Equal(t, text, k.Stored(text))
		}
		k := New()
		k.LearnKeyed("password", typ)
		require.Equal(t, typ, k.Text(typ))
	}
}

func TestLearn(t *testing.T) {
	t.Parallel()
	for text, secrets := range map[string][]string{
		"password: hunter2":                                {"hunter2"},
		`{"db_password": "hun\"ter2", "x": 1}`:             {`hun"ter2`},
		"password: &anchor hunter2 # no":                   {"hunter2"},
		"password: |\n  hunter2\n":                         {"hunter2"},
		"PASSWORD = 'hunter2'":                             {"hunter2"},
		"{user: joe, secret: hunter2, x: 1}":               {"hunter2"},
		"api_token: ghp_0123456789":                        {"ghp_0123456789"},
		"url: https://joe:hunter2@h/x":                     {"hunter2"},
		"https://h/x?X-Amz-Signature=0123%2Fabc&b=cc":      {"0123%2Fabc", "0123/abc"},
		"pw: hunter2":                                      {"hunter2"},
		`{"pass": "hunter2"}`:                              {"hunter2"},
		"dsn: host=h user=joe sslmode=x":                   {"host=h user=joe sslmode=x"},
		"Authorization: Bearer abc.def-0123":               {"abc.def-0123"},
		"sent 'Basic am9lOmh1bnRlcjI='":                    {"am9lOmh1bnRlcjI="},
		"credentials: hunter2hunter2":                      {"hunter2hunter2"},
		"sig: Hunter2Zq9Xw":                                {"Hunter2Zq9Xw"},
		"X-SAS: Hunter2Zq9Xw":                              {"Hunter2Zq9Xw"},
		"auth_2: Hunter2Zq9Xw":                             {"Hunter2Zq9Xw"},
		"my key: 0123456789abcdef0123456789abcdef":         {"0123456789abcdef0123456789abcdef"},
		"A: {secret: true, default: hunter2}":              {"hunter2"},
		"A:\n  default: 'hunter2'\n  secret: yes":          {"hunter2"},
		`{"A": {"secret": true, "default": "hunter2"}`:     {"hunter2"},
		"http://joe:hunter2h/x and hunter2345@h.example/x": {"hunter2h", "hunter2345"},
		"PGPASSWORD=hunter2hunter2 psql host=h1234567":     {"hunter2hunter2"},
		// What only looks like it.
		"A: {secret: false, default: hunter2}\nB: {default: hunter2}":                                      nil,
		"passengers: hunter2\nkey: order_2024_id\nauthor: Hunter2Zq9Xw\nkeyboard: Hunter2Zq9Xw\nsignal: X": nil,
		"{key: r.order_key, sig: 12, on: key == l.key, session: Session_12.csv, key: 2024-01-01}":          nil,
		"read_token_2 basic authentication bearer of news":                                                 nil,
		"columns: {token: int, password: string, api_key: datetime 2006-01-02}":                            nil,
		"token: token_type":             nil,
		"{value: r.password}":           nil,
		"password: r.password":          nil,
		"API_TOKEN: {secret: true}":     nil,
		"unique: order_key_2024":        nil,
		"password: '{password|string}'": nil,
		"password_count: 3":             nil,
		"on: token == l.token":          nil,
	} {
		k := New()
		k.Learn(text)
		got := make([]string, 0, len(k.shown))
		for s := range k.shown {
			got = append(got, s)
		}
		for _, s := range secrets {
			require.Contains(t, got, s, text)
		}
		if secrets == nil {
			require.Empty(t, got, text)
		}
	}
}

func TestWithoutKnowledge(t *testing.T) {
	t.Parallel()
	var k *Known
	k.Add("hunter2", "x")
	k.Learn("password: hunter2")
	require.Equal(t, "hunter2 at https://u:xxxxx@h/", k.Text("hunter2 at https://u:p@h/"))
	require.NoError(t, k.Fault(nil))
}

func TestFaultKeepsKindAndPlace(t *testing.T) {
	t.Parallel()
	k := New()
	k.Add("hunter2", Mask)
	in := &fault.Error{Kind: fault.UserData, Place: fault.Place{File: "a.csv", Line: 3, Value: "hunter2", Raw: "hunter2"},
		Message: "bad", Err: errors.New("got hunter2")}
	out := fault.Of(k.Fault(fmt.Errorf("node x: %w", in)))
	require.Equal(t, fault.UserData, out.Kind)
	require.Equal(t, fault.Place{File: "a.csv", Line: 3, Value: Mask, Raw: Mask}, out.Place)
	require.NotContains(t, out.Error(), "hunter2")
	plain := errors.New("nothing to hide")
	require.Same(t, plain, k.Fault(plain))
}

func TestWriter(t *testing.T) {
	t.Parallel()
	k := New()
	var out strings.Builder
	w := k.Writer(&out)
	k.Add("hunter2", Mask) // also what is learnt later
	n, err := fmt.Fprintln(w, "a hunter2 b")
	require.NoError(t, err)
	require.Equal(t, len("a hunter2 b\n"), n)
	require.Equal(t, "a xxxxx b\n", out.String())
}

func TestWriterIsForSeveralAtOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	w := New().Writer(&out)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 100 {
				_, _ = io.WriteString(w, "a line\n")
			}
		})
	}
	writers.Wait()
	require.Equal(t, strings.Repeat("a line\n", 800), out.String())
}
