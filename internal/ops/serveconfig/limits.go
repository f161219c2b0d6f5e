package serveconfig

import (
	"thalweg/internal/base/document"
	"thalweg/internal/base/settings"
)

// Limits of what clients may ask for. A burst is how many requests may come at once.
type Limits struct {
	UserRequestsPerSecond    int
	UserRequestsBurst        int
	AddressRequestsPerSecond int
	AddressRequestsBurst     int
	UserStreams              int // open at the same time
	Streams                  int // of all
}

// DefaultLimits are those of a configuration that names none.
func DefaultLimits() Limits {
	return Limits{UserRequestsPerSecond: 100, UserRequestsBurst: 500, AddressRequestsPerSecond: 200,
		AddressRequestsBurst: 1_000, UserStreams: 250, Streams: 1_000}
}

// Most of what limits may be.
const (
	requestsMost = 1_000_000
	streamsMost  = 10_000
)

func (r *reader) limits(v *document.Value, path string) {
	l := &r.cfg.Limits
	r.Fields(v, path,
		settings.Key("user_requests_per_second", r.CountTo(&l.UserRequestsPerSecond, 1, requestsMost)),
		settings.Key("user_requests_burst", r.CountTo(&l.UserRequestsBurst, 1, requestsMost)),
		settings.Key("address_requests_per_second", r.CountTo(&l.AddressRequestsPerSecond, 1, requestsMost)),
		settings.Key("address_requests_burst", r.CountTo(&l.AddressRequestsBurst, 1, requestsMost)),
		settings.Key("user_streams", r.CountTo(&l.UserStreams, 1, streamsMost)),
		settings.Key("streams", r.CountTo(&l.Streams, 1, streamsMost)))
}
