// Tests of the shape of GitHub: pages, filters, limits, conditions, moved names.
package github_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

type record = slowapitest.Record

var linked = regexp.MustCompile(`<([^>]*)>; rel="(\w+)"`)

// links are the targets of a Link header by relation.
func links(resp *http.Response) map[string]string {
	found := map[string]string{}
	for _, m := range linked.FindAllStringSubmatch(resp.Header.Get("Link"), -1) {
		found[m[2]] = m[1]
	}
	return found
}

func records(r slowapitest.API, raw string) []record {
	r.T.Helper()
	var rows []record
	if err := json.Unmarshal([]byte(raw), &rows); err != nil {
		r.T.Fatalf("%v: %.200s", err, raw)
	}
	return rows
}

func TestGitHubLeadsThroughAllPages(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Shape: "github", Records: 300})
	const list = "/repos/acme/tracker/issues?state=all&per_page=50"
	resp, _ := r.Call("GET", list, "")
	first := links(resp)
	checktest.MustEqual(t, len(first), 2, "links of the first page: len(first)")
	checktest.MustContains(t, first["next"], "/repositories/530000000/issues?",
		`links of the first page: first["next"]`)
	checktest.MustContains(t, first["next"], "page=2", `links of the first page: first["next"]`)
	var numbers []float64
	for next := list; next != ""; {
		resp, raw := r.Call("GET", next, "")
		for _, row := range records(r, raw) {
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
	r := slowapitest.Start(t, slowapi.Options{Shape: "github", Records: 300})
	count := func(query string, holds func(record) bool) int {
		t.Helper()
		_, raw := r.Call("GET", "/repos/acme/tracker/issues?per_page=100"+query, "")
		rows := records(r, raw)
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
	if _, raw := r.Call("GET", "/search/issues?q=is:pr", ""); strings.Index(raw, `"search_type"`) < strings.Index(raw, `"items"`) {
		t.Errorf("a search has a member before its list that SDKs take for it: %.100s", raw)
	}
	if resp, raw := r.Call("GET", "/repos/acme/tracker/issues?state=none", ""); resp.StatusCode != 422 || !strings.Contains(raw,
		`"Validation Failed"`) {
		t.Errorf("a wrong state: %d %s", resp.StatusCode, raw)
	}
}

func TestGitHubAnswersConditionsLimitsAndMoves(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Shape: "github", Records: 60})
	resp, _ := r.Call("GET", "/repos/acme/tracker", "")
	left := resp.Header.Get("X-Ratelimit-Remaining")
	{
		same, raw := r.Call("GET", "/repos/acme/tracker", "", "If-None-Match", resp.Header.Get("Etag"))
		checktest.Equal(t, same.StatusCode, 304, "with its tag: same.StatusCode")
		checktest.Equal(t, raw, "", "with its tag: raw")
		checktest.Equal(t, same.Header.Get("X-Ratelimit-Remaining"), left,
			`with its tag: same.Header.Get("X-Ratelimit-Remaining")`)
	}
	moved, _ := r.Call("GET", "/repos/acme/site/issues?state=all", "")
	if moved.StatusCode != 301 || moved.Header.Get("Location") != r.Web.URL+"/repositories/530007919/issues?state=all" {
		t.Errorf("a moved repository: %d %s", moved.StatusCode, moved.Header.Get("Location"))
	}
	for _, want := range []int{202, 200, 200} {
		if resp, raw := r.Call("GET", "/repos/acme/tracker/stats/contributors", ""); resp.StatusCode != want {
			t.Errorf("statistics: %d, not %d: %.80s", resp.StatusCode, want, raw)
		}
	}
	if resp, raw := r.Call("GET", "/user", "", "Authorization", "Bearer wrong"); resp.StatusCode != 401 || !strings.Contains(raw,
		"Bad credentials") {
		t.Errorf("a wrong token: %d %s", resp.StatusCode, raw)
	}
	r.Call("POST", "/-/limits", `{"limit":2,"seconds":3600}`)
	for i, want := range []string{"200 1", "200 0", "403 0"} {
		resp, raw := r.Call("GET", "/user", "")
		if got := fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("X-Ratelimit-Remaining")); got != want {
			t.Errorf("request %d: %s, not %s: %s", i, got, want, raw)
		}
	}
	r.Call("POST", "/-/limits", `{"limit":3,"searches":1}`)
	for i, c := range []struct{ path, want string }{
		{"/search/issues?q=a", "200 search 1 0"}, {"/search/issues?q=a", "403 search 1 0"}, {"/user", "200 core 3 2"},
		{"/search/nothing", "403 search 1 0"}, {"/rate_limit", "200 core 3 2"},
	} {
		resp, raw := r.Call("GET", c.path, "")
		of := func(name string) string { return resp.Header.Get("X-Ratelimit-" + name) }
		if got := fmt.Sprint(resp.StatusCode, " ", of("Resource"), " ", of("Limit"), " ", of("Remaining")); got != c.want {
			t.Errorf("request %d: %s, not %s: %s", i, got, c.want, raw)
		}
	}
	r.Call("POST", "/-/limits", `{"limit":5000,"burst":1,"retry_after":7}`)
	r.Call("GET", "/user", "")
	resp, raw := r.Call("GET", "/user", "")
	checktest.Equal(t, resp.StatusCode, 403, "a second request within a second: resp.StatusCode; %s", raw)
	checktest.True(t, resp.Header.Get("Retry-After") != "",
		`a second request within a second: resp.Header.Get("Retry-After") is empty`)
	checktest.True(t, resp.Header.Get("X-Ratelimit-Remaining") != "0",
		`a second request within a second: resp.Header.Get("X-Ratelimit-Remaining") is "0"`)
}

