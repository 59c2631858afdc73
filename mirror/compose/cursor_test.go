// Another API: lists that go on by the last record's id, times in seconds, and
// lists that go on by numbers alone.

package compose_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/mirror/compose"
	"understudy/spec"
	"understudy/spec/paging"
)

// till is an API of charges, numbered from 1.
type till struct {
	*testing.T
	spec *spec.Spec
	n    int
}

func newTill(t *testing.T) *till {
	t.Helper()
	filters := []*spec.Filter{
		{Name: "customer", Field: "customer"},
		{Name: "created[gte]", Field: "created", Op: "since", Type: spec.TypeEpoch},
		{Name: "created[lte]", Field: "created", Op: "until", Type: spec.TypeEpoch},
	}
	s := &spec.Spec{
		Name: "till", Hosts: []spec.Host{{URL: "https://till.example"}}, Auth: spec.Auth{Style: "bearer"},
		Paging: spec.Paging{Rules: paging.Rules{
			Style: "cursor", Next: "has_more", Cursor: "starting_after", Size: "limit", Default: 10, Max: 100, Tokens: []string{"ending_before"},
			Template: `{"object":"list","data":{rows},"has_more":{more},"url":"/v1/charges"}`,
		}},
		Pagings: map[string]*spec.Paging{
			"numbers": {Rules: paging.Rules{Style: "header", Size: "per_page", Default: 30, Page: "page", First: 1, Template: "{rows}"}},
		},
		Errors: spec.Errors{ContentType: "application/json", Template: `{"error":{message}}`,
			Messages: map[string]string{"date": "Invalid time"}},
		Kinds: []*spec.Kind{{
			Name: "charges", ID: []string{"id"}, Clock: "created",
			Fields: []*spec.Field{{Name: "id"}, {Name: "created", Type: spec.TypeEpoch}, {Name: "customer"}, {Name: "state"},
				{Name: "labels"}, {Name: "labels.name"}},
			Lists: []*spec.List{{Path: "/v1/tickets", Key: "data", Filters: ticketFilters()},
				{Path: "/v1/charges", Key: "data", Filters: filters}, {Path: "/charges", Filters: filters[:1], Paging: "numbers"}},
		}},
	}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	return &till{t, s, 57}
}

func (x *till) charge(i int) string {
	state := []string{"open", "closed"}[i%2]
	return fmt.Sprintf(`{"id":"ch_%d","created":%d,"customer":"cus_%d","state":%q,"labels":[{"name":"l%d"},{"name":"m%d"}]}`, i,
		1_700_000_000+i*60, i%3, state, i%2, i%5)
}

// Seek hands out the charges, the newest first, or upward from Below.
func (x *till) Seek(_ context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	for n := range x.n {
		i, at := x.n-n, query.OrderKey(x.n-n)
		if q.OldestFirst {
			i, at = n+1, query.OrderKey(n+1)
		}
		if q.Below != 0 && (!q.OldestFirst && at >= q.Below || q.OldestFirst && at <= q.Below) {
			continue
		}
		if !yield(query.Hit{Record: &understudy.Record{ID: "ch_" + strconv.Itoa(i), Body: []byte(x.charge(i))}, Order: query.OrderKey(i),
			Clock: int64(1_700_000_000 + i*60)}) {
			return nil
		}
	}
	return nil
}

// FindPlace is where a charge stands.
func (x *till) FindPlace(_ context.Context, _, _, id string) (query.OrderKey, error) {
	i, err := strconv.Atoi(id[min(3, len(id)):])
	if err != nil || i < 1 || i > x.n {
		return 0, understudy.ErrNotFound
	}
	return query.OrderKey(i), nil
}

// back is what the API itself answers to a list of charges before one.
func (x *till) back(before, limit int) string {
	rows, n := []string{}, 0
	for i := min(before+limit, x.n); i > before; i-- {
		rows = append(rows, x.charge(i))
		n++
	}
	return fmt.Sprintf(`{"object":"list","data":[%s],"has_more":%v,"url":"/v1/charges"}`, strings.Join(rows, ","), before+n < x.n)
}

