// The handler: parameters, statuses, exports and saved searches, over HTTP.

package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/spec"
)

// roleHeader says who asks: the caller's role, or its name and role.
const roleHeader = "X-Role"

type people struct{}

func (people) IdentifyPerson(r *http.Request) (understudy.Caller, error) {
	name, role, ok := strings.Cut(r.Header.Get(roleHeader), ":")
	if !ok {
		name, role = role, name
	}
	if role == "" {
		return understudy.Caller{}, fmt.Errorf("who: %w", understudy.ErrUnauthorized)
	}
	return understudy.Caller{Name: name, Grant: &understudy.Grant{Role: role}}, nil
}

func (r *rig) serve(s *Searcher) *httptest.Server {
	r.Helper()
	h, err := NewHandler(HandlerOptions{Searcher: s, Callers: people{}, Token: "sesame"})
	if err != nil {
		r.Fatal(err)
	}
	s.o.Now = time.Now // deadlines of connections are the machine's
	server := httptest.NewServer(h)
	r.Cleanup(server.Close)
	return server
}

// get asks and reads everything.
func get(t *testing.T, method, url, who, body string, change ...func(*http.Request)) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body == "" {
		req.Body = nil
	}
	req.Header.Set(roleHeader, who)
	for _, c := range change {
		c(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(data)
}

func TestServe(t *testing.T) {
	r := newRig(t, true)
	url := r.serve(r.s).URL
	for _, c := range []struct {
		query, who string
		status     int
		says       string
	}{
		{"", "all", 200, `"hits":[{"source":"twilio"`},
		{"q=kind:calls&limit=2&facets=true", "all", 200, `"total":{"n":300}`},
		{"q=kind:calls&limit=2&facets=true", "all", 200, `"term":"kind:calls"`},
		{"q=stauts:failed", "all", 400, `did you mean \"status\"? To search for this text, put it in quotes","at":0,"end":6,"character":0}`},
		{"q=x+(", "all", 400, `"at":2,"end":3,"character":2`},
		{"q=body:x", "support", 403, `"at":0,"end":4`},
		{"q=from:%2B15550100123", "support", 403, `can't see from`},
		{"q=kind:messages", "billing", 200, `"hits":[`},
		{"q=kind:conferences", "billing", 403, `"at":5,"end":16`},
		{"q=kind:cals", "all", 400, `did you mean \"calls\"?`},
		{"kind=conferences", "billing", 403, `can't see conferences`},
		{"kind=cals", "all", 400, `did you mean \"calls\"?`},
		{"source=twillio", "all", 400, `did you mean \"twilio\"?`},
		{"sort=from", "support", 403, `sort=from`},
		{"sort=durations", "all", 400, `did you mean \"duration\"?`},
		{"limit=0", "all", 400, `limit=0 is not allowed; write a number from 1 to 500`},
		{"limit=501", "all", 400, `write a number from 1 to 500`},
		{"facets=maybe", "all", 400, `write true or false`},
		{"qq=x", "all", 400, `did you mean \"q\"?`},
		{"q=a&q=b", "all", 400, `q appears 2 times`},
		{"sort=", "all", 400, `sort is empty`},
		{"cursor=abc", "all", 400, `start without a cursor`},
		{"format=csv", "all", 400, `write json, jsonl or xml`},
		{"format=jsonl&limit=5", "all", 400, `leave out cursor, limit and facets`},
		{"format=jsonl&sort=duration", "all", 400, `newest or oldest`},
		{"q=" + strings.Repeat("a", 3000), "all", 400, `at most 2000 bytes`},
		{"", "", 401, `unknown caller`},
		{"", "nobody", 403, `can't see anything`},
	} {
		resp, body := get(t, "GET", url+"/-/search?"+c.query, c.who, "")
		checktest.Equal(t, resp.StatusCode, c.status, "%s as %q: resp.StatusCode; body %.400s", c.query, c.who, body)
		checktest.Contains(t, body, c.says, "%s as %q: body", c.query, c.who)
		checktest.Equal(t, resp.Header.Get("Cache-Control"), "private, no-store",
			`%s as %q: resp.Header.Get("Cache-Control"); body %.400s`, c.query, c.who, body)
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Errorf("%s as %q: %v", c.query, c.who, err)
		}
	}
	if resp, body := get(t, "POST", url+"/-/search", "all", "x"); resp.StatusCode != 405 {
		t.Errorf("POST: %d %s", resp.StatusCode, body)
	}
	if resp, body := get(t, "GET", url+"/-/search", "all", "x"); resp.StatusCode != 400 {
		t.Errorf("a body: %d %s", resp.StatusCode, body)
	}
	if resp, _ := get(t, "GET", url+"/-/search", "", "", func(r *http.Request) {
		r.Header.Set("Authorization",
			"Bearer sesame")
	}); resp.StatusCode != 200 {
		t.Errorf("the token: %d", resp.StatusCode)
	}
	if resp, _ := get(t, "GET", url+"/-/search", "all", "", func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site",
			"cross-site")
	}); resp.StatusCode != 403 {
		t.Errorf("another site: %d", resp.StatusCode)
	}
}

