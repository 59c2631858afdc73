// Saved: searches kept under names, with everything they were asked with.

package list_test

import (
	"bytes"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/viewer/viewertest"
)

// Saving and forgetting a search is listed. Its name and words are found by who has the key, and
// stand nowhere in clear.
func TestSavedSearchesAreAudited(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	h := viewertest.Open(t, viewertest.WithSearch(t), viewertest.WithAudit(t, dir))
	h.Do("POST", "/search/save", "q=%22zebra+crossing%22&name=Ring+4155550123", viewertest.All)
	h.Do("POST", "/search/forget", "name=Ring+4155550123&back=%2Fsearch", viewertest.All)
	for value, want := range map[string][2]int{"Ring 4155550123": {1, 1}, `"zebra crossing"`: {1, 0}} {
		page := h.Page("/-/audit?action=administer&value="+url.QueryEscape(value), viewertest.All)
		got := [2]int{strings.Count(page, "saved search keep"), strings.Count(page, "saved search forget")}
		if got != want {
			t.Errorf("%s: %d, want %d", value, got, want)
		}
	}
	files := 0
	viewertest.Must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("zebra")) || bytes.Contains(text, []byte("4155550123")) {
			t.Errorf("%s holds a name or words", path)
		}
		return err
	}))
	if files == 0 {
		t.Error("there is no log")
	}
}

func TestSavedSearches(t *testing.T) {
	h := viewertest.Open(t, viewertest.WithSearch(t))
	save := "q=status%3Abusy&narrow=kind%3Acalls&name=Busy+calls"
	status, body, head := h.Do("POST", "/search/save", save, viewertest.All)
	if status != 303 || !strings.HasPrefix(head.Get("Location"), "/search?q=status%3Abusy&narrow=") {
		t.Fatalf("%d %s %s", status, head.Get("Location"), body)
	}
	page := h.Page("/search", viewertest.All)
	to := viewertest.Href(page, "Busy calls")
	if to == "" || !strings.Contains(h.Page(to, viewertest.All), "/twilio/calls/CA") {
		t.Errorf("the saved search leads to %q", to)
	}
	if strings.Contains(h.Page("/search", viewertest.Watcher), "Busy calls") {
		t.Error("another sees what is not shared")
	}
	h.Do("POST", "/search/save", save+"&shared=1", viewertest.All)
	if mine := h.Page("/search", viewertest.All); !strings.Contains(mine,
		`<button type="button" popovertarget="forget-0" aria-label="Delete`) ||
		!strings.Contains(mine, "Delete “Busy calls”? It is deleted for everybody you share it with.") {
		t.Error("it is deleted without a question")
	}
	shared := h.Page("/search", viewertest.Watcher)
	checktest.Contains(t, shared, "Busy calls", "another does not see what is shared, or may delete it: shared")
	checktest.Contains(t, shared, "by everything", "another does not see what is shared, or may delete it: shared")
	checktest.Lacks(t, shared, "Delete the saved search",
		"another does not see what is shared, or may delete it: shared")
	for form, want := range map[string]int{"q=a&name=": 400, "q=a&name=" + strings.Repeat("x", 61): 400, "q=%28&name=x": 400} {
		if status, _, _ := h.Do("POST", "/search/save", form, viewertest.All); status != want {
			t.Errorf("%q: %d", form, status)
		}
	}
	{
		status, body, _ := h.Do("POST", "/search/save", "q=a&name=..", viewertest.All)
		checktest.Equal(t, status, 400, "a name that cannot be: status; body %s", body)
		checktest.Contains(t, body, "This search can&#39;t be saved", "a name that cannot be: body")
		checktest.Equal(t, viewertest.Href(body, "Back to the search"), "/search?q=a",
			`a name that cannot be: viewertest.Href(body, "Back to the search")`)
	}
	foreign := viewertest.Browser{Token: "alltoken", Headers: map[string]string{"Sec-Fetch-Site": "cross-site"}}
	for _, path := range []string{"/search/save", "/search/forget"} {
		if status, _, _ := h.Do("POST", path, save, foreign); status != 403 {
			t.Errorf("%s from another site: %d", path, status)
		}
		if status, _, _ := h.Do("POST", path, save, viewertest.Browser{}); status != 401 {
			t.Errorf("%s by a stranger: %d", path, status)
		}
	}
	if status, _, _ := h.Do("POST", "/search/forget", "name=Busy+calls&back=%2Fsearch", viewertest.Watcher); status != 404 {
		t.Errorf("another's is forgotten: %d", status)
	}
	if status, _, head := h.Do("POST", "/search/forget", "name=Busy+calls&back=%2F%2Felsewhere", viewertest.All); status != 303 ||
		head.Get("Location") != "/" {
		t.Errorf("%d %s", status, head.Get("Location"))
	}
	if strings.Contains(h.Page("/search", viewertest.All), "Busy calls") {
		t.Error("it is still there")
	}
	// The source it looks in and a field it is sorted by are kept, too.
	h.Do("POST", "/search/save", "q=has%3Aduration&source=twilio&kind=calls&sort=-duration&name=Longest", viewertest.All)
	to = viewertest.Href(h.Page("/search", viewertest.All), "Longest")
	long := h.Page(to, viewertest.All)
	for _, want := range []string{`<option value="-duration" selected>by duration, largest first</option>`,
		`<input type="hidden" name="source" value="twilio">`, "Remove In Twilio", "/twilio/calls/CA"} {
		if !strings.Contains(long, want) {
			t.Errorf("%s: no %s", to, want)
		}
	}
	if status, _, _ := h.Get("/search?q=x&sort=-nothing", viewertest.All); status != 400 {
		t.Errorf("an order by what is not there: %d", status)
	}
	if status, _, _ := h.Get("/search?q=x&source=elsewhere", viewertest.All); status != 400 {
		t.Errorf("a source that is not there: %d", status)
	}
	if status, _, _ := h.Get("/search?q=kind%3Amessages&sort=body", viewertest.Support); status != 403 {
		t.Errorf("an order by what is hidden: %d", status)
	}
	plain := viewertest.Open(t)
	if status, _, _ := plain.Do("POST", "/search/save", save, viewertest.All); status != 404 {
		t.Errorf("without a shelf: %d", status)
	}
}
