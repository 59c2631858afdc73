// Hidden roots: a role that may find the records of some repositories learns of no other.

package hidden

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// fewRepos are those of which the role few finds records.
var fewRepos = []string{"acme/tracker", "robin/notes"}

// A rule that asks for more than the repository decides about records that are found by their
// address: those it finds are answered as they are held, and under a hidden one nothing is.
func TestRulesOfAddresses(t *testing.T) {
	t.Parallel()
	s := rig.StartGitHubStage(t, "[all]")
	s.Learn(time.Time{})
	ask := func(path string) rig.Reply { return rig.Get(t, ":"+rig.OpenToken, s.Drop+"/repos/acme/tracker"+path) }
	seen := map[string]bool{}
	for _, issue := range s.Issues["acme/tracker"] {
		state := rig.TextIn(issue, "state")
		if seen[state] {
			continue
		}
		seen[state] = true
		at, want := "/issues/"+rig.TextIn(issue, "number"), http.StatusOK
		if state != "open" {
			want = http.StatusNotFound
		}
		rig.Get(t, "", s.Drop+"/repos/acme/tracker"+at, "Authorization", "token "+rig.ProgramSecret)
		for _, path := range []string{at, at + "/comments", at + "/labels"} {
			r := ask(path)
			if r.Status != want {
				t.Errorf("%s of an %s issue: %d %s, want %d", path, state, r.Status, r.Body, want)
			}
		}
		if how := ask(at).Header.Get("Cache-Status"); want == http.StatusOK && !strings.Contains(how, "hit") {
			t.Errorf("%s again: %s", at, how)
		}
		then := "?understudy.as_of=" + url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano))
		if r := ask(at + then); r.Status != want {
			t.Errorf("%s at an earlier time: %d %s, want %d", at, r.Status, r.Body, want)
		}
	}
	if len(seen) != 2 {
		t.Fatalf("states of issues: %v", seen)
	}
	if r := ask("/issues/987654/labels"); r.Status != http.StatusNotFound {
		t.Errorf("labels of no issue: %d %s", r.Status, r.Body)
	}
}

// aboutRepo are requests that name a repository, by its name and by its number, an issue of it by
// its number there and by its id.
func aboutRepo(repo, number, issue, id string) (all []asking) {
	q := url.QueryEscape
	owner, name, _ := strings.Cut(repo, "/")
	add := func(web bool, paths ...string) {
		for _, p := range paths {
			all = append(all, asking{web: web, method: "GET", path: p})
		}
	}
	for _, at := range []string{"/repos/" + repo, "/repositories/" + number} {
		for _, p := range []string{"", "/issues", "/issues?state=all&per_page=100", "/issues?state=all&page=2&per_page=2", "/issues/" + issue, "/issues/" + issue + "/comments",
			"/issues/comments", "/labels", "/labels/bug", "/pulls?state=all", "/pulls/" + issue, "/releases", "/commits", "/commits/main", "/stats/contributors", "/collaborators"} {
			for _, method := range []string{"GET", "HEAD", "PATCH", "POST", "DELETE"} {
				all = append(all, asking{method: method, path: at + p, body: map[bool]string{true: "{}"}[method == "POST" || method == "PATCH"]})
			}
			for _, h := range [][]string{{"Cache-Control", "only-if-cached"}, {"Cache-Control", "no-cache"}, {"If-None-Match", "*"}, {"Cache-Control", "max-stale=600"}} {
				all = append(all, asking{method: "GET", path: at + p, headers: h})
			}
		}
		add(false, at+"/issues?understudy.q="+q("id:"+id), at+"/issues?understudy.as_of="+q(time.Now().UTC().Add(-time.Second).Format(time.RFC3339)))
	}
	add(false, "/search/issues?q="+q("repo:"+repo), "/orgs/"+owner+"/repos?understudy.q="+q(name))
	for _, text := range []string{"repository:" + repo, "repository=" + q(repo), "-repository:" + repo, "NOT repository:" + repo, "repository:" + repo + "*", q(repo), "id:" + id, "kind:issues id:" + id, "id:" + owner + "~" + name, "kind:repos name:" + name} {
		for _, more := range []string{"", "&facets=true", "&sort=oldest&limit=3", "&format=jsonl"} {
			add(true, "/-/search?q="+q(text)+more)
		}
		add(true, "/search?q="+q(text), "/github/issues?understudy.q="+q(text), "/github/issues.csv?understudy.q="+q(text), "/search.jsonl?q="+q(text))
	}
	for _, kind := range []string{"issues", "comments", "labels", "pulls", "commits", "releases", "contributors"} {
		for _, form := range []string{"", ".json", ".csv", ".jsonl"} {
			add(true, "/github/"+kind+form+"?owner="+owner+"&repo="+name, "/github/"+kind+form+"?owner="+owner+"&repo="+name+"&understudy.sort=url")
		}
	}
	for _, one := range []string{"/github/repos/" + owner + "~" + name, "/github/issues/" + id, "/github/issues/" + id + "?owner=" + owner + "&repo=" + name + "&number=" + issue} {
		for _, form := range []string{"", "?understudy.versions=5"} {
			if strings.Contains(one, "?") {
				form = strings.Replace(form, "?", "&", 1)
			}
			add(true, one+form)
		}
	}
	add(true, "/-/feed.json?source=github&kind=issues&id="+id, "/-/feed.json?source=github&kind=repos&id="+owner+"~"+name)
	return all
}

