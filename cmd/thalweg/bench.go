package main

// benchCmd has the commands that measure.
type benchCmd struct {
}
