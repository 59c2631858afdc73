// Find: searches, facets, orders and saved searches, by the real searcher over
// records of slowapi.

package viewer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/search"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/internal/viewer/page"
	"understudy/request"
	"understudy/spec"
)

// seer is the gate as the searcher has it.
type seer struct{ *access.Gate }

func (s seer) Fully(c understudy.Caller, source, kind, field string) bool {
	return s.Level(c, source, kind, field) == access.See
}

func (s seer) View(c understudy.Caller, r *understudy.Record) ([]byte, error) {
	v, err := s.Gate.View(c, &understudy.Page{Key: understudy.Key{Source: r.Source}, Kind: r.Kind, Shape: r.Shape, Status: 200, Body: r.Body})
	if err != nil {
		return nil, err
	}
	return v.Body, nil
}

// searched lets a viewer search some pages of slowapi's.
func searched(t testing.TB, more ...string) func(*page.Options) {
	return func(o *page.Options) {
		mem := storetest.Open(t, store.Options{Specs: map[string]*spec.Spec{o.Sources[0].Name: o.Sources[0].Spec},
			Now: func() time.Time { return noon }})
		src := o.Sources[0]
		for _, path := range append([]string{"/Calls.json", "/Messages.json", "/Conferences.json", "/Recordings.json"}, more...) {
			for next := "/2010-04-01/Accounts/" + account + path + "?PageSize=100"; next != ""; {
				at, params, _ := strings.Cut(next, "?")
				target, err := src.Spec.Target("twilio", at, params)
				must(t, err)
				page, err := o.Mirror.(*keeper).fetch(t.Context(), request.Fetch{Target: target, Reason: request.Waiting, Retry: time.Minute})
				must(t, err)
				_, err = mem.Save(t.Context(), page)
				must(t, err)
				next = ""
				if !page.Next.Zero() {
					next = page.Next.URI
				}
			}
		}
		found, err := search.New(search.Options{
			Sources: o.Sources, Store: mem, Gate: seer{o.Gate}, Masked: o.Gate, KV: mem.KV, Key: bytes.Repeat([]byte{7}, 32),
			Now:    o.Now,
			Limits: search.Limits{Count: time.Minute, Facets: time.Minute, Time: time.Minute}, // the race detector takes its time
		})
		must(t, err)
		o.Search, o.Shelf, o.Sums = found, found, found
		t.Cleanup(func() { must(t, mem.Close()) })
	}
}

// column is the texts of one column of a page's first table.
func columnOf(page, heading string) []string {
	plain := func(cell string) string {
		return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(cell, ""))
	}
	at := -1
	for i, m := range regexp.MustCompile(`(?s)<th scope="col"[^>]*>(.*?)</th>`).FindAllStringSubmatch(page, -1) {
		if strings.HasPrefix(plain(m[1]), heading) {
			at = i
		}
	}
	var all []string
	for _, row := range regexp.MustCompile(`(?s)<tr[^>]*><td.*?</tr>`).FindAllString(page, -1) {
		if cells := regexp.MustCompile(`(?s)<td[^>]*>(.*?)</td>`).FindAllStringSubmatch(row, -1); at >= 0 && at < len(cells) {
			all = append(all, plain(cells[at][1]))
		}
	}
	return all
}

