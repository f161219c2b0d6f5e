// Package serveconfig reads serve.yaml: at which address a server answers, for which hosts, with which certificate,
// and which scripts of which workspaces people may start through it.
//
// It promises a diagnostic with its place for what is wrong. It opens the directories that the file names only to see
// that they are there.
package serveconfig
