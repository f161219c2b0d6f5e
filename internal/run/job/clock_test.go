package job_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/job"
)

func TestAlarmsEndWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		alarm, begin := job.WallClock{}.NewAlarm(), time.Now()
		alarm.Wait(t.Context(), time.Minute)
		require.Equal(t, time.Minute, time.Since(begin), "its time")
		alarm.Ring()
		alarm.Ring()
		alarm.Wait(t.Context(), time.Minute)
		require.Equal(t, time.Minute, time.Since(begin), "rung before")
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		alarm.Wait(ctx, time.Minute)
		require.Equal(t, time.Minute+time.Second, time.Since(begin), "rung twice is rung once")
	})
}

func TestEveryStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, clock := 0, job.WallClock{}
		stop := clock.Every(time.Second, func() bool { calls++; return true })
		last := clock.Every(time.Second, func() bool { return false })
		<-time.After(3500 * time.Millisecond)
		stop()
		last()
		require.Equal(t, 3, calls)
		<-time.After(time.Minute)
		require.Equal(t, 3, calls)
	})
}