func TestSortedList(t *testing.T) {
	h := open(t, searched(t))
	page := h.page("/twilio/calls", all)
	if strings.Contains(page, "aria-sort") || !strings.Contains(page, `<a href="/twilio/calls?understudy.sort=-start_time">Started</a>`) {
		t.Error("a list with calls that have not begun says that it is in the order of their beginning, or not how it comes there")
	}
	busy := h.page("/twilio/calls?Status=busy", all)
	if !strings.Contains(busy, `aria-sort="descending"><a href="/twilio/calls?Status=busy&amp;understudy.sort=start_time">`) {
		t.Error("the list does not say that it is newest first, or how to turn it round")
	}
	to := href(page, "Duration")
	if to != "/twilio/calls?understudy.sort=-duration" {
		t.Fatalf("sorting by duration is %q", to)
	}
	numbers := func(page string) []int {
		var all []int
		for _, text := range columnOf(page, "Duration") {
			if minutes, seconds, ok := strings.Cut(strings.TrimSpace(text), ":"); ok {
				m, _ := strconv.Atoi(minutes)
				n, _ := strconv.Atoi(seconds)
				all = append(all, m*60+n)
			}
		}
		return all
	}
	page = h.page(to, all)
	wellFormed(t, to, page)
	down := numbers(page)
	if len(down) < 40 || !slices.IsSortedFunc(down, func(a, b int) int { return b - a }) ||
		!strings.Contains(page, `aria-sort="descending"><a href="/twilio/calls?understudy.sort=duration">`) ||
		!strings.Contains(page, "found in held records") {
		t.Errorf("largest first: %v", down)
	}
	next := h.page(href(page, "Older"), all)
	if more := numbers(next); len(more) == 0 || more[0] > down[len(down)-1] || more[0] == down[0] {
		t.Errorf("the next page begins with %v after %v", more, down)
	}
	if back := numbers(h.page(href(next, "Newer"), all)); !slices.Equal(back, down) {
		t.Errorf("back leads to %v", back)
	}
	up := numbers(h.page(href(page, "Duration"), all))
	if !slices.IsSorted(up) || slices.Equal(up, down) {
		t.Errorf("smallest first: %v", up)
	}
	for sort, largest := range map[string]bool{"price": true, "-price": false, "duration": false, "-duration": true} {
		if shown := h.page("/search?q=kind%3Acalls&sort="+sort, all); strings.Contains(shown, ", largest first") != largest {
			t.Errorf("a search by %s: largest first is not said to be %v", sort, largest)
		}
	}
	if third := href(h.page(href(page, "Duration"), all), "Duration"); third != "/twilio/calls" {
		t.Errorf("a third time leads to %q", third)
	}
	for path, moved := range map[string]string{"/twilio/calls?understudy.sort=-start_time": "/twilio/calls",
		"/twilio/calls?understudy.sort=": "/twilio/calls", "/twilio/calls?understudy.q=+&understudy.narrow=": "/twilio/calls"} {
		if _, _, head := h.get(path, all); head.Get("Location") != moved {
			t.Errorf("%s moves to %q", path, head.Get("Location"))
		}
	}
	// With upstream's own filters beside it, and within the page's size.
	page = h.page("/twilio/calls?Status=completed&PageSize=20&understudy.sort=duration", all)
	if states := columnOf(page, "Status"); len(states) != 20 || slices.ContainsFunc(states, func(s string) bool { return s != "completed" }) {
		t.Errorf("%q", states)
	}
}

// TestSortingByACostIsAsItIsShown: a cost is shown without its sign, and orders the rows so.
func TestSortingByACostIsAsItIsShown(t *testing.T) {
	h := open(t, searched(t))
	costs := func(path string) (found []float64) {
		for _, text := range columnOf(h.page(path, all), "Price") {
			if n, err := strconv.ParseFloat(strings.TrimLeft(strings.ReplaceAll(text, ",", ""), "$"), 64); err == nil {
				found = append(found, n)
			}
		}
		return found
	}
	down := costs("/twilio/messages?understudy.sort=-price")
	if len(down) < 40 || down[0] <= 0 || !slices.IsSortedFunc(down, func(a, b float64) int { return cmp.Compare(b, a) }) {
		t.Errorf("largest first: %v", down)
	}
	if up := costs("/twilio/messages?understudy.sort=price"); len(up) < 40 || !slices.IsSorted(up) {
		t.Errorf("smallest first: %v", up)
	}
}

