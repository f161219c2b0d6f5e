//go:build !linux

package durable

// exchange always fails: this system cannot exchange two files.
func exchange(_, _ string) error { return errCannotExchange }
