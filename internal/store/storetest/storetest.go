// The suite: what any store must do.

// Package storetest is the conformance suite that every store passes.
package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store"
	"understudy/internal/store/verify"
	"understudy/request"
)

// Store is what every store can do.
type Store interface {
	ReadPage(ctx context.Context, key understudy.Key) (*understudy.Page, error)
	Record(ctx context.Context, source, kind, shape, id string) (*understudy.Record, error)
	Save(ctx context.Context, p *understudy.Page) (request.SaveResult, error)
	Touch(ctx context.Context, t request.Invalidation) (generation int64, err error)
	ReadKinds(ctx context.Context, source string) ([]store.KindState, error)
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
	ReadLastChange(ctx context.Context, source string) (int64, error)
	ReadEdition(ctx context.Context, source string) (change, silent int64, err error)
	ReadHistory(ctx context.Context, source, kind, id string, limit int) ([]understudy.Version, error)
	RecordAt(ctx context.Context, source, kind, shape, id string, at time.Time) (*understudy.Record, error)
	ReadRows(ctx context.Context, w query.RangeScan) ([]understudy.Row, error)
	ScanRecordsAt(ctx context.Context, w query.RangeScan, at time.Time, yield func(rec *understudy.Record, clock int64) bool) error
	KeepOrigin(ctx context.Context, source, world string) error
	ForgetPage(ctx context.Context, key understudy.Key) (held bool, err error)
	ForgetRecord(ctx context.Context, source, kind, id string) (pages, versions int, err error)
	MeasureSpace(ctx context.Context) (store.Space, error)
	Evict(ctx context.Context) error
	Verify(ctx context.Context) (verify.Report, error)
	Close() error
}

// Run runs the suite; open returns a new, empty store each time and sees to
// its end with t.Cleanup. Stores are opened with no options but what they need
// to be there.
func Run(t *testing.T, open func(t testing.TB) Store) {
	for _, rule := range []struct {
		name string
		test func(t *testing.T, s *suite)
	}{
		{"a page comes back as it was", pageComesBack},
		{"pages of odd forms come back", oddPages},
		{"two keys are two pages", twoKeys},
		{"nothing is held at first", nothingHeld},
		{"a record is the newest version", recordIsNewest},
		{"a newer version supersedes pages", newerSupersedes},
		{"a body that returns is the version it was", bodyReturns},
		{"versions are per shape", versionsPerShape},
		{"a record goes and comes again", goesAndComes},
		{"a 404 page gives way to its record", notFoundPage},
		{"a record twice in a page", twiceInAPage},
		{"ids of any form", idsOfAnyForm},
		{"a touch outdates and invalidates", touches},
		{"a touch spares instance pages of other records", touchSparesOthers},
		{"older answers are outdated", olderIsOutdated},
		{"a sight that lost a race changes nothing", lostRace},
		{"a clock set back is believed", clockSetBack},
		{"what may not be saved is not", notStored},
		{"the answer of a write has no key", writeAnswer},
		{"the answer of a write is never outdated", writeAnswerWins},
		{"seen moves on", seenMoves},
		{"page versions", pageVersions},
		{"changes are numbered without gaps", changesNumbered},
		{"sources are apart", sourcesApart},
		{"a world is remembered", worlds},
		{"many at once", manyAtOnce},
		{"many in a page", manyInAPage},
		{"a page is forgotten", pageForgotten},
		{"a record is forgotten", recordForgotten},
		{"versions are remembered", versionsRemembered},
		{"goings are remembered", goingsRemembered},
		{"odd sights are no history", oddSightsRemembered},
		{"changes say which fields", fieldsOfChanges},
		{"what is forgotten has no past", forgottenPast},
		{"windows", windows},
		{"wide windows", wideWindows},
		{"contexts are honoured", contexts},
		{"closed is closed", closed},
		{"any history", anyHistory},
		{"any past", anyPast},
	} {
		t.Run(strings.ReplaceAll(rule.name, " ", "-"), func(t *testing.T) {
			rule.test(t, &suite{T: t, Store: open(t), anew: func() Store { return open(t) }})
		})
	}
}