// spelledOut are the ways in which requests name a repository and an issue.
func spelledOut(repo, number, issue, id string) (all []string) {
	owner, name, _ := strings.Cut(repo, "/")
	for _, in := range []string{repo + "/", number + "/"} {
		all = append(all, in+"issues/"+issue, in+"pulls/"+issue)
	}
	for _, text := range []string{"number=" + issue, repo, owner + "~" + name, "repo=" + name, "name:" + name, `"repo" value="` + name, `"text" value="` + name} { // in addresses within addresses, too
		once := url.QueryEscape(text)
		all = append(all, text, once, url.QueryEscape(once))
	}
	return append(all, number, id)
}

// A role that finds the records of some repositories has them all, by every way in, and learns
// of no other repository that there is one.
func TestHiddenRepositories(t *testing.T) {
	t.Parallel()
	s := rig.StartGitHubStage(t, "[all]")
	s.Learn(time.Time{})
	f := &few{T: t, dropIn: s.Drop, web: s.Viewer, few: ":" + rig.MaskedToken}
	f.findsItsRepos(s)
	for _, repo := range s.Repos {
		if slices.Contains(fewRepos, repo) {
			continue
		}
		f.marks = append(f.marks, repo, strings.Replace(repo, "/", "~", 1), url.QueryEscape(repo))
		for _, list := range []string{"issues?state=all", "pulls?state=all", "labels?", "issues/comments?", "releases?"} {
			for _, row := range s.Direct("/repos/" + repo + "/" + list + "&per_page=100") {
				f.marks = append(f.marks, row["node_id"].(string))
			}
		}
	}
	if len(f.marks) < 50 {
		t.Fatalf("too little is hidden: %v", f.marks)
	}
	status, failures, run := map[string]int{}, 0, sample.OneIn(t, 8)
	for repo, never := range map[string]string{"acme/website": "acme/nowhere", "acme/api": "acme/nix"} {
		number := ""
		for _, row := range s.Direct("/user/repos?per_page=100") {
			if row["full_name"] == repo {
				number = rig.TextIn(row, "id")
			}
		}
		issue := s.Issues[repo][0]
		ids := []string{repo, number, rig.TextIn(issue, "number"), rig.TextIn(issue, "id")}
		none := []string{never, "599999999", "9876", "1999999999"}
		named, unnamed := spelledOut(ids[0], ids[1], ids[2], ids[3]), spelledOut(none[0], none[1], none[2], none[3])
		unknown := aboutRepo(none[0], none[1], none[2], none[3])
		for i, a := range aboutRepo(ids[0], ids[1], ids[2], ids[3]) {
			if !run() {
				continue
			}
			statusA, headA, bodyA := f.say(f.few, a, named...)
			statusB, headB, bodyB := f.say(f.few, unknown[i], unnamed...)
			for tries := 0; a.web && tries < 3 && (statusA != statusB || headA != headB || bodyA != bodyB); tries++ { // parts that took too long once
				statusA, headA, bodyA = f.say(f.few, a, named...)
				statusB, headB, bodyB = f.say(f.few, unknown[i], unnamed...)
			}
			status[fmt.Sprint(a.web, " ", statusA)]++
			for _, m := range f.marks {
				if strings.Contains(headA+bodyA, m) && failures < 20 {
					failures++
					t.Errorf("%s %s %v shows %s", a.method, a.path, a.headers, m)
				}
			}
			if (statusA != statusB || headA != headB || bodyA != bodyB) && failures < 20 {
				failures++
				t.Errorf("%s %s %v\nhidden %d %s\nnever %d %s\n%s", a.method, a.path, a.headers, statusA, headA, statusB, headB, rig.FirstDifference([]byte(bodyB), []byte(bodyA)))
			}
		}
	}
	t.Logf("%v", status)
	f.findsNoOther(s)
}

