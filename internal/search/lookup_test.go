// Looking up one record by its id.

package search

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/spec"
)

// watched is a store that notes what it is asked and what it hands out.
type watched struct {
	Store
	mu    sync.Mutex
	asked []query.RecordQuery
	given []string
}

func (w *watched) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	w.mu.Lock()
	w.asked = append(w.asked, q)
	w.mu.Unlock()
	return w.Store.Seek(ctx, q, func(f query.Hit) bool {
		w.mu.Lock()
		w.given = append(w.given, f.Record.Kind+"/"+f.Record.ID)
		w.mu.Unlock()
		return yield(f)
	})
}

// watch is a searcher whose reading is noted.
func (r *rig) watch(change func(*Options)) (*Searcher, *watched) {
	r.Helper()
	w := &watched{Store: r.store}
	return r.with(func(o *Options) { o.Store = w; change(o) }), w
}

// aMessage is an old message's id.
func (r *rig) aMessage() string {
	r.Helper()
	names := r.all("all", query.SearchRequest{Text: "kind:messages"})
	return strings.TrimPrefix(names[len(names)-3], "messages/")
}

// M1: a search for an id that takes longer than it may is a part, not a nil
// pointer; what comes after it has the record.
func TestALookupThatTakesTooLong(t *testing.T) {
	r := newRig(t, true)
	id := r.aMessage()
	late := r.with(func(o *Options) { o.Limits.Time = time.Nanosecond })
	for _, text := range []string{id, `"` + id + `"`, "id:" + id} {
		out, err := late.Find(t.Context(), as("all"), query.SearchRequest{Text: text})
		checktest.MustNoError(t, err, "%s; out %+v", text, out)
		checktest.MustTrue(t, out.Partial, "%s: out.Partial is false", text)
		checktest.MustEqual(t, len(out.Hits), 0, "%s: len(out.Hits)", text)
		checktest.MustTrue(t, out.Next != "", "%s: out.Next is empty", text)
		checktest.MustEqual(t, len(out.Notes), 1, "%s: len(out.Notes)", text)
		out, err = r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: text, Cursor: out.Next})
		checktest.MustNoError(t, err, "%s, gone on; out %+v", text, out)
		checktest.True(t, !out.Partial, "%s, gone on: out.Partial is true", text)
		checktest.MustEqual(t, len(out.Hits), 1, "%s, gone on: len(out.Hits)", text)
		checktest.Equal(t, out.Hits[0].ID, id, "%s, gone on: out.Hits[0].ID", text)
	}
}

// M5: looking up an id costs one index read: only what has the id is read.
func TestAnIDIsLookedUpByName(t *testing.T) {
	r := newRig(t, true)
	id := r.aMessage()
	s, w := r.watch(func(*Options) {})
	for _, text := range []string{id, "id:" + id, "kind:messages id:" + id, "status:* id:" + id, "kind:messages id:" + id +
		",SM00000000000000000000000000000fff", "kind:calls OR " + id} {
		w.asked, w.given = nil, nil
		out, err := s.Find(t.Context(), as("all"), query.SearchRequest{Text: text, Limit: 1})
		if err != nil || !slices.ContainsFunc(out.Hits, func(h query.SearchHit) bool { return h.ID == id }) && !strings.Contains(text, "OR") {
			t.Errorf("%s: %+v, %v", text, out, err)
		}
		if len(w.given) > 5 {
			t.Errorf("%s: %d records were read: %v", text, len(w.given), w.given)
		}
		for _, q := range w.asked {
			if len(q.IDs) == 0 && len(q.Predicates) == 0 && q.Text == nil && !slices.Equal(q.Kinds, []string{"calls"}) {
				t.Errorf("%s: every record was looked at: %+v", text, q)
			}
		}
	}
	// Facets of it are of the one record, too.
	w.asked, w.given = nil, nil
	out, err := s.Find(t.Context(), as("all"), query.SearchRequest{Text: id, Facets: true})
	checktest.MustNoError(t, err, "counted; out %+v", out)
	checktest.True(t, out.Total.N >= 1, "counted: out.Total.N is %v, want >= 1", out.Total.N)
	checktest.True(t, len(w.given) <= 6, "counted: len(w.given) is %v, want <= 6; out %+v", len(w.given), out)
}

