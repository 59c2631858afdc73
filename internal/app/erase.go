// Erase: takes what belongs to a number or a record out of the data folder.

package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/config"
	"understudy/internal/diagnostics"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/contents"
	"understudy/internal/store/erase"
	"understudy/mirror"
	"understudy/spec"
)

func receiptOf(e erase.Erasure) diagnostics.Receipt {
	return diagnostics.Receipt{Number: e.Number, Source: e.Source, Cause: e.Cause.String(), Hash: e.Hash, Begun: e.Begun, Done: known(e.Done),
		Records: e.Records, Versions: e.Versions, Pages: e.Pages, Files: e.Files}
}

const (
	eraseJob  = "erase records"
	expireJob = "expire records"

	defaultErase = 10 * time.Second // what is listed is gathered for
	eraseEvery   = time.Hour        // a look, in case a wake-up was lost
	expireEvery  = 24 * time.Hour
)

// eraser lists what is to be erased, and erases it in jobs.
type eraser struct {
	delay     time.Duration                       // what is listed is gathered for
	retention map[string]map[string]time.Duration // by source and kind
	sources   []*spec.Source
	log       *slog.Logger
	wake      chan struct{}
	runs      atomic.Int64 // begun; in the job's key, so that a wake-up during a run adds another

	db     *store.DB
	files  *contents.Files
	mirror *mirror.Mirror
	jobs   *jobs.Runner
	forget func(source string) // called after records of a source were erased
}

func newEraser(cfg *config.Settings, sources []*spec.Source, log *slog.Logger) *eraser {
	return &eraser{delay: cmp.Or(cfg.Store.EraseAfter.Std(), defaultErase), retention: cfg.Retained(), sources: sources, log: log,
		wake: make(chan struct{}, 1), forget: func(string) {}}
}

// ring notes that something was listed. It never waits: its caller may hold what the job needs.
func (h *eraser) ring() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// kinds returns the kinds of the jobs. A command that is offline has the one that it adds itself.
func (h *eraser) kinds(offline bool) []jobs.Kind {
	listed := jobs.Kind{Name: eraseJob, Run: h.eraseListed, Concurrency: 1, Attempts: 20, MaxBackoff: 5 * time.Minute}
	if offline {
		return []jobs.Kind{listed}
	}
	listed.Schedule = jobs.Every(eraseEvery)
	kinds := []jobs.Kind{listed}
	if len(h.retention) > 0 {
		kinds = append(kinds, jobs.Kind{
			Name: expireJob, Run: h.expire, Concurrency: 1, Lane: understudy.Steady, Schedule: jobs.Every(expireEvery),
		})
	}
	return kinds
}

// eraseListed is the job that carries out what is listed.
func (h *eraser) eraseListed(ctx context.Context, r *jobs.Run) error {
	h.runs.Add(1) // what is listed from here on may escape it
	done, err := h.db.EraseListed(ctx, erase.Job{
		Files: h.files, Gone: h.mirror.Erased,
		Progress: func(done, total int64) { r.Progress(done, total, "") },
	})
	for _, e := range done {
		h.forget(e.Source)
		h.log.Info("erased", "receipt", e.Number, "source", e.Source, "cause", e.Cause.String(), "records", e.Records, "versions", e.Versions,
			"pages", e.Pages, "files", e.Files)
	}
	return err
}

// expire is the job that lists what is past its retention.
func (h *eraser) expire(ctx context.Context, r *jobs.Run) error {
	var done, total int64
	for _, kinds := range h.retention {
		total += int64(len(kinds))
	}
	listed := 0
	for _, source := range slices.Sorted(maps.Keys(h.retention)) {
		for _, kind := range slices.Sorted(maps.Keys(h.retention[source])) {
			n, err := h.db.Expire(ctx, source, kind)
			if listed += n; err != nil {
				return err
			}
			done++
			r.Progress(done, total, fmt.Sprintf("%d records are too old", listed))
		}
	}
	if listed > 0 {
		h.ring()
	}
	return nil
}

