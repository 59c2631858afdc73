// GitHub: the SDKs of three languages walk the lists of a repository directly and through the
// drop-in, and must find the same: cold, held, and in an outage.

package vendorsdk

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-github/v88/github"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/spec"
	"understudy/upstream"
)

// githubSDKs walk every list they know at an address ("walk"), or some ("issues,comments"),
// ask for their rate ("rate"), make an issue ("create"), or write and read, also at another
// address ("write ADDRESS").
var githubSDKs = map[string]func(ctx context.Context, address, token, does string) ([]byte, error){
	"google/go-github": goGitHub,
	"@octokit/rest":    vendorScript("../sdks/node", "node", "github.mjs"),
	"PyGithub":         vendorScript("../sdks/python", filepath.Join(".venv", "bin", "python"), "repositories.py"),
}

// githubFinds is what a package finds.
func githubFinds(t *testing.T, sdk, address, token, does string) (f rig.Found) {
	t.Helper()
	out, err := githubSDKs[sdk](t.Context(), address, token, does)
	if err != nil || json.Unmarshal(out, &f) != nil {
		t.Fatalf("%s: %v: %.300s", sdk, err, out)
	}
	return f
}

func TestGitHubPackagesWalkEveryList(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--shape", "github", "--records", "120", "--latency", "1ms").URL("slowapi")
	through := startGitHub(t, up).URL("github")
	direct := map[string]rig.Found{}
	for _, sdk := range slices.Sorted(maps.Keys(githubSDKs)) {
		t.Run(sdk, func(t *testing.T) {
			direct[sdk] = githubFinds(t, sdk, up, rig.APIToken, "walk")
			for _, round := range []string{"cold", "held"} {
				rig.Comparison{}.Compare(t, round, direct[sdk], githubFinds(t, sdk, through, rig.ProgramSecret, "walk"), up, through)
			}
			t.Logf("%d lists, %d records each way", len(direct[sdk]), direct[sdk].Records())
		})
	}
	rig.Control(t, up, "/-/faults", `{"rules":[{"match":"","reset":true}]}`)
	for sdk, direct := range direct {
		t.Run(sdk+" in an outage", func(t *testing.T) {
			held := githubFinds(t, sdk, through, rig.ProgramSecret, "walk")
			for _, never := range []string{"search", "issues_html", "issues_closed"} { // never kept: searches, other forms, other orders
				delete(held, never)
				delete(direct, never)
			}
			rig.Comparison{}.Compare(t, "outage", direct, held, up, through)
		})
	}
}

// startGitHub runs a server in front of an address that speaks as GitHub does. It knows a
// program, and others by these names, settings behind a comma; the secret of each of those
// begins with its name.
func startGitHub(t testing.TB, up string, others ...string) *binary.Server {
	t.Helper()
	dir, more := t.TempDir(), ""
	for _, other := range others {
		name, settings, _ := strings.Cut(other, ",")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+rig.ProgramSecret), 0o600); err != nil {
			t.Fatal(err)
		}
		more += fmt.Sprintf("  - {name: %s, source: github, secret: \"file:%s\", role: all,%s}\n", name, name, settings)
	}
	for name, text := range map[string]string{
		"token": rig.APIToken, "program": rig.ProgramSecret,
		"understudy.yml": fmt.Sprintf(`data: ./data
viewer: {listen: "127.0.0.1:0", sign_in: none}
sources:
  github: {spec: github, upstream: %q, user: robin, secret: "file:token", listen: "127.0.0.1:0", rate: 2000, concurrency: 50}
credentials:
  - {name: program, source: github, secret: "file:program", role: all, allow: ["POST /repos/*/*/issues"]}
%s`, up, more),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return rig.Start(t, dir, "serve")
}

// everyPage walks a list to its end by the numbers that go-github reads in Link.
func everyPage[T any](list func(github.ListOptions) ([]T, *github.Response, error)) ([]T, error) {
	all, o := []T{}, github.ListOptions{PerPage: 20}
	for {
		rows, r, err := list(o)
		if err != nil {
			return nil, err
		}
		if all = append(all, rows...); r.NextPage == 0 {
			return all, nil
		}
		o.Page = r.NextPage
	}
}

// alone makes a list of one record.
func alone[T any](one T, _ *github.Response, err error) ([]T, error) { return []T{one}, err }