// M5: one caller alone cannot take every place.
func TestSearchesOfOneCallerAtOnce(t *testing.T) {
	r := newRig(t, true)
	hold, begun := make(chan struct{}), make(chan struct{}, 2)
	s := r.with(func(o *Options) {
		o.Limits.MaxConcurrent = 4
		o.Store = failing{o.Store, 0, func(context.Context) error { begun <- struct{}{}; <-hold; return nil }}
	})
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.Find(context.Background(), as("all"), query.SearchRequest{})
			done <- err
		}()
		<-begun
	}
	if _, err := s.Find(t.Context(), as("all"), query.SearchRequest{}); !errors.Is(err, understudy.ErrUnavailable) ||
		!strings.Contains(err.Error(), "you have too many") {
		t.Errorf("a third of one caller: %v", err)
	}
	go func() {
		_, err := s.Find(context.Background(), as("open"), query.SearchRequest{})
		done <- err
	}()
	<-begun
	close(hold)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestDigitsAloneAreAWordWhereNoNumberIsSeen(t *testing.T) {
	r := newRig(t, true)
	for _, text := range []string{"4155550123", "1234567", "1234567890123456"} {
		out, err := r.s.Find(t.Context(), as("support"), query.SearchRequest{Text: text})
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if out.Named.Number != "" {
			t.Errorf("%s means the number %s", text, out.Named.Number)
		}
	}
	if out, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: "4155550123"}); err != nil || out.Named.Number != "4155550123" {
		t.Errorf("who sees numbers means %q, %v", out.Named.Number, err)
	}
}

// saveRow saves a list of one record.
func (r *rig) saveRow(source *spec.Source, path, id, body string) {
	r.Helper()
	target, err := source.Spec.Resolve(source.Name, path, "")
	if err != nil {
		r.Fatal(err)
	}
	_, err = r.store.Save(r.Context(), &understudy.Page{Key: target.Key, Kind: target.Kind.Name, Shape: target.List.Shape, List: true,
		Status: 200, ContentType: "application/json", At: epoch, Body: []byte("[" + body + "]"),
		Rows: []understudy.Row{{ID: id, Start: 1, End: 1 + len(body)}}})
	if err != nil {
		r.Fatal(err)
	}
}

func TestDigitsWithSeparatorsAreWordsWhereNoNumberIsLookedIn(t *testing.T) {
	r := newRig(t, false, "github")
	r.saveRow(r.o.Sources[1], "/repos/a/b/releases", "1", `{"id":1,"body":"a 2026-03-29 b 978-3-16-148410-0 c 192.168.100.200 d `+
		`1.234.567 e 555-1234567 f 1234567 7654321 g 1234567/2 h (1234567) i +1234567 j 4111 1111 1111 1111"}`)
	s := r.with(func(o *Options) { o.Sources = o.Sources[1:] })
	for _, text := range []string{"2026-03-29", "978-3-16-148410-0", "192.168.100.200", "1.234.567", "555-1234567", "1234567 7654321",
		"1234567/2", "(1234567)", "+1234567", "4111 1111 1111 1111", "b +1234567", "1234567"} {
		out, err := s.Find(t.Context(), as("all"), query.SearchRequest{Text: text})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if len(out.Hits) != 1 {
			t.Errorf("%s finds %d records, want 1", text, len(out.Hits))
		}
		if out.Named.Number != "" {
			t.Errorf("%s means the number %s", text, out.Named.Number)
		}
		if again, err := s.Find(t.Context(), as("all"), query.SearchRequest{Text: out.Query}); err != nil || len(again.Hits) != len(out.Hits) {
			t.Errorf("%s is said to be %s, which finds %+v, %v", text, out.Query, again, err)
		}
	}
	if out, err := s.Find(t.Context(), as("all"), query.SearchRequest{Text: "number:+1234567"}); err != nil || len(out.Hits) != 0 {
		t.Errorf("number: finds words: %+v, %v", out, err)
	}
	if _, err := r.s.Find(t.Context(), as("support"), query.SearchRequest{Text: "+1 415 555 0123"}); !errors.Is(err, understudy.ErrForbidden) {
		t.Errorf("a role that sees no numbers searches for one: %v", err)
	}
	if out, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: "555-1234567"}); err != nil || out.Named.Number != "5551234567" {
		t.Errorf("beside phone numbers it means %+v, %v", out, err)
	}
}

