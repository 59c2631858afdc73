// This file erases a record, or all records with a phone number, from the data folder.

package operations

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/diagnostics"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/contents"
	"understudy/internal/store/erase"
	"understudy/kit/retry"
	"understudy/mirror"
	"understudy/spec"
)

// newReceipt returns the receipt of an erasure.
func newReceipt(e erase.Erasure) diagnostics.Receipt {
	return diagnostics.Receipt{Number: e.Number, Source: e.Source, Cause: e.Cause.String(), Hash: e.Hash, Begun: e.Begun, Done: e.Done.UTC(),
		Records: e.Records, Versions: e.Versions, Pages: e.Pages, Files: e.Files}
}

const (
	eraseJob  = "erase records"
	expireJob = "expire records"

	eraseInterval  = time.Hour // the interval of additional runs, in case a wake-up was lost
	expireInterval = 24 * time.Hour
)

// Eraser schedules records for erasure, and erases them in jobs. All fields must be set before any method except
// Notify is called.
type Eraser struct {
	Shrinker  Shrinker                            // gives the space back that erasures have left
	Archiver  Archiver                            // writes backups; erasures wait while it copies the database
	Delay     time.Duration                       // the wait before a job, so that one job erases many scheduled records
	Retention map[string]map[string]time.Duration // the maximum age of records by source and kind
	Wake      chan struct{}                       // wakes the eraser; its buffer has one element
	Sources   []*spec.Source
	DB        *store.DB
	Files     contents.Store
	Mirror    *mirror.Mirror
	Jobs      *jobs.Runner
	Erased    func(source string) // called after records of a source were erased; may be nil
	// Tables deletes the rows of erased records from the tables of a source (erase.Job.Copies). It may be nil.
	Tables func(ctx context.Context, source string, aged bool) error
	Log    *slog.Logger

	runs atomic.Int64 // the number of runs begun; part of the job's key, so that a wake-up during a run adds another job
}

// Notify signals that records were scheduled for erasure. It never blocks, because its caller may hold locks that
// the job needs.
func (h *Eraser) Notify() {
	understudy.Wake(h.Wake)
}

// JobKinds returns the kinds of the eraser's jobs. An offline command needs only the kind that it adds itself.
func (h *Eraser) JobKinds(offline bool) []jobs.Kind {
	listed := jobs.Kind{Name: eraseJob, Run: h.eraseListed, Local: true, Concurrency: 1, Attempts: 20, MaxBackoff: 5 * time.Minute}
	if offline {
		return []jobs.Kind{listed}
	}
	listed.Schedule = jobs.Every(eraseInterval)
	kinds := []jobs.Kind{listed}
	if len(h.Retention) > 0 {
		kinds = append(kinds, jobs.Kind{
			Name: expireJob, Run: h.expire, Local: true, Concurrency: 1, Lane: understudy.PrioritySteady, Schedule: jobs.Every(expireInterval),
		})
	}
	return kinds
}

// eraseListed erases the scheduled records.
func (h *Eraser) eraseListed(ctx context.Context, r *jobs.Run) error {
	h.runs.Add(1) // records scheduled from now on may not be part of this run
	done, err := h.DB.Eraser.EraseListed(ctx, erase.Job{
		Files: h.Files, Gone: h.Mirror.DropErased, Copies: h.Tables,
		Progress: func(done, total int64) { r.SetProgress(done, total, "") },
	})
	for _, e := range done {
		if h.Erased != nil {
			h.Erased(e.Source)
		}
		h.Log.Info("erased", "receipt", e.Number, "source", e.Source, "cause", e.Cause.String(), "records", e.Records, "versions", e.Versions,
			"pages", e.Pages, "files", e.Files)
	}
	return err
}

// expire schedules the records that are older than their retention.
func (h *Eraser) expire(ctx context.Context, r *jobs.Run) error {
	var done, total int64
	for _, kinds := range h.Retention {
		total += int64(len(kinds))
	}
	listed := 0
	for _, source := range slices.Sorted(maps.Keys(h.Retention)) {
		for _, kind := range slices.Sorted(maps.Keys(h.Retention[source])) {
			n, err := h.DB.Expire(ctx, source, kind)
			if listed += n; err != nil {
				return err
			}
			done++
			r.SetProgress(done, total, fmt.Sprintf("%d records are older than their retention", listed))
		}
	}
	if listed > 0 {
		h.Notify()
	}
	return nil
}

