// Package archtest holds the architecture in tests: which package may import
// which, that every package says what it promises, and house rules that no
// linter knows. It has no code of its own and cannot fail otherwise.
package archtest
