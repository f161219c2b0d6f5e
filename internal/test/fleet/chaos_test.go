package fleet

import (
	"context"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Environment variables of `make chaos-cluster`.
const (
	minutesVariable    = "CHAOS_MINUTES"       // for each fault
	faultVariable      = "CHAOS_FAULT"         // the names of those that happen
	programVariable    = "THALWEG_PROGRAM"     // the program that was built
	wrongClockVariable = "THALWEG_WRONG_CLOCK" // the same, whose clock can be wrong
)

// scene is a fault with what it happens to.
type scene struct {
	name    string
	over    func(t *testing.T) services
	fault   fault
	runs    int // at least
	atOnce  int
	network bool                 // it needs networks of the workers' own
	root    bool                 // it mounts
	whole   bool                 // no attempt may be lost
	shape   func(i int, s *spec) // of the workers; may be nil
}

func everything(t *testing.T) services { return withBroker(t, inCassandra(t)) }

// scenes are the catalogue.
func scenes() []scene {
	return []scene{
		{name: "nothing", over: everything, fault: nothing, runs: 3, atOnce: 1},
		{name: "workers killed", over: everything, fault: killed(1 << 20), runs: 100, atOnce: 3},
		{name: "workers without a broker killed", over: inCassandra, fault: killed(1 << 20), runs: 10, atOnce: 3},
		{name: "workers stopped past their leases", over: everything, fault: stopped, runs: 10, atOnce: 2},
		{name: "two runs at one instant", over: everything, fault: nothing, runs: 20, atOnce: 2},
		{name: "workers upgraded", over: everything, fault: upgraded, runs: 10, atOnce: 2},
		{name: "queues purged", over: everything, fault: purged, runs: 10, atOnce: 2},
		{name: "hints ten times and in reverse", over: everything, fault: doubled, runs: 10, atOnce: 2},
		{name: "foreign hints", over: everything, fault: foreign, runs: 50, atOnce: 2, whole: true,
			shape: patientLeases},
		{name: "later hints", over: everything, fault: later, runs: 50, atOnce: 2, whole: true, shape: patientLeases},
		{name: "scratch full", over: everything, fault: scratchFull, runs: 50, atOnce: 2, root: true,
			shape: patientLeases},
		{name: "probe killed", over: everything, fault: probeKilled, runs: 50, atOnce: 2, shape: spied},
		{name: "lines cut", over: everything, fault: cut(), runs: 10, atOnce: 2, network: true},
		{name: "lines silent", over: everything, fault: silent(), runs: 10, atOnce: 2, network: true},
		{name: "lines silent for minutes", over: everything, fault: longSilent, runs: 20, atOnce: 2, network: true},
		{name: "lines slow", over: everything, fault: slow(), runs: 5, atOnce: 2, network: true},
		{name: "broker killed and its queues lost", over: everything, fault: brokerKilled, runs: 10, atOnce: 2},
		{name: "lines between nodes cut", over: apart, fault: nodesCut(), runs: 10, atOnce: 2, network: true},
		{name: "lines between nodes slow", over: apart, fault: nodesFar(), runs: 5, atOnce: 2, network: true},
		{name: "clocks a minute off", over: everything, fault: killed(1 << 20), runs: 10, atOnce: 2, shape: clocksOff},
		{name: "the program killed", over: everything, fault: killed(1 << 20), runs: 20, atOnce: 3, shape: theProgram},
		{name: "the program's slots killed", over: everything, fault: slotsKilled, runs: 10, atOnce: 2,
			shape: theProgram},
		{name: "a moody bucket", over: func(t *testing.T) services { return inS3(t, moody()) },
			fault: killed(3), runs: 10, atOnce: 2},
		{name: "lines to a bucket cut as well", over: func(t *testing.T) services { return inS3(t, nil) }, fault: cut(),
			runs: 10, atOnce: 2, network: true},
		{name: "one node stopped", over: everything, fault: nodesStopped(1, 20*time.Second), runs: 10, atOnce: 2},
		{name: "two nodes stopped for a minute", over: everything, fault: nodesStopped(2, time.Minute),
			runs: 10, atOnce: 2},
		{name: "a disk full", over: everything, fault: diskFull, runs: 10, atOnce: 2},
	}
}

const workersOf = 4

// clocksOff has one clock a minute ahead, one a minute behind.
func clocksOff(i int, s *spec) {
	s.Program = os.Getenv(wrongClockVariable)
	s.Ahead = []time.Duration{time.Minute, -time.Minute, 0}[i%3]
}

// theProgram has workers be what users start.
func theProgram(_ int, s *spec) { s.Program = os.Getenv(programVariable) }

// TestClusterChaos makes the faults of the catalogue happen: runs end, and write
// what an undisturbed run writes.
func TestClusterChaos(t *testing.T) {
	chaos(t)
	which := regexp.MustCompile(os.Getenv(faultVariable))
	for _, s := range scenes() {
		if !which.MatchString(s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			if s.network && !separate() {
				t.Skip("workers can have networks of their own only as root, on Linux")
			}
			if s.root && os.Geteuid() != 0 {
				t.Skip("mounting needs root")
			}
			f := newFleet(t, s.over(t), workersOf, s.shape)
			s.play(t, f, minutes(t))
			if s.whole {
				require.Zero(t, f.counts["retries"]+f.counts["claims lost"], "attempts that were lost")
			}
		})
	}
}

// minutes returns the least duration of a fault.
func minutes(t *testing.T) time.Duration {
	text := os.Getenv(minutesVariable)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err, minutesVariable)
	return time.Duration(n * float64(time.Minute))
}

// play has runs made while the fault happens: so many, or for so long where that is said.
func (s scene) play(t *testing.T, f *workerFleet, lasts time.Duration) {
	var trials []*trial
	for seed := range uint64(3) {
		tr, err := f.newTrial(t.Context(), sample{seed: seed, rows: 600 + 300*int(seed), pace: 2 * time.Millisecond})
		require.NoError(t, err)
		trials = append(trials, tr)
	}
	until, least := time.Now().Add(lasts), s.runs
	if lasts > 0 {
		least = 1
	}
	require.NoError(t, f.beside(t.Context(), s.fault,
		func(ctx context.Context) error { return f.runs(ctx, trials, s.atOnce, least, until) }))
}

// TestKilledWorkersOfADirectory is a cluster of one machine, without services:
// whoever is killed, others go on.
func TestKilledWorkersOfADirectory(t *testing.T) {
	t.Parallel()
	sampleOf(t, directory(t), killed(2))
}

// TestKilledWorkersOfServices is the same over Cassandra and RabbitMQ.
func TestKilledWorkersOfServices(t *testing.T) {
	t.Parallel()
	sampleOf(t, everything(t), killed(1))
}

// TestWithoutABrokerForAWhile: hints that are lost are published again, and what
// cannot be published is found by looking.
func TestWithoutABrokerForAWhile(t *testing.T) {
	t.Parallel()
	if !separate() {
		t.Skip("workers can have networks of their own only as root, on Linux")
	}
	sampleOf(t, everything(t), withoutBroker(2*time.Second))
}

// sampleOf makes a run or two of a small fleet.
func sampleOf(t *testing.T, with services, happens fault) {
	t.Helper()
	f := newFleet(t, with, 2, nil)
	tr, err := f.newTrial(t.Context(), sample{seed: 1, rows: 300, pace: 2 * time.Millisecond})
	require.NoError(t, err)
	require.NoError(t, f.beside(t.Context(), happens,
		func(ctx context.Context) error { return f.runs(ctx, []*trial{tr}, 1, 1, time.Now()) }))
}
