package caller

import (
	"os"
	"os/user"
	"slices"
	"strconv"
	"time"

	"thalweg/internal/store/state"
)

// Via is the way by which a caller comes in.
type Via string

// The ways in. What is recorded of a call names its way.
const (
	CLI       Via = "cli"       // a command line on a machine that reaches the state
	Session   Via = "session"   // a browser that has signed in
	Token     Via = "token"     // a program with a token
	Scheduler Via = "scheduler" // a schedule or a watch
)

// Caller is a person or a program that wants to change or see something.
type Caller struct {
	Actor    string   // name, as it is recorded
	Roles    []string // in which the caller acts
	Verified bool     // Roles come from whoever has authenticated the caller, not from the caller
	Via      Via
	Request  string // unique to the request, so that it can be repeated and is done once; "": each is another one
}

// AnyRole as a role of a caller stands for all: of whoever has started a server for themselves.
const AnyRole = "*"

// OfProcess returns the user of this process, as the machine names it, in
// roles of their own account: user@host. An empty role is none.
func OfProcess(via Via, roles ...string) Caller {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	none := func(role string) bool { return role == "" }
	return Caller{Actor: name, Roles: slices.DeleteFunc(slices.Clone(roles), none), Via: via}
}

// Mark returns what state keeps of an order that the caller gives now.
func (c Caller) Mark(reason string) state.Mark {
	return state.Mark{Actor: c.Actor, Via: string(c.Via), Time: time.Now(), Reason: reason,
		Request: c.Request}
}

// RoleOf returns the caller's role among those that may decide, and reports
// whether there is one. Where anybody may, it is the first of the caller's.
func (c Caller) RoleOf(may []string) (role string, ok bool) {
	for _, r := range c.Roles {
		switch {
		case r == AnyRole && len(may) > 0:
			return may[0], true
		case r == AnyRole:
			return "", true
		case len(may) == 0 || slices.Contains(may, r):
			return r, true
		}
	}
	return "", len(may) == 0
}
