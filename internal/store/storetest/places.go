// The rules of places: in which order records are told, whatever was saved in
// which order.

package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/query"
)

// Seeker is a store whose records are found by their places.
type Seeker interface {
	Store
	Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error
	Count(ctx context.Context, q query.RecordQuery, most int64, by time.Time) (query.Count, error)
	FindPlace(ctx context.Context, source, kind, id string) (query.OrderKey, error)
}

// RunSeek runs the rules of places; open returns a new, empty store each time,
// opened with the specs given.
func RunSeek(t *testing.T, open func(t testing.TB) Seeker) {
	for _, rule := range []struct {
		name string
		test func(_ *testing.T, s *seeker)
	}{
		{"places are those of pages", placesOfPages},
		{"pages that cut a second", pagesCutSecond},
		{"an odd row moves alone", oddRow},
		{"clocks place what no page has shown", clocksPlace},
		{"records without a time", timelessPlaces},
		{"places stay", placesStay},
		{"terms", terms},
		{"a walk while records change", walkWhileChanging},
		{"kinds and sources merge", kindsMerge},
		{"questions that mean nothing", noQuestions},
		{"many in one second", manyInOneSecond},
		{"any list", anyList},
	} {
		t.Run(strings.ReplaceAll(rule.name, " ", "-"), func(t *testing.T) {
			s := &seeker{TB: t, Seeker: open(t), open: open}
			rule.test(t, s)
			mustVerify(t, s.Seeker)
		})
	}
}

// seeker is a store under test.
type seeker struct {
	testing.TB
	Seeker
	open func(t testing.TB) Seeker
}

// placed is a call as the tests of places have it.
type placed struct {
	n              int
	created, start int64 // Unix seconds; start 0: null
	length         int64 // in seconds
	status, to     string
	parent         string
}

func (p placed) id() string { return sid(p.n) }

func date(unix int64) string {
	if unix == 0 {
		return "null"
	}
	return `"` + time.Unix(unix, 0).UTC().Format(time.RFC1123Z) + `"`
}

// ended returns the time when the call ended, or 0 if it has not started.
func (p placed) ended() int64 {
	if p.start == 0 {
		return 0
	}
	return p.start + p.length
}

func (p placed) body() string {
	parent := "null"
	if p.parent != "" {
		parent = `"` + p.parent + `"`
	}
	return fmt.Sprintf(`{"sid": %q, "date_created": %s, "start_time": %s, "end_time": %s, "status": %q, "to": %q, "from": "+14155550100", `+
		`"parent_call_sid": %s}`,
		p.id(), date(p.created), date(p.start), date(p.ended()), p.status, p.to, parent)
}

// placedPage returns a list page that follows the record after. If after is nil, it is the first page.
func placedPage(when time.Time, after *placed, more bool, rows ...placed) *understudy.Page {
	uri := Path + fmt.Sprintf("?PageSize=%d", max(len(rows), 1))
	if after != nil {
		uri += "&Page=1&PageToken=PA" + after.id()
	}
	p := list(uri, when)
	body := []byte(`{"calls": [`)
	for i, r := range rows {
		if i > 0 {
			body = append(body, ',')
		}
		start := len(body)
		body = append(body, r.body()...)
		p.Rows = append(p.Rows, understudy.Row{ID: r.id(), Start: start, End: len(body), Clock: r.start, Final: r.status == "completed"})
	}
	p.Body = append(body, `]}`...)
	p.Sum = sum(p.Body)
	if more && len(rows) > 0 {
		p.Next = key(Path + fmt.Sprintf("?PageSize=%d&Page=1&PageToken=PA%s", len(rows), rows[len(rows)-1].id()))
	}
	return p
}

func placedOne(when time.Time, r placed) *understudy.Page {
	p := instance("/i/"+r.id(), when, row{id: r.id(), body: r.body(), final: r.status == "completed"})
	p.Rows[0].Clock = r.start
	return p
}

