// Exports: whole, broken off, ended with their policy, and refused.

package search

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/export"
	"understudy/internal/query"
	"understudy/internal/search/lang"
	"understudy/kit/limiter"
)

func TestExport(t *testing.T) {
	r := newRig(t, true)
	url := r.serve(r.s).URL
	for _, role := range []string{"all", "support"} {
		want := r.all(role, query.SearchRequest{Text: "kind:calls,messages", Limit: 500})
		resp, body := get(t, "GET", url+"/-/search?format=jsonl&q=kind:calls,messages", role, "")
		lines := strings.Split(strings.TrimSpace(body), "\n")
		checktest.MustEqual(t, resp.StatusCode, 200, "%d lines of %d: resp.StatusCode", len(lines), len(want))
		checktest.MustEqual(t, len(lines), len(want), "%d lines of %d: len(lines)", len(lines), len(want))
		checktest.MustEqual(t, resp.Trailer.Get(endTrailer), fmt.Sprintf("complete; %d records", len(want)),
			"%d lines of %d: resp.Trailer.Get(endTrailer)", len(lines), len(want))
		for i, line := range lines {
			var h query.SearchHit
			if err := json.Unmarshal([]byte(line), &h); err != nil || h.Kind+"/"+h.ID != want[i] {
				t.Fatalf("line %d: %s: %v", i, line, err)
			}
		}
		resp, body = get(t, "GET", url+"/-/search?q=kind:calls,messages", role, "",
			func(r *http.Request) { r.Header.Set("Accept", "application/xml") })
		var doc struct {
			Docs []struct {
				Fields []struct {
					Name string `xml:"name,attr"`
					Text string `xml:",chardata"`
				} `xml:"field"`
			} `xml:"doc"`
		}
		{
			err := xml.Unmarshal([]byte(body), &doc)
			checktest.MustNoError(t, err, "%d documents of %d", len(doc.Docs), len(want))
			checktest.MustEqual(t, len(doc.Docs), len(want), "%d documents of %d: len(doc.Docs)", len(doc.Docs),
				len(want))
			checktest.MustTrue(t, strings.HasPrefix(resp.Trailer.Get(endTrailer), "complete"),
				"%d documents of %d: resp.Trailer.Get(endTrailer) is %q", len(doc.Docs), len(want),
				resp.Trailer.Get(endTrailer))
		}
		bodies := 0
		for i, d := range doc.Docs {
			if d.Fields[0].Name != "id" || d.Fields[0].Text != "twilio/"+want[i] {
				t.Fatalf("document %d: %+v", i, d)
			}
			for _, f := range d.Fields {
				if f.Name == "record.body" {
					bodies++
				}
				if f.Name == "record.from" && role == "support" && !strings.HasPrefix(f.Text, "********") {
					t.Errorf("%+v", f)
				}
			}
		}
		if (bodies > 0) != (role == "all") {
			t.Errorf("%s is given %d bodies", role, bodies)
		}
	}
	if resp, body := get(t, "GET", url+"/-/search?format=xml&q=nothingissuch", "all", ""); !strings.Contains(body, "<add") ||
		!strings.HasPrefix(resp.Trailer.Get(endTrailer), "complete; 0") {
		t.Errorf("%s %s", body, resp.Trailer)
	}
}

// failing is a store that fails, or stops, after some records.
type failing struct {
	Store
	after int
	how   func(ctx context.Context) error
}

func (f failing) Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error {
	n := 0
	err := f.Store.Seek(ctx, q, func(one query.Hit) bool {
		n++
		return n <= f.after && yield(one)
	})
	if err != nil || n <= f.after {
		return err
	}
	return f.how(ctx)
}

