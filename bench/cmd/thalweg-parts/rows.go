package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/store/cassandra"
)

// A transaction is the account, the day, the ticker, a quantity and a price.
const (
	rowTable  = `CREATE TABLE IF NOT EXISTS transactions (id bigint PRIMARY KEY, account text, day int, ticker text, quantity int, price double)`
	rowInsert = `INSERT INTO transactions (id, account, day, ticker, quantity, price) VALUES (?, ?, ?, ?, ?, ?)`
	accounts  = 1000
	tickers   = 500
	days      = 2500
)

// inserts measures single rows, for each number in flight.
func inserts(ctx context.Context, session *cassandra.Session, o options, out *figures) error {
	out.Inserts = map[string]float64{}
	if _, err := insertSome(ctx, session, o, o.InFlight[0], 0); err != nil { // the node warms up
		return err
	}
	for i, n := range o.InFlight {
		rate, err := insertSome(ctx, session, o, n, (i+1)*o.Inserts)
		if err != nil {
			return err
		}
		out.Inserts[fmt.Sprint(n)] = rate
		if rate > out.Insert {
			out.Insert, out.InsertInFlight = rate, n
		}
	}
	return nil
}

// insertSome inserts rows from a number on and gives how many a second.
func insertSome(ctx context.Context, session *cassandra.Session, o options, inFlight, from int) (float64, error) {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	began := time.Now()
	for w := range inFlight {
		rng := rand.New(rand.NewPCG(uint64(o.Seed), uint64(from+w))) //nolint:gosec // data, not a secret
		group.Go(func() error {
			for i := next.Add(1); i <= int64(o.Inserts); i = next.Add(1) {
				q := session.Query(rowInsert, int64(from)+i, fmt.Sprintf("A%06d", rng.IntN(accounts)), rng.IntN(days),
					fmt.Sprintf("T%03d", rng.IntN(tickers)),
					rng.IntN(1000), float64(rng.IntN(100_000))/100)
				if err := q.Idempotent(true).ExecContext(ctx); err != nil {
					return cassandra.Fault("insert a row", err)
				}
			}
			return nil
		})
	}
	err := group.Wait()
	return float64(o.Inserts) / time.Since(began).Seconds(), err
}