func (s *seeker) save(p *understudy.Page) {
	s.Helper()
	if _, err := s.Save(s.Context(), p); err != nil {
		s.Fatalf("save %s: %v", p.Key, err)
	}
}

// seek finds records, and makes sure that their places fall, or rise.
func (s *seeker) seek(q query.RecordQuery) (found []query.Hit) {
	s.Helper()
	err := s.Seek(s.Context(), q, func(f query.Hit) bool {
		if n := len(found); n > 0 && (found[n-1].Order == f.Order || found[n-1].Order < f.Order != q.OldestFirst) {
			s.Fatalf("seek %+v: %s at %d comes after %s at %d", q, f.Record.ID, f.Order, found[n-1].Record.ID, found[n-1].Order)
		}
		found = append(found, f)
		return true
	})
	if err != nil {
		s.Fatalf("seek %+v: %v", q, err)
	}
	return found
}

func numbers(found []query.Hit) string {
	var ids []string
	for _, f := range found {
		n := 0
		fmt.Sscanf(f.Record.ID[2:], "%x", &n)
		ids = append(ids, fmt.Sprint(n/7919))
	}
	return strings.Join(ids, " ")
}

// want seeks all calls and compares their numbers, down and up.
func (s *seeker) want(want ...int) {
	s.Helper()
	s.wantOf(query.RecordQuery{Source: Source, Kinds: []string{"calls"}}, want...)
}

func (s *seeker) wantOf(q query.RecordQuery, want ...int) {
	s.Helper()
	words := strings.Trim(fmt.Sprint(want), "[]")
	if got := numbers(s.seek(q)); got != words {
		s.Fatalf("seek %+v:\n got %s\nwant %s", q, got, words)
	}
	up := q
	up.OldestFirst = true
	var reversed []string
	for _, word := range strings.Fields(words) {
		reversed = append([]string{word}, reversed...)
	}
	if got := numbers(s.seek(up)); got != strings.Join(reversed, " ") {
		s.Fatalf("seek %+v:\n got %s\nwant %s", up, got, strings.Join(reversed, " "))
	}
	if n, err := s.Count(s.Context(), q, 0, time.Time{}); err != nil || n.AtLeast || n.N != int64(len(want)) {
		s.Fatalf("count %+v: %+v, %v, want %d", q, n, err, len(want))
	}
}

func (s *seeker) place(n int) query.OrderKey {
	s.Helper()
	p, err := s.FindPlace(s.Context(), Source, "calls", sid(n))
	if err != nil {
		s.Fatalf("place of %d: %v", n, err)
	}
	return p
}

// second returns a call that began the given number of seconds after the epoch.
func second(n int, seconds int64) placed {
	return placed{n: n, created: Epoch.Unix() + seconds, start: Epoch.Unix() + seconds, status: "completed", to: "+14155550111"}
}

func placesOfPages(_ *testing.T, s *seeker) {
	a, b, c, d, e := second(1, 50), second(2, 40), second(3, 40), second(4, 40), second(5, 30)
	s.want()
	s.save(placedPage(at(0), nil, true, a, b, c))
	s.save(placedPage(at(1), &c, false, d, e))
	s.want(1, 2, 3, 4, 5)
	top, more := second(6, 50), second(7, 60)
	s.save(placedPage(at(2), nil, true, more, top, a, b))
	s.want(7, 6, 1, 2, 3, 4, 5)
	s.wantOf(query.RecordQuery{From: Epoch.Unix() + 40, To: Epoch.Unix() + 60}, 6, 1, 2, 3, 4)
	for _, f := range s.seek(query.RecordQuery{}) {
		if f.Order != s.place(int(f.Record.Number)) && f.Order == 0 {
			s.Errorf("%+v", f)
		}
		if one, err := s.Record(s.Context(), Source, "calls", "calls", f.Record.ID); err != nil || one.Version != f.Record.Version ||
			string(one.Body) != string(f.Record.Body) || one.Number != f.Record.Number ||
			!one.Since.Equal(f.Record.Since) || !one.Seen.Equal(f.Record.Seen) || one.Final != f.Record.Final || f.Clock == 0 {
			s.Errorf("%+v, by itself %+v, %v", f, one, err)
		}
	}
	if n := len(s.seek(query.RecordQuery{Limit: 3})); n != 3 {
		s.Errorf("%d records of 3", n)
	}
	if n, err := s.Count(s.Context(), query.RecordQuery{}, 4, time.Time{}); err != nil || n.N != 4 || !n.AtLeast {
		s.Errorf("%+v, %v", n, err)
	}
	if n, err := s.Count(s.Context(), query.RecordQuery{}, 7, time.Time{}); err != nil || n.N != 7 || n.AtLeast {
		s.Errorf("%+v, %v", n, err)
	}
	if n, err := s.Count(s.Context(), query.RecordQuery{}, 7, time.Unix(1, 0)); err != nil || !n.AtLeast {
		s.Errorf("after its deadline: %+v, %v", n, err)
	}
}

