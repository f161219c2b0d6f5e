package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/run/engine"
)

// node is a map of DuckDB's parse tree as JSON.
type node map[string]any

// parsed is the answer of DuckDB's parser.
type parsed struct {
	Error      bool   `json:"error"`
	Kind       string `json:"error_type"`
	Message    string `json:"error_message"`
	Position   string `json:"position"`
	Statements []struct {
		Node node `json:"node"`
	} `json:"statements"`
}

// parse has DuckDB parse a text.
func parse(ctx context.Context, in *engine.Instance, text string) (p parsed, err error) {
	out, err := one(ctx, in, "SELECT CAST(json_serialize_sql("+sqltext.String(text)+
		", skip_null := true, skip_empty := true) AS VARCHAR)")
	if err != nil {
		return p, fmt.Errorf("parse the query: %w", err)
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.UseNumber()
	if err := d.Decode(&p); err != nil {
		return p, fmt.Errorf("read the parsed query: %w", err)
	}
	return p, nil
}

// plan has DuckDB bind a text and gives its logical plan; nil if it cannot be
// written down. What is empty is in it: the last of GROUPING SETS ((a), ()) counts.
func plan(ctx context.Context, in *engine.Instance, text string) any {
	out, err := one(ctx, in, "SELECT CAST(json_serialize_plan("+sqltext.String(text)+", skip_null := true) AS VARCHAR)")
	if err != nil {
		return nil
	}
	var p struct {
		Error bool `json:"error"`
		Plans any  `json:"plans"`
	}
	if json.NewDecoder(bytes.NewReader([]byte(out))).Decode(&p) != nil || p.Error {
		return nil
	}
	return p.Plans
}

// one reads the only cell of a query.
func one(ctx context.Context, in *engine.Instance, query string) (out string, err error) {
	rows, err := in.Query(ctx, query)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return "", errors.Join(rows.Err(), errors.New("no row"))
	}
	return out, rows.Scan(&out)
}

func (n node) text(key string) string {
	s, _ := n[key].(string)
	return s
}

func (n node) lower(key string) string { return strings.ToLower(n.text(key)) }

func (n node) truth(key string) bool {
	b, _ := n[key].(bool)
	return b
}

func (n node) child(key string) node { return asNode(n[key]) }

func asNode(v any) node {
	switch m := v.(type) {
	case node:
		return m
	case map[string]any:
		return m
	}
	return nil
}

func (n node) list(key string) []node {
	items, _ := n[key].([]any)
	out := make([]node, 0, len(items))
	for _, v := range items {
		out = append(out, asNode(v))
	}
	return out
}

// location is the byte of the text that a node stands at; -1: not known.
func (n node) location() int {
	v, ok := n["query_location"].(json.Number)
	if !ok {
		return -1
	}
	at, err := strconv.ParseInt(v.String(), 10, 64)
	if err != nil {
		return -1 // the greatest number stands for none
	}
	return int(at)
}

// first is the smallest location in a node and all below it; -1: none.
func (n node) first() int {
	at := n.location()
	each(map[string]any(n), func(inner node) {
		if l := inner.location(); l >= 0 && (at < 0 || l < at) {
			at = l
		}
	})
	return at
}

// each visits all maps of a tree, in an order that depends only on the tree.
func each(v any, visit func(node)) {
	switch v := v.(type) {
	case node:
		each(map[string]any(v), visit)
	case map[string]any:
		visit(v)
		for _, key := range sorted(v) {
			each(v[key], visit)
		}
	case []any:
		for _, item := range v {
			each(item, visit)
		}
	}
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
