package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// TestChaosNothingShowsSecrets drives every command, with secrets in every place that a
// script, its files, its parameters and the command line have for one, and looks for
// them in all that is printed and stored. Commands fail or not: it is their texts that
// count.
func TestChaosNothingShowsSecrets(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "there is no "+r.URL.String()+" for "+r.Header.Get("Authorization"), http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	places := secretPlaces(host)
	maps.Copy(places, oddSecretPlaces(host))
	t.Setenv("ODD_TOKEN", oddSecret)
	t.Setenv("ODD_URL", "http://joe:"+oddSecret+"@"+host+"/hook")
	t.Setenv("OPENLINEAGE_API_KEY", oddSecret)
	t.Setenv("API_TOKEN", secretMark+"/e+v %1")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretMark+"aws")
	one := effort.Of(3*secretSample, secretSample, 1) // of so many
	for i, name := range slices.Sorted(maps.Keys(places)) {
		if place := places[name]; i%one == time.Now().YearDay()%one {
			t.Run(name, func(t *testing.T) {
				s := newSecretSession(t, place.files)
				for _, args := range append(place.commands, secretCommands...) {
					s.run(args)
				}
				s.requireClean()
			})
		}
	}
}

// secretSample: one of so many places in make test, others on other days.
const secretSample = 14

// secretMark is part of every secret here, and of nothing else.
const secretMark = "hunter2zMARKz9"

// oddSecret has what ends or begins the parts of addresses, headers and lines, and oddPieces what it falls into there.
const oddSecret = "hQ7aa@zMb8bb:kZ9cc/Pw4dd?Vr5ee#Xu6ff%hT2gg iN3hh&jM8ii=tB4jj'oK5kk\"wQ6ll\\eviltwinned\nyC7mm"

var oddPieces = strings.FieldsFunc(oddSecret, func(c rune) bool { return strings.ContainsRune("@:/?#% &='\"\\\n", c) })

