// Rebuild: indexes that were broken off halfway, and the job that finishes them.

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"understudy/internal/datadir"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// brokenOff rebuilds the indexes until the first records are in them, and says
// how far that was.
func brokenOff(ctx context.Context, db *store.DB) (done, total int64, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err = errors.Join(db.Index.Clear(ctx), db.Index.Build(ctx, func(d, all int64) {
		done, total = d, all
		stop()
	}))
	return done, total, err
}

var anyMessage = query.RecordQuery{Text: &query.Text{Op: query.TextPrefix, Words: []string{"a"}}}

// cmdBreakOff breaks a rebuild off in a folder no server uses, and prints how
// far it was and what is said to who looks for a word:
//
//	breakoff DIR
func cmdBreakOff(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: breakoff DIR")
	}
	db, err := store.Open(context.Background(), store.Options{Path: filepath.Join(ts.MkAbs(args[0]), datadir.StoreFile)})
	ts.Check(err)
	defer func() { ts.Check(db.Close()) }()
	done, total, err := brokenOff(context.Background(), db)
	if !errors.Is(err, context.Canceled) {
		ts.Fatalf("%v, want that it was broken off", err)
	}
	if done == 0 || done >= total {
		ts.Fatalf("%d of %d", done, total)
	}
	fmt.Fprintf(ts.Stdout(), "%d of %d\n", done, total)
	err = db.Seek(context.Background(), anyMessage, func(query.Hit) bool { return true })
	fmt.Fprintln(ts.Stdout(), err)
}

// cmdDamage clears the first page of a table in a folder no server uses:
//
//	damage DIR TABLE
func cmdDamage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: damage DIR TABLE")
	}
	ts.Check(storetest.Damage(filepath.Join(ts.MkAbs(args[0]), datadir.StoreFile), args[1]))
}
