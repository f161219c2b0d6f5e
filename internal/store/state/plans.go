package state

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"thalweg/internal/base/fault"
)

// Plan is a node's work, as its planner decides it.
type Plan struct {
	Record      []byte      // see Node.Plan
	Batches     []BatchSpec // numbered from 0 in order; none is legal
	Inputs      []Input     // files that it reads
	InputDigest string
	ReusedFrom  *NodeKey
}

// Standing is the plan that a node has now.
type Standing struct {
	Digest string
	Mine   bool // it is the one that was given
}

// PlanNode stores a plan, piece by piece under its digest, and makes it the
// node's by one conditional step that moves the node from Pending to Running.
// Planners that agree are one; one that differs finds that another plan
// stands, which is then the node's. ErrConflict as Store.AdoptPlan.
func PlanNode(ctx context.Context, s Store, key NodeKey, epoch int64, p Plan, actor string,
	now time.Time) (Standing, error) {
	for i, b := range p.Batches {
		if b.Batch != i {
			return Standing{}, fault.New(fault.Bug,
				"batches of node %s are not numbered in order: number %d at place %d", key.Node, b.Batch, i)
		}
	}
	digest := p.digest()
	rest := PlanPiece{Batches: p.Batches, Inputs: p.Inputs}
	for len(rest.Batches) > PageMax || len(rest.Inputs) > PageMax {
		piece := rest
		piece.Batches, rest.Batches = cut(rest.Batches)
		piece.Inputs, rest.Inputs = cut(rest.Inputs)
		rest.First += len(piece.Inputs)
		if err := s.StagePlan(ctx, key, digest, piece); err != nil {
			return Standing{}, fmt.Errorf("store a piece of the plan of %s: %w", key.Node, err)
		}
	}
	standing, err := s.AdoptPlan(ctx, key, Adoption{
		Epoch: epoch, Digest: digest, Record: p.Record, Batches: len(p.Batches), InputDigest: p.InputDigest,
		ReusedFrom: p.ReusedFrom, Rest: rest, Actor: actor, Now: now,
	})
	return Standing{Digest: standing, Mine: standing == digest}, err
}

// cut takes a page off a list.
func cut[T any](all []T) (page, rest []T) {
	n := min(len(all), PageMax)
	return all[:n], all[n:]
}

// digest identifies a plan's contents. Each field is preceded by its length,
// so that no two plans can run together to the same bytes.
func (p Plan) digest() string {
	h := sha256.New()
	var word [8]byte
	number := func(n int64) {
		binary.BigEndian.PutUint64(word[:], uint64(n))
		h.Write(word[:])
	}
	text := func(b []byte) {
		number(int64(len(b)))
		h.Write(b)
	}
	text(p.Record)
	number(int64(len(p.Batches)))
	for _, b := range p.Batches {
		number(int64(b.Phase))
		number(b.RowsIn)
		number(b.BytesIn)
		text([]byte(b.Class))
		text(b.Work)
	}
	for _, in := range p.Inputs {
		text([]byte(in.Address))
		number(in.Bytes)
		number(in.Time.UnixMilli())
		text([]byte(in.Digest))
		number(in.Rows)
	}
	text([]byte(p.InputDigest))
	if p.ReusedFrom != nil {
		text([]byte(p.ReusedFrom.Workspace))
		number(p.ReusedFrom.Run)
		text([]byte(p.ReusedFrom.Node))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
