package workerprocess

import (
	"context"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// lookEvery is the time between two looks at what this process uses: peaks that are shorter may not be seen.
const lookEvery = time.Second

// keepSheets renews the sheets of the runs that are open until ctx ends.
func (c *Process) keepSheets(ctx context.Context) {
	if c.cfg.Sheets == nil {
		return
	}
	renewed := time.Now()
	instance.Every(ctx, lookEvery, func(ctx context.Context) {
		if time.Since(renewed) < sheet.Every {
			c.cfg.Sheets.Meter().Look()
			return
		}
		renewed = time.Now()
		if err := c.cfg.Sheets.Renew(ctx); err != nil && ctx.Err() == nil {
			c.cfg.Logger.Debug("the time sheets of this worker could not be renewed", "error", err)
		}
	})
}

// closeSheet ends the sheet of a run.
func (c *Process) closeSheet(run state.RunKey) {
	ctx, cancel := context.WithTimeout(context.Background(), instance.PresenceTimeout)
	defer cancel()
	if err := c.cfg.Sheets.Close(ctx, run); err != nil {
		c.cfg.Logger.Warn("the end of this worker's time sheet is not kept", "run", run.Run, "error", err)
	}
}
