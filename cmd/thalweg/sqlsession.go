package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/app"
	"thalweg/internal/base/fault"

	"github.com/peterh/liner"
	"golang.org/x/term"
)

// session is an interactive sql: queries end in ; and what begins with \ is for the session itself.
type session struct {
	*sqlCmd
	a       *console
	home    *app.App
	opts    app.Query
	columns map[string][]string // of tables that were completed
	begun   string              // the lines of the query before the one that is typed
}

// sessionHelp is the text that \? prints.
const sessionHelp = `queries end in ; and may have several lines
\tables     tables that can be read by their names; runN.NAME reads those of run N
\d TABLE    columns of a table
\q          ends the session, as Ctrl-D does; Ctrl-C ends a query, or a line
`

// session asks queries until there are no more: with history and completion on a terminal, plainly else.
func (c *sqlCmd) session(ctx context.Context, a *console, home *app.App, opts app.Query) error {
	s := &session{sqlCmd: c, a: a, home: home, opts: opts, columns: map[string][]string{}}
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
		in := bufio.NewScanner(os.Stdin)
		in.Buffer(nil, queryBytesMax)
		return s.talk(ctx, true, func(string) (string, error) {
			if in.Scan() {
				return in.Text(), nil
			}
			if err := in.Err(); err != nil {
				return "", &fault.Error{Kind: fault.Environment, Message: "read the queries from standard input",
					Err: err}
			}
			return "", io.EOF
		})
	}
	line := liner.NewLiner()
	defer line.Close()
	line.SetCtrlCAborts(true)
	line.SetMultiLineMode(true)
	line.SetTabCompletionStyle(liner.TabPrints)
	line.SetWordCompleter(func(text string, at int) (string, []string, string) { return s.complete(ctx, text, at) })
	history := historyFile()
	if f, err := os.Open(history); err == nil {
		_, _ = line.ReadHistory(f) // a session without its history is one, too
		f.Close()
	}
	defer keepHistory(line, history)
	fmt.Fprintln(a.stderr, `queries end in ; and \? says what else there is`)
	return s.talk(ctx, false, func(prompt string) (string, error) {
		text, err := line.Prompt(prompt)
		return text, err
	}, line.AppendHistory)
}

// historyFile returns the path of the file with the lines of earlier sessions; "" if there is no
// place for it.
func historyFile() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "thalweg", "sql_history")
}

// keepHistory writes the lines where only this user reads them.
func keepHistory(line *liner.State, path string) {
	if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return
	}
	_, _ = line.WriteHistory(f) // it is a convenience
	_ = f.Close()
}