func TestGitHubWrites(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Shape: "github", Records: 60})
	resp, raw := r.Call("POST", "/repos/acme/website/issues", `{"title":"New","body":"<b>","labels":["bug","fresh"]}`)
	var made record
	err := json.Unmarshal([]byte(raw), &made)
	checktest.MustNoError(t, err, "")
	checktest.MustEqual(t, resp.StatusCode, 201, "resp.StatusCode")
	checktest.MustEqual(t, made["title"], "New", `made["title"]`)
	at := resp.Header.Get("Location")
	r.Call("PATCH", at, `{"state":"closed"}`)
	_, raw = r.Call("GET", at, "", "Accept", "application/vnd.github.full+json")
	for _, want := range []string{`"state":"closed"`, `"state_reason":"completed"`, `"body_text":"<b>"`, `&lt;b&gt;`, `"name":"fresh"`} {
		if !strings.Contains(raw, want) {
			t.Errorf("%s is not in %s", want, raw)
		}
	}
	comment, _ := r.Call("POST", at+"/comments", `{"body":"So be it"}`)
	if _, raw := r.Call("GET", at+"/comments", ""); len(records(r, raw)) != 1 {
		t.Errorf("comments: %s", raw)
	}
	if gone, _ := r.Call("DELETE", comment.Header.Get("Location"), ""); gone.StatusCode != 204 {
		t.Errorf("deleted: %d", gone.StatusCode)
	}
	if resp, _ := r.Call("GET", comment.Header.Get("Location"), ""); resp.StatusCode != 404 {
		t.Errorf("a deleted comment: %d", resp.StatusCode)
	}
	if resp, raw := r.Call("POST", "/repos/acme/website/labels", `{"name":"x","color":"?"}`); resp.StatusCode != 422 ||
		!strings.Contains(raw, `"field":"color"`) {
		t.Errorf("a wrong color: %d %s", resp.StatusCode, raw)
	}
}

