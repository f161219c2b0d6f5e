package python

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a program's results follow from beside it: the interpreter, and what the
// code imports, wherever it does.
func TestCheckNamesTheSurroundings(t *testing.T) {
	eachInterpreter(t, func(t *testing.T, interpreter string) {
		dir := t.TempDir()
		write := func(name, text string) {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		write("near.py", "import far\n\ndef f(n):\n    return far.g(n)\n")
		write("far.py", "def g(n):\n    from box.inner import h\n    return h(n)\n")
		write("box/__init__.py", "")
		write("box/inner.py", "from . import other\n\ndef h(n):\n    return n\n")
		write("box/other.py", "")
		check := func(text string) map[string]string {
			t.Helper()
			pool := newTestPool(t, Config{Interpreter: interpreter, Size: 1})
			found, err := pool.Check(t.Context(), intProgram("f(r.n)", text))
			require.NoError(t, err)
			require.Contains(t, found["python"], "3.")
			return found
		}
		path := "import sys\nsys.path.insert(0, " + `"` + dir + `"` + ")\n"
		plain := check("import math, json\n\ndef f(n):\n    return math.floor(n)\n")
		require.Len(t, plain, 1, "the standard library is the interpreter's")
		before := check(path + "def f(n):\n    import near\n    return near.f(n)\n")
		require.Contains(t, before, "module near")
		require.Contains(t, before, "module far")
		require.Contains(t, before, "module box")
		require.NotContains(t, before, Doubt)
		require.Equal(t, before, check(path+"def f(n):\n    import near\n    return near.f(n)\n"), "the same each time")
		write("box/other.py", "x = 1\n")
		after := check(path + "def f(n):\n    import near\n    return near.f(n)\n")
		require.NotEqual(t, before["module box"], after["module box"])
		require.Equal(t, before["module far"], after["module far"])
	})
}

// Code whose results may be others each time is told from code whose are not.
func TestCheckDoubts(t *testing.T) {
	pool := newTestPool(t, Config{Interpreter: "python3", Size: 1})
	for text, want := range map[string]string{
		"def f(n):\n    return n\n": "",
		"import datetime\n\ndef f(n):\n    return datetime.date(2024, 1, 1).day\n":                          "",
		"from datetime import date\n\ndef f(n):\n    return date.today().day\n":                             "today (line 4)",
		"import datetime\n\ndef f(n):\n    return datetime.datetime.now().day\n":                            "now (line 4)",
		"import time\n\ndef f(n):\n    return int(time.strftime('%Y'))\n":                                   "strftime (line 4)",
		"from time import ctime\n\ndef f(n):\n    return len(ctime())\n":                                    "ctime (line 1)",
		"import datetime\n\ndef f(n):\n    return int(datetime.date(2024, 1, 1).strftime('%Y'))\n":          "",
		"class np:\n    datetime64 = str\n\ndef f(n):\n    return len(np.datetime64('now'))\n":              "now (line 5)",
		"class np:\n    load = len\n\ndef f(n):\n    return np.load('prices.npy')\n":                        "load (line 5)",
		"def f(n):\n    import linecache\n    return len(linecache.getline('x', n))\n":                      "linecache (line 2)",
		"import random\n\ndef f(n):\n    return random.randint(1, n)\n":                                     "random (line 1)",
		"from random import Random\n\ndef f(n):\n    return n\n":                                            "random (line 1)",
		"import time\n\ndef f(n):\n    return int(time.time())\n":                                           "time (line 4)",
		"from time import time_ns\n\ndef f(n):\n    return time_ns()\n":                                     "time_ns (line 1)",
		"def f(n):\n    with open('x') as file:\n        return int(file.read())\n":                         "open (line 2)",
		"import os\n\ndef f(n):\n    return len(os.environ)\n":                                              "environ (line 4)",
		"from time import time\n\ndef f(n):\n    return int(time())\n":                                      "time (line 1)",
		"from datetime import time\n\ndef f(n):\n    return time(3).hour\n":                                 "",
		"import locale\n\ndef f(n):\n    locale.setlocale(locale.LC_ALL, '')\n    return n\n":               "locale (line 1)",
		"from zoneinfo import ZoneInfo\n\ndef f(n):\n    return len(str(ZoneInfo('Asia/Almaty')))\n":        "zoneinfo (line 1)",
		"from concurrent.futures import ThreadPoolExecutor\n\ndef f(n):\n    return n\n":                    "concurrent (line 1)",
		"import os.path\n\ndef f(n):\n    return len(os.path.expanduser('~'))\n":                            "expanduser (line 4)",
		"def f(n):\n    return id(object()) + n\n":                                                          "id (line 2)",
		"def f(id):\n    return id + 1\n":                                                                   "",
		"def f(n):\n    import os.path\n    return int(os.path.exists('x'))\n":                              "exists (line 3)",
		"class np:\n    class random:\n        normal = int\n\ndef f(n):\n    return np.random.normal(n)\n": "random (line 6)",
		"import pathlib\n\ndef f(n):\n    return len(pathlib.Path('x').read_text())\n":                      "read_text (line 4)",
		"def f(n):\n    def g():\n        return __import__('secrets').randbits(3)\n    return n":           "__import__ (line 3)",
	} {
		found, err := pool.Check(t.Context(), intProgram("f(r.n)", text))
		require.NoError(t, err)
		require.Equal(t, want, found[Doubt], text)
	}
	found, err := pool.Check(t.Context(), intProgram("int(__import__('time').time())", "def f(n):\n    return n\n"))
	require.NoError(t, err)
	require.Equal(t, "time (line 1)", found[Doubt], "an expression counts as well")
}
