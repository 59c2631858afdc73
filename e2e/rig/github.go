// GitHub: the simulated API with the server in front of it.

package rig

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// GitHubStage is a simulated GitHub and Understudy in front of it. Understudy holds the records of each repository.
type GitHubStage struct {
	*testing.T
	API, Drop, Viewer string
	Repos             []string
	Issues            map[string][]map[string]any // of each repository
}

// GitHubKinds are the kinds that become complete. Commits are synced, too, but the lists show those of one branch alone.
var GitHubKinds = []string{"repos", "issues", "comments", "labels", "pulls", "releases"}

// OpenToken is the secret of a program that finds the open issues alone.
const OpenToken = "openissuessecret0123456789"

// StartGitHubStage starts both. The roots are a list in YAML, as settings have it.
func StartGitHubStage(t *testing.T, roots string) *GitHubStage {
	t.Helper()
	s := &GitHubStage{T: t, API: StartAPI(t, "--shape", "github", "--latency", "0s", "--records", "150", "--arrivals", "0").URL("slowapi")}
	dir := t.TempDir()
	for name, text := range map[string]string{"token": APIToken, "program": ProgramSecret, "few": MaskedToken, "open": OpenToken, "understudy.yml": `data: ./data
viewer: {listen: "127.0.0.1:0", role: all}
roles:
  few:
    github: {"*": see, rows: {"*": {where: {repository: [acme/tracker, robin/notes]}}}}
  open:
    github: {"*": see, rows: {issues: {where: {state: [open]}}, comments: all, labels: all}}
sources:
  github: {spec: github, user: robin, secret: "file:token", upstream: "` + s.API + `", listen: "127.0.0.1:0", rate: 2000, concurrency: 50,
    covers: ` + roots + `, polls: [], lists_from: records, sync: [` + strings.Join(GitHubKinds, ", ") + `, commits]}
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
	house := Start(t, dir, "serve")
	s.Drop, s.Viewer = house.URL("github"), house.URL("viewer")
	return s
}

// Learn reads the issues of every repository from the simulated GitHub, and waits until Understudy has walked
// all lists once more after a time.
func (s *GitHubStage) Learn(since time.Time) {
	s.Helper()
	s.Repos, s.Issues = nil, map[string][]map[string]any{}
	for _, repo := range s.Direct("/user/repos?per_page=100") {
		name := repo["full_name"].(string)
		s.Repos = append(s.Repos, name)
		for page := 1; page == 1 || len(s.Issues[name]) == (page-1)*100; page++ {
			s.Issues[name] = append(s.Issues[name], s.Direct(fmt.Sprintf("/repos/%s/issues?state=all&per_page=100&page=%d", name, page))...)
		}
	}
	AwaitSwept(s.T, s.Viewer, "github", GitHubKinds, since)
}

// Direct returns the rows of a page of the simulated GitHub.
func (s *GitHubStage) Direct(target string) (rows []map[string]any) {
	s.Helper()
	r := Get(s.T, "", s.API+target, "Authorization", "token "+APIToken)
	if err := json.Unmarshal(r.Body, &rows); err != nil || r.Status != http.StatusOK {
		s.Fatalf("%s: %d %s", target, r.Status, r.Body)
	}
	return rows
}

// TextIn returns a text or number in a record by the names of the members that lead to it, or "".
func TextIn(row map[string]any, path ...string) string {
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