// findsItsRepos checks that the role finds all records of fewRepos.
func (f *few) findsItsRepos(s *rig.GitHubStage) {
	s.Helper()
	rows := 0
	for _, repo := range fewRepos {
		rows += len(s.Issues[repo])
		for _, list := range []string{"issues?state=all&per_page=100", "labels?per_page=100", "pulls?state=all&per_page=100", "issues/comments?per_page=100", "releases?per_page=100"} {
			path := "/repos/" + repo + "/" + list
			var ours []map[string]any
			r := rig.Get(s.T, f.few, f.dropIn+path)
			if err := json.Unmarshal(r.Body, &ours); err != nil || r.Status != http.StatusOK {
				s.Fatalf("%s: %d %v %.300s", path, r.Status, err, r.Body)
			}
			want := s.Direct(path)
			if len(ours) != len(want) || slices.ContainsFunc(want, func(row map[string]any) bool {
				return !slices.ContainsFunc(ours, func(our map[string]any) bool { return our["node_id"] == row["node_id"] })
			}) {
				s.Errorf("%s: %d rows, want %d", path, len(ours), len(want))
			}
		}
	}
	one := f.dropIn + "/repos/acme/tracker/issues/" + rig.TextIn(s.Issues["acme/tracker"][0], "number")
	rig.Get(s.T, f.few, one)
	if how := rig.Get(s.T, f.few, one).Header.Get("Cache-Status"); !strings.Contains(how, "hit") {
		s.Errorf("%s again: %s", one, how)
	}
	page := rig.Get(s.T, f.few, f.web+"/github/issues/"+rig.TextIn(s.Issues["acme/tracker"][0], "id"))
	if page.Status != http.StatusOK || !bytes.Contains(page.Body, []byte(`href="/github/repos/acme~tracker"`)) {
		s.Errorf("the page of an issue does not lead to its repository: %d %.3000s", page.Status, page.Body)
	}
	csv := rig.Get(s.T, f.few, f.web+"/github/issues.csv").Body
	if n := bytes.Count(csv, []byte("\n")); n != rows+1 || !bytes.HasPrefix(csv, []byte("number,repository,title")) {
		s.Errorf("the role's issues are %d lines, want %d: %.200s", n, rows+1, csv)
	}
	if one := rig.Get(s.T, f.few, f.web+"/github/issues.csv?owner=acme&repo=tracker&understudy.sort=title").Body; bytes.Count(one, []byte("\n")) != len(s.Issues["acme/tracker"])+1 {
		s.Errorf("the issues of one repository, by title: %.300s", one)
	}
	var found struct {
		Total  struct{ N int }
		Facets []struct {
			Name   string
			Values []struct{ Value string }
		}
	}
	r := rig.Get(s.T, f.few, f.web+"/-/search?q=kind:issues&facets=true")
	if err := json.Unmarshal(r.Body, &found); err != nil || r.Status != http.StatusOK {
		s.Fatalf("%d %v %s", r.Status, err, r.Body)
	}
	var repos []string
	for _, facet := range found.Facets {
		if facet.Name == "repository" {
			for _, v := range facet.Values {
				repos = append(repos, v.Value)
			}
		}
	}
	slices.Sort(repos)
	if found.Total.N != rows || !slices.Equal(repos, fewRepos) {
		s.Errorf("a search finds %d issues of %v, want %d of %v", found.Total.N, repos, rows, fewRepos)
	}
}

// findsNoOther requests what names no repository, and looks for hidden records in the answers.
func (f *few) findsNoOther(s *rig.GitHubStage) {
	s.Helper()
	plain := []string{"/", "/index.json", "/search", "/-/stats", "/-/health", "/-/feed.json?source=github&after=0&limit=1000", "/-/jobs", "/-/index", "/-/search?facets=true&limit=500", "/-/search?format=jsonl", "/search?q=", "/search.csv?q=bug"}
	for _, k := range append(rig.GitHubKinds, "commits", "users", "account", "contributors") {
		for _, form := range []string{"", ".json", ".csv", ".jsonl", "?understudy.sort=repository", "?understudy.sort=-repository&understudy.q=-zzz"} {
			plain = append(plain, "/github/"+k+form)
		}
	}
	asks := []asking{}
	for _, p := range plain {
		asks = append(asks, asking{web: true, method: "GET", path: p})
	}
	for _, p := range []string{"/user/repos", "/user/repos?per_page=100&sort=created", "/orgs/acme/repos", "/users/robin/repos", "/user", "/search/issues?q=is:issue"} {
		asks = append(asks, asking{method: "GET", path: p})
	}
	good := 0
	for _, a := range asks {
		status, head, body := f.say(f.few, a)
		if status == http.StatusOK {
			good++
		}
		if i := slices.IndexFunc(f.marks, func(m string) bool { return strings.Contains(head+body, m) }); i >= 0 {
			at := strings.Index(body, f.marks[i])
			s.Errorf("%s shows the hidden %s: %s", a.path, f.marks[i], body[max(0, at-300):min(len(body), at+100)])
		}
	}
	if good < 25 {
		s.Errorf("only %d of %d answers are good", good, len(asks))
	}
}
