// Package shrink is a part of the bench: giving the free space of the database back, while records are read and saved.
package shrink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"understudy"
	"understudy/bench/rig"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/storetest"
	"understudy/spec"
	"understudy/upstream"
)

const (
	page    = 50               // calls in a page that is read; the pages of erased calls have 1,000
	readers = 4                // each reads a page from the database every readPause
	share   = 5                // one of share records stays
	age     = 37 * time.Second // between two calls of storetest.World

	readPause = 2 * time.Millisecond
	savePause = 20 * time.Millisecond
)

// Measure saves calls, erases four of five for their age, and shrinks the file as store shrink does, in the process that reads
// and saves pages meanwhile. Live bytes are the size of a copy that VACUUM INTO writes of the closed file.
func Measure(ctx context.Context, r *rig.Run) error {
	records := r.Size(1_000_000, 2000)
	m := &measurement{path: filepath.Join(r.Dir, "shrink.db"), world: storetest.NewWorld(11, records), kept: records / share}
	began := time.Now()
	if err := m.fill(ctx); err != nil {
		return err
	}
	r.Say("%d calls saved in %s s", records, rig.Figure(time.Since(began).Seconds()))
	db, err := m.open(ctx, map[string]map[string]time.Duration{storetest.Source: {"calls": time.Duration(m.kept) * age}})
	if err != nil {
		return err
	}
	err = m.shrink(ctx, r, db)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	live, err := m.measureLive(ctx)
	if err != nil {
		return err
	}
	r.Table([][]string{{"database and log", "MiB"}, {"before", rig.Figure(float64(m.before) / rig.Mib)},
		{"after, while open", rig.Figure(float64(m.after) / rig.Mib)}, {"live", rig.Figure(float64(live) / rig.Mib)}})
	r.AtMost("file and log after, over live bytes", float64(m.after)/float64(live), 1.1, "times")
	r.AtMost("p99 of reads meanwhile", rig.Ms(rig.Quantile(m.reads, 0.99)), 50, "ms")
	return nil
}

// measurement is the state of the part.
type measurement struct {
	path          string
	world         *storetest.World
	kept          int // calls that are not erased, the newest
	before, after int64

	mu           sync.Mutex
	reads, saves []time.Duration
	err          error
}

func (m *measurement) open(ctx context.Context, retention map[string]map[string]time.Duration) (*store.DB, error) {
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, store.Options{Path: m.path, Specs: map[string]*spec.Spec{storetest.Source: sp}, Retention: retention,
		Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return storetest.Epoch }})
}

// fill saves all calls without a retention.
func (m *measurement) fill(ctx context.Context) error {
	db, err := m.open(ctx, nil)
	for n, from := 0, 0; err == nil && from < m.world.N; n++ {
		size := 1000
		if from < m.kept {
			size = page
		}
		p, next := m.world.List(size, n, from, storetest.Epoch)
		from = next
		_, err = db.Save(ctx, p)
	}
	if db == nil {
		return err
	}
	return errors.Join(err, db.Close())
}

// shrink erases the calls that are too old, and shrinks the file beside readers and a writer.
func (m *measurement) shrink(ctx context.Context, r *rig.Run, db *store.DB) error {
	began := time.Now()
	n, err := db.Expire(ctx, storetest.Source, "calls")
	if err != nil {
		return err
	}
	if _, err := db.Eraser.EraseListed(ctx, erase.Job{}); err != nil {
		return err
	}
	r.Say("%d of them erased in %s s", n, rig.Figure(time.Since(began).Seconds()))
	r.Say("")
	if n < m.world.N/2 {
		return fmt.Errorf("%d calls were erased of %d", n, m.world.N)
	}
	rows := [][]string{rig.SpreadHead}
	quiet := func() error { return rig.Pause(ctx, r.Long(5*time.Second)) }
	if err := m.beside(ctx, db, quiet); err != nil {
		return err
	}
	rows = append(rows, rig.Spread("read a page, before", m.reads), rig.Spread("save a page, before", m.saves))
	var took time.Duration
	if err := m.beside(ctx, db, func() error {
		began := time.Now()
		before, after, err := db.Shrink(ctx)
		took, m.before, m.after = time.Since(began), before.File+before.WAL, after.File+after.WAL
		return err
	}); err != nil {
		return err
	}
	r.Table(append(rows, rig.Spread("read a page, meanwhile", m.reads), rig.Spread("save a page, meanwhile", m.saves)))
	r.Say("shrunk in %s s", rig.Figure(took.Seconds()))
	r.Say("")
	return nil
}

// beside does work while pages are read and saved.
func (m *measurement) beside(ctx context.Context, db *store.DB, work func() error) error {
	m.reads, m.saves = nil, nil
	inner, stop := context.WithCancel(ctx)
	var users sync.WaitGroup
	for n := range readers {
		users.Go(func() {
			m.repeat(inner, n, &m.reads, readPause, func(p *understudy.Page) error { _, err := db.ReadPage(ctx, p.Key); return err })
		})
	}
	users.Go(func() {
		m.repeat(inner, 0, &m.saves, savePause, func(p *understudy.Page) error { _, err := db.Save(ctx, p); return err })
	})
	err := work()
	stop()
	users.Wait()
	return errors.Join(err, m.err)
}

// repeat calls do with one kept page after the other until the context ends, and notes how long each call took.
func (m *measurement) repeat(ctx context.Context, n int, took *[]time.Duration, pause time.Duration, do func(p *understudy.Page) error) {
	for pages := m.kept / page; ; n = (n + 7) % pages {
		p, _ := m.world.List(page, n, n*page, storetest.Epoch)
		began := time.Now()
		err := do(p)
		m.mu.Lock()
		*took = append(*took, time.Since(began))
		m.err = errors.Join(m.err, err)
		m.mu.Unlock()
		if err != nil || rig.Pause(ctx, pause) != nil {
			return
		}
	}
}

// measureLive returns the size of a copy of the closed file without free pages.
func (m *measurement) measureLive(ctx context.Context) (int64, error) {
	db, err := sql.Open("sqlite", "file:"+m.path+"?mode=ro")
	if err != nil {
		return 0, err
	}
	copied := m.path + "-copy"
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", copied)
	if err := errors.Join(err, db.Close()); err != nil {
		return 0, err
	}
	info, err := os.Stat(copied)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
