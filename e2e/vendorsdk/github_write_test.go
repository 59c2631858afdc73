// GitHub writes: what packages of three languages write through the drop-in arrives once, and
// every list and record that they read next is as GitHub has it.

package vendorsdk

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-github/v88/github"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

const writer = `writer, allow: ["POST /repos/*/*/issues", "PATCH /repos/*/*/issues/*", "POST /repos/*/*/issues/*/comments",
    "PATCH /repos/*/*/issues/comments/*", "DELETE /repos/*/*/issues/comments/*", "POST /repos/*/*/issues/*/labels", "POST /repos/*/*/labels",
    "DELETE /repos/*/*/labels/*"]`

// githubWrites are what a package writes, in order, as requests.
var githubWrites = []string{"POST issues", "PATCH issues/N", "POST issues/N/comments", "PATCH issues/comments/N", "POST labels", "POST issues/N/labels",
	"DELETE issues/comments/N", "PATCH issues/N", "DELETE labels/late"}

func TestGitHubPackagesReadWhatTheyWrote(t *testing.T) {
	t.Parallel()
	for sdk := range githubSDKs {
		t.Run(sdk, func(t *testing.T) {
			t.Parallel()
			api := rig.StartAPI(t, "--shape", "github", "--records", "60", "--latency", "0s").URL("slowapi")
			var mu sync.Mutex
			var came []string
			up := rig.Between(t, api, func(r *http.Request) bool {
				if path, ok := strings.CutPrefix(r.URL.Path, "/repos/acme/tracker/"); ok && r.Method != http.MethodGet {
					parts := strings.Split(path, "/")
					for i, p := range parts {
						if strings.Trim(p, "0123456789") == "" {
							parts[i] = "N"
						}
					}
					mu.Lock()
					came = append(came, r.Method+" "+strings.Join(parts, "/"))
					mu.Unlock()
				}
				return true
			})
			house := startGitHub(t, up, writer).URL("github")
			var out struct{ Through, Direct rig.Found }
			text, err := githubSDKs[sdk](t.Context(), house, "writer"+rig.ProgramSecret, "write "+api)
			if err != nil || json.Unmarshal(text, &out) != nil {
				t.Fatalf("%v: %.500s", err, text)
			}
			// These paths do not say of which issue, and it is held alone for a while.
			for _, name := range []string{"comment deleted issue", "label deleted issue"} {
				delete(out.Direct, name)
				delete(out.Through, name)
			}
			if len(out.Direct) < 60 {
				t.Errorf("only %v was read", slices.Sorted(maps.Keys(out.Direct)))
			}
			names := slices.Collect(maps.Keys(out.Direct)) // a comment that is not there yet, or has gone, is an error both ways
			rig.Comparison{Empty: names, Unreadable: names}.Compare(t, "written", out.Direct, out.Through, api, house)
			if mu.Lock(); !slices.Equal(came, githubWrites) {
				t.Errorf("upstream was sent %q", came)
			}
			mu.Unlock()
		})
	}
}

// The answer to a write is lost: it is not sent again, its program is told that nobody knows,
// and lists show what came of it.
func TestGitHubWritesAreNotSentTwice(t *testing.T) {
	t.Parallel()
	for sdk := range githubSDKs {
		t.Run(sdk, func(t *testing.T) {
			t.Parallel()
			api := rig.StartAPI(t, "--shape", "github", "--records", "60", "--latency", "0s").URL("slowapi")
			to, err := url.Parse(api)
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			came := 0
			forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }}
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet {
					mu.Lock()
					came++
					mu.Unlock()
					forward.ServeHTTP(httptest.NewRecorder(), r) // it is done
					panic(http.ErrAbortHandler)
				}
				forward.ServeHTTP(w, r)
			}))
			t.Cleanup(up.Close)
			house := startGitHub(t, up.URL, writer).URL("github")
			f := githubFinds(t, sdk, house, "writer"+rig.ProgramSecret, "issues,create,all")
			if mu.Lock(); came != 1 {
				t.Errorf("the issue was sent %d times", came)
			}
			mu.Unlock()
			var all []struct{ Title string }
			{
				err := json.Unmarshal(f["all"], &all)
				checktest.MustNoError(t, err, "%v", err)
				checktest.Contains(t, string(f["create"]), "outcome unknown", `%v: string(f["create"])`, err)
				checktest.MustTrue(t, len(all) != 0, "%v: len(all) is 0", err)
				checktest.Equal(t, all[0].Title, "Written", "%v: all[0].Title", err)
			}
		})
	}
}

