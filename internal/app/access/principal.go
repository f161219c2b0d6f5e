package access

import "thalweg/internal/app/caller"

// Principal is somebody who has logged in. The zero value may nothing.
type Principal struct {
	name    string
	via     caller.Via
	grants  []Grant
	bounds  []Grant // of a token; only what both give is given
	bounded bool
	session string // key of the session; "": none
	trusted bool   // its roles were given to it here, by somebody who may
}

// Name returns the name under which is recorded what the principal does.
func (p Principal) Name() string { return p.name }

// Via returns the way in.
func (p Principal) Via() caller.Via { return p.via }

// May reports whether the principal has a permission in a workspace; "": in none of them, for what is of all.
func (p Principal) May(workspace string, needs Permission) bool {
	switch needs {
	case Anyone:
		return true
	case Self:
		return p.name != ""
	}
	return may(p.grants, workspace, needs) && (!p.bounded || may(p.bounds, workspace, needs))
}

// Caller returns the principal as the services know callers, with the gate roles of a workspace.
func (p Principal) Caller(workspace string) caller.Caller {
	roles := gateRoles(p.grants, workspace)
	if p.bounded {
		roles = both(roles, gateRoles(p.bounds, workspace))
	}
	return caller.Caller{Actor: p.name, Roles: roles, Verified: p.trusted, Via: p.via}
}

// both lists the roles that are in two lists, in which caller.AnyRole stands for all.
func both(a, b []string) (out []string) {
	for _, r := range a {
		if contains(b, r) {
			out = append(out, r)
		}
	}
	if contains(a, caller.AnyRole) {
		for _, r := range b {
			if !contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

func contains(roles []string, role string) bool {
	for _, r := range roles {
		if r == role || r == caller.AnyRole {
			return true
		}
	}
	return false
}

// Grants lists what the principal was given.
func (p Principal) Grants() []Grant {
	if p.bounded {
		return p.bounds
	}
	return p.grants
}