func TestExportBrokenOff(t *testing.T) {
	r := newRig(t, true)
	for name, how := range map[string]func(ctx context.Context) error{
		"an error":      func(context.Context) error { return errors.New("disk on fire") },
		"no more comes": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		s := r.with(func(o *Options) {
			o.Store = failing{o.Store, 30, how}
			o.Limits.Silence = time.Second
			o.Limits.Time = time.Second
		})
		url := r.serve(s).URL
		resp, body := get(t, "GET", url+"/-/search?format=jsonl&q=kind:calls", "all", "")
		lines := strings.Split(strings.TrimSpace(body), "\n")
		last := lines[len(lines)-1]
		checktest.MustEqual(t, len(lines), 31, "%s: len(lines)", name)
		checktest.Equal(t, last, `{"error":"interrupted"}`, "%s: last", name)
		checktest.Equal(t, resp.Trailer.Get(endTrailer), "interrupted; 30 records",
			"%s: resp.Trailer.Get(endTrailer)", name)
		resp, body = get(t, "GET", url+"/-/search?format=xml&q=kind:calls", "all", "")
		err := xml.Unmarshal([]byte(body), &struct{}{})
		checktest.MustTrue(t, err != nil, "%s: err is nil; body %.100s", name, body)
		checktest.True(t, strings.HasSuffix(body, "<!-- interrupted -->"), "%s: body is %q", name, body)
		checktest.Equal(t, resp.Trailer.Get(endTrailer), "interrupted; 30 records",
			"%s: resp.Trailer.Get(endTrailer); body %.100s", name, body)
		if resp, body := get(t, "GET", url+"/-/search?q=kind:calls", "all", ""); name == "an error" &&
			(resp.StatusCode != 503 || strings.Contains(body, "fire")) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
}

// lapsing lets some views through, and then the grant is over.
type lapsing struct {
	lang.Gate
	left int
}

func (g *lapsing) MakeView(c understudy.Caller, r *understudy.Record) ([]byte, error) {
	if g.left--; g.left < 0 {
		return nil, fmt.Errorf("access: %w: the grant has expired", understudy.ErrForbidden)
	}
	return g.Gate.MakeView(c, r)
}

// What may be seen no longer ends an export, which says that it was not all.
func TestExportEndsWithItsPolicy(t *testing.T) {
	r := newRig(t, true)
	lapsed := r.with(func(o *Options) { o.Gate = &lapsing{o.Gate, 30} })
	resp, body := get(t, "GET", r.serve(lapsed).URL+"/-/search?format=jsonl&q=kind:calls", "all", "")
	checktest.Equal(t, resp.StatusCode, 200, "a grant that ended: resp.StatusCode")
	checktest.Equal(t, strings.Count(body, "\n"), 31, `a grant that ended: strings.Count(body, "\n")`)
	checktest.Equal(t, resp.Trailer.Get(endTrailer), "interrupted; 30 records",
		"a grant that ended: resp.Trailer.Get(endTrailer)")
	over := make(chan struct{})
	begun, ended := "", 0
	s := r.with(func(o *Options) {
		o.Exports = export.New(limiter.New(4, 2), func(c understudy.Caller) (<-chan struct{}, func()) {
			begun = c.Name
			return over, func() { ended++ }
		})
	})
	n, err := s.Export(t.Context(), as("all"), query.SearchRequest{Text: "kind:calls"}, func(*query.SearchHit) error {
		select {
		case <-over:
			t.Error("a hit after the policy's end")
		default:
			close(over)
		}
		return nil
	}, func() error { return nil })
	checktest.Equal(t, n, 1, "a policy that ended: n; %v", err)
	checktest.True(t, errors.Is(err, errPolicyChanged), "a policy that ended: err is %v, want errOver", err)
	checktest.Equal(t, begun, as("all").Name, "a policy that ended: begun; %v", err)
	checktest.Equal(t, ended, 1, "a policy that ended: ended; %v", err)
}

// One caller has its part of the places for exports, and leaves others theirs.
func TestExportsAtOnce(t *testing.T) {
	r := newRig(t, true)
	hold, places := make(chan struct{}), limiter.New(3, 2)
	s := r.with(func(o *Options) {
		o.Exports = export.New(places, nil)
		o.Store = failing{o.Store, 3, func(context.Context) error { <-hold; return nil }}
	})
	url := r.serve(s).URL + "/-/search?q=kind:calls&format="
	var running sync.WaitGroup
	begin := func(who string) {
		t.Helper()
		before := places.Load().InUse
		running.Go(func() {
			n, err := s.Export(context.Background(), as(who), query.SearchRequest{Text: "kind:calls"}, func(*query.SearchHit) error { return nil },
				func() error { return nil })
			if n != 3 || err != nil {
				t.Errorf("%s: %d, %v", who, n, err)
			}
		})
		for places.Load().InUse == before {
			runtime.Gosched()
		}
	}
	refused := func(who, says string) {
		t.Helper()
		for _, form := range []string{"jsonl", "xml"} {
			resp, body := get(t, "GET", url+form, who+"er:"+who, "")
			checktest.Equal(t, resp.StatusCode, 503, "%s: resp.StatusCode; body %s", who, body)
			checktest.Equal(t, resp.Header.Get("Retry-After"), exportRetryAfter,
				`%s: resp.Header.Get("Retry-After"); body %s`, who, body)
			checktest.Equal(t, resp.Header.Get("Trailer"), "", `%s: resp.Header.Get("Trailer"); body %s`, who, body)
			checktest.Equal(t, resp.Header.Get("Content-Type"), "application/json",
				`%s: resp.Header.Get("Content-Type"); body %s`, who, body)
			checktest.Contains(t, body, says, "%s: body", who)
		}
	}
	begin("all")
	begin("all")
	refused("all", "you have too many running exports")
	begin("support")
	refused("support", "too many exports are running")
	refused("all", "you have too many running exports")
	close(hold)
	running.Wait()
	if resp, body := get(t, "GET", url+"jsonl", "aller:all", ""); resp.StatusCode != 200 ||
		resp.Trailer.Get(endTrailer) != "complete; 3 records" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestAnswersSayWhichKindsAreNotHeldWhole(t *testing.T) {
	r := newRig(t, true)
	s := r.with(func(o *Options) {
		o.Completeness = func(_ context.Context, _, kind string) (bool, time.Time) { return kind == "messages", time.Time{} }
	})
	url := r.serve(s).URL
	for kind, want := range map[string]string{"messages": "", "calls": "not all calls are stored here; only stored records were searched"} {
		resp, _ := get(t, "GET", url+"/-/search?format=jsonl&q=kind:"+kind, "all", "")
		if said := resp.Trailer.Get(endTrailer); strings.HasPrefix(said, "complete; ") != (want == "") || !strings.HasSuffix(said, want) {
			t.Errorf("%s: the export says %q", kind, said)
		}
		var found query.SearchResult
		_, body := get(t, "GET", url+"/-/search?limit=500&q=kind:"+kind, "all", "")
		if err := json.Unmarshal([]byte(body), &found); err != nil {
			t.Fatal(err)
		}
		if found.Next == "" && found.Incomplete != want {
			t.Errorf("%s: the last page says %q", kind, found.Incomplete)
		}
		var sum query.SumResult
		for range 2 { // counted, and kept
			_, body = get(t, "GET", url+"/-/search?sum=count&q=kind:"+kind, "all", "", func(r *http.Request) { r.Header.Set("Prefer", "wait=10") })
			if err := json.Unmarshal([]byte(body), &sum); err != nil {
				t.Fatal(err)
			}
			if sum.Complete != (want == "") {
				t.Errorf("%s: the sum is complete: %v", kind, sum.Complete)
			}
			if sum.Incomplete != want {
				t.Errorf("%s: the sum says %q", kind, sum.Incomplete)
			}
		}
		_, body = get(t, "GET", url+"/-/search?sum=count&format=csv&q=kind:"+kind, "all", "")
		if strings.Contains(body, "# not complete: ") != (want != "") {
			t.Errorf("%s: CSV ends in %q", kind, body[max(0, len(body)-80):])
		}
	}
}

func TestIDsThatWereAllFoundLackNothing(t *testing.T) {
	r := newRig(t, true)
	s := r.with(func(o *Options) {
		o.Completeness = func(context.Context, string, string) (bool, time.Time) { return false, time.Time{} }
	})
	ids := []string{}
	find := func(text string) *query.SearchResult {
		t.Helper()
		out, err := s.Find(t.Context(), as("all"), query.SearchRequest{Text: text, Limit: 2})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return out
	}
	for _, h := range find("kind:calls").Hits {
		ids = append(ids, h.ID)
	}
	both := "kind:calls id:" + strings.Join(ids, ",")
	for text, lacks := range map[string]bool{
		both: false, both + " has:status": false, both + "," + ids[0] + "x": true,
		"kind:calls id:" + ids[0] + "*": true, both + " OR status:busy kind:calls": true, "-id:" + ids[0] + " kind:calls status:nothing": true,
	} {
		if out := find(text); out.Next == "" && (out.Incomplete != "") != lacks {
			t.Errorf("%s: %d hits, lacking %q", text, len(out.Hits), out.Incomplete)
		}
	}
}