// talk reads lines and answers. strict ends it at the first failure: nobody sees it and goes on.
func (s *session) talk(ctx context.Context, strict bool, next func(prompt string) (string, error),
	said ...func(string)) error {
	query := ""
	for ctx.Err() == nil {
		prompt := "sql> "
		if query != "" {
			prompt = "...> "
		}
		s.begun = query
		text, err := next(prompt)
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			query = ""
			continue
		case errors.Is(err, io.EOF):
			if strings.TrimSpace(query) != "" && strict {
				return s.answer(ctx, query)
			}
			return nil
		case err != nil:
			return err
		}
		if query == "" && strings.TrimSpace(text) == "" {
			continue
		}
		if query == "" && strings.HasPrefix(strings.TrimSpace(text), `\`) {
			query = strings.TrimSpace(text) + ";"
		} else if query += text + "\n"; len(query) > queryBytesMax {
			return &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("a query is longer than %d KiB", queryBytesMax>>10)}
		}
		if !strings.HasSuffix(strings.TrimSpace(query), ";") {
			continue
		}
		for _, tell := range said {
			tell(strings.Join(strings.Fields(strings.TrimRight(query, "; \n")),
				" ") + map[bool]string{true: ";"}[query[0] != '\\'])
		}
		one := query
		query = ""
		if one == `\q;` {
			return nil
		}
		if err := s.answer(ctx, one); err != nil {
			if strict || ctx.Err() != nil {
				return err
			}
			if fault.Of(err).Kind == fault.Canceled {
				fmt.Fprintln(s.a.stderr, "the query was interrupted")
				continue
			}
			s.a.report(ctx, err)
		}
	}
	return context.Cause(ctx)
}

// answer answers one query or command. Ctrl-C ends it, and not the session.
func (s *session) answer(ctx context.Context, text string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.a.cancelQuery.Store(&cancel)
	defer s.a.cancelQuery.Store(nil)
	if strings.HasPrefix(text, `\`) {
		return s.command(ctx, strings.Fields(strings.TrimSuffix(text, ";")))
	}
	opts := s.opts
	opts.SQL = text
	return s.ask(ctx, s.a, s.home, opts, s.a.data)
}

// command answers what begins with \.
func (s *session) command(ctx context.Context, words []string) error {
	switch {
	case words[0] == `\?`:
		_, err := io.WriteString(s.a.stdout, sessionHelp)
		return err
	case words[0] == `\tables` || words[0] == `\d` && len(words) == 1:
		tables, err := s.home.Data.Tables(ctx, s.opts.Workspace)
		if err != nil {
			return err
		}
		for _, name := range tables {
			fmt.Fprintln(s.a.stdout, plain(name))
		}
		return nil
	case words[0] == `\d`:
		opts := s.opts
		opts.SQL = "SELECT column_name, column_type FROM (DESCRIBE " + words[1] + ")"
		return s.ask(ctx, s.a, s.home, opts, s.a.data)
	}
	return &fault.Error{Kind: fault.Script, Message: "there is no " + words[0], Hint: `\? says what there is`}
}

// completedWords are proposed beside tables and columns.
var completedWords = strings.Fields(
	"SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT JOIN LEFT ON USING AS AND OR NOT NULL IS IN BETWEEN LIKE DISTINCT " +
		"COUNT SUM MIN MAX AVG DESCRIBE SUMMARIZE WITH CASE WHEN THEN ELSE END UNION ALL")

// complete proposes tables, columns of the tables that the line names, and words of SQL.
func (s *session) complete(ctx context.Context, text string, at int) (head string, words []string, tail string) {
	runes := []rune(text) // the position counts them
	head, tail = string(runes[:at]), string(runes[at:])
	start := strings.LastIndexAny(head, " \t(),=<>.+-*/") + 1
	begun := head[start:]
	tables, err := s.home.Data.Tables(ctx, s.opts.Workspace)
	if err != nil {
		return head, nil, tail
	}
	candidates := slices.Clone(tables)
	if strings.HasPrefix(head, `\`) && start == 0 {
		candidates = []string{`\tables`, `\d`, `\q`, `\?`}
	} else if !strings.HasPrefix(head, `\`) {
		for _, name := range tables {
			if strings.Contains(strings.ToLower(s.begun+text), strings.ToLower(name)) {
				candidates = append(candidates, s.columnsOf(ctx, name)...)
			}
		}
		candidates = append(candidates, completedWords...)
	}
	for _, c := range candidates {
		if len(c) > len(begun) && strings.EqualFold(c[:len(begun)], begun) && !slices.Contains(words, c) {
			words = append(words, c)
		}
	}
	return head[:start], words, tail
}

// columnsOf are the columns of a table, asked once.
func (s *session) columnsOf(ctx context.Context, table string) []string {
	if known, ok := s.columns[table]; ok {
		return known
	}
	opts := s.opts
	opts.SQL = `SELECT column_name FROM (DESCRIBE "` + strings.ReplaceAll(table, `"`, `""`) + `")`
	var names []string
	if res, err := s.home.Data.Query(ctx, s.a.caller(), opts); err == nil {
		for _, row := range res.Rows {
			names = append(names, fmt.Sprint(row[0]))
		}
	}
	s.columns[table] = names
	return names
}