// Run adds a job when records were scheduled. It waits for more records first, because each job reads the whole file.
func (h *Eraser) Run(ctx context.Context) error {
	if w, err := h.DB.Eraser.CountWaiting(ctx); err != nil || w.Records > 0 {
		h.Notify() // an earlier process may have ended before its job ran
	}
	if len(h.Retention) > 0 { // the retention may be shorter than in the earlier process
		if _, err := h.Jobs.Enqueue(ctx, understudy.Job{Kind: expireJob, Key: "start"}); err != nil {
			h.Log.Error("retention waits for its time of day", "err", err)
		}
	}
	for {
		select {
		case <-h.Wake:
		case <-ctx.Done():
			return nil
		}
		if _, err := h.Jobs.Enqueue(ctx, understudy.Job{Kind: eraseJob, Key: fmt.Sprint("listed ", h.runs.Load()),
			Priority: understudy.PrioritySteady, RunAfter: h.DB.Jobs.Now().Add(h.Delay)}); err != nil {
			h.Log.Error("erasing waits for its time of day", "err", err)
		}
		if retry.Wait(ctx, h.Delay/2) != nil { // sweeps signal often, so one job should handle many signals
			return nil
		}
	}
}

// Erase schedules records in the running application and starts a job at once, because the caller waits for the receipt.
func (h *Eraser) Erase(ctx context.Context, e diagnostics.Erase) (diagnostics.Erasing, error) {
	got, err := h.List(ctx, e)
	if err == nil && got.Receipt != nil {
		_, err = h.Jobs.Enqueue(ctx, understudy.Job{Kind: eraseJob, Key: fmt.Sprint("receipt ", got.Receipt.Number),
			Priority: understudy.PrioritySoon})
	}
	return got, err
}

// List schedules the records of a phone number for erasure. If e.Dry is true, it only counts them.
func (h *Eraser) List(ctx context.Context, e diagnostics.Erase) (got diagnostics.Erasing, err error) {
	if _, err := findSource(h.Sources, e.Source); err != nil {
		return got, err
	}
	if n := understudy.ParsePhone(e.What); n.Digits != "" && !n.HasCountryCode && len(n.Digits) < understudy.MinNationalDigits {
		return got, newInvalid("%d digits are too few to identify a number: write at least %d, "+
			"or the whole number with its country code, such as +14155550100",
			len(n.Digits), understudy.MinNationalDigits)
	}
	kinds, err := h.DB.ReadKinds(ctx, e.Source)
	if err != nil || len(kinds) == 0 {
		return got, err // no record was ever stored
	}
	var found erase.Found
	if e.Dry || !e.Own {
		if found, err = h.DB.Eraser.Find(ctx, e.Source, e.What); err != nil {
			return got, err
		}
		number := !strings.Contains(e.What, "/")
		if got.Own = number && hasOwn(h.Sources, e.Source, found.Kinds); got.Own && !e.Dry {
			return got, newInvalid("it is one of the account's own numbers, so everything sent or received with it would be erased; add " +
				"--own to erase it")
		}
	}
	if !e.Dry {
		var one erase.Erasure
		if one, found, err = h.DB.Eraser.EraseNumber(ctx, e.Source, e.What); one.Number != 0 {
			r := newReceipt(one)
			got.Receipt = &r
		}
	}
	got.Found = found.Kinds
	return got, err
}

// hasOwn reports whether the found kinds include our own phone numbers.
func hasOwn(sources []*spec.Source, source string, found map[string]int) bool {
	src := spec.FindSource(sources, source)
	return src != nil && slices.ContainsFunc(src.Spec.Kinds, func(k *spec.Kind) bool { return k.OwnNumber != "" && found[k.Name] > 0 })
}

// ListReceipts returns the erasures with numbers below before, and how many records wait for erasure.
func (h *Eraser) ListReceipts(ctx context.Context, before int64, limit int) (all diagnostics.Receipts, err error) {
	if all.Waiting, err = h.DB.Eraser.CountWaiting(ctx); err != nil {
		return all, err
	}
	list, err := h.DB.Eraser.ReadErasures(ctx, before, limit)
	for _, e := range list {
		all.Erasures = append(all.Erasures, newReceipt(e))
	}
	if err == nil && len(list) > 0 && !list[0].Done.IsZero() {
		all.Residue, err = h.DB.Eraser.ListResidue(ctx)
	}
	return all, err
}
