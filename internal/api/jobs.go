package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
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
	ID     string     `json:"id"`
	Kind   string     `json:"kind"`
	Status jobStatus  `json:"status" enum:"waiting,running,done,failed,canceled"`
	Begun  time.Time  `json:"begun"`
	Ended  *time.Time `json:"ended,omitempty"`
	// Progress is never changed: another one takes its place.
	Progress *view.Progress `json:"progress,omitempty" doc:"Of a job that is running: what can be counted of it."`
	Problem  *Problem       `json:"problem,omitempty" doc:"Why it failed."`
	Result   any            `json:"result,omitempty" doc:"Of a job that is done."`
}

// jobFile is the result of a download.
type jobFile struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	File  string `json:"file" doc:"Where it is to be had, as long as the job is kept."`

	mediaType string
	// content has no name any more: it goes with the process, however that ends.
	content *os.File
}

// job is a Job with what only the server sees.
type job struct {
	Job
	by     asker // who began it, with what that takes
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

// close cancels all jobs, waits for them and forgets their results.
func (j *jobs) close() {
	j.end()
	j.done.Wait()
	j.forget(time.Now().Add(2 * jobKeptFor))
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
			if f, is := one.Result.(*jobFile); is {
				_ = f.content.Close() // who reads it has opened it
			}
		}
	}
}