// suite is a store under test, with the helpers in which the rules are written.
type suite struct {
	*testing.T
	Store
	anew func() Store // an empty one
}

func sum(body []byte) [16]byte {
	s := sha256.Sum256(body)
	return [16]byte(s[:16])
}

// row is one record of a made-up page.
type row struct {
	id, body string
	final    bool
}

// clock returns the time that a spec would read from a body. The same body always has the same time.
func clock(r row) int64 { return int64(len(r.body))*1_000_003 - 50_000_000 }

// at returns the time that is the given number of seconds after the epoch.
func at(seconds int) time.Time { return Epoch.Add(time.Duration(seconds) * time.Second) }

func key(uri string) understudy.Key { return understudy.Key{Source: Source, URI: uri} }

// list makes a list page of rows.
func list(uri string, when time.Time, rows ...row) *understudy.Page {
	p := &understudy.Page{Key: key(uri), Kind: "calls", Shape: "calls", List: true, Status: 200, ContentType: "application/json", At: when}
	body := []byte(`{"calls": [`)
	for i, r := range rows {
		if i > 0 {
			body = append(body, ", "...)
		}
		start := len(body)
		body = append(body, r.body...)
		p.Rows = append(p.Rows, understudy.Row{ID: r.id, Start: start, End: len(body), Clock: clock(r), Final: r.final})
	}
	p.Body = append(body, `], "page": 0}`...)
	p.Sum = sum(p.Body)
	return p
}

// instance makes an instance page of one record.
func instance(uri string, when time.Time, r row) *understudy.Page {
	p := &understudy.Page{Key: key(uri), Kind: "calls", Shape: "calls", ID: r.id, Status: 200, ContentType: "application/json", At: when,
		Body: []byte(r.body)}
	p.Rows = []understudy.Row{{ID: r.id, End: len(r.body), Clock: clock(r), Final: r.final}}
	p.Sum = sum(p.Body)
	return p
}

// gone makes the answer that says that a record is no more.
func gone(uri string, when time.Time, id string, status int) *understudy.Page {
	p := &understudy.Page{Key: key(uri), Kind: "calls", Shape: "calls", ID: id, Status: status, ContentType: "application/json", At: when}
	if status != 204 {
		p.Body = []byte(`{"code": 20404, "status": 404}`)
	}
	p.Sum = sum(p.Body)
	return p
}

// sid makes an id of the usual form.
func sid(n int) string { return fmt.Sprintf("CA%032x", n*7919) }

// call makes a body that holds its id and a state.
func call(n int, state string) row {
	return row{id: sid(n), body: fmt.Sprintf(`{"sid": "%s", "status": "%s"}`, sid(n), state)}
}

func (s *suite) save(p *understudy.Page) request.SaveResult {
	s.Helper()
	saved, err := s.Save(s.Context(), p)
	if err != nil {
		s.Fatalf("save %s: %v", p.Key, err)
	}
	return saved
}

// saveIs saves a page that must be refused with an error of a kind.
func (s *suite) saveIs(p *understudy.Page, kind error) {
	s.Helper()
	before := s.changes()
	if _, err := s.Save(s.Context(), p); !errors.Is(err, kind) {
		s.Fatalf("save %s: error %v, want %v", p.Key, err, kind)
	}
	if after := s.changes(); len(after) != len(before) {
		s.Fatalf("a refused page made %d changes", len(after)-len(before))
	}
}

// page loads a page and compares it with what was saved.
func (s *suite) page(want *understudy.Page) *understudy.Page {
	s.Helper()
	got, err := s.ReadPage(s.Context(), want.Key)
	if err != nil {
		s.Fatalf("page %s: %v", want.Key, err)
	}
	s.same(got, want)
	return got
}