// oddSecretPlaces are positions of a secret that is taken apart where it is not written as one component.
func oddSecretPlaces(host string) map[string]secretPlace {
	quoted, _ := json.Marshal(oddSecret) // which YAML reads, too
	q, places := string(quoted), map[string]secretPlace{}
	const declared = "environment: {ODD_TOKEN: {secret: true}, ODD_URL: {secret: true}}\n"
	const reads = "nodes:\n  read: {type: file_table, r: {urls: [in.csv], types: {}}, w: t}\n"
	for name, in := range map[string]string{
		"password": "http://joe:{env.ODD_TOKEN}@" + host + "/x.csv", "user": "http://{env.ODD_TOKEN}:pw@" +
			host + "/x.csv",
		"login": "http://{env.ODD_TOKEN}@" + host + "/x.csv", "host": "http://{env.ODD_TOKEN}/x.csv",
		"port": "http://" +
			host + "{env.ODD_TOKEN}/x.csv",
		"path": "http://" + host + "/{env.ODD_TOKEN}/x.csv", "parameter": "http://" + host +
			"/x.csv?q={env.ODD_TOKEN}&b=1",
		"query": "http://" + host + "/x.csv?{env.ODD_TOKEN}", "fragment": "http://" + host + "/x.csv#{env.ODD_TOKEN}",
		"sftp": "sftp://joe:{env.ODD_TOKEN}@" + host + "/x.csv",
	} {
		places["odd, input, "+name] = secretPlace{files: map[string]string{"script.yaml": declared +
			strings.Replace(reads,
				"in.csv", fmt.Sprintf("%q", in), 1)}}
		places["odd, output, "+name] = secretPlace{files: map[string]string{"script.yaml": declared + reads +
			"  write: {type: table_file, r: t, w: {url_template: " + fmt.Sprintf("%q", in) + ", columns: [id]}}\n"}}
	}
	for _, scheme := range []string{"postgres", "mysql"} {
		for name, in := range map[string]string{"password": "u:{env.ODD_TOKEN}@127.0.0.1:1/d",
			"user": "{env.ODD_TOKEN}@127.0.0.1:1/d", "host": "{env.ODD_TOKEN}/d",
			"database": "u@127.0.0.1:1/{env.ODD_TOKEN}", "query": "u@127.0.0.1:1/d?application_name={env.ODD_TOKEN}"} {
			// what is asked for when the script is read fails once, and what a run asks is tried again
			columns := "types: {}"
			if name == "password" {
				columns = "columns: {v: int}"
			}
			places["odd, "+scheme+", "+name] = secretPlace{files: map[string]string{"script.yaml": declared +
				"nodes:\n  read: {type: file_table, r: {urls: [\"" + scheme + "://" + in + "\"], table: x, " + columns +
				"}, w: t}\n" +
				"  write: {type: table_file, r: t, w: {url_template: \"" + scheme + "://" + in +
				"\", table: y, mode: replace}}\n"},
				commands: [][]string{{"validate", "script.yaml", "--connect"}}}
		}
	}
	hook := func(text string) secretPlace {
		return secretPlace{files: map[string]string{"script.yaml": declared + "notify:\n  - " + text + "\n" + reads},
			commands: [][]string{{"hooks", "test", "script.yaml"}, {"hooks", "test", "script.yaml", "--event", "done"}}}
	}
	const on = "on: [done, failed], timeout: 2s, "
	places["odd, hook, all of the address"] = hook("{" + on + "url: \"{env.ODD_URL}\"}")
	places["odd, hook, address"] = hook("{" + on + "url: \"http://joe:{env.ODD_TOKEN}@" + host +
		"/{env.ODD_TOKEN}?q={env.ODD_TOKEN}\"}")
	places["odd, hook, host"] = hook("{" + on + "url: \"http://{env.ODD_TOKEN}/x\"}")
	places["odd, hook, header"] = hook("{" + on + "url: \"http://" + host +
		"/x\", headers: {X-Key: \"a {env.ODD_TOKEN}\"}, secret: \"{env.ODD_TOKEN}\"}")
	places["odd, hook, command"] = hook("{" + on +
		"command: [sh, -c, 'echo \"$ODD_TOKEN\"; env; exit 1'], environment: [ODD_TOKEN]}")
	for _, key := range []string{"password", "api_token", "db_pw", "passphrase"} {
		use := strings.Replace(reads, "in.csv", `"{`+key+`}.csv"`, 1)
		places["odd, params, "+key] = secretPlace{files: map[string]string{"script.yaml": use,
			"params.yaml": key + ": " + q +
				"\n", "block.yaml": key + ": |\n  " + strings.ReplaceAll(oddSecret, "\n", "\n  ") + "\n"},
			commands: [][]string{{"run", "script.yaml", "--params", "params.yaml", "-v"},
				{"run", "script.yaml", "--params", "block.yaml", "--json"},
				{"explain", "script.yaml", "--params", "params.yaml"}, {"run", "script.yaml", "--param",
					key + "=" + oddSecret, "--json"}, {"retry", "last"}, {"why"}, {"show", "--json"}}}
	}
	places["odd, default of a secret"] =
		secretPlace{files: map[string]string{"script.yaml": "environment: {TOK: {secret: true, default: " + q +
			"}}\n" + reads}}
	places["odd, environments"] = secretPlace{files: map[string]string{
		"script.yaml": "environment: {X: {secret: true}, ODD_TOKEN: {}}\n" + strings.Replace(reads, "in.csv",
			"http://joe:{env.X}@"+host+"/{env.ODD_TOKEN}", 1),
		"odd.txt": oddSecret,
		"thalweg.yaml": "environments:\n  a: {env: {X: {file: odd.txt}, ODD_TOKEN: {variable: ODD_TOKEN}}}\n  b: " +
			"{values: {password: " + q + "}}\n  c: {env: {PASSWORD: " + q + "}}\n"},
		commands: [][]string{{"run", "script.yaml", "--env", "a", "-v"}, {"run", "script.yaml", "--env", "a", "--json"},
			{"runs", "--env", "b"}, {"runs", "--env", "c", "--json"}, {"show", "--env", "a", "--json"}}}
	places["odd, services"] = secretPlace{files: map[string]string{"script.yaml": strings.Replace(reads, "in.csv",
		"s3://bucket/x.csv", 1)}, commands: [][]string{
		{"run", "script.yaml", "--s3-endpoint", "http://joe:" + oddSecret + "@" + host},
		{"run", "script.yaml", "--openlineage", "http://joe:" + oddSecret + "@" + host, "-v"},
		{"run", "script.yaml", "--openlineage", "http://" + host + "/x?token=" + url.QueryEscape(oddSecret), "-v"},
		{"doctor"}}}
	for name, text := range map[string]string{
		"broker": "state: {directory: s}\nparts: {directory: p}\nqueue: {rabbitmq: {url: " +
			"\"amqp://u:{env.ODD_TOKEN}@127.0.0.1:1/\"}}\n",
		"vhost": "state: {directory: s}\nparts: {directory: p}\nqueue: {rabbitmq: {url: " +
			"\"amqp://u:p@{env.ODD_TOKEN}/{env.ODD_TOKEN}\"}}\n",
		"cassandra": "state: {cassandra: {hosts: [\"127.0.0.1:1\"], username: u, password: " +
			"\"{env.ODD_TOKEN}\"}}\nparts: {cassandra: {}}\n",
		"s3": "state: {directory: s}\nparts: {s3: {url: \"s3://b/{env.ODD_TOKEN}\", endpoint: " +
			"\"http://joe:{env.ODD_TOKEN}@" +
			host + "\", access_key: abcdefgh, " +
			"secret_key: \"{env.ODD_TOKEN}\"}}\n",
	} {
		places["odd, cluster, "+name] = secretPlace{files: map[string]string{"script.yaml": reads,
			"c.yaml": "version: 1\n" + text},
			commands: [][]string{{"doctor", "--cluster", "c.yaml"}, {"doctor", "--cluster", "c.yaml", "--json"},
				{"cluster", "status", "--cluster", "c.yaml"}, {"runs", "--cluster", "c.yaml", "--json"}}}
	}
	return places
}

