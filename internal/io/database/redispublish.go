package database

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/fault"
)

// A table NAME in Redis is a version, whose rows are the keys NAME:VERSION:KEY. NAME:current
// has the beginning of the keys of the version that counts. NAME:versions keeps of each version,
// in whatever state, who made it, until all of its keys are gone. NAME:writer has the version
// that is being written, and lapses. NAME:replaced is there for redisGrace after the pointer was set.
const (
	redisPointer  = ":current"
	redisVersions = ":versions"
	redisWriter   = ":writer"
	redisReplaced = ":replaced"
	// redisBegun is how a version begins: with the time at which its run did.
	redisBegun = "20060102T150405.000000Z"
)

// Bounds of what is published.
const (
	redisKeyMax   = 64 << 10 // bytes
	redisRowMax   = 64 << 20
	redisRowsMax  = 1000 // of a transaction
	redisBytesMax = 1 << 20
	redisScan     = "1000" // keys that are looked at in a step
	// redisLease is the time after which a writer that says nothing is gone.
	redisLease = 60 * time.Second
	// redisWait is how long another writer is waited for: longer than for one that is gone.
	redisWait = redisLease + 15*time.Second
	redisPoll = 250 * time.Millisecond
	// redisGrace is how long the rows of a replaced version stay for who has just read the pointer.
	redisGrace = 10 * time.Second
	// redisDiscard bounds the removal of rows that are not published.
	redisDiscard = 30 * time.Second
)

// redisRecord is what NAME:versions keeps of a version.
type redisRecord struct {
	Run     string `json:"run"`
	Node    string `json:"node"`
	Batch   int    `json:"batch"`
	Attempt int64  `json:"attempt"`
	Digest  string `json:"digest"`
	Rows    int64  `json:"rows"`
}

// same reports whether two versions are of one output of a run.
func (r redisRecord) same(o redisRecord) bool {
	return r.Run == o.Run && r.Node == o.Node && r.Batch == o.Batch
}

// redisStaged is a version that is not published, unless done.
type redisStaged struct {
	c       Client
	s       *redis
	t       Target
	mine    redisRecord
	version string
	done    bool
}

// redisView is what a table has at a moment. Its keys are watched.
type redisView struct {
	current  string // the version; "": none
	writer   string
	versions map[string]redisRecord
	// read: some version counted less than redisGrace ago, and does not any more: somebody may read its rows.
	read bool
}

// stageRedis brings the rows of a file into a version of their own.
func (c Client) stageRedis(ctx context.Context, t Target, a Attempt, path string) (Staged, error) {
	if err := checkRedis(t); err != nil {
		return nil, err
	}
	loc, err := c.may(t.URL)
	if err != nil {
		return nil, err
	}
	s, err := c.redis(ctx, loc)
	if err != nil {
		return nil, err
	}
	var unique [4]byte
	if _, err := rand.Read(unique[:]); err != nil {
		return nil, errors.Join(err, s.conn.Close())
	}
	p := &redisStaged{c: c, s: s, t: t, mine: redisRecord{Run: a.Run, Node: a.Node, Batch: a.Batch,
		Attempt: a.Attempt, Digest: a.Digest, Rows: a.Rows},
		version: a.Begun.UTC().Format(redisBegun) + "-" + strconv.FormatInt(a.Attempt, 16) + "-" +
			hex.EncodeToString(unique[:])}
	if err := p.stage(ctx, path); err != nil {
		s.Close()
		p.abandon(ctx)
		return nil, err
	}
	if p.done {
		s.Close()
	}
	return p, nil
}

func (p *redisStaged) stage(ctx context.Context, path string) error {
	v, err := p.begin(ctx)
	if err != nil {
		return err
	}
	err = p.tidy(ctx, v)
	if p.done {
		return nil // what stays is removed by the next publication
	}
	if err != nil {
		return err
	}
	n, err := p.load(ctx, path)
	if err == nil && n != p.mine.Rows {
		err = fmt.Errorf("there are %d rows to write, and not %d", n, p.mine.Rows)
	}
	return err
}

// prefix is how the keys of a version begin.
func (p *redisStaged) prefix(version string) string { return p.t.Table + ":" + version + ":" }

