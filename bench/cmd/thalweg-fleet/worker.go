package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"thalweg/bench/internal/bench"
	"thalweg/bench/internal/cluster"
)

// worker is a process of the fleet.
type worker struct {
	*cluster.Worker
	watched func() (bench.Peaks, error) // its memory, and that of its slots; called once
}

// start starts a worker.
func (o options) start(ctx context.Context, i int, in *cluster.Cluster) (*worker, error) {
	w, err := in.Start(ctx, i, cluster.WorkerOptions{Thalweg: o.Thalweg, Python: o.Python, Memory: o.Memory,
		Cores: o.Cores, Held: o.Held})
	if err != nil {
		return nil, err
	}
	return &worker{w, watch(w.Pid())}, nil
}

// watch follows the memory of a process until it is asked for what it was.
func watch(pid int) func() (bench.Peaks, error) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	var peaks bench.Peaks
	var err error
	go func() {
		defer close(done)
		peaks, err = bench.Watch(ctx, pid)
	}()
	return func() (bench.Peaks, error) {
		stop()
		<-done
		return peaks, err
	}
}

// peaks notes the memory of the worker if it is the largest.
func (w *worker) peaks(counts map[string]float64) error {
	peaks, err := w.watched()
	if err != nil {
		return fmt.Errorf("watch a worker's memory: %w", err)
	}
	const gb = 1e9
	counts["peak GB of a worker"] = max(counts["peak GB of a worker"], float64(peaks.RSS)/gb)
	counts["peak GB of a worker, shared pages once"] = max(counts["peak GB of a worker, shared pages once"],
		float64(peaks.PSS)/gb)
	return nil
}

// family is a metric, as the worker tells it.
type family struct {
	Name    string `json:"name"`
	Samples []struct {
		Labels map[string]string `json:"labels"`
		Value  float64           `json:"value"`
	} `json:"samples"`
}

// count adds what the worker has counted.
func (w *worker) count(ctx context.Context, counts map[string]float64) (err error) {
	answer, err := w.Get(ctx, "/metrics.json")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	var all []family
	if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
		return fmt.Errorf("read the metrics: %w", err)
	}
	for _, f := range all {
		for _, s := range f.Samples {
			switch f.Name {
			case "thalweg_state_calls_total":
				counts["state calls"] += s.Value
			case "thalweg_conditional_writes_total":
				counts["conditional writes"] += s.Value
				if s.Labels["outcome"] == "lost" {
					counts["conditional writes lost"] += s.Value
				}
			case "thalweg_queue_deliveries_total":
				if s.Labels["fate"] != "used" {
					counts["useless deliveries"] += s.Value
				}
			case "thalweg_requests_total":
				counts[s.Labels["service"]+" requests"] += s.Value
			case "thalweg_part_copies_total":
				counts["parts "+s.Labels["outcome"]] += s.Value
			case "thalweg_part_copies_bytes_total":
				counts["part bytes "+s.Labels["outcome"]] += s.Value
			case "thalweg_slot_ends_total":
				counts["slot ends"] += s.Value
			case "thalweg_batches_total":
				counts["attempts"] += s.Value
			case "thalweg_rows_total":
				if s.Labels["direction"] == "in" {
					counts["rows"] += s.Value
				}
			case "thalweg_parts_bytes_total":
				counts["part bytes "+s.Labels["operation"]] += s.Value
			case "thalweg_bytes_total":
				counts["batch bytes "+s.Labels["direction"]] += s.Value
			}
		}
	}
	return nil
}