// secretCommands are run in every place.
var secretCommands = [][]string{
	{"validate", "script.yaml"}, {"validate", "script.yaml", "--json"}, {"validate", "script.yaml", "--lenient"},
	{"explain", "script.yaml"}, {"explain", "script.yaml", "--json"}, {"graph", "script.yaml"},
	{"graph", "script.yaml", "--format", "dot"},
	{"test", "script.yaml"}, {"test", "script.yaml", "--json"}, {"fmt", "--diff", "script.yaml"},
	{"run", "script.yaml", "-v"}, {"run", "script.yaml", "--json"}, {"run", "script.yaml", "--resume", "-v"},
	{"runs"}, {"runs", "--json"}, {"nodes"}, {"nodes", "--json"}, {"batches", "read"}, {"batches", "read", "--json"},
	{"batches", "calc"},
	{"checks"}, {"checks", "--json"}, {"sql", "SELECT * FROM t"}, {"sql", "SELECT * FROM nowhere"}, {"schema"},
	{"version"},
}

type secretPlace struct {
	files    map[string]string
	commands [][]string // beside those of every place
}

// secretPlaces are all the positions of a secret.
func secretPlaces(host string) map[string]secretPlace {
	m := secretMark
	places := map[string]secretPlace{}
	addresses := map[string]string{
		"password":       "http://joe:" + m + "@" + host + "/x.csv",
		"odd password":   "http://joe:" + m + "@%zz/p?q@" + host + "/x.csv",
		"token":          "http://" + m + "@" + host + "/x.csv",
		"signature":      "http://" + host + "/x.csv?X-Amz-Date=1&X-Amz-Signature=" + m,
		"query":          "http://" + host + "/x.csv?token=" + m + "&b=2",
		"fragment":       "http://" + host + "/x.csv?a=1&access_token=" + m + "#top",
		"scheme":         "htps://joe:" + m + "@" + host + "/x.csv",
		"one slash":      "s3:/joe:" + m + "@bucket/x.csv",
		"one slash, sig": "http:/" + host + "/x.csv?sig=" + m,
		"three slashes":  "https:///joe:" + m + "@" + host + "/x.csv",
		"s3":             "s3://joe:" + m + "@bucket/x.csv",
		"s3 query":       "s3://bucket/x.csv?X-Amz-Signature=" + m,
		"sftp":           "sftp://joe:" + m + "@" + host + "/x.csv",
		"no scheme":      "joe:" + m + "@" + host + "/x.csv",
		"no scheme, sig": host + "/x.csv?token=" + m,
		"file":           "file://joe:" + m + "@" + host + "/x.csv",
		"ftp":            "ftp://joe:" + m + "@" + host + "/x.csv",
		"path parameter": "http://" + host + "/x.csv;token=" + m,
		"bare token":     m + "@" + host + "/x.csv",
		"bare, domain":   m + "@host.example/x.csv",
		"forgotten @":    "http://joe:" + m + host + "/x.csv",
		"forgotten, s3":  "s3://joe:" + m + "bucket/x.csv",
		"short names": "http://" + host + "/x.csv?pw=" + m + "1&pass=" + m + "2&sas=" + m + "3&dsn=" + m +
			"4&bearer=" + m + "5",
	}
	for name, a := range addresses {
		q := fmt.Sprintf("%q", a)
		in := "nodes:\n  read: {type: file_table, r: {urls: [" + q + "], columns: {id: int}}, w: t}\n"
		good := "nodes:\n  read: {type: file_table, r: {urls: [in.csv], columns: {id: int}}, w: t}\n"
		places["input, "+name] = secretPlace{files: map[string]string{"script.yaml": in}}
		places["output, "+name] = secretPlace{files: map[string]string{"script.yaml": good +
			"  write: {type: table_file, r: t, w: {url_template: " + q + ", columns: [id]}}\n"}}
		places["same line, "+name] = secretPlace{files: map[string]string{"script.yaml": strings.Replace(in,
			"columns: {id: int}", "columns: {id: itn}, tpes: {}", 1)}}
		places["comment, "+name] = secretPlace{files: map[string]string{"script.yaml": strings.Replace(good,
			"int}}, w: t}", "itn}}, w: t} # was "+a, 1)}}
		places["python, "+name] = secretPlace{files: map[string]string{"script.yaml": good +
			"  calc: {type: table_custom_tfm_table, custom_proc_type: py_calc, r: t, p: {python_code_urls: [" + q +
			"], calculated_fields: {y: {expression: f(r.id), type: int}}}, w: u}\n"}}
		places["include, "+name] = secretPlace{files: map[string]string{"script.yaml": "include: [" + q + "]\n" + good}}
		places["parameter, "+name] = secretPlace{
			files: map[string]string{"script.yaml": strings.Replace(good, "in.csv", `"{where}"`, 1),
				"params.yaml": "where: " + q + "\n"},
			commands: [][]string{{"run", "script.yaml", "--params", "params.yaml", "-v"},
				{"explain", "script.yaml", "--params",
					"params.yaml"}, {"run", "script.yaml", "--param", "where=" + a, "--json"},
				{"validate", "script.yaml", "--params", a}}}
		places["arguments, "+name] = secretPlace{files: map[string]string{"script.yaml": good}, commands: [][]string{
			{"infer", a}, {"infer", a, "--json"}, {"infer", a, "-o", "x.yaml"}, {"validate", a}, {"run", a, "-v"},
			{"run", a, "--json"}, {"graph", a}, {"test", a}, {"fmt", a},
			{"run", "script.yaml", "--note", "as " + a}, {"run", "script.yaml", "--memory", a},
			{"run", "script.yaml", "--s3-endpoint", a, "--ca-file", a}, {"run", "script.yaml", "--unknown=" + a},
			{"nowhere", a}, {"run", "script.yaml", "--python", a}, {"run", "script.yaml", "--start", a},
			{"sql", "SELECT * FROM '" + a + "'"}, {"batches", a}, {"run", "script.yaml", "--workspace", a},
			{"run", "script.yaml", "--sftp-key", "joe=" + a}, {"test", "script.yaml", "--tests", a},
			{"nodes", "--run", a}}}
	}
	keyed := map[string]string{
		"plain":      "password: " + m,
		"quoted":     `api_token: "` + m + `"`,
		"escaped":    `db_password: "` + m + `\" \\ x"`,
		"single":     "secret_key: '" + m + "''x'",
		"anchor":     "password: &pw " + m,
		"comment":    "tpe: x # password: " + m,
		"block":      "password: |\n      " + m,
		"flow":       "settings: {user: joe, password: " + m + "}",
		"json":       `"passwd": "` + m + `"`,
		"with value": "db_password: {value: " + m + "}",
	}
	for _, name := range []string{"pw", "pass", "db_pw", "authorization", "auth", "bearer", "sas",
		"dsn", "key", "apikey", "sig", "signature", "credential", "credentials", "x-api-key", "session"} {
		keyed["name "+name] = name + ": " + m
	}
	keyed["header"] = `authorization: "Bearer ` + m + `"`
	keyed["header in a text"] = `desc: "curl -H 'X: Bearer ` + m + `'"`
	for name, line := range keyed {
		bad := "nodes:\n  read:\n    type: file_table\n    " + line +
			"\n    r: {urls: [in.csv], columns: {id: int}}\n    w: t\n"
		good := "nodes:\n  read: {type: file_table, r: {urls: [in.csv], columns: {id: int}}, w: t}\n"
		use := strings.Replace(good, "in.csv", `"{password|number}{db_password}{api_token}{passwd}"`, 1)
		places["key, "+name] = secretPlace{files: map[string]string{"script.yaml": bad},
			commands: [][]string{{"run", "script.yaml", "--lenient", "-v"}}}
		places["params, "+name] = secretPlace{files: map[string]string{"script.yaml": use,
			"params.yaml": strings.ReplaceAll(line, "\n      ", "\n  ") + "\n"},
			commands: [][]string{{"run", "script.yaml", "--params", "params.yaml", "-v"},
				{"validate", "script.yaml", "--params",
					"params.yaml", "--json"}, {"fmt", "--diff", "params.yaml"}}}
		places["tests, "+name] = secretPlace{files: map[string]string{"script.yaml": good,
			"script.test.yaml": "params:\n  " +
				line + "\ntests:\n  - {name: a, node: read, given: {read: \"id\\nx\\n\"}, expect: []}\n"}}
	}
	places["json script"] = secretPlace{files: map[string]string{"script.yaml": "x",
		"script.json": `{"nodes": {"read": {"type": "file_tble", "password": "` + m +
			`", "r": {"urls": ["http://joe:` + m +
			`@h\u0026/x?token=` + m + `"]}}}}`},
		commands: [][]string{{"validate", "script.json"}, {"run", "script.json"}, {"fmt", "--diff", "script.json"},
			{"validate", "script.json", "--json"}}}
	places["param of the command line"] =
		secretPlace{files: map[string]string{"script.yaml": "nodes:\n  read: {type: file_table, r: {urls: " +
			"[\"{password}.csv\"], columns: {id: int}}, w: t}\n"},
			commands: [][]string{{"run", "script.yaml", "--param", "password=" + m, "-v"},
				{"run", "script.yaml", "--param=password=" + m, "--json"}, {"explain", "script.yaml", "--param",
					"password=" + m}}}
	declared := "environment: {API_TOKEN: {secret: true}}\nnodes:\n  read: {type: file_table, r: {urls: [%s], " +
		"columns: {id: int}}, w: t}\n"
	const reads = "nodes:\n  read: {type: file_table, r: {urls: [in.csv], types: {}}, w: t}\n"
	for name, text := range map[string]string{
		"flow":     "environment: {TOK: {secret: true, default: " + m + "}}\n",
		"block":    "environment:\n  TOK:\n    default: \"" + m + "\"\n    # a comment\n    secret: true\n",
		"mistyped": "environment: {TOK: {secret: treu, default: " + m + "}}\n",
		"broken":   "environment: {TOK: {default: " + m + ", secret: true}\n",
	} {
		places["default of a secret, "+name] = secretPlace{files: map[string]string{"script.yaml": text + reads}}
	}
	places["note"] = secretPlace{files: map[string]string{"script.yaml": reads}, commands: [][]string{
		{"run", "script.yaml", "--note", "Authorization: Bearer " + m},
		{"run", "script.yaml", "--note", "pw: " + m + " apikey=" + m},
		{"run", "script.yaml", "--note", "key " + m + "@" + host + "/x"},
		{"run", "script.yaml", "--note", "PGPASSWORD=" + m + " psql"},
		{"run", "script.yaml", "--param", "pw=" + m, "--note", "with " + m}}}
	places["declared"] = secretPlace{files: map[string]string{"script.yaml": fmt.Sprintf(declared, `"http://`+host+
		`/{env.API_TOKEN}/x.csv"`)}}
	places["declared, a password"] = secretPlace{files: map[string]string{"script.yaml": fmt.Sprintf(declared,
		`"http://joe:{env.API_TOKEN}@`+host+`/x.csv"`)}}
	places["declared, a query"] = secretPlace{files: map[string]string{"script.yaml": fmt.Sprintf(declared,
		`"http://`+host+`/x.csv?q={env.API_TOKEN}"`)}}
	places["declared, misplaced"] = secretPlace{files: map[string]string{"script.yaml": fmt.Sprintf(declared,
		`"{env.API_TOKEN}.csv"`)}}
	calc := "nodes:\n  read: {type: file_table, r: {urls: [in.csv], columns: {id: int}}, w: t}\n" +
		"  calc: {type: table_custom_tfm_table, custom_proc_type: py_calc, r: t, p: {python_code_urls: [f.py], " +
		"calculated_fields: {y: {expression: f(r.id), type: int}}}, w: u}\n"
	for name, code := range map[string]string{
		"traceback": "def f(n):\n  password = \"" + m + "\"; return n // 0\n",
		"message":   "PASSWORD = '" + m + "'\ndef f(n): raise ValueError('not let in with ' + PASSWORD)\n",
		"encoded": "import base64\nPASSWORD = '" + m +
			"'\ndef f(n): raise ValueError('Basic ' + base64.b64encode(b'joe:' + PASSWORD.encode()).decode())\n",
		"address": "def f(n): raise ValueError('http://joe:" + m + "@h/x')\n",
		"syntax":  "password = '" + m + "' +\ndef f(n): return n\n",
		"printed": "def f(n):\n  print('http://joe:" + m + "@h/x', flush=True)\n  return n // 0\n",
		"environment": "import os\ndef f(n): raise ValueError(repr(dict(os.environ)) + open('/proc/%d/environ' % " +
			"os.getppid()).read().replace('\\0', ' ') + ' '.join(open('/proc/%d/cmdline' % " +
			"os.getppid()).read().split('\\0')))\n",
	} {
		places["formula, "+name] = secretPlace{files: map[string]string{"script.yaml": calc, "f.py": code}}
	}
	return places
}