// look watches what says who publishes, and reads it.
func (p *redisStaged) look(ctx context.Context) (v redisView, err error) {
	name := p.t.Table
	p.s.add("WATCH", name+redisPointer, name+redisVersions, name+redisWriter)
	p.s.add("GET", name+redisPointer)
	p.s.add("GET", name+redisWriter)
	p.s.add("HGETALL", name+redisVersions)
	p.s.add("GET", name+redisReplaced) // after the pointer: what did not count then has not for as long at least
	got, err := p.s.all(ctx)
	if err != nil {
		return v, err
	}
	v.writer, v.read = got[2].text, !got[4].null
	if v.current, err = pointed(name, got[1]); err != nil {
		return v, err
	}
	v.versions = map[string]redisRecord{}
	for pair := range slices.Chunk(got[3].list, 2) {
		var r redisRecord
		if err := json.Unmarshal([]byte(pair[1].text), &r); err != nil {
			return v, inUse(name + redisVersions)
		}
		v.versions[pair[0].text] = r
	}
	return v, nil
}

// pointed is the version that a pointer names.
func pointed(table string, at reply) (string, error) {
	if at.null {
		return "", nil
	}
	version, ok := strings.CutPrefix(strings.TrimSuffix(at.text, ":"), table+":")
	begun, _, _ := strings.Cut(version, "-")
	if _, err := time.Parse(redisBegun, begun); !ok || err != nil {
		return "", inUse(table + redisPointer)
	}
	return version, nil
}

func inUse(key string) error {
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("the key %s is in use for something else", shown(key)),
		Hint: "give the table another name, or remove the key"}
}

// superseded says why a version must not take the place of the one that counts. there: it has the same rows, of an
// attempt whose end nobody saw.
func (p *redisStaged) superseded(v redisView) (there bool, err error) {
	now := v.versions[v.current]
	switch {
	case v.current == "":
		return false, nil
	case now.same(p.mine) && now.Digest == p.mine.Digest:
		return true, nil
	case now.same(p.mine) && now.Attempt > p.mine.Attempt:
		return false, fault.New(fault.Environment, "a later attempt has written the rows of the batch")
	case !now.same(p.mine) && v.current[:len(redisBegun)] > p.version[:len(redisBegun)]:
		return false, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("table %s was published by a run that began later (%s)", p.t.Table,
				cmp.Or(now.Run, v.current)),
			Hint: "an older run does not replace it: start a new one"}
	}
	return false, nil
}

// begin becomes the writer of the table, once no other one is alive, unless the rows are there: then it is done.
func (p *redisStaged) begin(ctx context.Context) (v redisView, err error) {
	record, err := json.Marshal(p.mine)
	if err != nil {
		return v, fmt.Errorf("make the record of a version: %w", err)
	}
	for end := time.Now().Add(redisWait); ; {
		if v, err = p.look(ctx); err != nil {
			return v, err
		}
		there, err := p.superseded(v)
		if err != nil {
			return v, err
		}
		if holder := v.versions[v.writer]; !there && v.writer != "" &&
			!(holder.same(p.mine) && holder.Attempt <= p.mine.Attempt) {
			if err := p.wait(ctx, holder, end); err != nil {
				return v, err
			}
			continue
		}
		if !there {
			v.writer = p.version
			p.s.add("SET", p.t.Table+redisWriter, p.version, "PX", inMillis(redisLease))
			p.s.add("HSET", p.t.Table+redisVersions, p.version, string(record))
		}
		if _, seen, err := p.s.transaction(ctx); err != nil || seen { // all at one moment
			p.done = there && err == nil
			return v, err
		}
	}
}

// wait waits a moment for another writer, or says that it took too long.
func (p *redisStaged) wait(ctx context.Context, holder redisRecord, end time.Time) error {
	if holder.same(p.mine) {
		return fault.New(fault.Environment, "a later attempt writes the rows of the batch")
	}
	if time.Now().After(end) {
		return &fault.Error{Kind: fault.Environment, Retryable: true,
			Message: fmt.Sprintf("table %s is being written by another run for more than %s: %s", p.t.Table, redisWait,
				cmp.Or(holder.Run, "unknown")), Hint: "let it end"}
	}
	if _, err := p.s.do(ctx, "UNWATCH"); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(redisPoll):
		return nil
	}
}

func inMillis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// unneeded are all versions but the one that counts and that of the writer: no other one can be published any more.
// If somebody else writes, it has removed them, or does.
func (p *redisStaged) unneeded(v redisView) (out []string) {
	for version := range v.versions {
		if version != v.current && version != v.writer && (v.writer == "" || v.writer == p.version ||
			version == p.version) {
			out = append(out, version)
		}
	}
	slices.Sort(out)
	return out
}

