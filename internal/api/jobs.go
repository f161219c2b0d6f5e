package api

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"thalweg/internal/app/access"
	"thalweg/internal/base/fault"
)

// Limits of jobs.
const (
	jobsMax        = 64 // that are at work, or whose results are kept
	jobsOfOneMax   = 8  // of one person
	jobsAtWorkMax  = 4
	jobKeptFor     = 15 * time.Minute // after its end
	jobTimeout     = 10 * time.Minute
	jobSweepsEvery = 30 * time.Second
)

// jobStatus is where a job is.
type jobStatus string

// The statuses of jobs.
const (
	jobWaits    jobStatus = "waiting" // for others to end
	jobRuns     jobStatus = "running"
	jobDone     jobStatus = "done"
	jobFailed   jobStatus = "failed"
	jobCanceled jobStatus = "canceled"
)

// Job is long work that a request has begun.
type Job struct {
	ID      string     `json:"id"`
	Kind    string     `json:"kind"`
	Status  jobStatus  `json:"status" enum:"waiting,running,done,failed,canceled"`
	Begun   time.Time  `json:"begun"`
	Ended   *time.Time `json:"ended,omitempty"`
	Problem *Problem   `json:"problem,omitempty" doc:"Why it failed."`
	Result  any        `json:"result,omitempty" doc:"Of a job that is done."`
}

// job is a Job with what only the server sees.
type job struct {
	Job
	owner  string
	cancel context.CancelFunc
}

// jobs holds the jobs of a server. The zero value cannot be used.
type jobs struct {
	ctx   context.Context // of all jobs
	end   context.CancelFunc
	turns chan struct{} // one for each job that may be at work
	done  sync.WaitGroup

	mu  sync.Mutex
	all map[string]*job
}

func newJobs() *jobs {
	j := &jobs{turns: make(chan struct{}, jobsAtWorkMax), all: map[string]*job{}}
	j.ctx, j.end = context.WithCancel(context.Background())
	j.done.Go(j.sweep)
	return j
}

// close cancels all jobs and waits for them.
func (j *jobs) close() {
	j.end()
	j.done.Wait()
}

// sweep forgets results whose time is over.
func (j *jobs) sweep() {
	every := time.NewTicker(jobSweepsEvery)
	defer every.Stop()
	for {
		select {
		case <-j.ctx.Done():
			return
		case now := <-every.C:
			j.forget(now)
		}
	}
}

func (j *jobs) forget(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for id, one := range j.all {
		if one.Ended != nil && now.Sub(*one.Ended) > jobKeptFor {
			delete(j.all, id)
		}
	}
}

// begin starts a job of somebody. work is cancelled by cancel, by close, and after jobTimeout.
func (j *jobs) begin(owner, kind string, fail func(error) *Problem,
	work func(ctx context.Context) (any, error)) (Job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ctx.Err() != nil {
		return Job{}, &fault.Error{Kind: fault.Canceled, Message: "the server ends", Err: j.ctx.Err()}
	}
	own := 0
	for _, one := range j.all {
		if one.owner == owner && one.Ended == nil {
			own++
		}
	}
	if len(j.all) >= jobsMax || own >= jobsOfOneMax {
		return Job{}, &fault.Error{Kind: fault.Script, Code: fault.TooMany,
			Message: "there are too many jobs", Hint: "wait until some have ended, or cancel them"}
	}
	ctx, cancel := context.WithTimeout(j.ctx, jobTimeout)
	one := &job{Job: Job{ID: rand.Text(), Kind: kind, Status: jobWaits, Begun: time.Now().UTC()}, owner: owner,
		cancel: cancel}
	j.all[one.ID] = one
	j.done.Go(func() {
		defer cancel()
		j.run(ctx, one, fail, work)
	})
	return one.Job, nil
}

func (j *jobs) run(ctx context.Context, one *job, fail func(error) *Problem,
	work func(ctx context.Context) (any, error)) {
	var result any
	var err error
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case j.turns <- struct{}{}:
		j.set(one, func(of *Job) { of.Status = jobRuns })
		err = fault.Guard("doing a job", func() (err error) {
			result, err = work(ctx)
			return err
		})
		<-j.turns
	}
	j.set(one, func(of *Job) {
		now := time.Now().UTC()
		of.Ended = &now
		switch {
		case err == nil:
			of.Status, of.Result = jobDone, result
		case context.Cause(ctx) == context.Canceled:
			of.Status = jobCanceled
		default:
			of.Status, of.Problem = jobFailed, fail(err)
		}
	})
}

func (j *jobs) set(one *job, change func(*Job)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&one.Job)
}

// find returns a job of somebody. Those of others are not there.
func (j *jobs) find(owner, id string) (*job, Job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	one, is := j.all[id]
	if !is || one.owner != owner {
		return nil, Job{}, &fault.Error{Kind: fault.Script, Code: fault.NotFound, Message: "you have no such job here",
			Hint: "a result is kept for 15 minutes, on the server that has made it"}
	}
	return one, one.Job, nil
}

func (s *Server) registerJobs() {
	add(s, operation{id: "show-job", method: http.MethodGet, path: "/v1/jobs/{job}", tag: "jobs",
		summary: "Show a job of yours, with its result.", needs: access.Self}, s.showJob)
	add(s, operation{id: "cancel-job", method: http.MethodDelete, path: "/v1/jobs/{job}", tag: "jobs",
		summary: "Cancel a job of yours.", needs: access.Self}, s.cancelJob)
}

type ofJob struct {
	Job string `path:"job" maxLength:"64" doc:"Id of the job."`
}

func (s *Server) showJob(ctx context.Context, by asker, in *ofJob) (*reply[Job], error) {
	_, shown, err := s.jobs.find(by.Name(), in.Job)
	shown.Problem = shown.Problem.told(ctx)
	return body(shown, err)
}

func (s *Server) cancelJob(ctx context.Context, by asker, in *ofJob) (*reply[Job], error) {
	one, shown, err := s.jobs.find(by.Name(), in.Job)
	if err == nil {
		one.cancel()
	}
	shown.Problem = shown.Problem.told(ctx)
	return body(shown, err)
}

// job begins a job for a request, and answers with it.
func (s *Server) job(by asker, o operation,
	work func(ctx context.Context) (any, error)) (*reply[Job], error) {
	begun, err := s.jobs.begin(by.Name(), o.id,
		func(err error) *Problem { return s.problem(s.jobs.ctx, o, err) }, work)
	return &reply[Job]{Location: "/v1/jobs/" + begun.ID, Body: begun}, err
}
