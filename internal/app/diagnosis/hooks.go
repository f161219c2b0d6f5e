package diagnosis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/app/runtime"
	"thalweg/internal/base/calendar"
	"thalweg/internal/base/message"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/notify"
)

// Tried holds the result of a message to a hook.
type Tried struct {
	Hook  string // its name
	Wants bool   // to be told of the event
	Err   error  // why it could not be told
}

// TryHooks sends an example of an event to each of the hooks that wants it, and tells what came of each.
func TryHooks(ctx context.Context, process runtime.Process, hooks []script.Hook, event string,
	told func(string) string, tell func(Tried)) {
	m := message.Example(message.Kind(event))
	m.Say(told)
	m.Time, m.ID = time.Now().UTC(), fmt.Sprintf("evt_test_%d", time.Now().UnixNano())
	sender := &notify.Sender{Post: process.Remote, Keeper: process.Keeper, Environment: process.Environment,
		Known: process.Known, Clock: calendar.System{}, Logger: process.Logger}
	for _, h := range hooks {
		t := Tried{Hook: notify.Name(h), Wants: slices.Contains(h.On, m.Event)}
		if t.Wants {
			t.Err = sender.Send(ctx, h, m, "")
		}
		tell(t)
	}
}