// tidy removes the versions that nobody needs.
func (p *redisStaged) tidy(ctx context.Context, v redisView) error {
	for _, version := range p.unneeded(v) {
		if err := p.remove(ctx, p.s, version, v.read); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a version's keys in small steps, and then its record. read: somebody may read them, so the server
// removes them after redisGrace; it may be told so again, by whoever goes on where another one died.
func (p *redisStaged) remove(ctx context.Context, s *redis, version string, read bool) error {
	pattern := globEscape.Replace(p.prefix(version)) + "*"
	for cursor := "0"; ; {
		s.add("SCAN", cursor, "MATCH", pattern, "COUNT", redisScan)
		if !p.done { // of whoever has the lease; another one would only be extended once
			s.add("PEXPIRE", p.t.Table+redisWriter, inMillis(redisLease))
		}
		got, err := s.all(ctx)
		if err != nil {
			return err
		}
		const parts = 2
		if len(got[0].list) != parts {
			return lostRedis(errors.New("SCAN has no answer"))
		}
		if found := got[0].list[1].list; len(found) > 0 {
			for _, k := range found {
				if read {
					s.add("PEXPIRE", k.text, inMillis(redisGrace))
				} else {
					s.add("UNLINK", k.text)
				}
			}
			if _, err := s.all(ctx); err != nil {
				return err
			}
		}
		if cursor = got[0].list[0].text; cursor == "0" {
			_, err := s.do(ctx, "HDEL", p.t.Table+redisVersions, version)
			return err
		}
	}
}

// globEscape takes the meaning from what MATCH takes for more than itself.
var globEscape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "^", `\^`, "-", `\-`)

// Publish implements Staged.
func (p *redisStaged) Publish(ctx context.Context) error {
	if p.done {
		return nil
	}
	v, err := p.publish(ctx)
	if err != nil {
		return p.c.placed(ctx, p.t.URL, err)
	}
	p.done = true
	defer p.s.Close()
	_ = p.tidy(ctx, v) // what stays is removed by the next publication
	return nil
}

// publish lets the pointer name the version, if it is still the writer's.
func (p *redisStaged) publish(ctx context.Context) (v redisView, err error) {
	for {
		if v, err = p.look(ctx); err != nil {
			return v, err
		}
		there, err := p.superseded(v) // by a dead attempt, while the rows came
		if err != nil {
			return v, err
		}
		if !there {
			if v.writer != p.version {
				return v, leaseLost(p.t.Table)
			}
			p.s.add("SET", p.t.Table+redisReplaced, p.version, "PX", inMillis(redisGrace))
			p.s.add("SET", p.t.Table+redisPointer, p.prefix(p.version))
			v.current, v.read = p.version, true
		}
		if v.writer == p.version {
			p.s.add("DEL", p.t.Table+redisWriter)
			v.writer = ""
		}
		if _, done, err := p.s.transaction(ctx); err != nil || done {
			return v, err
		}
	}
}

func leaseLost(table string) error {
	return &fault.Error{Kind: fault.Environment, Retryable: true,
		Message: fmt.Sprintf("another attempt has begun to write table %s, because this one said nothing for %s", table,
			redisLease)}
}

// release lets others write, if this one is the writer. published: its commit was done, unknown to us. After that, or
// if somebody else writes, no commit of it that is still on its way can be.
func (p *redisStaged) release(ctx context.Context, s *redis) (published bool, err error) {
	for {
		s.add("WATCH", p.t.Table+redisWriter)
		s.add("GET", p.t.Table+redisWriter) // before the pointer: a commit sets both at once
		s.add("GET", p.t.Table+redisPointer)
		got, err := s.all(ctx)
		if err != nil {
			return false, err
		}
		if got[1].text != p.version {
			_, err := s.do(ctx, "UNWATCH")
			return got[2].text == p.prefix(p.version), err
		}
		s.add("DEL", p.t.Table+redisWriter)
		if _, done, err := s.transaction(ctx); err != nil || done {
			return false, err
		}
	}
}

// Discard implements Staged.
func (p *redisStaged) Discard(ctx context.Context) error {
	if !p.done {
		p.done = true
		p.s.Close()
		p.abandon(ctx)
	}
	return nil
}

// abandon removes what was not published, by a connection of its own: the other one may be what broke. What stays
// is removed by the next publication.
func (p *redisStaged) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisDiscard)
	defer cancel()
	loc, err := p.c.may(p.t.URL)
	if err != nil {
		return
	}
	s, err := p.c.redis(ctx, loc)
	if err != nil {
		return
	}
	defer s.Close()
	p.done = true
	if published, err := p.release(ctx, s); err != nil || published {
		return
	}
	s.add("HEXISTS", p.t.Table+redisVersions, p.version)
	s.add("GET", p.t.Table+redisReplaced) // it may have been published, and replaced already
	if got, err := s.all(ctx); err == nil && got[0].text == "1" {
		_ = p.remove(ctx, s, p.version, !got[1].null)
	}
}
