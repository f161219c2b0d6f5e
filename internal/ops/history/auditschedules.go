package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"thalweg/internal/store/state"
)

// topicScheduleOrders has the orders about a workspace's schedules, the latest first by their names. No command removes
// one. The text is stored.
const topicScheduleOrders = "schedule-orders"

// RecordScheduleOrder keeps an order about a schedule or watch for the audit. The caller bounds its texts.
func RecordScheduleOrder(ctx context.Context, store state.Store, id string, e AuditEntry) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return fmt.Errorf("encode an order about a schedule: %w", err)
	}
	err := store.PutNote(ctx, e.Workspace, state.Note{Topic: topicScheduleOrders, Data: text.Bytes(), Time: e.Time,
		Name: state.RunName(math.MaxInt64-e.Time.UnixNano()) + "/" + id})
	if err != nil {
		return fmt.Errorf("keep an order about a schedule: %w", err)
	}
	return nil
}

// scheduleOrders lists the orders about a workspace's schedules, the latest first: limit of them at most, 0 being all.
func scheduleOrders(ctx context.Context, store state.Store, workspace string, limit int) (out []AuditEntry, err error) {
	for after := ""; ; {
		page := state.PageMax
		if limit > 0 {
			page = min(page, limit-len(out))
		}
		notes, err := store.Notes(ctx, workspace, topicScheduleOrders, after, page)
		if err != nil {
			return nil, fmt.Errorf("read the orders about schedules of workspace %s: %w", workspace, err)
		}
		for _, n := range notes {
			var e AuditEntry
			if err := json.Unmarshal(n.Data, &e); err != nil {
				return nil, fmt.Errorf("read an order about a schedule of workspace %s: %w", workspace, err)
			}
			out, after = append(out, e), n.Name
		}
		if len(notes) < page || len(out) == limit {
			return out, nil
		}
	}
}