// writeWithGoGitHub writes with one client, and reads with it and with another after each write.
func writeWithGoGitHub(ctx context.Context, through, other *github.Client) (any, error) {
	const owner, repo = "acme", "tracker"
	out := map[string]rig.Found{"through": {}, "direct": {}}
	read := func(step string, n int, comment int64) {
		for way, c := range map[string]*github.Client{"through": through, "direct": other} {
			for name, rows := range walkWithGoGitHub(ctx, c, "issues,all,comments,labels,repo") {
				out[way][step+" "+name] = rows
			}
			out[way][step+" issue"] = rig.Collect(alone(c.Issues.Get(ctx, owner, repo, n)))
			out[way][step+" its comments"] = rig.Collect(everyPage(func(o github.ListOptions) ([]*github.IssueComment, *github.Response, error) {
				return c.Issues.ListComments(ctx, owner, repo, n, &github.IssueListCommentsOptions{ListOptions: o})
			}))
			out[way][step+" its labels"] = rig.Collect(everyPage(func(o github.ListOptions) ([]*github.Label, *github.Response, error) {
				return c.Issues.ListLabelsByIssue(ctx, owner, repo, n, &o)
			}))
			out[way][step+" label"] = rig.Collect(alone(c.Issues.GetLabel(ctx, owner, repo, "late")))
			out[way][step+" comment"] = rig.Collect(alone(c.Issues.GetComment(ctx, owner, repo, comment)))
		}
	}
	read("before", 1, 1)
	made, _, err := through.Issues.Create(ctx, owner, repo, &github.IssueRequest{Title: new("Written"), Body: new("By a test")})
	if err != nil {
		return nil, err
	}
	n, comment := made.GetNumber(), int64(1)
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"created", func() error { return nil }},
		{"edited", func() error {
			_, _, err := through.Issues.Edit(ctx, owner, repo, n, &github.IssueRequest{Title: new("Written anew")})
			return err
		}},
		{"commented", func() error {
			c, _, err := through.Issues.CreateComment(ctx, owner, repo, n, &github.IssueComment{Body: new("First")})
			comment = c.GetID()
			return err
		}},
		{"comment edited", func() error {
			_, _, err := through.Issues.EditComment(ctx, owner, repo, comment, &github.IssueComment{Body: new("Second")})
			return err
		}},
		{"label made", func() error {
			_, _, err := through.Issues.CreateLabel(ctx, owner, repo, &github.Label{Name: new("late"), Color: new("00ff00")})
			return err
		}},
		{"labelled", func() error {
			_, _, err := through.Issues.AddLabelsToIssue(ctx, owner, repo, n, []string{"late", "bug"})
			return err
		}},
		{"comment deleted", func() error { _, err := through.Issues.DeleteComment(ctx, owner, repo, comment); return err }},
		{"closed", func() error {
			_, _, err := through.Issues.Edit(ctx, owner, repo, n, &github.IssueRequest{State: new("closed")})
			return err
		}},
		{"label deleted", func() error { _, err := through.Issues.DeleteLabel(ctx, owner, repo, "late"); return err }},
	} {
		if err := step.do(); err != nil {
			return nil, err
		}
		read(step.name, n, comment)
	}
	return out, nil
}
