// Two handles on one database: what one process writes, the other finds at once, whatever it remembers.

package store_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/internal/store/jobs"
	"understudy/internal/store/kv"
	"understudy/internal/store/storetest"
	"understudy/internal/store/verify"
	"understudy/request"
)

// handles are two stores on one file. Each call goes to one of them, chosen at random.
type handles struct {
	all    [2]tested
	random chan *rand.Rand // one caller at a time draws
}

// openHandles opens two stores with the same options.
func openHandles(t testing.TB, o store.Options) *handles {
	t.Helper()
	h := &handles{random: make(chan *rand.Rand, 1)}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h.random <- rand.New(rand.NewPCG(seed, 0))
	if o.Path == "" {
		o.Path = storetest.File(t)
	}
	o.SaveTime = storetest.Patience
	for i := range h.all {
		d, err := store.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		h.all[i] = tested{d, d.Eraser, d.Verifier}
	}
	return h
}

// one returns the handle for the next call.
func (h *handles) one() *tested {
	random := <-h.random
	defer func() { h.random <- random }()
	return &h.all[random.IntN(len(h.all))]
}

func (h *handles) ReadPage(ctx context.Context, key understudy.Key) (*understudy.Page, error) {
	return h.one().ReadPage(ctx, key)
}

func (h *handles) Record(ctx context.Context, source, kind, shape, id string) (*understudy.Record, error) {
	return h.one().Record(ctx, source, kind, shape, id)
}

func (h *handles) Save(ctx context.Context, p *understudy.Page) (request.SaveResult, error) {
	return h.one().Save(ctx, p)
}

func (h *handles) Touch(ctx context.Context, t request.Invalidation) (generation int64, err error) {
	return h.one().Touch(ctx, t)
}

func (h *handles) ReadKinds(ctx context.Context, source string) ([]store.KindState, error) {
	return h.one().ReadKinds(ctx, source)
}

func (h *handles) ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error) {
	return h.one().ReadChanges(ctx, source, after, limit)
}

func (h *handles) ReadLastChange(ctx context.Context, source string) (int64, error) {
	return h.one().ReadLastChange(ctx, source)
}

// ReadEdition asks the first handle alone, because the second number is each process's own.
func (h *handles) ReadEdition(ctx context.Context, source string) (change, silent int64, err error) {
	return h.all[0].ReadEdition(ctx, source)
}

func (h *handles) ReadHistory(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error) {
	return h.one().ReadHistory(ctx, source, kind, id, limit)
}

func (h *handles) RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error) {
	return h.one().RecordAt(ctx, source, kind, shape, id, at)
}

func (h *handles) ReadRows(ctx context.Context, w query.RangeScan) ([]understudy.Row, error) {
	return h.one().ReadRows(ctx, w)
}

func (h *handles) ScanRecordsAt(ctx context.Context, w query.RangeScan, at time.Time,
	yield func(rec *understudy.Record, clock int64) bool) error {
	return h.one().ScanRecordsAt(ctx, w, at, yield)
}

func (h *handles) KeepOrigin(ctx context.Context, source, world string) error {
	return h.one().KeepOrigin(ctx, source, world)
}

func (h *handles) ForgetPage(ctx context.Context, key understudy.Key) (held bool, err error) {
	return h.one().ForgetPage(ctx, key)
}

func (h *handles) ForgetRecord(ctx context.Context, source, kind, id string) (pages, versions int, err error) {
	return h.one().ForgetRecord(ctx, source, kind, id)
}

func (h *handles) MeasureSpace(ctx context.Context) (store.Space, error) {
	return h.one().MeasureSpace(ctx)
}
func (h *handles) Evict(ctx context.Context) error                   { return h.one().Evict(ctx) }
func (h *handles) Verify(ctx context.Context) (verify.Report, error) { return h.one().Verify(ctx) }
func (h *handles) Close() error                                      { return errors.Join(h.all[0].Close(), h.all[1].Close()) }

func (h *handles) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	return h.one().Seek(ctx, q, yield)
}

func (h *handles) Count(ctx context.Context, q query.RecordQuery, most int64, by time.Time) (query.Count, error) {
	return h.one().Count(ctx, q, most, by)
}

func (h *handles) FindPlace(ctx context.Context, source, kind, id string) (query.OrderKey, error) {
	return h.one().FindPlace(ctx, source, kind, id)
}

