// GitHub lists: random list requests over all repositories of an account, answered from
// records by Understudy and by the simulated GitHub itself, compared byte for byte.

package vendors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/spec/paging"
)

// githubComparison compares the lists of both.
type githubComparison struct {
	*rig.GitHubStage
	rng                   *rand.Rand
	moved                 time.Time // when the world last went on
	asked, composed, held int
	others                map[string]int // how the others came
}

func newGitHubComparison(t *testing.T, roots string) *githubComparison {
	t.Helper()
	return &githubComparison{GitHubStage: rig.StartGitHubStage(t, roots), rng: rig.Random(t), others: map[string]int{}}
}

// request draws a list request.
func (s *githubComparison) request() (path string, q url.Values) {
	repo, q := s.Repos[s.rng.IntN(len(s.Repos))], url.Values{}
	one := func(chance int) bool { return s.rng.IntN(chance) == 0 }
	row := map[string]any{}
	if all := s.Issues[repo]; len(all) > 0 {
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
		label := rig.TextIn(row, "labels", "name")
		set(3, "labels", label, strings.ToUpper(label), label+",bug", "bug", "none such")
		set(3, "creator", rig.TextIn(row, "user", "login"), "nobody")
		set(4, "assignee", rig.TextIn(row, "assignee", "login"), "none", "*")
		set(4, "milestone", rig.TextIn(row, "milestone", "number"), "*", "none")
		set(4, "since", rig.TextIn(row, "updated_at"))
		set(8, "sort", "created", "updated", "comments")
		set(8, "direction", "asc", "desc")
	case "pulls":
		set(2, "state", "open", "closed", "all")
		set(8, "sort", "created", "updated")
	case "commits":
		set(3, "since", rig.TextIn(row, "updated_at"))
		set(3, "until", rig.TextIn(row, "created_at"))
	case "comments":
		path = "issues/comments"
		set(3, "since", rig.TextIn(row, "updated_at"))
		set(2, "sort", "created", "updated")
		set(2, "direction", "desc", "asc")
	}
	set(2, "per_page", "1", "7", "30", "99", "100", "100", "100", "101")
	set(10, "page", "1", "2", "3")
	return "/repos/" + repo + "/" + path, q
}

// compare asks both. Addresses in our answer are ours.
func (s *githubComparison) compare(path string, q url.Values) {
	s.Helper()
	s.asked++
	target := path + "?" + q.Encode()
	want := rig.Get(s.T, "", s.API+target, "Authorization", "token "+rig.APIToken)
	headers := []string{"Authorization", "token " + rig.ProgramSecret}
	if !s.moved.IsZero() { // what is held may be as old as the world is still
		headers = append(headers, "Cache-Control", "max-age="+strconv.Itoa(int(time.Since(s.moved).Seconds())))
	}
	r := rig.Get(s.T, "", s.Drop+target, headers...)
	how := r.Header.Get("Cache-Status")
	body := bytes.ReplaceAll(r.Body, []byte(s.Drop), []byte(s.API))
	if r.Status != want.Status || !bytes.Equal(body, want.Body) {
		s.Fatalf("%s: %d, want %d (%s)\n%s\n%d requests were equal", target, r.Status, want.Status, how, rig.FirstDifference(want.Body, body), s.asked-1)
	}
	switch {
	case strings.Contains(how, "composed"):
		s.composed++
		if link := want.Header.Get("Link"); link != "" {
			s.Fatalf("%s: made from records, and upstream goes on: %s", target, link)
		}
	case strings.Contains(how, "hit;"):
		s.held++
	default:
		s.others[how]++
	}
}

// move lets the world go on: people write, and change what they wrote.
func (s *githubComparison) move() {
	s.Helper()
	rig.Control(s.T, s.API, "/-/advance", `{"issues":6,"seconds":90}`)
	s.moved = time.Now()
	s.Learn(s.moved)
}

