// Our own parameters: what they become, and what they are refused for.

package proxy

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/request"
	"understudy/spec"
)

func TestWishesOfARequest(t *testing.T) {
	b := newBed(t)
	b.answers(page("calls", true, 200, `{"calls":[]}`))
	b.Proxy.o.ParseText = func(c understudy.Caller, target *spec.Target, text string) (*query.Text, func(*understudy.Record) bool, error) {
		if c.Name == "" || target.Kind.Name != "calls" {
			t.Errorf("asked for %+v, %+v", c, target)
		}
		if text == "(" {
			return nil, nil, fmt.Errorf("search: %w: character 1: a bracket is open", understudy.ErrInvalid)
		}
		return &query.Text{Words: []string{text}}, func(r *understudy.Record) bool { return r.ID == text }, nil
	}
	b.Proxy.o.ParseNear = func(_ context.Context, c understudy.Caller, target *spec.Target, text string) (*query.Near, error) {
		if c.Name == "" || target.Kind.Name != "calls" {
			t.Errorf("asked for %+v, %+v", c, target)
		}
		if text == "here" {
			return nil, fmt.Errorf("search: %w: write near:37.8,-122.4~25mi", understudy.ErrInvalid)
		}
		return &query.Near{Numbers: []int64{int64(len(text))}}, nil
	}
	for _, test := range []struct {
		query, secret string
		status        int
		says          string // of the local query, or in the error
	}{
		{"", demo, 200, "none"},
		{"understudy.order=asc", demo, 200, "up"},
		{"understudy.order=desc", demo, 200, "none"},
		{"understudy.since=0", demo, 200, "since 0"},
		{"understudy.since=17&Status=busy&understudy.order=asc&understudy.q=anna", demo, 200, "up since 17 text anna"},
		{"understudy.q=anna", masked, 200, "text anna"},
		{"understudy.nonsense=1", demo, 200, "none"},
		{"understudy.order=up", demo, 400, "understudy.order: write asc or desc"},
		{"understudy.order=", demo, 400, "understudy.order"},
		{"understudy.since=-1", demo, 400, "understudy.since: write the number of a change"},
		{"understudy.since=99999999999999999999", demo, 400, "understudy.since"},
		{"understudy.since=1", masked, 403, "can't see"},
		{"understudy.order=asc&understudy.order=asc", demo, 400, "write it only once"},
		{"understudy.as_of=2026-01-01&understudy.as_of=2026-02-01", demo, 400, "understudy.as_of: write it only once"},
		{"understudy.order=asc&understudy.as_of=2026-01-01", demo, 400, "cannot be combined with understudy.as_of"},
		{"understudy.q=(", demo, 400, "understudy.q: character 1: "},
		{"understudy.near=1,2&understudy.q=anna", demo, 200, "text anna near 3"},
		{"understudy.near=here", demo, 400, "understudy.near: write near:37.8"},
		{"understudy.near=1,2&understudy.order=asc", demo, 400, "cannot be combined with understudy.near"},
		{"understudy.near=1,2&understudy.near=1,2", demo, 400, "understudy.near: write it only once"},
	} {
		b.script.asked = nil
		w := b.ask("GET", root+"/Calls.json?"+test.query, test.secret)
		if w.Code != test.status {
			t.Errorf("%s: %d %s", test.query, w.Code, w.Body)
			continue
		}
		if test.status != http.StatusOK {
			if !strings.Contains(w.Body.String(), test.says) || len(b.script.asked) != 0 {
				t.Errorf("%s: %s, asked %d times", test.query, w.Body, len(b.script.asked))
			}
			continue
		}
		if got := saysOf(b.script.asked[0]); got != test.says {
			t.Errorf("%s: asked for %q, want %q", test.query, got, test.says)
		}
	}
	if w := b.ask("GET", root+"/Calls/CA1.json?understudy.order=asc", demo); w.Code != 400 ||
		!strings.Contains(w.Body.String(), "only for lists") {
		t.Errorf("of one record: %d %s", w.Code, w.Body)
	}
	b.Proxy.o.ParseText = nil
	if w := b.ask("GET", root+"/Calls.json?understudy.q=anna", demo); w.Code != 400 {
		t.Errorf("nobody searches: %d %s", w.Code, w.Body)
	}
}

func saysOf(a request.Request) string {
	if a.Local == nil {
		return "none"
	}
	var out []string
	if a.Local.OldestFirst {
		out = append(out, "up")
	}
	if since, ok := a.Target.OwnParams.Get(understudy.OwnSince); ok {
		out = append(out, fmt.Sprintf("since %d", a.Local.Since))
		if fmt.Sprint(a.Local.Since) != since {
			out = append(out, "not "+since)
		}
	}
	if a.Local.Text != nil {
		out = append(out, "text "+a.Local.Text.Words[0])
		if a.Local.CanFind == nil || !a.Local.CanFind(&understudy.Record{ID: "anna"}) || a.Local.CanFind(&understudy.Record{}) {
			out = append(out, "without its condition")
		}
	}
	if a.Local.Near != nil {
		out = append(out, fmt.Sprint("near ", a.Local.Near.Numbers[0]))
	}
	return strings.Join(out, " ")
}

func TestNotMirroredYet(t *testing.T) {
	b := newBed(t)
	b.script.page = func(context.Context, request.Request) (*request.Response, error) {
		return nil, fmt.Errorf("mirror: compose: %w: calls: not synced", understudy.ErrNotMirrored)
	}
	w := b.ask("GET", root+"/Calls.json?understudy.order=asc", demo)
	checktest.Equal(t, w.Code, 503, "w.Code; w.Body %s", w.Body)
	checktest.True(t, w.Header().Get("Retry-After") != "", `w.Header().Get("Retry-After") is empty; w.Body %s`,
		w.Body)
	checktest.Contains(t, w.Body.String(), "not mirrored yet: calls: not synced", "w.Body.String()")
}

// Part 2, no. 15: the number of a change that was not given yet was 200 and empty.
func TestSinceBeyondTheEnd(t *testing.T) {
	b := newBed(t)
	b.o.LastChange = func(context.Context, string) (int64, error) { return 41, nil }
	b.answers(page("messages", true, 200, `{"messages":[]}`))
	for since, want := range map[string]int{"0": 200, "41": 200, "42": 400, "999999999": 400} {
		w := b.ask("GET", root+"/Messages.json?understudy.since="+since, demo)
		if w.Code != want || want == 400 && !strings.Contains(w.Body.String(), "beyond the end; the last change is 41") {
			t.Errorf("%s: %d %s", since, w.Code, w.Body)
		}
	}
}
