package jobtest

import (
	"strconv"
	"strings"
	"syscall"

	"thalweg/internal/run/job"
)

// DieAt is a checkpoint for "POINT:N": the N-th time that the process passes
// the point it kills itself, as kill -9 does. A point that there is not, such
// as "run", is never passed.
func DieAt(spec string) func(job.CrashPoint) {
	point, nth, _ := strings.Cut(spec, ":")
	left, err := strconv.Atoi(nth)
	if err != nil {
		left = 0 // it only runs
	}
	passed := make(chan struct{}, 1)
	passed <- struct{}{}
	return func(p job.CrashPoint) {
		if string(p) != point {
			return
		}
		<-passed
		if left--; left == 0 {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
			select {}
		}
		passed <- struct{}{}
	}
}
