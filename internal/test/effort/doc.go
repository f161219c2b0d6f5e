// Package effort decides how much a test does where more would find more: a
// little in `make test-fast`, a sample in `make test`, everything in
// `make chaos`. Only tests use it; it cannot fail.
package effort
