//go:build !linux

package durable

// exchange is what this system cannot do.
func exchange(_, _ string) error { return errCannotExchange }