func (s *suite) same(got, want *understudy.Page) {
	s.Helper()
	if !bytes.Equal(got.Body, want.Body) {
		s.Fatalf("page %s:\n got %q\nwant %q", want.Key, got.Body, want.Body)
	}
	if got.Key != want.Key || got.Kind != want.Kind || got.Shape != want.Shape || got.List != want.List || got.ID != want.ID ||
		got.Status != want.Status || got.ContentType != want.ContentType || got.Next != want.Next || !got.At.Equal(want.At) ||
		got.Generation != want.Generation || got.Sum != sum(want.Body) || got.NotStored != "" || got.Took != 0 || got.Version == 0 {
		s.Fatalf("page %s:\n got %+v\nwant %+v", want.Key, strip(got), strip(want))
	}
	if len(got.Rows) != len(want.Rows) {
		s.Fatalf("page %s: %d rows, want %d", want.Key, len(got.Rows), len(want.Rows))
	}
	for i, r := range got.Rows {
		w := want.Rows[i]
		if r.ID != w.ID || r.Start != w.Start || r.End != w.End || r.Clock != w.Clock || r.Final != w.Final || r.Record == 0 || r.Version == 0 {
			s.Fatalf("page %s row %d: got %+v, want %+v with numbers", want.Key, i, r, w)
		}
	}
}

// strip returns a page without its body and rows, for messages.
func strip(p *understudy.Page) understudy.Page {
	short := *p
	short.Body, short.Rows = nil, nil
	return short
}

func (s *suite) superseded(p *understudy.Page, want bool) {
	s.Helper()
	if got := s.page(p); got.Superseded != want {
		s.Fatalf("page %s: superseded %v, want %v", p.Key, got.Superseded, want)
	}
}

func (s *suite) record(r row) *understudy.Record { s.Helper(); return s.recordIn("calls", r) }

func (s *suite) recordIn(shape string, r row) *understudy.Record {
	s.Helper()
	rec, err := s.Record(s.Context(), Source, "calls", shape, r.id)
	if err != nil {
		s.Fatalf("record %s: %v", r.id, err)
	}
	if string(rec.Body) != r.body || rec.ID != r.id || rec.Kind != "calls" || rec.Shape != shape || rec.Source != Source || rec.Number == 0 ||
		rec.Version == 0 || rec.Final != r.final {
		s.Fatalf("record %s: got %+v %s, want %s", r.id, rec, rec.Body, r.body)
	}
	return rec
}

func (s *suite) noRecord(shape, id string) {
	s.Helper()
	if rec, err := s.Record(s.Context(), Source, "calls", shape, id); !errors.Is(err, understudy.ErrNotFound) {
		s.Fatalf("record %s: %+v, error %v, want not found", id, rec, err)
	}
}

func (s *suite) changes() []understudy.Change {
	s.Helper()
	all, err := s.ReadChanges(s.Context(), Source, 0, store.MaxChanges)
	if err != nil {
		s.Fatal(err)
	}
	return all
}

// wantChanges compares changes with words such as "came CA…".
func (s *suite) wantChanges(got []understudy.Change, want ...string) {
	s.Helper()
	var words []string
	for _, c := range got {
		words = append(words, c.Type.String()+" "+c.ID)
	}
	if strings.Join(words, ", ") != strings.Join(want, ", ") {
		s.Fatalf("changes:\n got %s\nwant %s", strings.Join(words, ", "), strings.Join(want, ", "))
	}
}

func (s *suite) kind(name string) store.KindState {
	s.Helper()
	states, err := s.ReadKinds(s.Context(), Source)
	if err != nil {
		s.Fatal(err)
	}
	for _, k := range states {
		if k.Kind == name {
			return k
		}
	}
	return store.KindState{Kind: name}
}

// each runs work n times at once and waits.
func each(n int, work func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { work(i) })
	}
	all.Wait()
}
