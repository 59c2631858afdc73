// Issues: all of a repository with Google's package, another API by its spec.

package walk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-github/v88/github"

	"understudy/bench/rig"
)

// issues walks the issues of a repository, 100 a page: directly, through
// Understudy for the first time, and again.
func issues(ctx context.Context, r *rig.Run) (err error) {
	latency, records := time.Second, 7200 // seven in ten are of the repository
	if r.Quick {
		latency, records = 50*time.Millisecond, 700
	}
	dir, err := os.MkdirTemp(r.Dir, "issues-")
	if err != nil {
		return err
	}
	api, err := rig.Start(ctx, dir, "slowapi", "Ctrl-C", r.Bin, "slowapi", "--shape", "github", "--listen", "127.0.0.1:0",
		"--latency", latency.String(), "--records", fmt.Sprint(records))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Stop()) }()
	settings := fmt.Sprintf(`data: %q
viewer: {listen: "127.0.0.1:0", sign_in: none}
sources:
  github: {spec: github, upstream: %q, user: robin, secret: "file:token", listen: "127.0.0.1:0", rate: 100}
credentials:
  - {name: bench, source: github, secret: "file:bench", role: all}
`, filepath.Join(dir, "data"), api.Addresses["slowapi"])
	err = errors.Join(os.WriteFile(filepath.Join(dir, "token"), []byte(rig.ApiToken), 0o600),
		os.WriteFile(filepath.Join(dir, "bench"), []byte(rig.OurToken), 0o600),
		os.WriteFile(filepath.Join(dir, "understudy.yml"), []byte(settings), 0o600))
	if err != nil {
		return err
	}
	serve, err := rig.Start(ctx, dir, "serve", "Ctrl-C", r.Bin, "serve", "--config", filepath.Join(dir, "understudy.yml"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, serve.Stop()) }()
	direct, want, err := listIssues(ctx, api.Addresses["slowapi"], rig.ApiToken)
	if err != nil {
		return fmt.Errorf("direct: %w", err)
	}
	rows, second := [][]string{{"walk", "issues", "seconds", "times faster than direct"}, row("direct", len(want), direct, direct)}, direct
	for _, name := range []string{"through Understudy, first time", "second time"} {
		took, got, err := listIssues(ctx, serve.Addresses["github"], rig.OurToken)
		if err == nil {
			err = same(want, got)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		rows, second = append(rows, row(name, len(got), took, direct)), took
	}
	r.Table(rows)
	r.AtLeast(fmt.Sprintf("walk of %d issues, second time against direct", len(want)), float64(direct)/float64(second), 100, "times faster")
	return nil
}

// listIssues reads all issues page by page and gives their numbers in order.
func listIssues(ctx context.Context, address, token string) (time.Duration, []string, error) {
	base := address + "/"
	c, err := github.NewClient(github.WithAuthToken(token), github.WithURLs(&base, nil))
	if err != nil {
		return 0, nil, err
	}
	var numbers []string
	o := &github.IssueListByRepoOptions{State: "all", ListOptions: github.ListOptions{PerPage: 100}}
	for began := time.Now(); ; {
		rows, answer, err := c.Issues.ListByRepo(ctx, "acme", "tracker", o)
		if err != nil {
			return 0, nil, err
		}
		for _, one := range rows {
			numbers = append(numbers, fmt.Sprint(one.GetNumber()))
		}
		if o.ListOptions.Page = answer.NextPage; answer.NextPage == 0 {
			return time.Since(began), numbers, nil
		}
	}
}
