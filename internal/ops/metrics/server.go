package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"thalweg/internal/base/fault"
)

// Limits of the server.
const (
	headerTimeout = 5 * time.Second
	answerTimeout = 30 * time.Second
	closeTimeout  = 2 * time.Second // for readers, when it ends
	headerBytes   = 16 << 10
	loopback      = "127.0.0.1"
)

// Server shows the metrics.
type Server struct {
	address string
	server  *http.Server
	ended   chan error
}

// Listen serves /metrics, /metrics.json, /healthz and /readyz at host:port, the
// loopback address where host is empty, until Close. ready says why this worker
// could not take work now, nil: it could, and what somebody should look at.
func (m *Metrics) Listen(ctx context.Context, address string, ready Ready, logger *slog.Logger) (*Server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("metrics cannot be served at %q", address),
			Hint: "write host:port, for example 127.0.0.1:9464, or :9464", Err: err}
	}
	if host == "" {
		host = loopback
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "metrics cannot be served at " + address,
			Hint: "choose another port, each worker of a machine has its own", Err: err}
	}
	s := &Server{address: listener.Addr().String(), ended: make(chan error, 1), server: &http.Server{
		Handler: m.handler(ready), ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout,
		MaxHeaderBytes: headerBytes, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}}
	go func() { s.ended <- s.server.Serve(listener) }()
	return s, nil
}

// Address returns the address at which the server listens.
func (s *Server) Address() string { return s.address }

// Close ends it, and waits until it has ended.
func (s *Server) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), closeTimeout)
	defer stop()
	err := s.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // somebody reads slowly
		err = s.server.Close()
	}
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// Ready says what somebody should look at, and why a worker could not take work now.
type Ready func(context.Context) (notices []string, err error)

// readyAnswer is the answer to /readyz.
type readyAnswer struct {
	Status  string   `json:"status"`
	Why     string   `json:"why,omitempty"`
	Notices []string `json:"notices,omitempty"`
}

// Handler answers with all metrics in the format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: readersMax})
}

func (m *Metrics) handler(ready Ready) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.HandleFunc("GET /metrics.json", func(w http.ResponseWriter, _ *http.Request) {
		families, err := m.Gather()
		if err != nil {
			answer(w, http.StatusInternalServerError, map[string]string{"error": err.Error()})
			return
		}
		answer(w, http.StatusOK, families)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), readTimeout)
		defer stop()
		notices, err := ready(ctx)
		if err != nil {
			answer(w, http.StatusServiceUnavailable, readyAnswer{Status: "not ready", Why: err.Error(),
				Notices: notices})
			return
		}
		answer(w, http.StatusOK, readyAnswer{Status: "ready", Notices: notices})
	})
	return mux
}

// readersMax limits concurrent readers.
const readersMax = 8

// answer writes JSON. Who is gone needs none.
func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