// An exact id comes first, also where its words are found elsewhere.
func TestExact(t *testing.T) {
	r := newRig(t, true)
	call := strings.TrimPrefix(r.all("all", query.SearchRequest{Text: "kind:participants", Limit: 1})[0], "participants/")
	conference, sid, _ := strings.Cut(call, "~")
	for _, id := range []string{sid, conference, call} {
		out, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: id, Limit: 3})
		checktest.MustNoError(t, err, "%s; out %+v", id, out)
		checktest.MustTrue(t, len(out.Hits) != 0, "%s: len(out.Hits) is 0", id)
		checktest.MustEqual(t, out.Hits[0].ID, id, "%s: out.Hits[0].ID", id)
		checktest.MustTrue(t, out.Hits[0].Exact, "%s: out.Hits[0].Exact is false", id)
		checktest.MustEqual(t, out.Named.ID, id, "%s: out.Named.ID", id)
		found := r.all("all", query.SearchRequest{Text: id, Limit: 2})
		sorted := slices.Clone(found)
		slices.Sort(sorted)
		if len(slices.Compact(sorted)) != len(found) {
			t.Errorf("%s: %q", id, found)
		}
		if id != call && len(found) < 2 {
			t.Errorf("%s: what names it is not found: %q", id, found)
		}
	}
	{
		out, err := r.s.Find(t.Context(), as("texts"), query.SearchRequest{Text: sid})
		checktest.MustNoError(t, err, "a hidden id is meant; out %+v", out)
		checktest.MustEqual(t, len(out.Hits), 0, "a hidden id is meant: len(out.Hits)")
		checktest.Equal(t, out.Named.ID, "", "a hidden id is meant: out.Named.ID")
	}
	if out, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: "+1 (555) 010-0123"}); err != nil ||
		out.Named.Number != "+15550100123" {
		t.Errorf("%+v %v", out.Named, err)
	}
}

func TestSnippets(t *testing.T) {
	r := newRig(t, false)
	long := strings.Repeat("wörter davor und 日本語 ", 20) + "the needle in it" + strings.Repeat(" and after it", 30)
	r.put("Messages", fmt.Sprintf(`{"sid":"SM%032x","date_created":"Mon, 01 Jun 2026 10:00:00 +0000","date_sent":"Mon, 01 Jun 2026 `+
		`10:00:00 +0000","body":%q,"error_message":"a needle, too"}`, 1, long))
	out, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: `need* -absent "in it"`})
	checktest.MustNoError(t, err, "out %+v", out)
	checktest.MustEqual(t, len(out.Hits), 1, "len(out.Hits)")
	checktest.MustEqual(t, len(out.Hits[0].Snippets), 2, "len(out.Hits[0].Snippets)")
	s := out.Hits[0].Snippets[0]
	checktest.Equal(t, s.Field, "body", "s.Field")
	checktest.True(t, s.Before, "s.Before is false")
	checktest.True(t, s.After, "s.After is false")
	checktest.Contains(t, long, s.Text, "long")
	checktest.MustEqual(t, len(s.Marks), 2, "len(s.Marks)")
	checktest.Equal(t, s.Text[s.Marks[0][0]:s.Marks[0][1]], "needle", "s.Text[s.Marks[0][0]:s.Marks[0][1]]")
	checktest.Equal(t, s.Text[s.Marks[1][0]:s.Marks[1][1]], "in it", "s.Text[s.Marks[1][0]:s.Marks[1][1]]")
	{
		out, err := r.s.Find(t.Context(), as("support"), query.SearchRequest{Text: `needle`})
		checktest.MustNoError(t, err, "out %+v", out)
		checktest.MustEqual(t, len(out.Hits), 1, "len(out.Hits)")
		checktest.MustEqual(t, len(out.Hits[0].Snippets), 1, "len(out.Hits[0].Snippets)")
		checktest.Equal(t, out.Hits[0].Snippets[0].Field, "error_message", "out.Hits[0].Snippets[0].Field")
	}
}