// says is what the API itself answers to a list of charges.
func (x *till) says(q url.Values) string {
	number := func(name string, or int) int {
		if n, err := strconv.Atoi(q.Get(name)); err == nil {
			return n
		}
		return or
	}
	below := x.n + 1
	if after := q.Get("starting_after"); after != "" {
		below, _ = strconv.Atoi(after[3:])
	}
	limit, since, until := number("limit", 10), number("created[gte]", 0), number("created[lte]", 1<<40)
	rows, more := []string{}, false
	for i := below - 1; i > 0; i-- {
		at := 1_700_000_000 + i*60
		if at < since || at > until || q.Get("customer") != "" && q.Get("customer") != fmt.Sprintf("cus_%d", i%3) {
			continue
		}
		if more = len(rows) == limit; more {
			break
		}
		rows = append(rows, x.charge(i))
	}
	return fmt.Sprintf(`{"object":"list","data":[%s],"has_more":%v,"url":"/v1/charges"}`, strings.Join(rows, ","), more)
}

// list composes.
func (x *till) list(target string) (*understudy.Page, error) {
	x.Helper()
	t, err := x.spec.ResolveLink("till", target)
	if err != nil {
		x.Fatal(err)
	}
	l, err := compose.New(&spec.Source{Name: "till", Spec: x.spec}, t, compose.Options{})
	if err != nil {
		return nil, err
	}
	if err := l.Fill(x.Context(), x); err != nil {
		return nil, err
	}
	return l.BuildPage(epoch)
}

// TestCursors: every page says whether one comes after it, and where that is
// follows from its last record.
func TestCursors(t *testing.T) {
	x := newTill(t)
	for _, params := range []string{
		"", "limit=100", "limit=57", "limit=7", "limit=5&starting_after=ch_3", "customer=cus_1&limit=4", "customer=cus_9",
		"created[gte]=1700001200", "created[gte]=1700001200&created[lte]=1700001500", "created[gte]=1700001201&created[lte]=1700001499&limit=2",
		"created[lte]=2026", "created[gte]=0",
	} {
		for pages := 0; ; pages++ {
			p, err := x.list("/v1/charges?" + params)
			if err != nil {
				t.Fatalf("%s: %v", params, err)
			}
			values, err := url.ParseQuery(params)
			if err != nil {
				t.Fatal(err)
			}
			if want := x.says(values); string(p.Body) != want {
				t.Fatalf("%s:\n%s\nwant\n%s", params, p.Body, want)
			}
			if p.Next.IsZero() {
				break
			}
			if params = p.Next.Query(); pages > x.n {
				t.Fatal("no end")
			}
		}
	}
	var refused *compose.Refusal
	if _, err := x.list("/v1/charges?created[gte]=soon"); !errors.As(err, &refused) {
		t.Errorf("no time: %v", err)
	}
	for _, params := range []string{"ending_before=ch_20", "ending_before=ch_20&starting_after=ch_40", "created[gte]=1700001200.5",
		"created[gte]=-1"} {
		if p, err := x.list("/v1/charges?" + params); !errors.Is(err, understudy.ErrInvalid) || errors.As(err, &refused) {
			t.Errorf("%s: %+v, %v", params, p, err)
		}
	}
}

// TestCursorsBothWays: pages asked for by the record they end before are composed too,
// and lead on upward: to the page before their first record.
func TestCursorsBothWays(t *testing.T) {
	x := newTill(t)
	x.spec.Paging.Back, x.spec.Paging.Tokens = "ending_before", nil
	if err := x.spec.Paging.Check(); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 7, 10, 55, 56, 57, 100} {
		for from := 1; from <= x.n; from += 8 {
			params, last := fmt.Sprintf("limit=%d&ending_before=ch_%d", limit, from), from
			for {
				p, err := x.list("/v1/charges?" + params)
				if err != nil {
					t.Fatalf("%s: %v", params, err)
				}
				if want := x.back(last, limit); string(p.Body) != want {
					t.Fatalf("%s:\n%s\nwant\n%s", params, p.Body, want)
				}
				last += len(p.Rows)
				if p.Next.IsZero() {
					break
				}
				if params = p.Next.Query(); params != fmt.Sprintf("limit=%d&ending_before=ch_%d", limit, last) {
					t.Fatalf("leads on by %s", params)
				}
			}
			if last != x.n {
				t.Fatalf("limit=%d from ch_%d: ends at ch_%d", limit, from, last)
			}
		}
	}
	if p, err := x.list("/v1/charges?ending_before=ch_20&starting_after=ch_40"); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("both: %+v, %v", p, err)
	}
}