// The pages of a query in GraphQL have the issues of the list, without its pull requests.
func TestGitHubGraphQLHasTheIssuesOfTheList(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Shape: "github", Records: 120})
	want := map[float64]bool{}
	for next := "/repos/acme/tracker/issues?state=closed&per_page=100"; next != ""; {
		resp, raw := r.Call("GET", next, "")
		for _, row := range records(r, raw) {
			if row["pull_request"] == nil {
				want[row["number"].(float64)] = true
			}
		}
		next = links(resp)["next"]
	}
	all := len(want)
	const query = `{"query":"query{repository(owner:$owner,name:$repo){issues(first:$limit)}}","variables":` +
		`{"owner":"acme","repo":"tracker","limit":7,"states":["CLOSED"],"endCursor":%q}}`
	for after, more := "", true; more; {
		issues := graph(r, fmt.Sprintf(query, after))["repository"].(record)["issues"].(record)
		if issues["totalCount"] != float64(all) {
			t.Fatalf("%v issues in all, want %d", issues["totalCount"], all)
		}
		for _, node := range issues["nodes"].([]any) {
			number := node.(record)["number"].(float64)
			if !want[number] {
				t.Errorf("issue %v is not in the list, or comes twice", number)
			}
			delete(want, number)
		}
		page := issues["pageInfo"].(record)
		after, more = page["endCursor"].(string), page["hasNextPage"].(bool)
	}
	if all == 0 || len(want) > 0 {
		t.Errorf("of %d issues these are missing: %v", all, want)
	}
}

// graph sends a document in GraphQL and returns its data; nil when it was refused.
func graph(r slowapitest.API, document string) record {
	r.T.Helper()
	var answer struct{ Data record }
	resp, raw := r.Call("POST", "/graphql", document)
	if err := json.Unmarshal([]byte(raw), &answer); err != nil || resp.StatusCode != http.StatusOK {
		r.T.Fatalf("%s: %d %v %.200s", document, resp.StatusCode, err, raw)
	}
	return answer.Data
}

func TestGitHubGraphQLCreatesIssues(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Shape: "github", Records: 20})
	repository := graph(r, `{"query":"{repository(owner:$owner,name:$name){id}}","variables":{"owner":"acme","name":"api"}}`)["repository"]
	id := repository.(record)["id"]
	const create = `{"query":"mutation{createIssue(input:$input){issue{id,url}}}","variables":{"input":{"repositoryId":%q,"title":%q}}}`
	if refused := graph(r, fmt.Sprintf(create, "R_none", "x")); refused != nil {
		t.Errorf("in a repository that is not there: %v", refused)
	}
	if refused := graph(r, fmt.Sprintf(create, id, "")); refused != nil {
		t.Errorf("without a title: %v", refused)
	}
	made := graph(r, fmt.Sprintf(create, id, "By mutation"))["createIssue"].(record)["issue"].(record)
	_, raw := r.Call("GET", "/repos/acme/api/issues", "")
	if newest := records(r, raw)[0]; newest["title"] != "By mutation" || newest["node_id"] != made["id"] {
		t.Errorf("the newest issue is %v, made was %v", newest, made)
	}
}

// A label that is deleted leaves the issues that have it.
func TestGitHubLabelsOfIssues(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Shape: "github", Records: 20})
	resp, _ := r.Call("POST", "/repos/acme/api/issues", `{"title":"x","labels":["bug"]}`)
	labels := func(raw string) (names []string) {
		for _, one := range records(r, raw) {
			names = append(names, one["name"].(string))
		}
		return names
	}
	_, raw := r.Call("POST", resp.Header.Get("Location")+"/labels", `{"labels":["UI","BUG"]}`)
	if got := labels(raw); strings.Join(got, " ") != "bug ui" {
		t.Errorf("two were added, one of them again: %v", got)
	}
	if gone, _ := r.Call("DELETE", "/repos/acme/api/labels/bug", ""); gone.StatusCode != http.StatusNoContent {
		t.Errorf("deleted: %d", gone.StatusCode)
	}
	_, raw = r.Call("GET", resp.Header.Get("Location")+"/labels", "")
	if got := labels(raw); strings.Join(got, " ") != "ui" {
		t.Errorf("left: %v", got)
	}
}