func TestSaved(t *testing.T) {
	r := newRig(t, true)
	s := r.with(func(o *Options) { o.Limits.MaxSavedEach = 3; o.Limits.MaxSaved = 5 })
	url := r.serve(s).URL + "/-/search/saved"
	typed := func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }
	save := func(who, body string, status int) string {
		t.Helper()
		resp, text := get(t, "POST", url, who, body, typed)
		if resp.StatusCode != status {
			t.Errorf("%s saves %s: %d %s; want %d", who, body, resp.StatusCode, text, status)
		}
		return text
	}
	names := func(who string) string {
		t.Helper()
		_, text := get(t, "GET", url, who, "")
		var out struct{ Saved []savedSearch }
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, n := range out.Saved {
			all = append(all, n.Owner+"/"+n.Name+"="+n.Query)
		}
		return strings.Join(all, " ")
	}
	save("ann:all", `{"name":"late & lost","q":"status:failed","shared":true}`, 204)
	save("ann:all", `{"name":"mine","q":"body:hello","kinds":["messages"],"sort":"-price"}`, 204)
	save("ann:all", `{"name":"texts","q":"body:hello","shared":true}`, 204)
	save("ann:all", `{"name":"mine","q":"body:bye"}`, 204)
	save("ann:all", `{"name":"fourth","q":"x"}`, 400)
	save("bob:support", `{"name":"mine","q":"kind:calls"}`, 204)
	save("bob:support", `{"name":"not","q":"body:x"}`, 403)
	save("bob:support", `{"name":"not","q":"x ("}`, 400)
	save("bob:support", `{"name":" not","q":"x"}`, 400)
	save("bob:support", `{"name":"","q":"x"}`, 400)
	save("bob:support", `{"name":"..","q":"x"}`, 400)
	save("bob:support", `{"name":".","q":"x"}`, 400)
	save("bob:support", `{"name":"`+strings.Repeat("n", 61)+`","q":"x"}`, 400)
	save("bob:support", `{"name":"n","q":"x","owner":"ann"}`, 400)
	save("bob:support", `{"name":"n","q":"x","sort":"nothing"}`, 400)
	save(":", `{"name":"n","q":"x"}`, 401)
	if got := names("ann:all"); got != "ann/late & lost=status:failed ann/mine=body:bye ann/texts=body:hello" {
		t.Errorf("ann sees %s", got)
	}
	if got := names("bob:support"); got != "bob/mine=kind:calls ann/late & lost=status:failed" {
		t.Errorf("bob sees %s", got)
	}
	save("ann:all", `{"name":"mine","q":"status:failed","kinds":["calls"],"shared":true}`, 204)
	elsewhere := understudy.Caller{Name: "eve", Source: "other", Grant: &understudy.Grant{Role: "support"}}
	if got, err := s.ListSaved(t.Context(), elsewhere); err != nil || len(got) != 0 {
		t.Errorf("who may ask another source alone sees %+v: %v", got, err)
	}
	save("ann:all", `{"name":"mine","q":"body:bye"}`, 204)
	for _, c := range []struct {
		who, name string
		status    int
	}{{"bob:support", "texts", 404}, {"bob:support", "late%20&%20lost", 404}, {"bob:support", "mine", 204}, {"bob:support", "mine", 404},
		{"root:all", "late%20&%20lost", 204}} {
		if resp, text := get(t, "DELETE", url+"/"+c.name, c.who, ""); resp.StatusCode != c.status {
			t.Errorf("%s deletes %s: %d %s", c.who, c.name, resp.StatusCode, text)
		}
	}
	for _, change := range []func(*http.Request){
		func(r *http.Request) { typed(r); r.Header.Set("Sec-Fetch-Site", "cross-site") },
		func(r *http.Request) { typed(r); r.Header.Set("Origin", "https://evil.example") },
		func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
	} {
		if resp, text := get(t, "POST", url, "ann:all", `{"name":"x","q":"x"}`, change); resp.StatusCode != 403 && resp.StatusCode != 400 {
			t.Errorf("another site saves: %d %s", resp.StatusCode, text)
		}
	}
	if got := names("ann:all"); got != "ann/mine=body:bye ann/texts=body:hello" {
		t.Errorf("ann sees %s", got)
	}
}