// secretSession is a directory in which commands are run.
type secretSession struct {
	t     *testing.T
	dir   string
	given map[string]bool
	said  map[string]string // what commands printed
}

func newSecretSession(t *testing.T, files map[string]string) *secretSession {
	t.Helper()
	s := &secretSession{t: t, dir: t.TempDir(), given: map[string]bool{}, said: map[string]string{}}
	t.Chdir(s.dir)
	files["in.csv"] = "id\n1\n"
	for name, text := range files {
		s.given[name] = true
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return s
}

func (s *secretSession) run(args []string) {
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	code := run(ctx, args, &console{stdout: &out, stderr: &out})
	s.said[fmt.Sprintf("%q (exit %d)", args, code)] = out.String()
}

func (s *secretSession) requireClean() {
	s.t.Helper()
	printed := 0
	for command, text := range s.said {
		printed += len(text)
		requireNoSecret(s.t, command, text)
	}
	require.NotZero(s.t, printed)
	require.NoError(s.t, filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(s.dir, path)
		if err != nil || s.given[rel] {
			return err
		}
		requireNoSecret(s.t, "name of a file", rel)
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			requireNoSecret(s.t, rel, string(text))
		}
		return nil
	}))
}

// requireNoSecret looks for the mark in the ways in which it may be written.
func requireNoSecret(t *testing.T, what, text string) {
	t.Helper()
	quoted, err := json.Marshal(secretMark)
	require.NoError(t, err)
	forms := []string{secretMark, url.QueryEscape(secretMark), strings.Trim(string(quoted), `"`),
		hex.EncodeToString([]byte(secretMark))}
	for shift := range 3 {
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + secretMark))[4:16])
	}
	for _, form := range append(forms, oddPieces...) {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("%s shows a secret: …%s…", what, text[max(0, i-200):min(len(text), i+60)])
			return
		}
	}
}
