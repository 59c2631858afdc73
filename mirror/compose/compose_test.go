// Tests against slowapi, which answers the same lists from a world of its own:
// what it says to a request and what is composed from its records must be the
// same bytes.

package compose_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/internal/slowapi"
	"understudy/kit/jsonspan"
	"understudy/mirror/compose"
	"understudy/spec"
	"understudy/spec/spectest"
)

var epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const account = "AC00000000000000000000000000000001"

// api is a still slowapi and a source in front of it.
type api struct {
	t   *testing.T
	url string
	src *spec.Source
}

func slow(t *testing.T) *api {
	t.Helper()
	s, err := slowapi.New(slowapi.Options{Records: 300, Seed: 7, Account: account, Token: "slowapitoken", Epoch: epoch})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	sp := spectest.BuiltIn(t, "twilio")
	return &api{t, server.URL, &spec.Source{Name: "twilio", Spec: sp, User: account, PublicURL: server.URL}}
}

// ask is what slowapi answers.
func (a *api) ask(target string) (int, []byte) {
	a.t.Helper()
	req, _ := http.NewRequest("GET", a.url+target, nil)
	req.SetBasicAuth(account, "slowapitoken")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode, body
}

func (a *api) target(t *testing.T, target string) *spec.Target {
	t.Helper()
	out, err := a.src.Spec.ResolveLink("twilio", target)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// records walks a list and takes its records out, newest first.
func (a *api) records(path string) []*understudy.Record {
	a.t.Helper()
	t := a.target(a.t, path)
	next, size := path+"?PageSize=1000", 1000
	var out []*understudy.Record
	for n := 0; n < 10; n++ {
		status, body := a.ask(next)
		if status != 200 {
			a.t.Fatalf("%s: %d %s", next, status, body)
		}
		doc, err := jsonspan.Parse(body)
		if err != nil {
			a.t.Fatal(err)
		}
		rows, _ := jsonspan.Find(body, doc, t.List.Key)
		found := 0
		jsonspan.VisitElements(body, rows, func(v jsonspan.Value) bool {
			found++
			sid, _ := jsonspan.Find(body, v, "sid")
			out = append(out, &understudy.Record{ID: jsonspan.Text(body, sid), Body: v.Bytes(body), Number: int64(1_000_000 - len(out))})
			return true
		})
		if found < size {
			return out
		}
		link, _ := jsonspan.Find(body, doc, t.Spec.PagingOf(t.List).Next)
		if next = jsonspan.Text(body, link); next == "" {
			return out
		}
	}
	a.t.Fatalf("%s: no end", path)
	return nil
}

// shelf is records in order, as a store has them.
type shelf []*understudy.Record

func (s shelf) place(i int) query.OrderKey { return query.OrderKey(10 * (len(s) - i)) }

func (s shelf) FindPlace(_ context.Context, _, _, id string) (query.OrderKey, error) {
	if i := slices.IndexFunc(s, func(r *understudy.Record) bool { return r.ID == id }); i >= 0 {
		return s.place(i), nil
	}
	return 0, understudy.ErrNotFound
}

func (s shelf) Seek(_ context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	for n := range s {
		i := n
		if q.OldestFirst {
			i = len(s) - 1 - n
		}
		p := s.place(i)
		if q.Below != 0 && (!q.OldestFirst && p >= q.Below || q.OldestFirst && p <= q.Below) {
			continue
		}
		if !yield(query.Hit{Record: s[i], Order: p}) {
			break
		}
	}
	return nil
}

// composed answers from records as a mirror would.
func (a *api) composed(t *testing.T, target string, records []*understudy.Record) ([]byte, *understudy.Page, error) {
	t.Helper()
	aim := a.target(t, target)
	l, err := compose.New(a.src, aim, compose.Options{Now: func() time.Time { return epoch }})
	if err != nil {
		return nil, nil, err
	}
	if err := l.Fill(t.Context(), shelf(records)); err != nil {
		return nil, nil, err
	}
	p, err := l.BuildPage(time.Time{})
	if err != nil {
		return nil, nil, err
	}
	return p.Body, p, nil
}

// list is one that is compared, with filters and what may be asked of them; "*"
// is a value some record has.
type list struct {
	path    string
	filters map[string][]string
}

var lists = []list{
	{"Calls.json", map[string][]string{
		"Status": {"completed", "busy", "no-answer", "none"}, "To": {"*"}, "From": {"*"},
		"StartTime":  {"2026-05-30", "2026-05", "2026-05-30T11:00:00Z"},
		"StartTime<": {"2026-05-20", "2026-05-31T23:59:59Z", "05/20/2026 10:00:00"}, "StartTime>": {"2026-04-01", "2026"},
		"EndTime>": {"2026-05-25"}, "EndTime<": {"2026-05-28"},
	}},
	{"Messages.json", map[string][]string{"To": {"*"}, "From": {"*"}, "DateSent": {"2026-05-30"},
		"DateSent<": {"2026-05-20", "2026-05-20T12:00:00Z"}, "DateSent>": {"2026-05-20"}}},
	{"Conferences.json", map[string][]string{"Status": {"completed", "in-progress"}, "FriendlyName": {"*"}, "DateCreated>": {"2026-05-01"},
		"DateUpdated<": {"2026-05-20"}}},
	{"Recordings.json", map[string][]string{"CallSid": {"*"}, "DateCreated<": {"2026-05-20"}, "DateCreated>": {"2026-05-01"}}},
	{"IncomingPhoneNumbers.json", map[string][]string{"PhoneNumber": {"55", "1**", "*"}, "FriendlyName": {"*"}, "Beta": {"false", "true"}}},
	{"Notifications.json", map[string][]string{"MessageDate>": {"2026-05-01"}, "Log": {"0", "1"}}},
}

// fields say which field of a record a filter's "*" is drawn from.
var fields = map[string]string{"To": "to", "From": "from", "FriendlyName": "friendly_name", "CallSid": "call_sid",
	"PhoneNumber": "phone_number"}

func TestComposedAnswersAreUpstreams(t *testing.T) {
	a := slow(t)
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	tries := sample.Count(12, 40)
	for _, list := range lists {
		path := "/2010-04-01/Accounts/" + account + "/" + list.path
		records := a.records(path)
		if len(records) == 0 {
			t.Fatalf("%s has no records", list.path)
		}
		rows, pages := 0, 0
		for range tries {
			target := path + "?" + list.query(rng, a.target(t, path), records)
			for range 4 {
				status, want := a.ask(target)
				got, page, err := a.composed(t, target, records)
				if err != nil || status != 200 {
					t.Fatalf("%s: composed %v, upstream %d %s", target, err, status, want)
				}
				if string(got) != string(want) {
					t.Fatalf("%s\ncomposed %.900s\nupstream %.900s", target, got, want)
				}
				rows, pages = rows+len(page.Rows), pages+1
				if page.Next.IsZero() {
					break
				}
				target = page.Next.URI
			}
		}
		if rows == 0 || pages < tries {
			t.Errorf("%s: only %d rows on %d pages were compared", list.path, rows, pages)
		}
	}
}

// query draws up to two filters, in the order the spec names them, and a size.
func (l *list) query(rng *rand.Rand, t *spec.Target, records []*understudy.Record) string {
	var q understudy.Query
	for _, f := range t.List.Filters {
		values := l.filters[f.Name]
		if len(values) == 0 || len(q) == 2 || rng.IntN(4) > 0 {
			continue
		}
		value := values[rng.IntN(len(values))]
		if value == "*" {
			body := records[rng.IntN(len(records))].Body
			v, _ := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, fields[f.Name])
			value = jsonspan.Text(body, v)
		}
		q = append(q, understudy.Param{Name: f.Name, Value: value})
	}
	size := []string{"1", "2", "7", "50", "1000"}[rng.IntN(5)]
	q = append(q, understudy.Param{Name: "PageSize", Value: size})
	if rng.IntN(4) == 0 {
		q = append(q, understudy.Param{Name: "Page", Value: "1"})
	}
	return q.String()
}

