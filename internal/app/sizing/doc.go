// Package sizing says what runs take and cost on other deployments, for the edges: it needs no instance, no caller and
// no state, so it stands beside the App, not behind it.
//
// It promises what packages capacity and price do; errors name the files that they are about.
package sizing
