package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"thalweg/internal/base/fault"
)

// Paused says that a schedule or watch begins no runs, since when, by whom and why. It is stored beside the standing,
// which only schedulers write.
type Paused struct {
	Version int       `json:"version"`
	Actor   string    `json:"actor"`
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason,omitempty"`
}

// Pause pauses the schedule or watch of an ID.
func Pause(ctx context.Context, b Registry, id, actor, reason string, at time.Time) error {
	text, err := json.Marshal(Paused{standingVersion, Cut(actor), at.UTC(), Cut(reason)})
	if err != nil {
		return fmt.Errorf("encode the pause of a schedule: %w", err)
	}
	if err := b.Put(ctx, id, text); err != nil {
		return fmt.Errorf("write the pause of a schedule: %w", err)
	}
	return nil
}

// PausedOf reads what is paused, by IDs.
func PausedOf(ctx context.Context, b Registry) (map[string]*Paused, error) {
	entries, err := b.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("read which schedules are paused: %w", err)
	}
	out := map[string]*Paused{}
	for _, e := range entries {
		p := &Paused{}
		if err := json.Unmarshal(e.Record, p); err != nil {
			return nil, fmt.Errorf("read the pause of a schedule: %w", err)
		}
		if p.Version != standingVersion {
			return nil, fault.OtherForm("the pause of a schedule", p.Version, standingVersion)
		}
		out[e.Name] = p
	}
	return out, nil
}

// skipPaused skips the moments that are due while a schedule is paused, and reports whether there were any.
func (s *Standing) skipPaused(p *Paused, zone *time.Location) bool {
	for _, at := range s.Queue {
		s.skip(time.Unix(at, 0).In(zone), "it was paused by "+p.Actor)
	}
	due := len(s.Queue) > 0
	s.Queue, s.Failing = nil, nil
	return due
}
