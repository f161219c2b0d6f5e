package access

import (
	"fmt"
	"slices"

	"thalweg/internal/base/fault"
)

// Permission is what an operation needs.
type Permission string

// The permissions. Their texts are in the OpenAPI document: they do not change.
const (
	Anyone  Permission = "anyone" // also who has not logged in
	Self    Permission = "self"   // whoever has logged in: about themselves
	View    Permission = "view"   // states, figures, failures without values
	Read    Permission = "read"   // rows and values
	Operate Permission = "operate"
	Decide  Permission = "decide" // about gates, in the roles of the grant
	Author  Permission = "author" // texts of scripts: code that runs as the workers' user
	Admin   Permission = "admin"
)

// Role is a named set of permissions.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"
	Reader   Role = "reader"
	Operator Role = "operator"
	Approver Role = "approver"
	Writer   Role = "author"
	Manager  Role = "admin"
)

// allows lists the permissions of each role. Decide is of all, within the gate roles of the grant.
var allows = map[Role][]Permission{
	Viewer:   {View},
	Reader:   {View, Read},
	Operator: {View, Read, Operate},
	Approver: {View, Read, Decide},
	Writer:   {View, Read, Operate, Author},
	Manager:  {View, Read, Operate, Decide, Author, Admin},
}

// AllWorkspaces is the workspace of a grant that is for all of them.
const AllWorkspaces = "*"

// Grant gives a role in a workspace.
type Grant struct {
	Workspace string   `json:"workspace"` // AllWorkspaces: all
	Role      Role     `json:"role" enum:"viewer,reader,operator,approver,author,admin"`
	GateRoles []string `json:"gate_roles,omitempty"` // in which gates can be decided about
}

// Limits of grants.
const (
	grantsMax        = 200
	gateRolesMax     = 50
	gateRoleBytesMax = 100
)

// Check refuses a grant that gives nothing, or what nobody knows.
func (g Grant) Check() error {
	if _, known := allows[g.Role]; !known {
		return fault.New(fault.Script, "there is no role %q", g.Role).Suggest(string(g.Role), roleNames())
	}
	if g.Workspace == "" {
		return &fault.Error{Kind: fault.Script, Message: "a grant names a workspace", Hint: "* stands for all"}
	}
	if g.Role == Approver && len(g.GateRoles) == 0 {
		return &fault.Error{Kind: fault.Script, Message: "an approver needs the gate roles in which they decide"}
	}
	if len(g.GateRoles) > gateRolesMax {
		return fault.New(fault.Script, "a grant has at most %d gate roles", gateRolesMax)
	}
	for _, r := range g.GateRoles {
		if r == "" || len(r) > gateRoleBytesMax {
			return fault.New(fault.Script, "a gate role has 1 to %d bytes", gateRoleBytesMax)
		}
	}
	return nil
}

func checkGrants(grants []Grant) error {
	if len(grants) > grantsMax {
		return fault.New(fault.Script, "there are at most %d grants", grantsMax)
	}
	for i, g := range grants {
		if err := g.Check(); err != nil {
			return fmt.Errorf("grant %d: %w", i+1, err)
		}
	}
	return nil
}

func roleNames() (out []string) {
	for r := range allows {
		out = append(out, string(r))
	}
	slices.Sort(out)
	return out
}

// covers reports whether the grant is for a workspace. "" stands for what is of no workspace.
func (g Grant) covers(workspace string) bool {
	return g.Workspace == AllWorkspaces || workspace != "" && g.Workspace == workspace
}

// may reports whether grants give a permission in a workspace.
func may(grants []Grant, workspace string, p Permission) bool {
	return slices.ContainsFunc(grants, func(g Grant) bool {
		return g.covers(workspace) &&
			(slices.Contains(allows[g.Role], p) || p == Decide && len(g.GateRoles) > 0)
	})
}

// lacks says what of some grants is not in others; "": nothing.
func lacks(own, wanted []Grant) string {
	for _, g := range wanted {
		for _, p := range allows[g.Role] {
			if !may(own, g.Workspace, p) {
				return fmt.Sprintf("the permission %s in %s, which %s has", p, g.Workspace, g.Role)
			}
		}
		roles := gateRoles(own, g.Workspace)
		for _, r := range g.GateRoles {
			if !contains(roles, r) {
				return fmt.Sprintf("the gate role %s in %s", r, g.Workspace)
			}
		}
	}
	return ""
}

// gateRoles lists the roles in which grants let somebody decide in a workspace.
func gateRoles(grants []Grant, workspace string) (out []string) {
	for _, g := range grants {
		if g.covers(workspace) {
			out = append(out, g.GateRoles...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