// TestDigitsAreAnIDBesidePhoneNumbersToo: digits alone, and with separators, may be the id of a
// record. A plus, or number: before them, asks for a phone number alone.
func TestDigitsAreAnIDBesidePhoneNumbersToo(t *testing.T) {
	r := newRig(t, true, "github")
	for _, id := range []string{"1234567", "4155550123"} {
		r.saveRow(r.o.Sources[1], "/repos/a/b/releases", id, `{"id":`+id+`}`)
	}
	for text, want := range map[string]string{"1234567": "1234567", "123-4567": "1234567", "123 4567": "1234567", "4155550123": "4155550123",
		"415-555-0123": "4155550123", "(415) 555-0123": "4155550123", "+4155550123": "", "number:4155550123": "", "415-555-0124": ""} {
		out, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: text})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if out.Named.ID != want {
			t.Errorf("%s means the record %q, want %q", text, out.Named.ID, want)
		}
		if want != "" && (len(out.Hits) == 0 || out.Hits[0].ID != want) {
			t.Errorf("%s does not find %s first: %+v", text, want, out.Hits)
		}
		if out.Named.Number == "" {
			t.Errorf("%s means no number", text)
		}
	}
}

func TestIDInTwoKindsFindsBothRecords(t *testing.T) {
	r := newRig(t, false, "github")
	s := r.with(func(o *Options) { o.Sources = o.Sources[1:] })
	for _, id := range []string{"1234567", "1234568"} {
		r.saveRow(r.o.Sources[1], "/repos/a/b/issues/comments", id, `{"id":`+id+`}`)
		r.saveRow(r.o.Sources[1], "/repos/a/b/releases", id, `{"id":`+id+`}`)
	}
	for limit := 1; limit < 4; limit++ {
		out, err := s.Find(t.Context(), as("all"), query.SearchRequest{Text: "1234567", Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		checktest.MustEqual(t, len(out.Hits), 2, "at most %d: len(out.Hits)", limit)
		checktest.True(t, out.Hits[0].Exact, "at most %d: out.Hits[0].Exact is false", limit)
		checktest.True(t, out.Hits[1].Exact, "at most %d: out.Hits[1].Exact is false", limit)
		checktest.True(t, out.Hits[0].Kind != out.Hits[1].Kind, "at most %d: out.Hits[0].Kind is %v", limit,
			out.Hits[0].Kind)
		checktest.Equal(t, out.Next, "", "at most %d: out.Next", limit)
		if out.Named.ID != "" {
			t.Errorf("one record of two is meant: %+v", out.Named)
		}
	}
}

// TestLengthsOfTimeAreReadAsInSettings: parts of a day, too. What is no length is refused with those that are.
func TestLengthsOfTimeAreReadAsInSettings(t *testing.T) {
	r := newRig(t, true)
	for _, condition := range []string{"age<", "date:-", "idle:"} {
		one, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: condition + "1.5d", CountOnly: true})
		if err != nil {
			t.Errorf("%s1.5d: %v", condition, err)
			continue
		}
		other, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: condition + "36h", CountOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if one.Total.N != other.Total.N {
			t.Errorf("%s1.5d finds %d, %s36h %d", condition, one.Total.N, condition, other.Total.N)
		}
	}
	for _, text := range []string{"age<1.5x", "age<0.0001s", "idle:1.2.3d", "age<300y"} {
		_, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: text})
		if err == nil || !strings.Contains(err.Error(), "a length of time is a number and s, m, h, d, w or y") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Digits find the record whose id they are beside other conditions, too, and what names that record.
func TestDigitsAreAnIDBesideOtherConditions(t *testing.T) {
	r := newRig(t, true, "github")
	r.saveRow(r.o.Sources[1], "/repos/a/b/releases", "2000010989", `{"id":2000010989,"name":"the first"}`)
	r.saveRow(r.o.Sources[1], "/repos/a/b/releases", "42", `{"id":42,"name":"the second"}`)
	for text, want := range map[string]string{
		"kind:releases 2000010989": "2000010989", "first 2000010989": "2000010989", "kind:releases 42": "42", "42 second": "42",
		"(2000010989)": "2000010989", "second 2000010989": "", "kind:issues 2000010989": "", "kind:releases 2000010989*": "",
		"kind:releases -42": "2000010989", "kind:releases 42 OR nothing": "42",
	} {
		out, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: text})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		found := ""
		for _, h := range out.Hits {
			found += h.ID
		}
		if found != want {
			t.Errorf("%s finds %q, want %q", text, found, want)
		}
	}
}