// What a role does not fully see sorts nothing, and has no way to.
func TestSortingTellsNothing(t *testing.T) {
	h := open(t, searched(t))
	support := as{token: "supporttoken"}
	page := h.page("/twilio/calls", support)
	if href(page, "From") != "" && strings.Contains(href(page, "From"), "understudy.sort") || href(page, "Duration") == "" {
		t.Error("a masked column can be sorted by")
	}
	for _, path := range []string{"/twilio/calls?understudy.sort=from", "/twilio/messages?understudy.sort=-body",
		"/twilio/messages.csv?understudy.sort=-body", "/twilio/messages?understudy.q=body:hello", "/search?q=body:hello",
		"/search.csv?q=body:hello"} {
		if status, body, _ := h.get(path, support); status != 403 && !strings.Contains(body, "role") {
			t.Errorf("%s: %d", path, status)
		}
	}
	for _, path := range []string{"/twilio/calls?understudy.sort=duration&understudy.as_of=2026-06-01T12:00:00Z",
		"/twilio/incoming_phone_numbers?PhoneNumber=555&understudy.sort=sid", "/twilio/calls?understudy.sort=nothing"} {
		if status, _, _ := h.get(path, all); status != 400 {
			t.Errorf("%s: %d", path, status)
		}
	}
	plain := open(t)
	if status, _, _ := plain.get("/twilio/calls?understudy.sort=duration", all); status != 400 {
		t.Errorf("without a search: %d", status)
	}
	if page := plain.page("/twilio/calls", all); strings.Contains(page, "understudy.sort") || strings.Contains(page, `class="facets`) ||
		strings.Contains(page, "understudy.q") {
		t.Error("without a search there is a way to it")
	}
}

// Counts narrow a list by upstream's own filter where it has one, else by a
// condition; a chip takes either back.
func TestListFacets(t *testing.T) {
	h := open(t, searched(t))
	page := h.page("/twilio/calls", all)
	wellFormed(t, "facets", page)
	value := regexp.MustCompile(`<a href="([^"]*)"><bdi>([^<]*)</bdi> <span class="n">([^<]*)</span>`)
	counts := map[string][2]string{}
	for _, m := range value.FindAllStringSubmatch(page, -1) {
		counts[m[2]] = [2]string{html.UnescapeString(m[1]), m[3]}
	}
	if counts["busy"][0] != "/twilio/calls?Status=busy" || counts["inbound"][0] != "/twilio/calls?understudy.narrow=direction%3Dinbound" {
		t.Fatalf("%v", counts)
	}
	busy := h.page("/twilio/calls?Status=busy&PageSize=1000", all)
	if n := strings.Count(busy, `class="pill bad">busy`) + strings.Count(busy, `class="pill">busy`); strconv.Itoa(n) != counts["busy"][1] {
		t.Errorf("%d calls are busy, the count says %s", n, counts["busy"][1])
	}
	inbound := h.page(counts["inbound"][0], all)
	if directions := columnOf(inbound, "Direction"); len(directions) == 0 ||
		slices.ContainsFunc(directions, func(s string) bool { return s != "inbound" }) {
		t.Errorf("narrowed by direction: %q", directions)
	}
	chip := regexp.MustCompile(`<a href="([^"]*)" aria-label="Remove the filter Only direction=inbound"`).FindStringSubmatch(inbound)
	if chip == nil || chip[1] != "/twilio/calls" {
		t.Errorf("the chip leads to %q", chip)
	}
	if on := h.page(counts["inbound"][0], all); !strings.Contains(on, `<a href="/twilio/calls" aria-current="true"><bdi>inbound</bdi>`) {
		t.Error("what is picked is not marked")
	}
}

