// Tests of the shape of GitHub: pages, filters, limits, conditions, moved names.

package slowapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// call sends a request of another shape than Twilio's.
func (r running) call(method, target, body string, header ...string) (*http.Response, string) {
	r.Helper()
	if !strings.HasPrefix(target, "http") {
		target = r.web.URL + target
	}
	req, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Authorization", "token slowapitoken")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := *r.web.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return resp, string(raw)
}

var linked = regexp.MustCompile(`<([^>]*)>; rel="(\w+)"`)

// links are the targets of a Link header by relation.
func links(resp *http.Response) map[string]string {
	found := map[string]string{}
	for _, m := range linked.FindAllStringSubmatch(resp.Header.Get("Link"), -1) {
		found[m[2]] = m[1]
	}
	return found
}

func (r running) records(raw string) []record {
	r.Helper()
	var rows []record
	if err := json.Unmarshal([]byte(raw), &rows); err != nil {
		r.Fatalf("%v: %.200s", err, raw)
	}
	return rows
}

func TestGitHubLeadsThroughAllPages(t *testing.T) {
	r := start(t, Options{Shape: "github", Records: 300})
	const list = "/repos/acme/tracker/issues?state=all&per_page=50"
	resp, _ := r.call("GET", list, "")
	first := links(resp)
	if len(first) != 2 || !strings.Contains(first["next"], "/repositories/530000000/issues?") || !strings.Contains(first["next"], "page=2") {
		t.Fatalf("links of the first page: %v", first)
	}
	var numbers []float64
	for next := list; next != ""; {
		resp, raw := r.call("GET", next, "")
		for _, row := range r.records(raw) {
			numbers = append(numbers, row["number"].(float64))
		}
		all := links(resp)
		if next = all["next"]; next == "" && (all["prev"] == "" || all["first"] == "" || all["last"] != "") {
			t.Errorf("links of the last page: %v", all)
		}
	}
	for i, n := range numbers {
		if n != float64(len(numbers)-i) {
			t.Fatalf("issue %d of %d has the number %v", i, len(numbers), n)
		}
	}
	if len(numbers) < 150 {
		t.Errorf("only %d issues", len(numbers))
	}
}

func TestGitHubFilters(t *testing.T) {
	r := start(t, Options{Shape: "github", Records: 300})
	count := func(query string, holds func(record) bool) int {
		t.Helper()
		_, raw := r.call("GET", "/repos/acme/tracker/issues?per_page=100"+query, "")
		rows := r.records(raw)
		for _, row := range rows {
			if !holds(row) {
				t.Errorf("%s: %v %v %v", query, row["number"], row["state"], row["labels"])
			}
		}
		return len(rows)
	}
	state := func(want string) func(record) bool { return func(row record) bool { return row["state"] == want } }
	label := func(row record, want string) bool {
		return strings.Contains(fmt.Sprint(row["labels"]), "name:"+want+" ")
	}
	open, closed := count("", state("open")), count("&state=closed", state("closed"))
	if open == 0 || closed == 0 {
		t.Errorf("%d open, %d closed", open, closed)
	}
	both := count("&state=all&labels=bug,ui", func(row record) bool { return label(row, "bug") && label(row, "ui") })
	one := count("&state=all&labels=bug", func(row record) bool { return label(row, "bug") })
	if both == 0 || both >= one {
		t.Errorf("%d have both labels, %d one", both, one)
	}
	if count("&state=all&assignee=none", func(row record) bool { return row["assignee"] == nil }) == 0 {
		t.Error("nothing is assigned to nobody")
	}
	last := ""
	count("&state=all&sort=updated&direction=asc", func(row record) bool {
		at := row["updated_at"].(string)
		ok := at >= last
		last = at
		return ok
	})
	if _, raw := r.call("GET", "/search/issues?q=is:pr", ""); strings.Index(raw, `"search_type"`) < strings.Index(raw, `"items"`) {
		t.Errorf("a search has a member before its list that SDKs take for it: %.100s", raw)
	}
	if resp, raw := r.call("GET", "/repos/acme/tracker/issues?state=none", ""); resp.StatusCode != 422 || !strings.Contains(raw,
		`"Validation Failed"`) {
		t.Errorf("a wrong state: %d %s", resp.StatusCode, raw)
	}
}

