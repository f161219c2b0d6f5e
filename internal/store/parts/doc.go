// Package parts owns the notion of a part: an immutable object under a key,
// which holds rows of one table (Parquet, but nothing here looks inside). It
// holds the interface of the part store, the rules for keys, and the checksum;
// parts/local is the store on a disk, parts/cache makes a store of any backend
// without paths, and parts/partstest is the suite that every store passes.
//
// It promises, through that suite: a part is visible whole or not at all, is
// durable once Put has returned, and never changes. Which parts belong to a
// table is not decided here but by the manifest in package state: a part
// without a manifest entry is waste, which a sweep may delete.
//
// What can fail: ErrNotFound, ErrExists and ErrCorrupt, on which callers
// decide; *fault.Error of kind Environment (disk full, no permission, network)
// and of kind Bug for a bad key; the context's error.
package parts
