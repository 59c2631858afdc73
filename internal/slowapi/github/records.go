// Handlers for single records, statistics and searches.

package github

import (
	"net/http"
	"slices"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

func (a *API) showViewer(q *table.Request) format.Answer {
	user := a.world.Kinds["users"].Find(a.world.Account)
	return a.show(q, "private_user", &table.Row{ID: user.ID, Values: user.Values.With(table.Values{"view": "private"})})
}

// withOpenIssues returns the repository with the number of its open issues. The caller holds Mu.
func (a *API) withOpenIssues(repo *table.Row) *table.Row {
	open := a.world.Kinds["issues"].Select(func(r *table.Row) bool { return matchRepo(repo)(r) && r.Text("state") == "open" }, "", false)
	return &table.Row{ID: repo.ID, Values: repo.Values.With(table.Values{"open_issues": int64(len(open))})}
}

func (a *API) showRepo(q *table.Request, _ *fields) format.Answer {
	return a.show(q, "full_repository", a.withOpenIssues(q.Parent))
}

// showRecord returns a handler that answers with the record at the path. shape is the template.
func (a *API) showRecord(shape string) repoHandler {
	return func(q *table.Request, _ *fields) format.Answer { return a.show(q, shape, q.Row) }
}

// showIssue answers with an issue or pull request. Other than in a list, it says who has closed the issue.
func (a *API) showIssue(q *table.Request, _ *fields) format.Answer {
	closedBy := any(nil)
	if q.Row.Text("state") == "closed" {
		closedBy = q.Row.Values["user"]
	}
	return a.show(q, "issue", &table.Row{ID: q.Row.ID, Values: q.Row.Values.With(table.Values{"closed_by": closedBy})})
}

func (a *API) showPull(q *table.Request, _ *fields) format.Answer {
	if q.Row.Values["pull_id"] == nil {
		return a.refusal(http.StatusNotFound)
	}
	return a.show(q, "full_pull", q.Row)
}

func (a *API) listIssueLabels(q *table.Request, _ *fields) format.Answer {
	r := a.record(q.Parent, "issues", q.Vars[0])
	if r == nil {
		return a.refusal(http.StatusNotFound)
	}
	return table.Show(r.Values["labels"], q.BaseURL)
}

// showCommit answers with a commit. Other than in a list, it has the changed files.
func (a *API) showCommit(q *table.Request, _ *fields) format.Answer {
	sha, commit, repo := q.Row.Text("tree"), q.Row.Text("sha"), q.Parent.ID
	file := map[string]any{
		"sha": sha, "filename": "README.md", "status": "modified", "additions": 3, "deletions": 1, "changes": 4,
		"blob_url":     "https://github.com/" + repo + "/blob/" + commit + "/README.md",
		"raw_url":      "https://github.com/" + repo + "/raw/" + commit + "/README.md",
		"contents_url": q.BaseURL + "/repos/" + repo + "/contents/README.md?ref=" + commit, "patch": "@@ -1 +1,3 @@",
	}
	return a.show(q, "commit", &table.Row{ID: q.Row.ID, Values: q.Row.Values.With(table.Values{
		"stats": map[string]int{"total": 4, "additions": 3, "deletions": 1}, "files": []any{file},
	})})
}

// showRelease answers with the release that has an id, or with the newest release that is not a prerelease.
func (a *API) showRelease(q *table.Request, _ *fields) format.Answer {
	if q.Vars[0] != "latest" {
		return a.show(q, "release", a.record(q.Parent, "releases", q.Vars[0]))
	}
	stable := func(r *table.Row) bool { return matchRepo(q.Parent)(r) && r.Values["prerelease"] == false }
	found := a.world.Kinds["releases"].Select(stable, "", false)
	return a.show(q, "release", append(found, nil)[0])
}

// listContributors answers with statistics about a repository. The first request gets 202 and {}, because GitHub
// starts to compute them then. Later requests get the statistics.
func (a *API) listContributors(q *table.Request, _ *fields) format.Answer {
	if _, before := a.requestedStats.LoadOrStore(q.Parent.ID, true); !before {
		return format.Answer{Status: http.StatusAccepted, Body: []byte("{}")}
	}
	type week struct {
		W int64 `json:"w"`
		A int   `json:"a"`
		D int   `json:"d"`
		C int   `json:"c"`
	}
	weeks, totals := map[string]map[int64]int{}, map[string]int64{}
	for _, r := range a.world.Kinds["commits"].Rows() {
		if who := r.Text("login"); r.Text("repo") == q.Parent.ID {
			if weeks[who] == nil {
				weeks[who] = map[int64]int{}
			}
			weeks[who][r.Number("created")/604800*604800]++
			totals[who]++
		}
	}
	parts := []table.Part{}
	for who, total := range totals {
		var list []week
		for w, n := range weeks[who] {
			list = append(list, week{w, 3 * n, n, n})
		}
		slices.SortFunc(list, func(x, y week) int { return int(x.W - y.W) })
		parts = append(parts, table.Part{Template: a.builder.shapes["contributor"], Values: table.Values{
			"total": total, "weeks": list, "user": a.builder.user(who), "login": who}})
	}
	slices.SortFunc(parts, func(x, y table.Part) int {
		return strings.Compare(x.Values["login"].(string), y.Values["login"].(string))
	})
	return table.Show(parts, q.BaseURL)
}

// searchIssues answers a search for issues and pull requests. The query has words of the title or body, and the
// qualifiers repo, is, type, state, label and author.
func (a *API) searchIssues(q *table.Request) format.Answer {
	words := strings.Fields(q.Query.Get("q"))
	if len(words) == 0 {
		return newInvalid("Search", "q", "missing")
	}
	rows := a.world.Kinds["issues"].Select(func(r *table.Row) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !matchWord(r, word) })
	}, order(q, "comments"), q.Query.Get("order") == "asc")
	total := len(rows)
	return answerPage(q, rows[:min(total, 1000)], func(r *table.Row) table.Part {
		return a.part("issue", &table.Row{ID: r.ID, Values: r.Values.With(table.Values{"score": 1})}, q)
	}, func(items []table.Part) any { // Octokit uses the first member that it does not know as the list
		return table.Part{Template: a.builder.shapes["search"], Values: table.Values{"total": total, "items": items}}
	})
}

// matchWord reports whether an issue matches one word of a search.
func matchWord(r *table.Row, word string) bool {
	name, value, qualified := strings.Cut(word, ":")
	switch {
	case qualified && name == "repo":
		return strings.EqualFold(r.Text("repo"), value)
	case qualified && (name == "is" || name == "type" || name == "state"):
		pull := r.Values["pull_id"] != nil
		return value == r.Text("state") || (value == "pr" || value == "pull-request") && pull || value == "issue" && !pull
	case qualified && name == "label":
		return hasLabels(r, []string{value})
	case qualified && name == "author":
		return r.Text("login") == value
	}
	return strings.Contains(strings.ToLower(r.Text("title")+" "+r.Text("body")), strings.ToLower(word))
}
