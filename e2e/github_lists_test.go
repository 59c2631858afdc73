// GitHub lists: random list requests over all repositories of an account, answered from
// records by Understudy and by the simulated GitHub itself, compared byte for byte.

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/internal/sample"
	"understudy/spec/paging"
)

// githubStage is a simulated GitHub and Understudy in front of it, which holds what lies in
// each repository.
type githubStage struct {
	*testing.T
	api, drop, viewer string
	rng               *rand.Rand
	repos             []string
	issues            map[string][]map[string]any // of each repository

	moved                 time.Time // when the world last went on
	asked, composed, held int
	others                map[string]int // how the others came
}

// githubKinds are the kinds that are synced and called complete. Commits are synced, too: the
// lists show those of one branch alone.
var githubKinds = []string{"repos", "issues", "comments", "labels", "pulls", "releases"}

func newGitHubStage(t *testing.T, roots string) *githubStage {
	t.Helper()
	s := &githubStage{T: t, rng: random(t), others: map[string]int{},
		api: startAPI(t, "--shape", "github", "--latency", "0s", "--records", "150", "--arrivals", "0").URL("slowapi")}
	dir := t.TempDir()
	for name, text := range map[string]string{"token": apiToken, "program": programSecret, "few": maskedToken, "open": openToken, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
roles:
  few:
    github: {"*": see, rows: {"*": {where: {repository: [acme/tracker, robin/notes]}}}}
  open:
    github: {"*": see, rows: {issues: {where: {state: [open]}}, comments: all, labels: all}}
sources:
  github: {spec: github, user: robin, secret: "file:token", upstream: "` + s.api + `", listen: "127.0.0.1:0", rate: 2000, concurrency: 50,
    roots: ` + roots + `, polls: [], answers: records, sync: [` + strings.Join(githubKinds, ", ") + `, commits]}
credentials:
  - {name: program, source: github, secret: "file:program", role: all, rate: 2000}
  - {name: few, source: github, secret: "file:few", role: few, rate: 2000}
  - {name: open, source: github, secret: "file:open", role: open, rate: 2000}
mirror: {newest: 1s}
search: {count: 5s, facets: 5s}
sync: {sweep: 10s}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	house := start(t, dir, "serve")
	s.drop, s.viewer = house.URL("github"), house.URL("viewer")
	return s
}

// learn reads the issues of every repository from the simulated GitHub, and waits until
// Understudy has looked at them all after a time.
func (s *githubStage) learn(since time.Time) {
	s.Helper()
	s.repos, s.issues = nil, map[string][]map[string]any{}
	for _, repo := range s.direct("/user/repos?per_page=100") {
		name := repo["full_name"].(string)
		s.repos = append(s.repos, name)
		for page := 1; page == 1 || len(s.issues[name]) == (page-1)*100; page++ {
			s.issues[name] = append(s.issues[name], s.direct(fmt.Sprintf("/repos/%s/issues?state=all&per_page=100&page=%d", name, page))...)
		}
	}
	awaitSwept(s.T, s.viewer, "github", githubKinds, since)
}

// direct is a page of the simulated GitHub.
func (s *githubStage) direct(target string) (rows []map[string]any) {
	s.Helper()
	r := get(s.T, "", s.api+target, "Authorization", "token "+apiToken)
	if err := json.Unmarshal(r.body, &rows); err != nil || r.status != http.StatusOK {
		s.Fatalf("%s: %d %s", target, r.status, r.body)
	}
	return rows
}

// inside is a text in a record, "" where there is none.
func inside(row map[string]any, path ...string) string {
	var v any = row
	for _, name := range path {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			if v = nil; len(in) > 0 {
				v = in[0].(map[string]any)[name]
			}
		}
	}
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// request draws a list request.
func (s *githubStage) request() (path string, q url.Values) {
	repo, q := s.repos[s.rng.IntN(len(s.repos))], url.Values{}
	one := func(chance int) bool { return s.rng.IntN(chance) == 0 }
	row := map[string]any{}
	if all := s.issues[repo]; len(all) > 0 {
		row = all[s.rng.IntN(len(all))]
	}
	set := func(chance int, name string, values ...string) {
		if v := values[s.rng.IntN(len(values))]; one(chance) && v != "" {
			q.Set(name, v)
		}
	}
	path = []string{"issues", "issues", "issues", "pulls", "comments", "labels", "releases", "commits"}[s.rng.IntN(8)]
	switch path {
	case "issues":
		set(2, "state", "open", "closed", "all")
		label := inside(row, "labels", "name")
		set(3, "labels", label, strings.ToUpper(label), label+",bug", "bug", "none such")
		set(3, "creator", inside(row, "user", "login"), "nobody")
		set(4, "assignee", inside(row, "assignee", "login"), "none", "*")
		set(4, "milestone", inside(row, "milestone", "number"), "*", "none")
		set(4, "since", inside(row, "updated_at"))
		set(8, "sort", "created", "updated", "comments")
		set(8, "direction", "asc", "desc")
	case "pulls":
		set(2, "state", "open", "closed", "all")
		set(8, "sort", "created", "updated")
	case "commits":
		set(3, "since", inside(row, "updated_at"))
		set(3, "until", inside(row, "created_at"))
	case "comments":
		path = "issues/comments"
		set(3, "since", inside(row, "updated_at"))
		set(2, "sort", "created", "updated")
		set(2, "direction", "desc", "asc")
	}
	set(2, "per_page", "1", "7", "30", "99", "100", "100", "100", "101")
	set(10, "page", "1", "2", "3")
	return "/repos/" + repo + "/" + path, q
}

// compare asks both. Addresses in our answer are ours.
func (s *githubStage) compare(path string, q url.Values) {
	s.Helper()
	s.asked++
	target := path + "?" + q.Encode()
	want := get(s.T, "", s.api+target, "Authorization", "token "+apiToken)
	headers := []string{"Authorization", "token " + programSecret}
	if !s.moved.IsZero() { // what is held may be as old as the world is still
		headers = append(headers, "Cache-Control", "max-age="+strconv.Itoa(int(time.Since(s.moved).Seconds())))
	}
	r := get(s.T, "", s.drop+target, headers...)
	how := r.header.Get("Cache-Status")
	body := bytes.ReplaceAll(r.body, []byte(s.drop), []byte(s.api))
	if r.status != want.status || !bytes.Equal(body, want.body) {
		s.Fatalf("%s: %d, want %d (%s)\n%s\n%d requests were equal", target, r.status, want.status, how, firstDifference(want.body, body), s.asked-1)
	}
	switch {
	case strings.Contains(how, "composed"):
		s.composed++
		if link := want.header.Get("Link"); link != "" {
			s.Fatalf("%s: made from records, and upstream goes on: %s", target, link)
		}
	case strings.Contains(how, "hit;"):
		s.held++
	default:
		s.others[how]++
	}
}

// move lets the world go on: people write, and change what they wrote.
func (s *githubStage) move() {
	s.Helper()
	control(s.T, s.api, "/-/advance", `{"issues":6,"seconds":90}`)
	s.moved = time.Now()
	s.learn(s.moved)
}

// Every list of every repository equals GitHub's byte for byte, before and after changes.
func TestGitHubListsFromRecords(t *testing.T) {
	t.Parallel()
	worlds, n := 1, 300
	if sample.Whole() {
		worlds, n = 5, 1000 // one world answers 5,000 requests in an hour
	}
	for range worlds {
		s := newGitHubStage(t, "[all]")
		s.learn(time.Time{})
		rows := 0
		for _, all := range s.issues {
			rows += len(all)
		}
		if list := get(t, "", s.viewer+"/github/issues.csv").body; bytes.Count(list, []byte("\n")) != rows+1 {
			t.Errorf("the viewer's list of all repositories has %d lines, want %d", bytes.Count(list, []byte("\n")), rows+1)
		}
		for range n / 2 {
			s.compare(s.request())
		}
		s.move()
		for range n / 2 {
			s.compare(s.request())
		}
		t.Logf("%d requests the same, %d of them composed, %d held; the others: %v", s.asked, s.composed, s.held, s.others)
		if s.composed < s.asked/5 {
			t.Errorf("only %d of %d were made from records: %v", s.composed, s.asked, s.others)
		}
		s.outage()
	}
}

// outage walks all issues of each repository by page numbers while GitHub is out of reach. Each
// page must be what GitHub answered just before. The page sizes are none of those that compare
// asks with: of such a list an older page may be held.
func (s *githubStage) outage() {
	s.Helper()
	var pages []string
	var want []reply
	ask := func(target string) string {
		r := get(s.T, "", s.api+target, "Authorization", "token "+apiToken)
		pages, want = append(pages, target), append(want, r)
		return r.header.Get("Link")
	}
	for _, repo := range s.repos {
		for page := 1; strings.Contains(ask(fmt.Sprintf("/repos/%s/issues?state=all&per_page=6&page=%d", repo, page)), `rel="next"`); page++ {
		}
		for _, query := range []string{"state=closed&per_page=2", "per_page=3&page=2", "per_page=5", "labels=bug&per_page=2",
			"state=all&per_page=6&page=1000"} {
			ask("/repos/" + repo + "/issues?" + query)
		}
	}
	control(s.T, s.api, "/-/faults", `{"rules":[{"match":"","reset":true}]}`)
	for i, target := range pages {
		r := get(s.T, "", s.drop+target, "Authorization", "token "+programSecret)
		body, how := bytes.ReplaceAll(r.body, []byte(s.drop), []byte(s.api)), r.header.Get("Cache-Status")
		if r.status != http.StatusOK || !bytes.Equal(body, want[i].body) {
			s.Fatalf("%s in an outage: %d (%s)\n%s", target, r.status, how, firstDifference(want[i].body, body))
		}
		if got, want := relations(r, target), relations(want[i], target); !maps.Equal(got, want) {
			s.Fatalf("%s in an outage (%s): Link leads to %v, want %v", target, how, got, want)
		}
	}
}

// relations are the queries that an answer's Link header leads to. Ours name the size of pages
// also where the request did not.
func relations(r reply, target string) map[string]string {
	out := map[string]string{}
	for _, name := range append([]string{"next"}, paging.Relations...) {
		link, _ := url.Parse(paging.Related(r.header["Link"], name))
		if q := link.Query(); len(q) > 0 {
			if !strings.Contains(target, "per_page=") {
				q.Del("per_page")
			}
			out[name] = q.Encode()
		}
	}
	return out
}

// Repositories are covered that are named, that the account has, or that callers ask for; and
// what is not, is not said to be complete.
func TestRepositoriesAreCovered(t *testing.T) {
	t.Parallel()
	for roots, want := range map[string][]string{"[acme/tracker]": {"acme/tracker"}, "[acme/website, asked]": {"acme/website", "acme/api"}} {
		t.Run(roots, func(t *testing.T) {
			t.Parallel()
			s := newGitHubStage(t, roots)
			s.learn(time.Time{})
			path := func(repo string) string {
				return s.drop + "/repos/" + repo + "/issues?state=all&per_page=100&labels=bug"
			}
			auth := []string{"Authorization", "token " + programSecret}
			get(t, "", path("acme/api"), auth...)
			for _, repo := range s.repos {
				covered := slices.Contains(want, repo)
				await(t, func() string {
					how := get(t, "", path(repo)+"&since=2020-01-01T00:00:00Z", auth...).header.Get("Cache-Status")
					if strings.Contains(how, "composed") != covered {
						return fmt.Sprintf("%s: %s, want composed %v", repo, how, covered)
					}
					return ""
				})
			}
		})
	}
}

// A fork has the commits of the repository it was made of: each is a record in both.
func TestCommitsOfForks(t *testing.T) {
	t.Parallel()
	s := newGitHubStage(t, "[all]")
	fork, of := s.direct("/repos/robin/tracker/commits?per_page=100"), s.direct("/repos/acme/tracker/commits?per_page=100")
	if len(fork) < 3 || len(of) <= len(fork) || len(of) == 100 {
		t.Fatalf("the fork has %d commits, the repository %d", len(fork), len(of))
	}
	lines := func(path string) int {
		file := get(t, "", s.viewer+path).body
		return bytes.Count(file, []byte("\n")) - 1 - bytes.Count(file, []byte("\n# not complete"))
	}
	await(t, func() string {
		for path, want := range map[string]int{"?owner=robin&repo=tracker&understudy.sort=sha": len(fork), "?owner=acme&repo=tracker&understudy.sort=sha": len(of),
			"?understudy.q=repository:robin/tracker": len(fork)} {
			if n := lines("/github/commits.csv" + path); n != want {
				return fmt.Sprintf("%s: %d commits, want %d", path, n, want)
			}
		}
		return ""
	})
	if list := get(t, "", s.viewer+"/github/commits").body; !bytes.Contains(list, []byte(`href="/github/commits/acme%2Ftracker~`+inside(of[0], "sha")+`"`)) {
		t.Errorf("the list does not lead to the record of a commit: %.6000s", list)
	}
	for _, row := range fork {
		sha := inside(row, "sha")
		var found struct{ Hits []struct{ ID, URL string } }
		r := get(t, "", s.viewer+"/-/search?q=kind:commits+sha:"+sha)
		if err := json.Unmarshal(r.body, &found); err != nil || len(found.Hits) != 2 {
			t.Fatalf("%s is found %d times: %v %s", sha, len(found.Hits), err, r.body)
		}
		for _, hit := range found.Hits {
			repo, is, _ := strings.Cut(hit.ID, "~")
			if is != sha || repo != "acme/tracker" && repo != "robin/tracker" {
				t.Errorf("the id of a commit is %s", hit.ID)
			}
			page := get(t, "", s.viewer+hit.URL)
			if page.status != http.StatusOK || !bytes.Contains(page.body, []byte("/"+repo+"/commits/"+sha)) {
				t.Errorf("%s: %d, its page does not say that it is of %s: %.3000s", hit.URL, page.status, repo, page.body)
			}
			for range 2 { // cold, then warm
				path := "/repos/" + repo + "/commits/" + sha
				want := get(t, "", s.api+path, "Authorization", "token "+apiToken)
				r := get(t, "", s.drop+path, "Authorization", "token "+programSecret)
				if body := bytes.ReplaceAll(r.body, []byte(s.drop), []byte(s.api)); !bytes.Equal(body, want.body) {
					t.Errorf("%s: %s", path, firstDifference(want.body, body))
				}
			}
		}
	}
}