// Beyond the limit searches are refused, not queued.
func TestBusy(t *testing.T) {
	r := newRig(t, true)
	hold, begun := make(chan struct{}), make(chan struct{})
	s := r.with(func(o *Options) {
		o.Limits.MaxConcurrent = 1
		o.Store = failing{o.Store, 3, func(context.Context) error { close(begun); <-hold; return nil }}
	})
	url := r.serve(s).URL + "/-/search"
	done := make(chan error, 1)
	go func() {
		_, err := s.Find(context.Background(), as("all"), query.SearchRequest{})
		done <- err
	}()
	<-begun
	resp, body := get(t, "GET", url, "all", "")
	checktest.Equal(t, resp.StatusCode, 503, "resp.StatusCode; body %s", body)
	checktest.True(t, resp.Header.Get("Retry-After") != "", `resp.Header.Get("Retry-After") is empty; body %s`, body)
	checktest.Contains(t, body, "too many", "body")
	if _, err := s.Find(t.Context(), as("all"), query.SearchRequest{}); !errors.Is(err, understudy.ErrUnavailable) {
		t.Errorf("%v is no kind of error", err)
	}
	close(hold)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// While the index is being built a search, and an export of which nothing has
// been sent, say so.
func TestIndexing(t *testing.T) {
	r := newRig(t, true)
	s := r.with(func(o *Options) {
		o.Store = failing{o.Store, 0, func(context.Context) error { return fmt.Errorf("store: seek: %w: 17 of 2000", understudy.ErrIndexing) }}
	})
	url := r.serve(s).URL + "/-/search?q=kind:calls"
	for _, form := range []string{"", "&format=jsonl", "&format=xml", "&facets=true", "&sort=-duration"} {
		resp, body := get(t, "GET", url+form, "all", "")
		checktest.Equal(t, resp.StatusCode, 503, "%s: resp.StatusCode; body %s", form, body)
		checktest.True(t, resp.Header.Get("Retry-After") != "",
			`%s: resp.Header.Get("Retry-After") is empty; body %s`, form, body)
		checktest.Equal(t, resp.Header.Get("Content-Type"), "application/json",
			`%s: resp.Header.Get("Content-Type"); body %s`, form, body)
		checktest.Contains(t, body, `"the index is being built: 17 of 2000"`, "%s: body", form)
	}
}

func TestTextOfOneKind(t *testing.T) {
	r := newRig(t, true)
	list := &spec.Target{Key: understudy.Key{Source: "twilio"}, Kind: r.spec.Kind("messages")}
	text, test, err := r.s.CompileText(as("support"), list, "status:delivered OR hello")
	if err != nil || text != nil {
		t.Fatalf("%+v %v", text, err)
	}
	want := r.all("support", query.SearchRequest{Text: "kind:messages (status:delivered OR hello)", Limit: 500})
	var got []string
	_ = r.store.Seek(t.Context(), query.RecordQuery{Source: "twilio", Kinds: []string{"messages"}}, func(f query.Hit) bool {
		if test(f.Record) {
			got = append(got, "messages/"+f.Record.ID)
		}
		return true
	})
	if !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("%d of %d", len(got), len(want))
	}
	text, _, err = r.s.CompileText(as("support"), list, "hello -world")
	checktest.MustNoError(t, err, "text %+v", text)
	checktest.MustTrue(t, text != nil, "text is nil")
	checktest.Equal(t, text.Op, query.TextWord, "text.Op")
	checktest.True(t, !slices.Contains(text.Fields["messages"], "body"), `text.Fields["messages"] is %v`,
		text.Fields["messages"])
	checktest.True(t, slices.Contains(text.Fields["messages"], "status"), `text.Fields["messages"] is %v`,
		text.Fields["messages"])
	for params, none := range map[string]bool{"-kind:messages": true, "hello -kind:messages": true,
		"kind:messages (-kind:message OR -kind:messages)": true, "-kind:messages OR hello": false, "kind:messages": false, "-hello": false,
		"-(hello kind:messages)": false} {
		text, test, err := r.s.CompileText(as("support"), list, params)
		if err != nil || none != (text != nil && text.Op == query.TextNone) {
			t.Fatalf("%s: %+v %v", params, text, err)
		}
		_ = r.store.Seek(t.Context(), query.RecordQuery{Source: "twilio", Kinds: []string{"messages"}}, func(f query.Hit) bool {
			if none && test(f.Record) {
				t.Errorf("%s finds %s", params, f.Record.ID)
			}
			return !t.Failed()
		})
	}
	if _, _, err := r.s.CompileText(as("support"), list, "kind:calls"); !errors.Is(err, understudy.ErrInvalid) {
		t.Error(err)
	}
	if _, _, err := r.s.CompileText(as("support"), &spec.Target{}, "hello"); !errors.Is(err, understudy.ErrInvalid) {
		t.Error(err)
	}
	if _, _, err := r.s.CompileText(as("support"), list, "body:x"); !errors.Is(err, understudy.ErrForbidden) {
		t.Error(err)
	}
	if _, _, err := r.s.CompileText(as("support"), list, "duration>5"); !errors.Is(err, understudy.ErrInvalid) {
		t.Error(err)
	}
}

func TestAccepted(t *testing.T) {
	for accept, want := range map[string]string{
		"": formJSON, "*/*": formJSON, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": formJSON, "application/xml": formXML,
		"application/xml;q=0.1, application/json": formJSON, "application/json;q=0.5,application/x-ndjson": formLines,
		"text/xml; charset=utf-8; q=0.7, */*; Q=0.2": formXML,
		"application/xml;q=0":                        formJSON, "application/xml;q=x": formJSON, "image/png": formJSON,
		"text/xml, application/json": formXML,
	} {
		if got := acceptedForm([]string{accept}); got != want {
			t.Errorf("%q: %s, want %s", accept, got, want)
		}
	}
}
