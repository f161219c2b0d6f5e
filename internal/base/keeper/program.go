package keeper

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// Program is a program to be started. It gets what this says, and nothing else of ours: no
// variable, no descriptor.
type Program struct {
	Path      string   // as Find takes it
	Name      string   // that it is called by; "": Path
	Args      []string // behind the name
	Env       []string // the whole of its environment
	Dir       string   // "": ours
	Stdin     io.Reader
	Stdout    io.Writer
	Stderr    io.Writer
	Files     []*os.File    // its descriptors from 3 on
	WaitDelay time.Duration // for who keeps its output open when it has ended
}

// NotThereError says that there is no such program.
type NotThereError struct{ Err error }

// Error implements error.
func (e *NotThereError) Error() string { return e.Err.Error() }

// Unwrap gives what the system says.
func (e *NotThereError) Unwrap() error { return e.Err }

// Find gives the path of a program: a path, or a name that is looked for where PATH says.
func Find(name string) (path string, err error) {
	if path, err = exec.LookPath(name); err != nil {
		return "", &NotThereError{err}
	}
	return filepath.Abs(path)
}

// Some are those of our variables that have these names and are set, as Program.Env.
func Some(names ...string) (env []string) {
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// All are all of our variables. They have passwords in them: they are for this program itself.
func All() []string { return os.Environ() }

// command is the program as the system starts it.
func (p Program) command() (*exec.Cmd, error) {
	cmd := exec.Command(p.Path, p.Args...)
	if cmd.Err != nil {
		return nil, &NotThereError{cmd.Err}
	}
	if p.Name != "" {
		cmd.Args[0] = p.Name
	}
	cmd.Env = append([]string{}, p.Env...) // not nil, which would be all of ours
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles, cmd.WaitDelay = p.Dir, p.Stdin, p.Stdout, p.Stderr,
		p.Files, p.WaitDelay
	return cmd, nil
}

// Run starts a program and waits for its end. It is ended, with all that it has started, when ctx is.
func Run(ctx context.Context, self string, p Program) (State, error) {
	runtime.LockOSThread() // without a keeper the program dies with the thread that started it
	defer runtime.UnlockOSThread()
	g, err := Start(self, p)
	if err != nil {
		return State{}, err
	}
	defer context.AfterFunc(ctx, g.Kill)()
	return g.Wait(), nil
}