func TestFound(t *testing.T) {
	h := open(t, searched(t))
	word := h.word(t)
	page := h.page("/search?q="+word, all)
	wellFormed(t, "found", page)
	if !regexp.MustCompile(`(?i)<mark>` + word + `</mark>`).MatchString(page) {
		t.Errorf("no %q is marked", word)
	}
	if !strings.Contains(page, `href="/twilio/messages/SM`) || !strings.Contains(page, "newest first") ||
		!strings.Contains(page, "<h2>Kind</h2>") {
		t.Error("a hit leads nowhere, or there is no order or facet")
	}
	if got := href(page, "Messages"); got == "" {
		t.Error("no kind to narrow by")
	}
	// Its table is a list of that kind.
	if table := h.page("/twilio/messages?understudy.q="+word, all); len(columnOf(table, "Status")) == 0 ||
		!strings.Contains(table, "Remove the filter Has "+word) {
		t.Error("the same as a table has no rows, or no chip")
	}
	// Paging by cursors, and back.
	first := h.page("/search?q=status:completed", all)
	ids := func(page string) []string {
		return regexp.MustCompile(`<span class="code"><a href="/twilio/[a-z_]+/[A-Z]{2}[0-9a-f]{32}`).FindAllString(page, -1)
	}
	second := h.page(href(first, "Older"), all)
	if len(ids(first)) != 50 || len(ids(second)) == 0 || slices.Contains(ids(second), ids(first)[0]) {
		t.Errorf("%d and %d hits", len(ids(first)), len(ids(second)))
	}
	if back := h.page(href(second, "Newer"), all); !slices.Equal(ids(back), ids(first)) {
		t.Error("Newer does not lead back")
	}
	// Ids and numbers still open their pages, in quotes they are looked for.
	call := h.firstID("/twilio/calls", `CA[0-9a-f]{32}`)
	if status, _, head := h.get("/search?q="+call, all); status != 303 || head.Get("Location") != "/twilio/calls/"+call {
		t.Errorf("%d %s", status, head.Get("Location"))
	}
	if page := h.page("/search?q=%22"+call+"%22", all); !strings.Contains(page, "/twilio/calls/"+call) {
		t.Error("an id in quotes is not found")
	}
	if page := h.page("/search?q=zzzzqqqq", all); !strings.Contains(page, "Nothing found.") || !strings.Contains(page, "deliv*") {
		t.Error("nothing found does not help")
	}
	for _, path := range []string{"/search?q=a&nonsense=1", "/search?q=a&sort=size", "/search?q=" + strings.Repeat("a", 3000),
		"/search?q=a&cursor=x", "/search?%zz"} {
		if status, _, _ := h.get(path, all); status != 400 {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// word is one that some messages have.
func (h *fixture) word(t *testing.T) string {
	for _, body := range columnOf(h.page("/twilio/messages?PageSize=100", all), "Body") {
		for _, w := range strings.Fields(body) {
			if len(w) > 4 && strings.Trim(strings.ToLower(w), "abcdefghijklmnopqrstuvwxyz") == "" {
				return strings.ToLower(w)
			}
		}
	}
	t.Fatal("no message has a plain word")
	return ""
}

// What is typed stands for itself beside the list's filters: either-or in any
// writing, and a number as people write it.
func TestTypedBesideFilters(t *testing.T) {
	h := open(t, searched(t))
	rows := func(q string) int {
		_, body, _ := h.get("/twilio/calls.jsonl?"+q, all)
		if strings.Contains(body, `"status":4`) {
			t.Errorf("%s: %s", q, body)
		}
		return strings.Count(body, "\n")
	}
	if n := rows("Status=busy&understudy.q=" + url.QueryEscape("status:completed OR(status:failed)")); n != 0 {
		t.Errorf("%d calls are busy, and completed or failed", n)
	}
	for _, number := range columnOf(h.page("/twilio/calls", all), "To") {
		digits := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, number)
		if len(digits) != 11 || digits[0] != '1' {
			continue
		}
		typed := "+1 (" + digits[1:4] + ") " + digits[4:7] + "-" + digits[7:]
		if n, want := rows("understudy.q="+url.QueryEscape(typed)), rows("understudy.q="+url.QueryEscape("number:+"+digits)); n != want ||
			n == 0 {
			t.Errorf("%s: %d calls, want %d", typed, n, want)
		}
		return
	}
	t.Fatal("no call to such a number")
}

// A hit says nothing of what it has none of, and each note once.
func TestHitsSayWhatThereIs(t *testing.T) {
	h := open(t, searched(t), func(o *page.Options) {
		s, ok := o.Search.(*search.Searcher)
		if !ok {
			t.Fatal("not the search")
		}
		o.Search = windowed{s}
	})
	page := h.page("/search?q=kind%3Amessages&sort=rank", all)
	facts := regexp.MustCompile(`<span class="fine">(?i:media) <b>([^<]*)</b>`).FindAllStringSubmatch(page, -1)
	if strings.Contains(fmt.Sprint(facts), " 0]") || !strings.Contains(page, `class="hits"`) {
		t.Errorf("facts: %v", facts)
	}
	if n := strings.Count(page, "there are older ones"); n != 1 {
		t.Errorf("the note is there %d times", n)
	}
}

// windowed says of every search that there was more than it put in order.
type windowed struct{ *search.Searcher }

func (w windowed) Find(ctx context.Context, c understudy.Caller, ask query.SearchRequest) (*query.SearchResult, error) {
	r, err := w.Searcher.Find(ctx, c, ask)
	if err == nil && !ask.Facets {
		r.More, r.Notes = true, append(r.Notes, "Only the newest 3 matches were put in order; there are older ones.")
	}
	return r, err
}

// A mistake is pointed at, and nothing of what was typed is HTML.
func TestMistakesArePointedAt(t *testing.T) {
	h := open(t, searched(t))
	status, page, _ := h.get("/search?q="+url.QueryEscape(`late (lost <b>`), all)
	if status != 400 || !strings.Contains(page, `<mark>`) || !strings.Contains(page, `aria-describedby="wrong"`) ||
		!strings.Contains(page, `aria-invalid="true"`) || strings.Contains(page, "<b>`") || !strings.Contains(page, "&lt;b&gt;") {
		t.Errorf("%d %s", status, regexp.MustCompile(`(?s)<main.*</main>`).FindString(page))
	}
	wellFormed(t, "mistake", page)
	status, page, _ = h.get("/twilio/calls?understudy.q=staus:busy", all)
	if status != 400 || !strings.Contains(page, "<mark>staus") {
		t.Errorf("a list: %d %s", status, regexp.MustCompile(`(?s)<main.*</main>`).FindString(page))
	}
	status, body, _ := h.get("/search.jsonl?q=staus:busy", all)
	if status != 400 || !strings.Contains(body, "Character 1") {
		t.Errorf("data: %d %s", status, body)
	}
}

// Searches are exported as found, with the mark of what is missing.
func TestExportFound(t *testing.T) {
	h := open(t, searched(t))
	_, body, head := h.get("/search.csv?q=status%3Abusy", all)
	records, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	must(t, err)
	if !slices.Equal(records[0][:5], []string{"source", "kind", "id", "time", "found"}) || len(records) < 10 || records[1][0] != "twilio" ||
		!strings.HasPrefix(head.Get("Content-Disposition"), `attachment; filename="search-2026`) {
		t.Errorf("%q, %v", records[0], head)
	}
	_, body, _ = h.get("/search.json?q=status%3Abusy", all)
	var doc struct {
		Matches  []any
		Rows     []map[string]any
		Count    int
		Complete bool
	}
	must(t, json.Unmarshal([]byte(body), &doc))
	if doc.Count != len(records)-1 || !doc.Complete || doc.Rows[0]["understudy.kind"] != "calls" || doc.Rows[0]["status"] != "busy" {
		t.Errorf("%d of %d rows: %v", len(doc.Rows), doc.Count, doc.Rows[0])
	}
	_, body, _ = h.get("/search.jsonl?q=status%3Abusy", as{token: "supporttoken"})
	if strings.Count(body, "\n") != doc.Count || regexp.MustCompile(`"\+\d`).MatchString(body) || !strings.Contains(body, `"********`) {
		t.Errorf("%.300s", body)
	}
	// A sorted list with columns, and all of its rows.
	_, body, _ = h.get("/twilio/calls.csv?Status=busy&understudy.columns=duration%2Csid&understudy.sort=-duration", all)
	if records, err = csv.NewReader(strings.NewReader(body)).ReadAll(); err != nil || len(records)-1 != doc.Count ||
		!slices.Equal(records[0], []string{"duration", "sid"}) {
		t.Errorf("%d records, %v", len(records), err)
	}
	h.viewer.Visitor.Options.Search = failing{h.viewer.Visitor.Options.Search}
	_, body, _ = h.get("/search.jsonl?q=kind%3Amessages", all)
	if !strings.Contains(body, `{"understudy.incomplete":"reading on failed","understudy.rows":500}`) {
		t.Errorf("ends %q", body[max(0, len(body)-100):])
	}
}

// failing finds the first page alone.
type failing struct{ page.Search }

func (f failing) Find(ctx context.Context, c understudy.Caller, a query.SearchRequest) (*query.SearchResult, error) {
	if a.Cursor != "" {
		return nil, context.DeadlineExceeded
	}
	return f.Search.Find(ctx, c, a)
}
