package slide

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/kit/jsonspan"
)

// pageOf is a page of a list, with the ids of its rows.
func pageOf(uri, next string, at time.Time, ids ...string) *understudy.Page {
	p := &understudy.Page{Key: understudy.Key{Source: "s", URI: uri}, List: true, Status: 200, At: at, Body: []byte("[")}
	if next != "" {
		p.Next = understudy.Key{Source: "s", URI: next}
	}
	for i, id := range ids {
		if i > 0 {
			p.Body = append(p.Body, ',')
		}
		row := understudy.Row{ID: id, Start: len(p.Body)}
		p.Body = append(p.Body, `{"id":"`+id+`"}`...)
		row.End = len(p.Body)
		p.Rows = append(p.Rows, row)
	}
	p.Body = append(p.Body, ']')
	return p
}

// Pages stand together until one that is fetched anew has other rows; then those fetched
// before are not given, and for a minute neither is what a reader comes to from one.
func TestTogether(t *testing.T) {
	l, at := New(), time.Unix(1000, 0)
	one, two, three := pageOf("/1", "/2", at, "a", "b"), pageOf("/2", "/3", at, "c", "d"), pageOf("/3", "", at, "e")
	together := func(p *understudy.Page, now time.Time, want bool) {
		t.Helper()
		if got := l.IsCurrent("list", p.Key, p.At, now); got != want {
			t.Errorf("%s of %v at %v: %v", p.Key, p.At.Unix(), now.Unix(), got)
		}
	}
	together(one, at, false) // nobody knows what stands beside it
	for _, p := range []*understudy.Page{one, two, three} {
		if l.AddFetched("list", p, p.At, true) {
			t.Errorf("%s moves the list", p.Key)
		}
	}
	for _, p := range []*understudy.Page{one, two, three} {
		together(p, at, true)
	}
	if before, given, _ := l.PreviousPage("list", two.Key, at); before != one.Key || len(given) != 1 {
		t.Errorf("before %s: %s, %d", two.Key, before, len(given))
	}
	later := at.Add(40 * time.Second)
	again := pageOf("/1", "/2", later, "n", "a")
	if !l.AddFetched("list", again, later.Add(-time.Second), true) {
		t.Error("a new row moves nothing")
	}
	together(again, later, true)
	together(one, later, false) // the older answer
	together(two, later, false)
	together(three, later, false)
	if _, given, _ := l.PreviousPage("list", two.Key, later); len(given) != 2 {
		t.Errorf("%d pages a reader may have", len(given))
	}
	// Begun before the list was known to have moved, it may be from before that.
	began := later.Add(-time.Millisecond)
	overlapping := pageOf("/2", "/3", later.Add(time.Second), "b", "c")
	l.AddFetched("list", overlapping, began, true)
	together(again, later.Add(time.Second), false)
	anew := later.Add(2 * time.Second)
	for _, p := range []*understudy.Page{pageOf("/1", "/2", anew, "n", "a"), pageOf("/2", "/3", anew, "b", "c")} {
		if l.AddFetched("list", p, anew, true) {
			t.Errorf("%s moves the list once more", p.Key)
		}
	}
	second := pageOf("/2", "/3", anew, "b", "c")
	together(second, anew.Add(10*time.Second), false) // a reader may come from page 1 as it was
	together(second, anew.Add(2*time.Minute), true)
	// Rows behind the last one move nothing, and of other lists it is not known.
	last := pageOf("/3", "", anew, "e")
	l.AddFetched("list", last, anew, true)
	if l.AddFetched("list", pageOf("/3", "", anew.Add(time.Second), "e", "f"), anew, true) {
		t.Error("a row at the end moves the list")
	}
	together(last, anew.Add(2*time.Minute), true) // held until what has come since is saved
	if l.IsCurrent("other", last.Key, last.At, anew) {
		t.Error("a page of another list")
	}
}