func TestMonitorListsNameUsAbsolutely(t *testing.T) {
	a := slow(t)
	records := a.records("/v1/Alerts")
	for _, params := range []string{"PageSize=3", "LogLevel=error&PageSize=2", "StartDate=2026-05-20&PageSize=50",
		"EndDate=2026-05-31&PageSize=2&Page=1"} {
		_, want := a.ask("/v1/Alerts?" + params)
		got, _, err := a.composed(t, "/v1/Alerts?"+params, records)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %v\ncomposed %.600s\nupstream %.600s", params, err, got, want)
		}
	}
}

func TestWhatCannotBeComposed(t *testing.T) {
	a := slow(t)
	root := "/2010-04-01/Accounts/" + account
	for target, want := range map[string]string{
		"/Calls.json?Nonsense=1":                         `"Nonsense" is not a filter`,
		"/Calls.json?StartTime=soon":                     "Invalid date value.",
		"/Calls.json?PageSize=0":                         "Page size must be a number greater than 0.",
		"/Calls.json?Page=-1":                            "Page must be a number",
		"/Calls.json?PageToken=XX":                       "Page token is invalid.",
		"/IncomingPhoneNumbers.json?Beta=perhaps":        "Invalid boolean value.",
		"/Usage/Records.json":                            "whole pages",
		"/Calls/CA1/Events.json":                         "whole pages",
		"/Calls/CA00000000000000000000000000000000.json": "whole pages",
	} {
		_, _, err := a.composed(t, root+target, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", target, err, want)
		}
	}
}

func TestAPageEndsBeforeWhatItsTokenSays(t *testing.T) {
	a := slow(t)
	path := "/2010-04-01/Accounts/" + account + "/Calls.json"
	records := a.records(path)
	for _, at := range []int{5, 10, 47} {
		target := fmt.Sprintf("%s?PageSize=5&Page=0&PageToken=PB%s", path, records[at].ID)
		_, want := a.ask(target)
		got, page, err := a.composed(t, target, records)
		checktest.MustNoError(t, err, "before %d; got %.700s", at, got)
		checktest.Equal(t, string(got), string(want), "before %d: string(got)", at)
		checktest.Equal(t, page.Rows[0].ID, records[at-5].ID, "before %d: page.Rows[0].ID; got %.700s", at, got)
	}
}
