// Eraser: the jobs that carry out what is listed and look for what is too old.

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/diagnostics"
	"understudy/internal/jobs"
	"understudy/internal/store"
)

const (
	eraseJob  = "erase records"
	expireJob = "expire records"

	defaultErase = 10 * time.Second // what is listed is gathered for
	eraseEvery   = time.Hour        // a look, should a bell have been lost
	expireEvery  = 24 * time.Hour
)

// erasing rings for the job that erases.
type erasing struct {
	bell chan struct{}
	runs *atomic.Int64 // begun; in the job's key, so that a bell during a run adds another
}

func newErasing() erasing { return erasing{bell: make(chan struct{}, 1), runs: new(atomic.Int64)} }

// key is that of the job which will see what is listed by now.
func (e erasing) key() string { return fmt.Sprint("listed ", e.runs.Load()) }

// ring never waits: who rings may hold what the job needs.
func (e erasing) ring() {
	select {
	case e.bell <- struct{}{}:
	default:
	}
}

// eraseKinds are the jobs.
func (h *house) eraseKinds() []jobs.Kind {
	kinds := []jobs.Kind{{Name: eraseJob, Run: h.eraseListed, Concurrency: 1, Attempts: 20, MaxBackoff: 5 * time.Minute, Every: eraseEvery}}
	if len(h.cfg.Retention) > 0 {
		kinds = append(kinds, jobs.Kind{Name: expireJob, Run: h.expire, Concurrency: 1, Lane: understudy.Steady, Every: expireEvery})
	}
	return kinds
}

// eraseListed is the job that carries out what is listed.
func (h *house) eraseListed(ctx context.Context, r *jobs.Run) error {
	h.erasing.runs.Add(1) // what is listed from here on may escape it
	done, err := h.db.CarryOut(ctx, store.Eraser{
		Files: h.files, Gone: h.mirror.Erased,
		Progress: func(done, total int64) { r.Progress(done, total, "") },
	})
	for _, e := range done {
		if h.feed != nil {
			h.feed.Forget(e.Source)
		}
		h.log.Info("erased", "receipt", e.Number, "source", e.Source, "cause", e.Cause.String(), "records", e.Records, "versions", e.Versions, "pages", e.Pages, "files", e.Files)
	}
	return err
}

// expire is the job that lists what is past its retention.
func (h *house) expire(ctx context.Context, r *jobs.Run) error {
	var done, total int64
	for _, kinds := range h.cfg.Retention {
		total += int64(len(kinds))
	}
	listed := 0
	for _, source := range slices.Sorted(maps.Keys(h.cfg.Retention)) {
		for _, kind := range slices.Sorted(maps.Keys(h.cfg.Retention[source])) {
			n, err := h.db.Expire(ctx, source, kind)
			if listed += n; err != nil {
				return err
			}
			done++
			r.Progress(done, total, fmt.Sprintf("%d records are too old", listed))
		}
	}
	if listed > 0 {
		h.erasing.ring()
	}
	return nil
}

// eraseSoon adds the job when something was listed, gathering what comes with
// it: each run reads the whole file once.
func (h *house) eraseSoon(ctx context.Context) error {
	delay := h.cfg.Store.EraseAfter.Std()
	if delay == 0 {
		delay = defaultErase
	}
	if w, err := h.db.Waiting(ctx); err != nil || w.Records > 0 {
		h.erasing.ring() // the last process ended before it was done
	}
	if _, err := h.indexSoon(ctx); err != nil {
		h.log.Error("searches wait for the indexes", "err", err)
	}
	if len(h.cfg.Retention) > 0 { // it may be shorter than it was
		if _, err := h.jobs.Enqueue(ctx, understudy.Job{Kind: expireJob, Key: "start"}); err != nil {
			h.log.Error("retention waits for its hour", "err", err)
		}
	}
	for {
		select {
		case <-h.erasing.bell:
		case <-ctx.Done():
			return nil
		}
		if _, err := h.jobs.Enqueue(ctx, understudy.Job{Kind: eraseJob, Key: h.erasing.key(), Lane: understudy.Steady, RunAfter: time.Now().Add(delay)}); err != nil {
			h.log.Error("erasing waits for its hour", "err", err)
		}
		t := time.NewTimer(delay / 2) // a busy sweep rings often
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil
		}
	}
}

// erase lists for the running house; who asked waits for the receipt.
func (h *house) erase(ctx context.Context, e diagnostics.Erase) (diagnostics.Erasing, error) {
	got, err := eraseIn(ctx, h.db, h.sources, e)
	if err == nil && got.Receipt != nil {
		_, err = h.jobs.Enqueue(ctx, understudy.Job{Kind: eraseJob, Key: fmt.Sprint("receipt ", got.Receipt.Number), Lane: understudy.Soon})
	}
	return got, err
}

func (h *house) receipts(ctx context.Context, before int64, limit int) (diagnostics.Receipts, error) {
	return receiptsIn(ctx, h.db, before, limit)
}

// erasingStats is what waits to be erased.
func (h *house) erasingStats(ctx context.Context) (diagnostics.Waiting, error) {
	w, err := h.db.Waiting(ctx)
	return diagnostics.Waiting{Records: w.Records, Since: known(w.Since)}, err
}
