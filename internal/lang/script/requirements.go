package script

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/document"
)

// Limits of a requirements file.
const (
	MaxRequirementsBytes = 4 << 20
	MaxRequirementsCount = 10_000
)

// Requirement is a package that the Python code of a script needs, as a
// requirements file or one made by pip freeze, pip-compile or uv names it.
type Requirement struct {
	Name        string // as package indexes compare names: lower case, with -
	Versions    string // what its version has to be, e.g. ==1.26.4; "": any
	Conditional bool   // for some systems or interpreters only: it need not be there
	At          string // file and line
	terms       []term
}

// term is one condition about a version.
type term struct {
	op      string
	version version
	prefix  bool // ==1.2.*
}

var (
	requirementsShape = &shape{name: "python",
		doc: "What the Python code of the script needs of each machine that runs it.", keys: []key{
			{name: "requirements", form: text(),
				doc: "Requirements or lock file (pip freeze, pip-compile, uv pip compile) whose packages have to be " +
					"installed; nothing is installed."},
		}}

	requirementLine = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(.*)$`)
	requirementTerm = regexp.MustCompile(`^(===|==|!=|<=|>=|~=|<|>)\s*([A-Za-z0-9.!+_-]+?)(\.\*)?$`)
	nameSeparators  = regexp.MustCompile(`[-_.]+`)
	hashOption      = regexp.MustCompile(`\s--hash[= ]\S+`)
)

// python reads what the Python code needs.
func (l *loader) python(ctx context.Context, root *object) {
	e := root.keys["python"]
	if e == nil {
		return
	}
	o := l.object(e.Value, "python", requirementsShape)
	if o == nil {
		return
	}
	v := o.text("requirements")
	if v == nil {
		return
	}
	src := l.fetch(ctx, v.Text, v, o.keyPath("requirements"), MaxRequirementsBytes)
	if src == nil {
		return
	}
	needs, line, err := readRequirements(v.Text, src.Original)
	if err != nil {
		l.ErrorAt(v, o.keyPath("requirements"), "%s:%d: %s", document.Quote(v.Text), line,
			err).Hint = "write NAME==VERSION, a package a line"
		return
	}
	l.script.Requirements = needs
}

// readRequirements reads a requirements file; line is where it cannot be read.
func readRequirements(name, content string) (out []Requirement, line int, err error) {
	lines := strings.Split(content, "\n")
	for i := 0; i < len(lines); i++ {
		line = i + 1
		text := strings.TrimRight(lines[i], "\r \t")
		for strings.HasSuffix(text, `\`) && i+1 < len(lines) {
			i++
			text = strings.TrimSuffix(text, `\`) + " " + strings.Trim(lines[i], "\r \t")
		}
		if text, _, _ = strings.Cut(" "+text, " #"); strings.TrimSpace(text) == "" {
			continue
		}
		text = strings.TrimSpace(hashOption.ReplaceAllString(text, ""))
		if strings.HasPrefix(text, "-") {
			if strings.HasPrefix(text, "--") || strings.HasPrefix(text, "-i ") { // where to install from
				continue
			}
			return nil, line, fmt.Errorf("%s is not supported", document.Quote(text))
		}
		need, err := readRequirement(text)
		if err != nil {
			return nil, line, err
		}
		need.At = fmt.Sprintf("%s:%d", name, line)
		if out = append(out, need); len(out) > MaxRequirementsCount {
			return nil, line, fmt.Errorf("there are more than %d packages", MaxRequirementsCount)
		}
	}
	return out, 0, nil
}

func readRequirement(text string) (Requirement, error) {
	spec, _, conditional := strings.Cut(text, ";")
	m := requirementLine.FindStringSubmatch(strings.TrimSpace(spec))
	if m == nil || strings.HasPrefix(m[2], "@") || strings.Contains(spec, "://") {
		return Requirement{}, fmt.Errorf("%s is not the name of a package with its version", document.Quote(text))
	}
	need := Requirement{Name: PackageName(m[1]), Conditional: conditional,
		Versions: strings.Trim(strings.ReplaceAll(m[2], " ", ""), "()")}
	if need.Versions == "" {
		return need, nil
	}
	for one := range strings.SplitSeq(need.Versions, ",") {
		t := requirementTerm.FindStringSubmatch(one)
		if t == nil {
			return need, fmt.Errorf("%s does not say which versions of %s", document.Quote(one), need.Name)
		}
		need.terms = append(need.terms, term{op: t[1], version: readVersion(t[2]), prefix: t[3] != ""})
	}
	return need, nil
}

// PackageName is the name of a package as package indexes compare names.
func PackageName(name string) string {
	return strings.ToLower(nameSeparators.ReplaceAllString(name, "-"))
}

// Unmet says what is wrong with the version that is installed; "" if nothing is.
// installed is "" if none is.
func (r Requirement) Unmet(installed string) string {
	if installed == "" {
		if r.Conditional {
			return ""
		}
		return fmt.Sprintf("%s%s is not installed", r.Name, r.Versions)
	}
	v := readVersion(installed)
	if slices.ContainsFunc(r.terms, func(t term) bool { return !t.holds(v) }) {
		return fmt.Sprintf("%s%s is wanted, %s is installed", r.Name, r.Versions, installed)
	}
	return ""
}

func (t term) holds(v version) bool {
	switch order := v.compare(t.version); t.op {
	case "===":
		return v.text == t.version.text
	case "==", "!=":
		same := order == 0 && (t.version.local == "" || t.version.local == v.local)
		if t.prefix {
			same = v.begins(t.version.numbers)
		}
		return same == (t.op == "==")
	case "<=":
		return order <= 0
	case ">=":
		return order >= 0
	case "<":
		return order < 0
	case ">":
		return order > 0
	default: // ~=
		return order >= 0 && v.begins(t.version.numbers[:max(len(t.version.numbers)-1, 0)])
	}
}

// version is a version as Python's packages have them: numbers, what comes
// before or behind a release, and a local mark.
type version struct {
	text    string
	numbers []int
	rank    int // of what follows the numbers: dev, a, b, rc, nothing, post
	more    int // its number
	local   string
}

var versionParts = regexp.MustCompile(`^v?(?:\d+!)?(\d+(?:\.\d+)*)[._-]?([a-z]*)[._-]?(\d*)`)

func readVersion(text string) version {
	plain, local, _ := strings.Cut(strings.ToLower(text), "+")
	v := version{text: text, local: local, rank: rankOf("")}
	m := versionParts.FindStringSubmatch(plain)
	if m == nil {
		return v
	}
	for one := range strings.SplitSeq(m[1], ".") {
		n, _ := strconv.Atoi(one) // digits: at worst it is too large to be a version
		v.numbers = append(v.numbers, n)
	}
	v.rank = rankOf(m[2])
	v.more, _ = strconv.Atoi(m[3])
	return v
}

func rankOf(word string) int {
	switch word {
	case "dev":
		return 0
	case "a", "alpha":
		return 1
	case "b", "beta":
		return 2
	case "c", "rc", "pre", "preview":
		return 3
	case "post", "rev", "r":
		return 5
	}
	return 4
}

func (v version) number(i int) int {
	if i < len(v.numbers) {
		return v.numbers[i]
	}
	return 0
}

func (v version) begins(with []int) bool {
	for i, n := range with {
		if v.number(i) != n {
			return false
		}
	}
	return true
}

func (v version) compare(w version) int {
	for i := range max(len(v.numbers), len(w.numbers)) {
		if d := v.number(i) - w.number(i); d != 0 {
			return d
		}
	}
	if v.rank != w.rank {
		return v.rank - w.rank
	}
	return v.more - w.more
}