func (h *handles) CountWaiting(ctx context.Context) (erase.Waiting, error) {
	return h.one().CountWaiting(ctx)
}

func (h *handles) ReadErasures(ctx context.Context, before int64, limit int) ([]erase.Erasure, error) {
	return h.one().ReadErasures(ctx, before, limit)
}

func (h *handles) Find(ctx context.Context, source, what string) (erase.Found, error) {
	return h.one().Find(ctx, source, what)
}

func (h *handles) EraseNumber(ctx context.Context, source, what string) (erase.Erasure, erase.Found, error) {
	return h.one().EraseNumber(ctx, source, what)
}

func (h *handles) Expire(ctx context.Context, source, kind string) (int, error) {
	return h.one().Expire(ctx, source, kind)
}
func (h *handles) Horizon(source, kind string) int64 { return h.one().Horizon(source, kind) }

func (h *handles) EraseListed(ctx context.Context, o erase.Job) ([]erase.Erasure, error) {
	return h.one().EraseListed(ctx, o)
}

func TestTwoHandles(t *testing.T) {
	storetest.FewerChecks(t, 25)
	storetest.Run(t, func(t testing.TB) storetest.Store { return openHandles(t, store.Options{Specs: storetest.Specs(t)}) })
}

func TestTwoHandlesSeek(t *testing.T) {
	storetest.FewerChecks(t, 25)
	storetest.RunSeek(t, func(t testing.TB) storetest.Seeker { return openHandles(t, store.Options{Specs: storetest.Specs(t)}) })
}

func TestTwoHandlesFindText(t *testing.T) {
	storetest.FewerChecks(t, 25)
	storetest.RunText(t, func(t testing.TB) storetest.Seeker { return openHandles(t, store.Options{Specs: storetest.Specs(t)}) })
}

func TestTwoHandlesErase(t *testing.T) {
	storetest.RunErasing(t, func(t testing.TB, now func() time.Time) storetest.Erasing {
		return openHandles(t, storetest.EraseOptions(t, now))
	})
}

func TestTwoHandlesKeepJobs(t *testing.T) {
	storetest.RunJobs(t, func(t testing.TB) storetest.Jobs {
		return openHandles(t, store.Options{}).jobs()
	})
}

// jobs returns the queue of one handle with the values of the other.
func (h *handles) jobs() storetest.Jobs {
	return struct {
		*jobs.Queue
		*kv.Table
		io.Closer
	}{h.all[0].Jobs, h.all[1].KV, h}
}

// Notes and marks are all in memory. A process finds those of another once it reads anything.
func TestTwoHandlesShareAnnotations(t *testing.T) {
	h := openHandles(t, store.Options{Specs: storetest.Specs(t)})
	a, b := h.all[0], h.all[1]
	p, _ := storetest.NewWorld(1, 50).List(50, 0, 0, storetest.Epoch)
	_, err := a.Save(t.Context(), p)
	checktest.MustNoError(t, err, "save")
	id := p.Rows[0].ID
	note := func(by string) understudy.Note { return understudy.Note{By: by, At: storetest.Epoch, Text: "of " + by} }
	checktest.MustNoError(t, b.Annotations.AddNote(t.Context(), "twilio", p.Kind, id, note("b")), "note of b")
	checktest.MustNoError(t, a.Annotations.AddNote(t.Context(), "twilio", p.Kind, id, note("a")), "note of a, after that of b")
	_, err = b.ReadLastChange(t.Context(), "twilio")
	checktest.MustNoError(t, err, "read")
	for name, one := range map[string]tested{"a": a, "b": b} {
		got := one.Annotations.Annotation("twilio", p.Kind, id)
		if got == nil || len(got.Notes) != 2 {
			t.Fatalf("%s has %+v, want the notes of both", name, got)
		}
		checktest.Equal(t, got.Notes[0].Text+", "+got.Notes[1].Text, "of b, of a", "notes at %s", name)
	}
	first := b.Annotations.Annotation("twilio", p.Kind, id).Notes[0].Number
	checktest.MustNoError(t, a.Annotations.RemoveNote(t.Context(), "twilio", p.Kind, id, first), "remove")
	_, err = b.ReadLastChange(t.Context(), "twilio")
	checktest.MustNoError(t, err, "read")
	checktest.Equal(t, len(b.Annotations.Annotation("twilio", p.Kind, id).Notes), 1, "notes at b after a removed one")
}