func pagesCutSecond(_ *testing.T, s *seeker) {
	var rows []placed
	for n := range 12 {
		rows = append(rows, second(n+1, 40))
	}
	// Upwards: each page names the one that was saved before it.
	s.save(placedPage(at(0), &rows[7], false, rows[8:]...))
	s.save(placedPage(at(1), &rows[3], true, rows[4:8]...))
	p := placedPage(at(2), nil, true, rows[:4]...)
	s.save(p)
	s.want(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	// One that was placed by its clock alone is moved by a page.
	late := second(13, 40)
	s.save(placedOne(at(3), late))
	s.save(placedPage(at(4), &rows[1], true, rows[2], late, rows[3]))
	s.want(1, 2, 3, 13, 4, 5, 6, 7, 8, 9, 10, 11, 12)
}

func oddRow(_ *testing.T, s *seeker) {
	future := second(3, 1<<30)
	s.save(placedPage(at(0), nil, true, second(1, 50), second(2, 40), future, second(4, 30), second(5, 20)))
	s.want(1, 2, 3, 4, 5)
	if s.place(3) > s.place(2) || s.place(4) < placeAt(Epoch.Unix()+30) || s.place(2) < placeAt(Epoch.Unix()+40) {
		s.Errorf("places %d %d %d", s.place(2), s.place(3), s.place(4))
	}
	// One that its clock had placed oddly before a page showed it.
	past := second(6, -1<<30)
	s.save(placedOne(at(1), past))
	s.want(1, 2, 3, 4, 5, 6)
	s.save(placedPage(at(2), nil, true, second(7, 60), past, second(1, 50), second(2, 40), second(8, 35), future, second(4, 30)))
	s.want(7, 6, 1, 2, 8, 3, 4, 5)
	s.save(placedPage(at(3), nil, true, second(7, 60), past, second(1, 50), second(2, 40), second(8, 35), future, second(4, 30)))
	s.want(7, 6, 1, 2, 8, 3, 4, 5)
}

// placeAt returns the first place of a second.
func placeAt(second int64) query.OrderKey { return query.OrderKey(second << 30) }

func clocksPlace(_ *testing.T, s *seeker) {
	queued := placed{n: 3, created: Epoch.Unix() + 45, status: "queued"}
	for _, r := range []placed{second(1, 50), second(5, 30), queued, second(2, 40)} {
		s.save(placedOne(at(0), r))
	}
	s.want(1, 3, 2, 5)
	before := s.place(3)
	queued.start, queued.status = Epoch.Unix()+70, "completed"
	s.save(placedOne(at(1), queued))
	if s.place(3) != before {
		s.Error("a clock that was set has moved its record")
	}
	s.save(placedPage(at(2), nil, true, queued, second(1, 50), second(2, 40)))
	s.want(3, 1, 2, 5)
}

func timelessPlaces(_ *testing.T, s *seeker) {
	none := func(n int) placed { return placed{n: n, status: "queued"} }
	last := none(3)
	s.save(placedPage(at(0), nil, true, none(1), none(2), last))
	end := none(5)
	s.save(placedPage(at(1), &last, false, none(4), end))
	s.want(1, 2, 3, 4, 5)
	s.save(placedPage(at(2), nil, true, none(6), none(7), none(1), none(8), none(2)))
	s.want(6, 7, 1, 8, 2, 3, 4, 5)
	s.save(placedOne(at(3), second(9, 10)))
	s.want(9, 6, 7, 1, 8, 2, 3, 4, 5)
	s.wantOf(query.RecordQuery{From: 1}, 9)
	s.save(placedPage(at(4), nil, true, none(6), second(9, 10), none(10)))
	s.want(6, 9, 10, 7, 1, 8, 2, 3, 4, 5)
}

func placesStay(_ *testing.T, s *seeker) {
	a, b, c := second(1, 50), second(2, 40), second(3, 30)
	s.save(placedPage(at(0), nil, true, a, b, c))
	was := s.place(2)
	var edition [2]int64
	stays := func(what string) {
		s.Helper()
		change, silent, err := s.ReadEdition(s.Context(), Source)
		if now := [2]int64{change, silent}; err != nil || now == edition {
			s.Errorf("%s is no new edition: %v, %v", what, now, err)
		} else {
			edition = now
		}
		if now := s.place(2); now != was {
			s.Errorf("%s has moved it from %d to %d", what, was, now)
		}
	}
	b.status = "busy"
	s.save(placedPage(at(10), nil, true, a, b, c))
	stays("a change")
	s.save(gone("/i", at(20), b.id(), 404))
	stays("a going")
	s.want(1, 3)
	s.save(placedOne(at(30), b))
	stays("a coming back")
	s.want(1, 2, 3)
	if _, _, err := s.ForgetRecord(s.Context(), Source, "calls", b.id()); err != nil {
		s.Fatal(err)
	}
	stays("a forgetting")
	s.want(1, 3)
	s.save(placedPage(at(40), nil, true, b))
	stays("a coming back after it")
	s.want(1, 2, 3)
	brief := placedOne(at(50), b)
	brief.Shape = "brief"
	s.save(brief)
	if _, silent, err := s.ReadEdition(s.Context(), Source); err != nil || silent != edition[1] {
		s.Errorf("another shape of what is held is a silent edition: %d after %d, %v", silent, edition[1], err)
	}
	s.want(1, 2, 3)
	if _, err := s.FindPlace(s.Context(), Source, "calls", sid(9)); !errors.Is(err, understudy.ErrNotFound) {
		s.Errorf("of a record nobody saw: %v", err)
	}
	if _, err := s.FindPlace(s.Context(), "unheard", "calls", sid(1)); !errors.Is(err, understudy.ErrNotFound) {
		s.Errorf("of a source nobody heard of: %v", err)
	}
}

func noQuestions(_ *testing.T, s *seeker) {
	for _, q := range []query.RecordQuery{
		{Shape: "calls"}, {Since: 1}, {Source: Source, Since: -1}, {Limit: -1}, {ExpectedRows: -1}, {Predicates: []query.Predicate{{}}},
		{Predicates: []query.Predicate{{Field: "status"}}},
		{Predicates: []query.Predicate{{Field: "status", Any: []string{""}}}}, {Predicates: []query.Predicate{{Any: []string{"x"}}}},
		{Predicates: []query.Predicate{{Field: "to", Any: []string{"x"}, Number: "1"}}}, {Predicates: make([]query.Predicate, query.MaxTerms+1)},
		{IDs: []string{"CA1"}}, {Numbers: []int64{1}}, {Kinds: []string{"calls"}, IDs: []string{"CA1"}, Numbers: []int64{1}},
	} {
		if err := s.Seek(s.Context(), q, func(query.Hit) bool { return true }); !errors.Is(err, understudy.ErrInvalid) {
			s.Errorf("seek %+v: %v", q, err)
		}
		if _, err := s.Count(s.Context(), q, 0, time.Time{}); !errors.Is(err, understudy.ErrInvalid) {
			s.Errorf("count %+v: %v", q, err)
		}
	}
}