func goGitHub(ctx context.Context, address, token, does string) ([]byte, error) {
	plain := &http.Transport{}
	defer plain.CloseIdleConnections()
	base := address + "/"
	c, err := github.NewClient(github.WithTransport(plain), github.WithAuthToken(token), github.WithURLs(&base, nil))
	switch {
	case err != nil:
		return nil, err
	case does == "rate":
		told, _, err := c.RateLimit.Get(ctx)
		if err != nil {
			return json.Marshal(rig.Found{"rate": rig.Collect[any](nil, err)})
		}
		return json.Marshal(map[string]any{"rate": []*github.Rate{told.Core, told.Search, told.Core}})
	}
	if to, ok := strings.CutPrefix(does, "write "); ok {
		to += "/"
		other, err := github.NewClient(github.WithTransport(plain), github.WithAuthToken(rig.APIToken), github.WithURLs(&to, nil))
		if err != nil {
			return nil, err
		}
		out, err := writeWithGoGitHub(ctx, c, other)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
	return json.Marshal(walkWithGoGitHub(ctx, c, does))
}

// walkWithGoGitHub walks the lists that are named; "walk" means all.
func walkWithGoGitHub(ctx context.Context, c *github.Client, does string) rig.Found {
	owner, repo := "acme", "tracker"
	issues := func(state string, labels ...string) ([]*github.Issue, error) {
		return everyPage(func(o github.ListOptions) ([]*github.Issue, *github.Response, error) {
			return c.Issues.ListByRepo(ctx, owner, repo, &github.IssueListByRepoOptions{State: state, Labels: labels, ListOptions: o})
		})
	}
	ends := func(page int) ([]int, error) {
		_, r, err := c.Issues.ListByRepo(ctx, owner, repo, &github.IssueListByRepoOptions{ListOptions: github.ListOptions{Page: page, PerPage: 20}})
		if err != nil {
			return nil, err
		}
		return []int{r.FirstPage, r.PrevPage, r.NextPage, r.LastPage}, nil
	}
	lists := map[string]func() json.RawMessage{
		"account":   func() json.RawMessage { return rig.Collect(alone(c.Users.Get(ctx, ""))) },
		"user":      func() json.RawMessage { return rig.Collect(alone(c.Users.Get(ctx, owner))) },
		"repo":      func() json.RawMessage { return rig.Collect(alone(c.Repositories.Get(ctx, owner, repo))) },
		"moved":     func() json.RawMessage { return rig.Collect(alone(c.Repositories.Get(ctx, owner, "site"))) },
		"ends":      func() json.RawMessage { return rig.Collect(ends(1)) },
		"ends_2":    func() json.RawMessage { return rig.Collect(ends(2)) },
		"issues":    func() json.RawMessage { return rig.Collect(issues("")) },
		"all":       func() json.RawMessage { return rig.Collect(issues("all")) },
		"labels_of": func() json.RawMessage { return rig.Collect(issues("all", "bug", "ui")) },
		"issue":     func() json.RawMessage { return rig.Collect(alone(c.Issues.Get(ctx, owner, repo, 3))) },
		"label": func() json.RawMessage {
			return rig.Collect(alone(c.Issues.GetLabel(ctx, owner, repo, "good first issue")))
		},
		"repos": func() json.RawMessage {
			return rig.Collect(everyPage(func(o github.ListOptions) ([]*github.Repository, *github.Response, error) {
				return c.Repositories.ListByAuthenticatedUser(ctx, &github.RepositoryListByAuthenticatedUserOptions{ListOptions: o})
			}))
		},
		"comments": func() json.RawMessage {
			return rig.Collect(everyPage(func(o github.ListOptions) ([]*github.IssueComment, *github.Response, error) {
				return c.Issues.ListComments(ctx, owner, repo, 0, &github.IssueListCommentsOptions{ListOptions: o})
			}))
		},
		"labels": func() json.RawMessage {
			return rig.Collect(everyPage(func(o github.ListOptions) ([]*github.Label, *github.Response, error) {
				return c.Issues.ListLabels(ctx, owner, repo, &o)
			}))
		},
		"pulls": func() json.RawMessage {
			return rig.Collect(everyPage(func(o github.ListOptions) ([]*github.PullRequest, *github.Response, error) {
				return c.PullRequests.List(ctx, owner, repo, &github.PullRequestListOptions{State: "all", ListOptions: o})
			}))
		},
		"commits": func() json.RawMessage {
			return rig.Collect(everyPage(func(o github.ListOptions) ([]*github.RepositoryCommit, *github.Response, error) {
				return c.Repositories.ListCommits(ctx, owner, repo, &github.CommitsListOptions{ListOptions: o})
			}))
		},
		"releases": func() json.RawMessage {
			return rig.Collect(everyPage(func(o github.ListOptions) ([]*github.RepositoryRelease, *github.Response, error) {
				return c.Repositories.ListReleases(ctx, owner, repo, &o)
			}))
		},
	}
	names := slices.Collect(maps.Keys(lists))
	lists["create"] = func() json.RawMessage {
		return rig.Collect(alone(c.Issues.Create(ctx, owner, repo, &github.IssueRequest{Title: new("Written")})))
	}
	if does != "walk" {
		names = strings.Split(does, ",")
	}
	f := rig.Found{}
	for _, name := range names {
		f[name] = lists[name]()
	}
	return f
}

// The spec's list rows answer for one record whose path has its name, not its id, and only
// where the record says that it is there.
func TestGitHubRecordsAreFoundByTheirAddress(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--shape", "github", "--records", "60", "--latency", "1ms").URL("slowapi")
	through := startGitHub(t, up).URL("github")
	ask := func(path string) (status int, how string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, through+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "token "+rig.ProgramSecret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode, resp.Header.Get("Cache-Status")
	}
	composed := `understudy; hit; detail="composed"`
	ask("/repos/acme/tracker/labels?per_page=100")
	for path, want := range map[string]bool{
		"/repos/acme/tracker/labels/bug":                    true,
		"/repos/acme/tracker/labels/good%20first%20issue":   true,
		"/repos/acme/website/labels/bug":                    false, // another repository's
		"/repos/acme/tracker/labels/no-such":                false,
		"/repositories/530000000/issues/1?per_page=nothing": false,
	} {
		if status, how := ask(path); (how == composed) != want {
			t.Errorf("%s: %d %s", path, status, how)
		}
	}
	for path, want := range map[string]int{"/repos/acme/tracker/issues/1": 200, "/repos/acme/tracker/issues/99999": 404,
		"/repos/acme/tracker/labels/no-such": 404, "/repos/acme/website/labels/bug": 200} {
		if status, how := ask(path); status != want {
			t.Errorf("%s: %d %s", path, status, how)
		}
	}
}

// The lines that the spec gives each client run as they are.
func TestGitHubConnectLines(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--shape", "github", "--records", "60", "--latency", "1ms").URL("slowapi")
	through := startGitHub(t, up).URL("github")
	sp, err := upstream.ReadBuiltIn("github")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sp.Snippets {
		code := spec.Connection{Address: through, Secret: rig.ProgramSecret, Account: "robin"}.Fill(s)
		if out, err := rig.RunLines(t, s.Language, code); err != nil || !strings.Contains(string(out), "acme/tracker") {
			t.Errorf("%s: %v\n%s", s.Title, err, out)
		}
	}
}

// Every media type that the SDKs ask for by themselves means the usual form, and is kept; one
// that asks for another form is not.
func TestGitHubMediaTypes(t *testing.T) {
	t.Parallel()
	sp, err := upstream.ReadBuiltIn("github")
	if err != nil {
		t.Fatal(err)
	}
	for accept, usual := range map[string]bool{
		"application/vnd.github.v3+json": true, "application/vnd.github+json": true, "*/*": true, "application/json": true,
		"application/vnd.github.v3+json, application/vnd.github.squirrel-girl-preview+json": true,
		"application/vnd.github.mercy-preview+json,application/vnd.github.nebula-preview":   true,
		"application/vnd.github.full+json":                                                  false,
		"application/vnd.github.v3.full+json":                                               false, "application/vnd.github.v3.diff": false, "application/vnd.github.star.v3+json": false,
		"application/vnd.github.squirrel-girl-preview.html+json": false, "application/vnd.github.raw": false,
	} {
		header := http.Header{
			"Accept": {accept}, "X-Github-Api-Version": {"2022-11-28"}, "X-Github-Next-Global-Id": {"1"}, "X-Octokit-Request-Id": {"1"},
			"User-Agent": {"x"}, "Authorization": {"token x"}, "Content-Type": {"application/json"}, "If-None-Match": {`W/"1"`},
			"If-Modified-Since": {"Thu, 05 Jul 2012 15:31:30 GMT"},
		}
		if key, _, err := sp.Headers.ReadKey(http.MethodGet, header); err != nil || (len(key) == 0) != usual {
			t.Errorf("%s: key %v, error %v", accept, key, err)
		}
	}
}
