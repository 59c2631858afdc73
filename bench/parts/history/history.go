// Package history is a part of the bench: what a record's past takes on disk.
package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"understudy/bench/rig"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/spec"
	"understudy/upstream"
)

// Measure saves the same calls into two stores: once, and once with five
// changes of each after that, a day apart. What a store takes is its file once
// it is closed, everything in it included: pages, indexes, changes, free space.
func Measure(ctx context.Context, r *rig.Run) error {
	records, changes := r.Size(100_000, 2000), 5
	rows := [][]string{{fmt.Sprintf("%d calls", records), "MiB", "bytes/record", "versions/record"}}
	var perRecord [2]float64
	for i, steps := range []int{0, changes} {
		size, versions, err := pastOf(ctx, r, fmt.Sprintf("history-%d.db", steps), records, steps)
		if err != nil {
			return err
		}
		if versions != steps+1 {
			return fmt.Errorf("a record that changed %d times has %d versions", steps, versions)
		}
		perRecord[i] = float64(size) / float64(records)
		rows = append(rows, []string{fmt.Sprintf("changed %d times", steps), rig.Figure(float64(size) / rig.Mib), rig.Figure(perRecord[i]), fmt.Sprint(versions)})
	}
	r.Table(rows)
	r.AtMost("a record that changed five times over one version", perRecord[1]/perRecord[0], 2.5, "times")
	return nil
}

// pastOf fills a store and gives its size, and how many versions of one record
// it tells of.
func pastOf(ctx context.Context, r *rig.Run, name string, records, steps int) (size int64, versions int, err error) {
	path := filepath.Join(r.Dir, name)
	now := storetest.Epoch
	open := func() (*store.DB, error) {
		sp, err := upstream.ReadBuiltIn("twilio")
		if err != nil {
			return nil, err
		}
		return store.Open(ctx, store.Options{
			Path: path, Specs: map[string]*spec.Spec{storetest.Source: sp}, Logger: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return now },
		})
	}
	db, err := open()
	if err != nil {
		return 0, 0, err
	}
	w := storetest.NewWorld(9, records)
	for step := range steps + 1 {
		if step > 0 {
			now = now.Add(24 * time.Hour)
			for i := range records {
				w.Changed[i] = step
			}
		}
		for n, from := 0, 0; from < records; n++ {
			p, next := w.List(1000, n, from, now)
			from = next
			if _, err := db.Save(ctx, p); err != nil {
				return 0, 0, errors.Join(err, db.Close())
			}
		}
	}
	past, err := db.ReadHistory(ctx, storetest.Source, "calls", w.ID(records/2), 100)
	if err := errors.Join(err, db.Close()); err != nil {
		return 0, 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	return info.Size(), len(past), nil
}
