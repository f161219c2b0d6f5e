package archtest

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wing is a folder of packages.
type wing struct {
	// may lists the wings, and the packages of other wings, that packages of this one import.
	may string
	// floors orders the packages within the wing, from the lowest: one imports those of floors below its own.
	// An entry stands for the packages below it, too, which may import each other.
	floors []string
}

// wings are the wings by name, as ARCHITECTURE.md has them.
var wings = map[string]wing{
	"base": {may: "base", floors: []string{
		"action allowance progress similar stats", "fault", "awake durable format message secure sqltext calendar",
		"address budget keeper",
		"secret allow", "document", "settings",
	}},
	"lang": {may: "base lang", floors: []string{"expr filespec matrix project starter", "script", "graph"}},
	"io": {may: "base lang io", floors: []string{"database parquetfile remote tableindex unpack", "records resp", "files",
		"outfile inputcache"}},
	"store": {may: "base io/remote store", floors: []string{"cassandra", "state", "parts queue"}},
	"run": {may: "base lang io store run", floors: []string{
		"concurrency gate limit python orders sheet", "engine job", "query", "plan", "coordinator executor reuse sandbox",
		"pipeline",
	}},
	"ops": {may: "base lang io store run ops", floors: []string{
		"chart gc host infer load notify price samples schedule", "bill",
		"clusterconfig compare doctor history lineage metrics serveconfig simulate sweep",
		"capacity causes forecast",
		"planning",
	}},
	"app": {may: "base lang io store run ops app", floors: []string{
		"caller sizing sources tableserver", "access instance", "cluster hub registry serving", "view", "outputs workerprocess",
		"runtime", "inspect", "runner",
		"control worker runs scripts", "diagnosis openlineage peek scheduler", "fleet",
		"benches scripttest", door,
	}},
}

// seams are the packages that others know by the interface of a lower one, and the only ones that may import them.
var seams = map[string]string{
	"store/state/sqlite":    "store/state app/instance app/cluster",
	"store/state/cassandra": "store/state app/instance app/cluster",
	"store/parts/local":     "store/parts app/instance app/cluster",
	"store/parts/cassandra": "store/parts app/instance app/cluster",
	"store/parts/s3":        "store/parts app/instance app/cluster",
	"store/queue/inproc":    "store/queue app/workerprocess",
	"app/access/sqlite":     "app/serving",
	"app/access/cassandra":  "app/serving app/cluster",
	"store/queue/rabbitmq":  "store/queue app/instance app/cluster ops/doctor",
}

// door is the package of a wing that has the wing's own name: it is above all others of it.
const door = "."

// place splits the path of a package below internal into its wing and the package of the wing.
func place(pkg string) (name, top string) {
	name, rest, _ := strings.Cut(pkg, "/")
	top, _, _ = strings.Cut(rest, "/")
	return name, cmp.Or(top, door)
}

// edges are the packages by which people and programs come in, with what they import of the product: the
// application, what it shows, failures and figures.
var edges = map[string]string{
	"cmd/thalweg":        "api apiclient app app/benches app/sizing app/tableserver app/view base/fault base/format web",
	"internal/api":       "app app/access app/view base/fault",
	"internal/apiclient": "app app/view base/fault",
	"internal/web":       "",
}

func (w wing) floor(top string) int {
	return slices.IndexFunc(w.floors, func(list string) bool { return slices.Contains(strings.Fields(list), top) })
}

// wrongArrow says why a package may not import another, or nothing. Both are paths below internal.
func wrongArrow(from, to string) string {
	fromWing, fromTop := place(from)
	toWing, toTop := place(to)
	w := wings[fromWing]
	switch users, seam := seams[to]; {
	case !slices.ContainsFunc(strings.Fields(w.may), func(m string) bool {
		return m == toWing ||
			m == path.Join(toWing, toTop)
	}):
		return "packages of " + fromWing + " import " + w.may
	case seam && !slices.ContainsFunc(strings.Fields(users), func(u string) bool {
		return from == u || u != "app" && strings.HasPrefix(from, u+"/")
	}):
		return "it is known by its interface; " + users + " may import it"
	case fromWing == toWing && fromTop != toTop && w.floor(fromTop) <= w.floor(toTop):
		return "it is no lower floor of " + fromWing
	}
	return ""
}

func TestImportsStayInTheirWings(t *testing.T) {
	used := map[string]bool{}
	for _, dir := range packages(t) {
		pkg, ours := strings.CutPrefix(dir, "internal/")
		name, top := place(pkg)
		if _, edge := edges[dir]; !ours || edge || name == "test" {
			continue // tests may use what they need; see TestEdgesComeInByTheDoor
		}
		require.Contains(t, wings, name, "%s is in no wing", pkg)
		require.GreaterOrEqual(t, wings[name].floor(top), 0, "%s is on no floor of its wing", pkg)
		used[name+"/"+top] = true
		for _, file := range files(t, dir, false) {
			for _, im := range imports(t, file) {
				if to, ours := strings.CutPrefix(im, module+"internal/"); ours {
					if why := wrongArrow(pkg, to); why != "" {
						t.Errorf("%s imports %s: %s", file, to, why)
					}
				}
			}
		}
	}
	for name, w := range wings {
		for _, top := range strings.Fields(strings.Join(w.floors, " ")) {
			require.True(t, used[name+"/"+top], "%s/%s is on a floor and is not there", name, top)
		}
	}
}

// appImportsMost bounds the packages of the product that a package of the wing app imports: one that needs more
// has several subjects.
const appImportsMost = 25

func TestPackagesOfTheAppHaveOneSubject(t *testing.T) {
	for _, dir := range packages(t) {
		if dir != "internal/app" && !strings.HasPrefix(dir, "internal/app/") {
			continue
		}
		used := map[string]bool{}
		for _, file := range files(t, dir, false) {
			for _, im := range imports(t, file) {
				if to, ours := strings.CutPrefix(im, module); ours {
					used[to] = true
				}
			}
		}
		require.LessOrEqual(t, len(used), appImportsMost, "%s imports %d packages of the product: split it by subject",
			dir, len(used))
	}
}

func TestEdgesComeInByTheDoor(t *testing.T) {
	for dir, may := range edges {
		for _, file := range files(t, dir, false) {
			for _, im := range imports(t, file) {
				if to, ours := strings.CutPrefix(im, module+"internal/"); ours {
					require.Contains(t, strings.Fields(may), to, "%s imports it", file)
				}
			}
		}
	}
}