func TestGitHubAnswersConditionsLimitsAndMoves(t *testing.T) {
	r := start(t, Options{Shape: "github", Records: 60})
	resp, _ := r.call("GET", "/repos/acme/tracker", "")
	left := resp.Header.Get("X-Ratelimit-Remaining")
	if same, raw := r.call("GET", "/repos/acme/tracker", "", "If-None-Match", resp.Header.Get("Etag")); same.StatusCode != 304 ||
		raw != "" ||
		same.Header.Get("X-Ratelimit-Remaining") != left {
		t.Errorf("with its tag: %d %q, %s then %s left", same.StatusCode, raw, left, same.Header.Get("X-Ratelimit-Remaining"))
	}
	moved, _ := r.call("GET", "/repos/acme/site/issues?state=all", "")
	if moved.StatusCode != 301 || moved.Header.Get("Location") != r.web.URL+"/repositories/530007919/issues?state=all" {
		t.Errorf("a moved repository: %d %s", moved.StatusCode, moved.Header.Get("Location"))
	}
	for _, want := range []int{202, 200, 200} {
		if resp, raw := r.call("GET", "/repos/acme/tracker/stats/contributors", ""); resp.StatusCode != want {
			t.Errorf("statistics: %d, not %d: %.80s", resp.StatusCode, want, raw)
		}
	}
	if resp, raw := r.call("GET", "/user", "", "Authorization", "Bearer wrong"); resp.StatusCode != 401 || !strings.Contains(raw,
		"Bad credentials") {
		t.Errorf("a wrong token: %d %s", resp.StatusCode, raw)
	}
	r.call("POST", "/-/limits", `{"limit":2,"seconds":3600}`)
	for i, want := range []string{"200 1", "200 0", "403 0"} {
		resp, raw := r.call("GET", "/user", "")
		if got := fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("X-Ratelimit-Remaining")); got != want {
			t.Errorf("request %d: %s, not %s: %s", i, got, want, raw)
		}
	}
	r.call("POST", "/-/limits", `{"limit":3,"searches":1}`)
	for i, c := range []struct{ path, want string }{
		{"/search/issues?q=a", "200 search 1 0"}, {"/search/issues?q=a", "403 search 1 0"}, {"/user", "200 core 3 2"},
		{"/search/nothing", "403 search 1 0"}, {"/rate_limit", "200 core 3 2"},
	} {
		resp, raw := r.call("GET", c.path, "")
		of := func(name string) string { return resp.Header.Get("X-Ratelimit-" + name) }
		if got := fmt.Sprint(resp.StatusCode, " ", of("Resource"), " ", of("Limit"), " ", of("Remaining")); got != c.want {
			t.Errorf("request %d: %s, not %s: %s", i, got, c.want, raw)
		}
	}
	r.call("POST", "/-/limits", `{"limit":5000,"burst":1,"retry_after":7}`)
	r.call("GET", "/user", "")
	resp, raw := r.call("GET", "/user", "")
	if resp.StatusCode != 403 || resp.Header.Get("Retry-After") == "" || resp.Header.Get("X-Ratelimit-Remaining") == "0" {
		t.Errorf("a second request within a second: %d %v %s", resp.StatusCode, resp.Header, raw)
	}
}

func TestGitHubWrites(t *testing.T) {
	r := start(t, Options{Shape: "github", Records: 60})
	resp, raw := r.call("POST", "/repos/acme/website/issues", `{"title":"New","body":"<b>","labels":["bug","fresh"]}`)
	var made record
	if err := json.Unmarshal([]byte(raw), &made); err != nil || resp.StatusCode != 201 || made["title"] != "New" {
		t.Fatalf("%d %v %s", resp.StatusCode, err, raw)
	}
	at := resp.Header.Get("Location")
	r.call("PATCH", at, `{"state":"closed"}`)
	_, raw = r.call("GET", at, "", "Accept", "application/vnd.github.full+json")
	for _, want := range []string{`"state":"closed"`, `"state_reason":"completed"`, `"body_text":"<b>"`, `&lt;b&gt;`, `"name":"fresh"`} {
		if !strings.Contains(raw, want) {
			t.Errorf("%s is not in %s", want, raw)
		}
	}
	comment, _ := r.call("POST", at+"/comments", `{"body":"So be it"}`)
	if _, raw := r.call("GET", at+"/comments", ""); len(r.records(raw)) != 1 {
		t.Errorf("comments: %s", raw)
	}
	if gone, _ := r.call("DELETE", comment.Header.Get("Location"), ""); gone.StatusCode != 204 {
		t.Errorf("deleted: %d", gone.StatusCode)
	}
	if resp, _ := r.call("GET", comment.Header.Get("Location"), ""); resp.StatusCode != 404 {
		t.Errorf("a deleted comment: %d", resp.StatusCode)
	}
	if resp, raw := r.call("POST", "/repos/acme/website/labels", `{"name":"x","color":"?"}`); resp.StatusCode != 422 ||
		!strings.Contains(raw, `"field":"color"`) {
		t.Errorf("a wrong color: %d %s", resp.StatusCode, raw)
	}
}

func TestOtherShapesRefuseWhatIsTwiliosAlone(t *testing.T) {
	for _, o := range []Options{{Shape: "nobody"}, {Shape: "github", Journal: "x"}, {Shape: "stripe", Records: maxTable + 1},
		{Shape: "github", Quirks: []string{"media-late"}}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