// Every list of every repository equals GitHub's byte for byte, before and after changes.
func TestGitHubListsFromRecords(t *testing.T) {
	t.Parallel()
	worlds, n := sample.Count(1, 5), sample.Count(300, 1000) // one world answers 5,000 requests in an hour
	for range worlds {
		s := newGitHubComparison(t, "[all]")
		s.Learn(time.Time{})
		rows := 0
		for _, all := range s.Issues {
			rows += len(all)
		}
		if list := rig.Get(t, "", s.Viewer+"/github/issues.csv").Body; bytes.Count(list, []byte("\n")) != rows+1 {
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
func (s *githubComparison) outage() {
	s.Helper()
	var pages []string
	var want []rig.Reply
	ask := func(target string) string {
		r := rig.Get(s.T, "", s.API+target, "Authorization", "token "+rig.APIToken)
		pages, want = append(pages, target), append(want, r)
		return r.Header.Get("Link")
	}
	for _, repo := range s.Repos {
		for page := 1; strings.Contains(ask(fmt.Sprintf("/repos/%s/issues?state=all&per_page=6&page=%d", repo, page)), `rel="next"`); page++ {
		}
		for _, query := range []string{"state=closed&per_page=2", "per_page=3&page=2", "per_page=5", "labels=bug&per_page=2",
			"state=all&per_page=6&page=1000"} {
			ask("/repos/" + repo + "/issues?" + query)
		}
	}
	rig.Control(s.T, s.API, "/-/faults", `{"rules":[{"match":"","reset":true}]}`)
	for i, target := range pages {
		r := rig.Get(s.T, "", s.Drop+target, "Authorization", "token "+rig.ProgramSecret)
		body, how := bytes.ReplaceAll(r.Body, []byte(s.Drop), []byte(s.API)), r.Header.Get("Cache-Status")
		if r.Status != http.StatusOK || !bytes.Equal(body, want[i].Body) {
			s.Fatalf("%s in an outage: %d (%s)\n%s", target, r.Status, how, rig.FirstDifference(want[i].Body, body))
		}
		if got, want := relations(r, target), relations(want[i], target); !maps.Equal(got, want) {
			s.Fatalf("%s in an outage (%s): Link leads to %v, want %v", target, how, got, want)
		}
	}
}

// relations are the queries that an answer's Link header leads to. Ours name the size of pages
// also where the request did not.
func relations(r rig.Reply, target string) map[string]string {
	out := map[string]string{}
	for _, name := range append([]string{"next"}, paging.Relations...) {
		link, _ := url.Parse(paging.LinkTarget(r.Header["Link"], name))
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
			s := newGitHubComparison(t, roots)
			s.Learn(time.Time{})
			path := func(repo string) string {
				return s.Drop + "/repos/" + repo + "/issues?state=all&per_page=100&labels=bug"
			}
			auth := []string{"Authorization", "token " + rig.ProgramSecret}
			rig.Get(t, "", path("acme/api"), auth...)
			for _, repo := range s.Repos {
				covered := slices.Contains(want, repo)
				rig.Await(t, func() string {
					how := rig.Get(t, "", path(repo)+"&since=2020-01-01T00:00:00Z", auth...).Header.Get("Cache-Status")
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
	s := newGitHubComparison(t, "[all]")
	fork, of := s.Direct("/repos/robin/tracker/commits?per_page=100"), s.Direct("/repos/acme/tracker/commits?per_page=100")
	checktest.MustTrue(t, len(fork) >= 3, "the fork has: len(fork) is %v, want >= 3", len(fork))
	checktest.MustTrue(t, len(of) > len(fork), "the fork has: len(of) is %v", len(of))
	checktest.MustTrue(t, len(of) != 100, "the fork has: len(of) is 100")
	lines := func(path string) int {
		file := rig.Get(t, "", s.Viewer+path).Body
		return bytes.Count(file, []byte("\n")) - 1 - bytes.Count(file, []byte("\n# not complete"))
	}
	rig.Await(t, func() string {
		for path, want := range map[string]int{"?owner=robin&repo=tracker&understudy.sort=sha": len(fork), "?owner=acme&repo=tracker&understudy.sort=sha": len(of),
			"?understudy.q=repository:robin/tracker": len(fork)} {
			if n := lines("/github/commits.csv" + path); n != want {
				return fmt.Sprintf("%s: %d commits, want %d", path, n, want)
			}
		}
		return ""
	})
	if list := rig.Get(t, "", s.Viewer+"/github/commits").Body; !bytes.Contains(list, []byte(`href="/github/commits/acme%2Ftracker~`+rig.TextIn(of[0], "sha")+`"`)) {
		t.Errorf("the list does not lead to the record of a commit: %.6000s", list)
	}
	for _, row := range fork {
		sha := rig.TextIn(row, "sha")
		var found struct{ Hits []struct{ ID, URL string } }
		r := rig.Get(t, "", s.Viewer+"/-/search?q=kind:commits+sha:"+sha)
		if err := json.Unmarshal(r.Body, &found); err != nil || len(found.Hits) != 2 {
			t.Fatalf("%s is found %d times: %v %s", sha, len(found.Hits), err, r.Body)
		}
		for _, hit := range found.Hits {
			repo, is, _ := strings.Cut(hit.ID, "~")
			if is != sha || repo != "acme/tracker" && repo != "robin/tracker" {
				t.Errorf("the id of a commit is %s", hit.ID)
			}
			page := rig.Get(t, "", s.Viewer+hit.URL)
			if page.Status != http.StatusOK || !bytes.Contains(page.Body, []byte("/"+repo+"/commits/"+sha)) {
				t.Errorf("%s: %d, its page does not say that it is of %s: %.3000s", hit.URL, page.Status, repo, page.Body)
			}
			for range 2 { // cold, then warm
				path := "/repos/" + repo + "/commits/" + sha
				want := rig.Get(t, "", s.API+path, "Authorization", "token "+rig.APIToken)
				r := rig.Get(t, "", s.Drop+path, "Authorization", "token "+rig.ProgramSecret)
				if body := bytes.ReplaceAll(r.Body, []byte(s.Drop), []byte(s.API)); !bytes.Equal(body, want.Body) {
					t.Errorf("%s: %s", path, rig.FirstDifference(want.Body, body))
				}
			}
		}
	}
}
