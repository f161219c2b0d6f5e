package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

var (
	codeBlocks = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpans  = regexp.MustCompile("`[^`\n]*`")
	mdLinks    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"`)
	headings   = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
)

// mdPages are the pages of the project by their paths from its folder, without code.
// Results of measurements are written by the program that measures, and others write what packages have.
func mdPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	root := os.DirFS("../..")
	require.NoError(t, fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || path == "bench/results" ||
			path == "bench/data" || path == "bin" || path == "demo" || path == "ui/node_modules" ||
			path == "internal/web/dist"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := fs.ReadFile(root, path)
		pages[path] = codeBlocks.ReplaceAllString(string(text), "")
		return err
	}))
	return pages
}

// anchors are the names that a page's headings get where pages are shown on the web.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	for _, m := range headings.FindAllStringSubmatch(page, -1) {
		title := mdLinks.ReplaceAllString(strings.ReplaceAll(m[1], "[", ""), "")
		out[strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, title)] = true
	}
	return out
}

// linksOf lists where a page leads to within the project: files, with their anchors behind #.
func linksOf(path, page string) []string {
	var out []string
	for _, m := range mdLinks.FindAllStringSubmatch(codeSpans.ReplaceAllString(page, ""), -1) {
		target := m[1] + m[2]
		if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		file, anchor, hasAnchor := strings.Cut(target, "#")
		to := path
		if file != "" {
			to = filepath.Join(filepath.Dir(path), file)
		}
		if hasAnchor {
			to += "#" + anchor
		}
		out = append(out, to)
	}
	return out
}

// No link of a page is dead: neither its file nor its heading.
func TestLinksOfPages(t *testing.T) {
	t.Parallel()
	pages := mdPages(t)
	require.Greater(t, len(pages), 80)
	for path, page := range pages {
		for _, link := range linksOf(path, page) {
			file, anchor, _ := strings.Cut(link, "#")
			_, err := os.Stat(filepath.Join("../..", file))
			require.NoError(t, err, "%s links to %s", path, link)
			if anchor != "" {
				require.True(t, anchors(pages[file])[anchor], "%s links to %s, which has no such heading", path, link)
			}
		}
	}
}

// The index names each page of docs, and from the README every page can be reached.
func TestEveryPageIsReached(t *testing.T) {
	t.Parallel()
	pages := mdPages(t)
	named := linksOf("docs/README.md", pages["docs/README.md"])
	for path := range pages {
		if dir := filepath.Dir(path); path != "docs/README.md" && (dir == "docs" || dir == "docs/nodes") {
			require.True(t, slices.ContainsFunc(named,
				func(link string) bool { return strings.HasPrefix(link+"#", path+"#") }),
				"docs/README.md does not name %s", path)
		}
	}
	reached := map[string]bool{"README.md": true}
	for queue := []string{"README.md"}; len(queue) > 0; queue = queue[1:] {
		for _, link := range linksOf(queue[0], pages[queue[0]]) {
			file, _, _ := strings.Cut(link, "#")
			for path := range pages { // a folder shows its pages
				if (path == file || filepath.Dir(path) == file) && !reached[path] {
					reached[path], queue = true, append(queue, path)
				}
			}
		}
	}
	for path := range pages {
		require.True(t, reached[path], "no way leads from README.md to %s", path)
	}
}

func TestAnchorsAreThoseOfTheWeb(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]bool{"infer-a-script-from-files": true, "table_custom_tfm_table-py_calc": true,
		"what-run---json-says": true, "keys-and-more": true},
		anchors("# infer: a script from files\n## table_custom_tfm_table: py_calc\ntext\n### What `run --json` "+
			"says\n# Keys [and](x.md) more\n"))
}
