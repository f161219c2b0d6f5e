package api

import (
	"time"

	"thalweg/internal/app"
)

// SetStreamTimes sets the times of streams.
func (s *Server) SetStreamTimes(heartbeat, event time.Duration) {
	s.heartbeat, s.eventTimeout = heartbeat, event
}

// SetBodyTimeout sets the time for a request's body.
func (s *Server) SetBodyTimeout(timeout time.Duration) { s.bodyTimeout = timeout }

// SetSecure says whether the server is reached over TLS only.
func (s *Server) SetSecure(secure bool) { s.secure = secure }

// SetNews gives the server other news.
func (s *Server) SetNews(news *app.News) { s.news = news }
