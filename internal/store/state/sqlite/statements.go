package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// pool is connections to the file, and the statements that they know: parsing
// them anew each time took half of the processor time of a claim or a commit.
type pool struct {
	*sql.DB
	mu       sync.Mutex
	prepared map[string]*sql.Stmt
	asked    []string // by transactions, and not prepared yet
}

// txn is a transaction that uses its pool's prepared statements.
type txn struct {
	*sql.Tx
	pool *pool
}

// find gives a statement as the transaction can use it; nil if it is to be
// prepared first. That needs a connection, and a transaction may have the only one.
func (t *txn) find(ctx context.Context, query string) *sql.Stmt {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	if known := t.pool.prepared[query]; known != nil {
		return t.StmtContext(ctx, known)
	}
	t.pool.asked = append(t.pool.asked, query)
	return nil
}

// ExecContext shadows that of sql.Tx. Its query is one statement.
func (t *txn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if known := t.find(ctx, query); known != nil {
		return known.ExecContext(ctx, args...)
	}
	return t.Tx.ExecContext(ctx, query, args...)
}

// QueryContext shadows that of sql.Tx.
func (t *txn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if known := t.find(ctx, query); known != nil {
		return known.QueryContext(ctx, args...)
	}
	return t.Tx.QueryContext(ctx, query, args...)
}

// QueryRowContext shadows that of sql.Tx.
func (t *txn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if known := t.find(ctx, query); known != nil {
		return known.QueryRowContext(ctx, args...)
	}
	return t.Tx.QueryRowContext(ctx, query, args...)
}

// prepare prepares what transactions have asked for. What cannot be prepared now
// is asked for again.
func (p *pool) prepare(ctx context.Context) {
	p.mu.Lock()
	asked := p.asked
	p.asked = nil
	p.mu.Unlock()
	for _, query := range asked {
		stmt, err := p.PrepareContext(ctx, query)
		if err != nil {
			return
		}
		p.mu.Lock()
		if p.prepared[query] == nil {
			p.prepared[query], stmt = stmt, nil
		}
		p.mu.Unlock()
		if stmt != nil {
			_ = stmt.Close() // another one was there before: this one was never used
		}
	}
}
