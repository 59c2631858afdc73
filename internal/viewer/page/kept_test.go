// Fragments: what is drawn once is what would be drawn again, for that reader.

package page_test

import (
	"compress/gzip"
	"context"
	"html"
	"io"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

// ownTimes are what each view says of itself: how long it took and how old it is.
var ownTimes = regexp.MustCompile(`(?s)<footer>.*?</footer>|as of <time.*?</time>|<(p|details) class="came">.*?</(p|details)>`)

// Whoever looked before, in whichever role, zone or on whichever day: a page is the
// one a new viewer shows, plain and compressed.
func TestFragmentsAreTheirReaders(t *testing.T) {
	var now atomic.Int64
	clock := func(o *page.Options) {
		o.Now = func() time.Time { return viewertest.Noon.Add(time.Duration(now.Load())) }
	}
	shared := viewertest.Open(t, clock)
	readers := []viewertest.Browser{viewertest.All, {Token: "supporttoken"}, {Token: "alltoken", Zone: "Asia/Tokyo"}, {Token: "supporttoken",
		Zone: "America/New_York"}}
	number := shared.OwnNumber()
	call := shared.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	other := viewertest.ConversationPath.FindString(html.UnescapeString(shared.Page("/twilio/number/"+number, viewertest.All)))
	paths := []string{"/twilio/calls", "/twilio/calls?Status=busy", "/", "/twilio/calls/" + call, "/twilio/number/" + number, other}
	first := ownTimes.ReplaceAllString(shared.Page("/twilio/calls", viewertest.All), "")
	type view struct {
		path string
		who  int
	}
	anew := map[view]string{} // from a new viewer
	run, kept := sample.OneIn(t, 8), map[view]bool{}
	for round := range 3 {
		if round == 2 {
			now.Store(int64(24 * time.Hour)) // today is another day
		}
		for _, path := range paths {
			for i, who := range readers {
				if round == 0 {
					kept[view{path, i}] = run()
				}
				if !kept[view{path, i}] {
					continue
				}
				status, got, _ := shared.Get(path, who)
				if round == 0 {
					wants, want, _ := viewertest.Open(t, clock).Get(path, who)
					if status != wants {
						t.Errorf("%s as %+v: %d, %d anew", path, who, status, wants)
					}
					anew[view{path, i}] = ownTimes.ReplaceAllString(want, "")
				}
				want := anew[view{path, i}]
				if !strings.Contains(got, "</footer>") || strings.Contains(got, "\x00") {
					t.Errorf("%s: a mark is left, or the footer is missing", path)
				}
				if seen := ownTimes.ReplaceAllString(got, ""); round < 2 && seen != want {
					t.Errorf("round %d, %s as %+v:\n%s", round, path, who, firstDifference(seen, want))
				}
				zipped := who
				zipped.Headers = map[string]string{"Accept-Encoding": "gzip"}
				_, packed, head := shared.Get(path, zipped)
				z, err := gzip.NewReader(strings.NewReader(packed))
				viewertest.Must(t, err)
				plain, err := io.ReadAll(z) // which compares sum and length
				viewertest.Must(t, err)
				if head.Get("Content-Encoding") != "gzip" || ownTimes.ReplaceAllString(string(plain), "") != ownTimes.ReplaceAllString(got, "") {
					t.Errorf("%s as %+v is another page when it is compressed", path, who)
				}
			}
		}
	}
	if ownTimes.ReplaceAllString(shared.Page("/twilio/calls", viewertest.All), "") == first {
		t.Error("a day later the calls are still of today")
	}
}

// firstDifference is the first line in which two pages differ.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "got  " + a[i] + "\nwant " + b[i]
		}
	}
	return "one is longer"
}