// run adds the job when something was listed, gathering what comes with
// it: each job reads the whole file once.
func (h *eraser) run(ctx context.Context) error {
	if w, err := h.db.Waiting(ctx); err != nil || w.Records > 0 {
		h.ring() // the last process ended before it was done
	}
	if len(h.retention) > 0 { // it may be shorter than it was
		if _, err := h.jobs.Enqueue(ctx, understudy.Job{Kind: expireJob, Key: "start"}); err != nil {
			h.log.Error("retention waits for its hour", "err", err)
		}
	}
	for {
		select {
		case <-h.wake:
		case <-ctx.Done():
			return nil
		}
		if _, err := h.jobs.Enqueue(ctx, understudy.Job{Kind: eraseJob, Key: fmt.Sprint("listed ", h.runs.Load()),
			Priority: understudy.Steady, RunAfter: time.Now().Add(h.delay)}); err != nil {
			h.log.Error("erasing waits for its hour", "err", err)
		}
		t := time.NewTimer(h.delay / 2) // a busy sweep rings often
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil
		}
	}
}

// erase lists for the running application; the caller waits for the receipt.
func (h *eraser) erase(ctx context.Context, e diagnostics.Erase) (diagnostics.Erasing, error) {
	got, err := h.list(ctx, e)
	if err == nil && got.Receipt != nil {
		_, err = h.jobs.Enqueue(ctx, understudy.Job{Kind: eraseJob, Key: fmt.Sprint("receipt ", got.Receipt.Number), Priority: understudy.Soon})
	}
	return got, err
}

// list lists what belongs to a number, or only looks.
func (h *eraser) list(ctx context.Context, e diagnostics.Erase) (got diagnostics.Erasing, err error) {
	if _, err := findSource(h.sources, e.Source); err != nil {
		return got, err
	}
	if n := understudy.ReadPhone(e.What); n.Digits != "" && !n.Country && len(n.Digits) < understudy.NationalPhone {
		return got, invalid("%s are too few to tell whose number it is: write %d at least, or all with the country's code, as +14155550100",
			digits(len(n.Digits)), understudy.NationalPhone)
	}
	kinds, err := h.db.Kinds(ctx, e.Source)
	if err != nil || len(kinds) == 0 {
		return got, err // nothing was ever held
	}
	var found erase.Found
	if e.Dry || !e.Own {
		if found, err = h.db.Find(ctx, e.Source, e.What); err != nil {
			return got, err
		}
		number := !strings.Contains(e.What, "/")
		if got.Own = number && ours(h.sources, e.Source, found.Kinds); got.Own && !e.Dry {
			return got, invalid("it is one of the account's own numbers: everything that went through it would go, whoever called; add --own to " +
				"erase it")
		}
	}
	if !e.Dry {
		var one erase.Erasure
		if one, found, err = h.db.EraseNumber(ctx, e.Source, e.What); one.Number != 0 {
			r := receiptOf(one)
			got.Receipt = &r
		}
	}
	got.Found = found.Kinds
	return got, err
}

func digits(n int) string {
	if n == 1 {
		return "1 digit"
	}
	return strconv.Itoa(n) + " digits"
}

// ours reports whether records of own numbers are among what was found.
func ours(sources []*spec.Source, source string, found map[string]int) bool {
	for _, src := range sources {
		if src.Name != source {
			continue
		}
		for _, k := range src.Spec.Kinds {
			if k.Own != "" && found[k.Name] > 0 {
				return true
			}
		}
	}
	return false
}

// waiting returns what is listed and not erased yet.
func (h *eraser) waiting(ctx context.Context) (diagnostics.Waiting, error) {
	w, err := h.db.Waiting(ctx)
	return diagnostics.Waiting{Records: w.Records, Since: known(w.Since)}, err
}

// receipts returns erasures before a number, and what waits.
func (h *eraser) receipts(ctx context.Context, before int64, limit int) (all diagnostics.Receipts, err error) {
	if all.Waiting, err = h.waiting(ctx); err != nil {
		return all, err
	}
	list, err := h.db.Erasures(ctx, before, limit)
	for _, e := range list {
		all.Erasures = append(all.Erasures, receiptOf(e))
	}
	return all, err
}