// begin starts a job of somebody. work is cancelled by cancel, by close, and after jobTimeout.
func (j *jobs) begin(by asker, kind string, fail func(error) *Problem,
	work func(ctx context.Context) (any, error)) (Job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ctx.Err() != nil {
		return Job{}, &fault.Error{Kind: fault.Canceled, Message: "the server ends", Err: j.ctx.Err()}
	}
	own := 0
	for _, one := range j.all {
		if one.by.Name() == by.Name() && one.Ended == nil {
			own++
		}
	}
	if len(j.all) >= jobsMax || own >= jobsOfOneMax {
		return Job{}, &fault.Error{Kind: fault.Script, Code: fault.TooMany,
			Message: "there are too many jobs", Hint: "wait until some have ended, or cancel them"}
	}
	ctx, cancel := context.WithTimeout(j.ctx, jobTimeout)
	one := &job{Job: Job{ID: rand.Text(), Kind: kind, Status: jobWaits, Begun: time.Now().UTC()}, by: by,
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
			result, err = work(view.HearProgress(ctx, func(p view.Progress) {
				j.set(one, func(of *Job) { of.Progress = &p })
			}))
			return err
		})
		<-j.turns
	}
	if f, is := result.(*jobFile); is {
		f.File = "/v1/jobs/" + one.ID + "/file"
	}
	j.set(one, func(of *Job) {
		now := time.Now().UTC()
		of.Ended, of.Progress = &now, nil
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
	if one.Ended == nil { // what tells of its progress may be late
		change(&one.Job)
	}
}

// find returns a job of somebody who may still do what it does. Those of others are not there.
func (j *jobs) find(by asker, id string) (*job, Job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.held(by, id)
}

func (j *jobs) held(by asker, id string) (*job, Job, error) {
	one, is := j.all[id]
	if !is || one.by.Name() != by.Name() || !by.May(one.by.workspace, one.by.needs) {
		return nil, Job{}, &fault.Error{Kind: fault.Script, Code: fault.NotFound, Message: "you have no such job here",
			Hint: "a result is kept for 15 minutes, on the server that has made it"}
	}
	return one, one.Job, nil
}

// file opens the file of a job. It is not forgotten meanwhile: another one could be behind its descriptor then.
func (j *jobs) file(by asker, id string) (*jobFile, *os.File, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, shown, err := j.held(by, id)
	if err != nil {
		return nil, nil, err
	}
	made, is := shown.Result.(*jobFile)
	if !is {
		return nil, nil, &fault.Error{Kind: fault.Script, Code: fault.NotFound, Message: "the job has made no file",
			Hint: "look at it: it may not have ended"}
	}
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", made.content.Fd()))
	if err != nil {
		return nil, nil, fmt.Errorf("open the file of a job: %w", err)
	}
	return made, f, nil
}

func (s *Server) registerJobs() {
	add(s, operation{id: "show-job", method: http.MethodGet, path: "/v1/jobs/{job}", tag: "jobs",
		summary: "Show a job of yours, with its result.", needs: access.Self}, s.showJob)
	add(s, operation{id: "cancel-job", method: http.MethodDelete, path: "/v1/jobs/{job}", tag: "jobs",
		summary: "Cancel a job of yours.", needs: access.Self}, s.cancelJob)
	add(s, operation{id: "job-file", method: http.MethodGet, path: "/v1/jobs/{job}/file", tag: "jobs",
		media: slices.Sorted(maps.Values(mediaTypes)), summary: "Get the file that a job of yours has made.",
		needs: access.Self}, s.jobFile)
}

type ofJob struct {
	Job string `path:"job" maxLength:"64" doc:"Id of the job."`
}

func (s *Server) showJob(ctx context.Context, by asker, in *ofJob) (*reply[Job], error) {
	_, shown, err := s.jobs.find(by, in.Job)
	shown.Problem = shown.Problem.told(ctx)
	return body(shown, err)
}

func (s *Server) cancelJob(ctx context.Context, by asker, in *ofJob) (*reply[Job], error) {
	one, shown, err := s.jobs.find(by, in.Job)
	if err == nil {
		one.cancel()
	}
	shown.Problem = shown.Problem.told(ctx)
	return body(shown, err)
}

// job begins a job for a request, and answers with it.
func (s *Server) job(by asker, o operation,
	work func(ctx context.Context) (any, error)) (*reply[Job], error) {
	begun, err := s.jobs.begin(by, o.id,
		func(err error) *Problem { return s.problem(s.jobs.ctx, o, err) }, work)
	return &reply[Job]{Location: "/v1/jobs/" + begun.ID, Body: begun}, err
}

// downloadJob begins a job that makes a file, for those who do not stay on the line.
func (s *Server) downloadJob(ctx context.Context, by asker, in *downloadQueryIn) (*reply[Job], error) {
	o := operation{id: "download"}
	return s.job(by, o, func(ctx context.Context) (_ any, err error) {
		d := in.download()
		f, err := os.CreateTemp("", "thalweg-download-*")
		if err != nil {
			return nil, fmt.Errorf("make a file for a download: %w", err)
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, f.Close())
			}
		}()
		if err := os.Remove(f.Name()); err != nil {
			return nil, fmt.Errorf("take the name from the file of a download: %w", err)
		}
		made := &jobFile{Name: "query." + string(d.Format), mediaType: mediaTypes[string(d.Format)], content: f}
		if err := s.app.Peek.Download(ctx, by.caller(), d, f); err != nil {
			return nil, err
		}
		if made.Bytes, err = f.Seek(0, io.SeekEnd); err != nil {
			return nil, fmt.Errorf("measure the file of a download: %w", err)
		}
		return made, nil
	})
}

// jobFile answers with the file of a job, or with a part of it.
func (s *Server) jobFile(ctx context.Context, by asker, in *ofJob) (*huma.StreamResponse, error) {
	made, f, err := s.jobs.file(by, in.Job)
	if err != nil {
		return nil, err
	}
	s.note(ctx, by, access.RowsTaken, made.Name+" of job "+in.Job, nil)
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer f.Close()
		r, w := humago.Unwrap(c)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadTimeout)) // else the server's is
		c.SetHeader("Content-Type", made.mediaType)
		c.SetHeader("Content-Disposition", fmt.Sprintf("attachment; filename=%q", made.Name))
		http.ServeContent(w, r, "", time.Time{}, f)
	}}, nil
}