// A page that was fetched beside an older one before it is given for as long as a walk takes, and
// after that only where something has shown that no row lies between the two.
func TestAPageBesideAnOlderOneIsGivenOnceTheyAreKnownToMeet(t *testing.T) {
	first := time.Unix(1000, 0)
	one, two := pageOf("/1", "/2", first, "a", "b"), pageOf("/2", "", first.Add(time.Second), "c", "d")
	same, soon := pageOf("/1", "/2", first, "a", "b"), pageOf("/1", "/2", first.Add(2*time.Second), "a", "b")
	late, again := pageOf("/1", "/2", first.Add(time.Minute), "a", "b"), pageOf("/2", "", first.Add(time.Hour), "c", "d")
	for _, c := range []struct {
		name    string
		fetched []*understudy.Page
		of      *understudy.Page
		in      time.Duration
		want    bool
	}{
		{"soon after", []*understudy.Page{one, two}, two, SameMoment, true},
		{"later", []*understudy.Page{one, two}, two, SameMoment + 1, false},
		{"they share a row", []*understudy.Page{pageOf("/1", "/2", first, "b", "c"), two}, two, time.Hour, true},
		{"the first is as it was", []*understudy.Page{one, two, late}, two, time.Hour, true},
		{"the first is asked for again before the second", []*understudy.Page{one, same, two}, two, time.Hour, false},
		{"the first is read long after the second", []*understudy.Page{two, late}, two, time.Minute, false},
		{"the first is read soon after the second", []*understudy.Page{two, soon}, two, time.Hour, true},
		{"the second is as it was before the first", []*understudy.Page{two, late, again}, again, time.Hour, true},
	} {
		l := New()
		for _, p := range c.fetched {
			l.AddFetched("list", p, p.At, true)
		}
		if got := l.IsCurrent("list", c.of.Key, c.of.At, c.of.At.Add(c.in)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestMissing(t *testing.T) {
	rows := func(text string) (r Rows) {
		for _, c := range text {
			r = append(r, uint64(c))
		}
		return r
	}
	for _, c := range []struct {
		given, now, next string
		from             int
		known            bool
	}{
		{"abcd", "abcd", "efgh", 4, true}, // nothing moved
		{"abcd", "bcde", "fghi", 3, true}, // one went: e would be missed
		{"abcd", "defg", "hijk", 1, true}, // three went
		{"abcd", "nabc", "defg", 4, true}, // one came
		{"abcd", "xyzn", "abcd", 4, true}, // a page of them came
		{"abcd", "nabc", "efgh", 4, true}, // one came, d went
		{"abcd", "abce", "fghi", 3, true}, // d went
		{"abcd", "efgh", "ijkl", 0, false},
		{"abcd", "", "", 0, false},
		{"", "efgh", "", 4, true},
	} {
		if from, known := FirstMissing(rows(c.given), rows(c.now), rows(c.next)); from != c.from || known != c.known {
			t.Errorf("%+v: %d %v", c, from, known)
		}
	}
}

func TestSplice(t *testing.T) {
	from := RowsFrom(pageOf("/1", "", time.Time{}, "a", "b", "c"), 1)
	for _, c := range []struct{ key, body, want string }{
		{"", `[]`, `[{"id":"b"},{"id":"c"}]`},
		{"", ` [ {"id":"d"} ] `, ` [{"id":"b"},{"id":"c"}, {"id":"d"} ] `},
		{"x.rows", `{"x":{"rows":[]},"n":1}`, `{"x":{"rows":[{"id":"b"},{"id":"c"}]},"n":1}`},
		{"rows", `{"x":{"rows":[]},"n":1}`, `{"x":{"rows":[]},"n":1}`},
		{"rows", `{"rows":{}}`, `{"rows":{}}`},
		{"rows", `not JSON`, `not JSON`},
	} {
		p := &understudy.Page{Body: []byte(c.body), Version: 7}
		if i := strings.Index(c.body, `{"id"`); i >= 0 {
			p.Rows = []understudy.Row{{ID: "d", Start: i, End: i + 10}}
		}
		out := Splice(p, c.key, from)
		if string(out.Body) != c.want || string(p.Body) != c.body {
			t.Errorf("%s: %s, want %s", c.body, out.Body, c.want)
		}
		if spliced := c.want != c.body; spliced && (out.Version != 0 || out.NotStored == "" || out.Sum == p.Sum) {
			t.Errorf("%s: kept as one of its own: %+v", c.body, out)
		}
		for _, r := range out.Rows {
			if got := string(out.Body[r.Start:r.End]); got != fmt.Sprintf(`{"id":%q}`, r.ID) {
				t.Errorf("%s: row %s is %s", c.body, r.ID, got)
			}
		}
	}
}

func FuzzSplice(f *testing.F) {
	f.Add("rows", `{"rows":[1,{"a":[]}]}`)
	f.Add("", `[]`)
	f.Add("a.b", `{"a":{"b":[ ]}}`)
	from := RowsFrom(pageOf("/1", "", time.Time{}, "a", "b"), 0)
	f.Fuzz(func(t *testing.T, key, text string) {
		p := &understudy.Page{Body: []byte(text)}
		if doc, err := jsonspan.Parse(p.Body); err == nil {
			if at, _ := jsonspan.Find(p.Body, doc, key); at.Kind == jsonspan.Array {
				jsonspan.VisitElements(p.Body, at, func(v jsonspan.Value) bool {
					p.Rows = append(p.Rows, understudy.Row{ID: "x", Start: v.Start, End: v.End})
					return true
				})
			}
		}
		out := Splice(p, key, from)
		if json.Valid([]byte(text)) != json.Valid(out.Body) && len(out.Rows) > len(p.Rows) {
			t.Fatalf("%s: %s", text, out.Body)
		}
		if len(out.Rows) > len(p.Rows) && len(out.Rows) != len(p.Rows)+len(from) {
			t.Fatalf("%d rows of %d", len(out.Rows), len(p.Rows))
		}
	})
}