// A second view of a page draws none of it again; a change does, at once.
func TestSecondViewIsKept(t *testing.T) {
	archived := &viewertest.History{Versions: map[string][]understudy.Version{}}
	h := viewertest.Open(t, viewertest.WithSearch(t), func(o *page.Options) { o.History = archived })
	number := h.OwnNumber()
	call := h.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	other := viewertest.ConversationPath.FindString(html.UnescapeString(h.Page("/twilio/number/"+number, viewertest.All)))
	for path, changed := range map[string]string{
		"/twilio/calls": "/Calls.json", "/twilio/calls/" + call: "/Calls/" + call + ".json", "/twilio/number/" + number: "/Calls.json?From",
		other: ".json?", "/": "",
	} {
		h.Page(path, viewertest.All)
		first := h.Page(path, viewertest.All) // our own numbers are marked by now
		before := h.Viewer.Visitor.FragmentCache.Weight()
		again := h.Page(path, viewertest.All)
		after := h.Viewer.Visitor.FragmentCache.Weight()
		checktest.True(t, before != 0, "%s: before is 0", path)
		checktest.Equal(t, after, before, "%s: after", path)
		checktest.Equal(t, ownTimes.ReplaceAllString(again, ""), ownTimes.ReplaceAllString(first, ""),
			`%s: ownTimes.ReplaceAllString(again, "")`, path)
		if changed == "" {
			continue
		}
		h.Mirror.Lock()
		for key, page := range h.Mirror.Pages {
			if strings.Contains(key.URI, changed) {
				other := *page
				other.Body = regexp.MustCompile(`"(completed|delivered|received|sent|busy|no-answer)"`).ReplaceAll(page.Body, []byte(`"canceled"`))
				other.Sum = [16]byte{}
				h.Mirror.Pages[key] = &other
			}
		}
		h.Mirror.Unlock()
		if now := h.Page(path, viewertest.All); !strings.Contains(strings.ToLower(now), "canceled") {
			t.Errorf("%s shows what was", path)
		}
	}
	if weight := h.Viewer.Visitor.FragmentCache.Weight(); weight > page.FragmentBytes {
		t.Errorf("%d bytes are kept", weight)
	}
}

// countedSearch counts what is searched.
type countedSearch struct {
	page.Search
	n atomic.Int64
}

func (c *countedSearch) Find(ctx context.Context, who understudy.Caller, ask query.SearchRequest) (*query.SearchResult, error) {
	c.n.Add(1)
	return c.Search.Find(ctx, who, ask)
}

// What is kept under a record is searched for once, and again when a record came.
func TestSearchIsKeptWhileNothingChanges(t *testing.T) {
	archived, counted := &viewertest.History{Change: 1}, &countedSearch{}
	h := viewertest.Open(t, viewertest.WithSearch(t), func(o *page.Options) {
		o.History, counted.Search = archived, o.Search
		o.Search = counted
	})
	path := "/twilio/calls/" + h.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	searches := func() int64 {
		before := counted.n.Load()
		h.Page(path, viewertest.All)
		return counted.n.Load() - before
	}
	first, second := searches(), searches()
	archived.Change = 2
	third := searches()
	checktest.True(t, first != 0, "first is 0")
	checktest.Equal(t, second, 0, "second")
	checktest.Equal(t, third, first, "third")
}

// What was seen of a record is on its page at once; so is what a list under it says.
func TestKeptRecordShowsWhatComes(t *testing.T) {
	archived := &viewertest.History{Versions: map[string][]understudy.Version{}}
	h := viewertest.Open(t, viewertest.WithSearch(t), func(o *page.Options) { o.History = archived })
	call := h.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	path := "/twilio/calls/" + call
	for range 3 {
		if page := h.Page(path, viewertest.All); strings.Contains(page, "<h2 id=\"timeline-title\">") || strings.Contains(page, ">Deleted<") {
			t.Fatal("there is a past before there is one")
		}
	}
	archived.Versions["twilio/calls/"+call] = []understudy.Version{{Number: 7, Gone: true, From: viewertest.Ago(1)}}
	if page := h.Page(path, viewertest.All); !strings.Contains(page, ">Deleted<") {
		t.Error("what was seen since is not on the page")
	}
	h.Mirror.Lock()
	fetch := h.Mirror.Fetch
	h.Mirror.Fetch = func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
		if strings.Contains(f.Target.Key.URI, "/Notifications.json") {
			return nil, &understudy.UpstreamError{Why: understudy.FailServer, Status: 503}
		}
		return fetch(ctx, f)
	}
	h.Mirror.Unlock()
	h.Mirror.Forget()
	if page := h.Page(path, viewertest.All); !strings.Contains(page, "Not loaded: Twilio has not answered") {
		t.Error("a list that is not there is on the page")
	}
}
