package registry

import (
	"errors"
)

// ErrOther says that a run is left to other workers.
var ErrOther = errors.New("the run is left to workers that match it")