// TestNumbersAlone: pages named by numbers alone have each row once, in order, and lead to the page
// after them. Slides says of them that they may not stand beside pages of another moment.
func TestNumbersAlone(t *testing.T) {
	for _, offset := range []bool{false, true} {
		x := newTill(t)
		at, step := 1, 1
		if offset {
			x.spec.Pagings["numbers"].Style, x.spec.Pagings["numbers"].First = "offset", 0
			at, step = 0, 25
		}
		seen := 0
		for next := fmt.Sprintf("/charges?per_page=25&page=%d", at); next != ""; {
			if want := fmt.Sprintf("/charges?per_page=25&page=%d", at); next != want {
				t.Fatalf("offset %v: the next page is %s, want %s", offset, next, want)
			}
			p, err := x.list(next)
			if err != nil {
				t.Fatalf("offset %v: %s: %v", offset, next, err)
			}
			for _, row := range p.Rows {
				if want := fmt.Sprint("ch_", x.n-seen); row.ID != want {
					t.Fatalf("offset %v: %s: row %s, want %s", offset, next, row.ID, want)
				}
				seen++
			}
			at += step
			next = ""
			if !p.Next.IsZero() {
				next = p.Next.RequestURI()
			}
		}
		if seen != x.n {
			t.Errorf("offset %v: %d rows, want %d", offset, seen, x.n)
		}
		{
			p, err := x.list("/charges?per_page=25&page=900")
			checktest.MustNoError(t, err, "offset %v", offset)
			checktest.MustTrue(t, len(p.Rows) <= 0, "offset %v: len(p.Rows) is %v, want <= 0", offset, len(p.Rows))
			checktest.True(t, p.Next.IsZero(), "offset %v: p.Next.IsZero() is false", offset)
		}
	}
}

// TestNumbersOfUnknownPagesAreNotComposed: links lead on and nothing says which number the first
// page has, or how many rows a page has. Only a page that is the whole list is known.
func TestNumbersOfUnknownPagesAreNotComposed(t *testing.T) {
	for name, change := range map[string]func(*spec.Paging){
		"the first page": func(p *spec.Paging) { p.First = 0 },
		"the size":       func(p *spec.Paging) { p.Default = 0 },
	} {
		x := newTill(t)
		change(x.spec.Pagings["numbers"])
		if p, err := x.list("/charges?per_page=100"); err != nil || len(p.Rows) != x.n {
			t.Errorf("%s: the whole list: %+v, %v", name, p, err)
		}
		for _, params := range []string{"per_page=25", "per_page=25&page=2", "page=2"} {
			if p, err := x.list("/charges?" + params); !errors.Is(err, understudy.ErrInvalid) {
				t.Errorf("%s: %q: %+v, %v", name, params, p, err)
			}
		}
	}
}

// TestAnswersSayHowTheyGoOn: a spec whose answers do not say where upstream does
// that a page comes after them is refused.
func TestAnswersSayHowTheyGoOn(t *testing.T) {
	for answer, ok := range map[string]bool{
		`{"data":{rows},"has_more":{more}}`:                 true,
		`{"data":{rows},"has_more":false}`:                  false,
		`{"data":{rows},"more":{more}}`:                     false,
		`{"data":{rows}}`:                                   false,
		`{"data":{rows},"has_more":{more},"p":{previous}}`:  false,
		`{"data":{rows},"has_more":{more},"next":{next}}`:   true,
		`{"data":{rows},"has_more":"{more}"}`:               false,
		`{"data":{rows},"page":{"has_more":{more},"n":{}}}`: false,
	} {
		x := newTill(t)
		p := x.spec.Paging
		p.Template = answer
		s := &spec.Spec{Name: "till", Hosts: x.spec.Hosts, Auth: x.spec.Auth, Paging: p}
		if err := s.Compile(); (err == nil) != ok {
			t.Errorf("%s: %v", answer, err)
		}
	}
	for next, ok := range map[string]bool{"{next}": true, "{next_url}": true, "null": false, `"{next}"`: false, "{first}": false} {
		s := newTill(t).spec
		body := &spec.Spec{Name: "till", Hosts: s.Hosts, Auth: s.Auth,
			Paging: spec.Paging{Rules: paging.Rules{Style: "body", Next: "links.next", Template: `{"data":{rows},"links":{"next":` + next + `}}`}}}
		if err := body.Compile(); (err == nil) != ok {
			t.Errorf("%s: %v", next, err)
		}
	}
	if words := paging.EnvelopeWords(); !slices.Contains(words, "more") {
		t.Error(words)
	}
}
