package api

import "time"

// SetStreamTimes sets the times of streams.
func (s *Server) SetStreamTimes(heartbeat, event time.Duration) {
	s.heartbeat, s.eventTimeout = heartbeat, event
}
