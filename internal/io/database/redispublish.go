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
// that is being written, and lapses.
const (
	redisPointer  = ":current"
	redisVersions = ":versions"
	redisWriter   = ":writer"
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
	others, err := p.begin(ctx)
	if err != nil {
		return err
	}
	if p.done {
		p.tidy(ctx, others)
		return nil
	}
	for _, version := range others {
		if err := p.remove(ctx, p.s, version, unlink); err != nil {
			return err
		}
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
	got, err := p.s.all(ctx)
	if err != nil {
		return v, err
	}
	v.writer = got[2].text
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

// begin becomes the writer of the table, once no other one is alive, and tells which versions nobody needs.
func (p *redisStaged) begin(ctx context.Context) (others []string, err error) {
	record, err := json.Marshal(p.mine)
	if err != nil {
		return nil, fmt.Errorf("make the record of a version: %w", err)
	}
	for end := time.Now().Add(redisWait); ; {
		v, err := p.look(ctx)
		if err != nil {
			return nil, err
		}
		if p.done, err = p.superseded(v); p.done || err != nil {
			return p.unneeded(v), err
		}
		if holder := v.versions[v.writer]; v.writer != "" && !(holder.same(p.mine) && holder.Attempt <= p.mine.Attempt) {
			if err := p.wait(ctx, holder, end); err != nil {
				return nil, err
			}
			continue
		}
		p.s.add("SET", p.t.Table+redisWriter, p.version, "PX", leaseMillis())
		p.s.add("HSET", p.t.Table+redisVersions, p.version, string(record))
		if _, done, err := p.s.transaction(ctx); err != nil || done {
			v.writer = p.version
			return p.unneeded(v), err
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

func leaseMillis() string { return strconv.FormatInt(redisLease.Milliseconds(), 10) }

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

// tidy removes versions, now that the publication is done. What stays is removed by the next one.
func (p *redisStaged) tidy(ctx context.Context, versions []string) {
	for _, version := range versions {
		if p.remove(ctx, p.s, version, lapse) != nil {
			return
		}
	}
}

// unlink adds what removes keys at once: nobody reads them.
func unlink(s *redis, keys []string) { s.add(append([]string{"UNLINK"}, keys...)...) }

// lapse adds what lets the server remove keys after redisGrace.
func lapse(s *redis, keys []string) {
	for _, k := range keys {
		s.add("PEXPIRE", k, strconv.FormatInt(redisGrace.Milliseconds(), 10))
	}
}

// remove removes a version's keys in small steps, and then its record.
func (p *redisStaged) remove(ctx context.Context, s *redis, version string, how func(*redis, []string)) error {
	pattern := globEscape.Replace(p.prefix(version)) + "*"
	for cursor := "0"; ; {
		s.add("SCAN", cursor, "MATCH", pattern, "COUNT", redisScan)
		if !p.done { // of whoever has the lease; another one would only be extended once
			s.add("PEXPIRE", p.t.Table+redisWriter, leaseMillis())
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
			keys := make([]string, len(found))
			for i, k := range found {
				keys[i] = k.text
			}
			how(s, keys)
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
	others, err := p.publish(ctx)
	if err != nil {
		return p.c.placed(ctx, p.t.URL, err)
	}
	p.done = true
	defer p.s.Close()
	p.tidy(ctx, others)
	return nil
}

// publish lets the pointer name the version, if it is still the writer's.
func (p *redisStaged) publish(ctx context.Context) (others []string, err error) {
	for {
		v, err := p.look(ctx)
		if err != nil {
			return nil, err
		}
		there, err := p.superseded(v)
		if err != nil {
			return nil, err
		}
		if there { // a dead attempt, while the rows came
			_, err := p.release(ctx, p.s)
			if v.writer == p.version {
				v.writer = ""
			}
			return p.unneeded(v), err
		}
		if v.writer != p.version {
			return nil, leaseLost(p.t.Table)
		}
		p.s.add("SET", p.t.Table+redisPointer, p.prefix(p.version))
		p.s.add("DEL", p.t.Table+redisWriter)
		if _, done, err := p.s.transaction(ctx); err != nil || done {
			v.current, v.writer = p.version, ""
			return p.unneeded(v), err
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
	if there, err := s.do(ctx, "HEXISTS", p.t.Table+redisVersions, p.version); err != nil || there.text != "1" {
		return
	}
	if published, err := p.release(ctx, s); err == nil && !published {
		_ = p.remove(ctx, s, p.version, unlink)
	}
}
