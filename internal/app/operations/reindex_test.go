// Indexes: the job that finishes them.

package operations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/datadir"
	"understudy/internal/jobs"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/spec"
	"understudy/upstream"
)

// half rebuilds the indexes until the first records are in them, and says
// how far that was.
func half(ctx context.Context, db *store.DB) (done, total int64, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	err = errors.Join(db.Index.Clear(ctx), db.Index.Build(ctx, func(d, all int64) {
		done, total = d, all
		stop()
	}))
	return done, total, err
}

var someMessage = query.RecordQuery{Text: &query.Text{Op: query.TextPrefix, Words: []string{"a"}}}

func TestIndexesAreFilledByAJob(t *testing.T) {
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), datadir.StoreFile),
		Specs: map[string]*spec.Spec{"twilio": sp}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const n = 700
	p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/m"}, Kind: "messages", Shape: "messages", List: true, Status: 200,
		At: time.Unix(1_780_000_000, 0)}
	for i := range n {
		at := len(p.Body)
		p.Body = fmt.Appendf(p.Body, `{"sid":"SM%032x","body":"all is well"}`, i)
		p.Rows = append(p.Rows, understudy.Row{ID: fmt.Sprintf("SM%032x", i), Clock: int64(1_770_000_000 - i), Start: at, End: len(p.Body)})
	}
	if _, err := db.Save(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	h := &Indexer{Log: slog.New(slog.DiscardHandler), DB: db, Now: time.Now}
	if h.Jobs, err = jobs.New(jobs.Options{Store: db.Jobs, Kinds: []jobs.Kind{h.JobKind()}, OnlyProcess: true}); err != nil {
		t.Fatal(err)
	}
	waiting := func() int64 {
		t.Helper()
		c, err := h.Jobs.CountJobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return c.Waiting + c.Running
	}
	{
		at, err := h.plan(t.Context())
		checktest.MustNoError(t, err, "with whole indexes")
		checktest.MustEqual(t, at.Done, at.Total, "with whole indexes: at.Done")
		checktest.MustEqual(t, waiting(), 0, "with whole indexes: waiting()")
	}
	{
		done, total, err := half(t.Context(), db)
		checktest.MustTrue(t, errors.Is(err, context.Canceled), "err is %v, want context.Canceled", err)
		checktest.MustTrue(t, done != 0, "done is 0; %v", err)
		checktest.MustTrue(t, done < total, "done is %v; %v", done, err)
	}
	for range 2 { // asked again it is one job
		{
			at, err := h.plan(t.Context())
			checktest.MustNoError(t, err, "")
			checktest.MustTrue(t, at.Done != 0, "at.Done is 0")
			checktest.MustTrue(t, at.Done < at.Total, "at.Done is %v", at.Done)
			checktest.MustEqual(t, at.Total, n, "at.Total")
			checktest.MustEqual(t, waiting(), 1, "waiting()")
		}
	}
	{
		at, err := h.Index(t.Context(), true)
		checktest.MustNoError(t, err, "anew")
		checktest.MustEqual(t, at.Done, 0, "anew: at.Done")
		checktest.MustEqual(t, at.Total, n, "anew: at.Total")
		checktest.MustEqual(t, waiting(), 1, "anew: waiting()")
	}
	err = db.Seek(t.Context(), someMessage, func(query.Hit) bool { return true })
	if !errors.Is(err, understudy.ErrIndexing) || !strings.HasSuffix(err.Error(), "the index is being built: 0 of 700") {
		t.Fatalf("while the indexes are empty: %v", err)
	}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- h.Jobs.Run(ctx) }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for waiting() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("not done")
		}
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	{
		at, err := h.Index(t.Context(), false)
		checktest.MustNoError(t, err, "then")
		checktest.Equal(t, at.Done, n, "then: at.Done")
		checktest.Equal(t, at.Total, n, "then: at.Total")
	}
	if got, err := db.Count(t.Context(), someMessage, 0, time.Time{}); err != nil || got.N != n {
		t.Errorf("%d are found, %v", got.N, err)
	}
}
