// Records: single ones, statistics and searches.

package github

import (
	"net/http"
	"slices"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

func (a *API) me(q *table.Request) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	me := a.Kinds["users"].Find(a.Account)
	return a.show(q, "private_user", &table.Row{ID: me.ID, V: me.V.With(table.Values{"view": "private"})})
}

func (a *API) oneUser(q *table.Request) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	return a.show(q, "public_user", a.Kinds["users"].Find(q.Vars[0]))
}

// counted is a repository with the number of its open issues. The caller holds Mu.
func (a *API) counted(repo *table.Row) *table.Row {
	open := a.Kinds["issues"].Select(func(r *table.Row) bool { return r.Text("repo") == repo.ID && r.Text("state") == "open" }, "", false)
	return &table.Row{ID: repo.ID, V: repo.V.With(table.Values{"open_issues": int64(len(open))})}
}

func (a *API) oneRepo(q *table.Request, repo *table.Row, _ []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	return a.show(q, "full_repository", a.counted(repo))
}

// oneIssue shows an issue or pull request. Alone it also says who closed it.
func (a *API) oneIssue(q *table.Request, repo *table.Row, vars []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	return a.issueAlone(q, a.Kinds["issues"].Find(repo.ID+"#"+vars[0]))
}

func (a *API) issueAlone(q *table.Request, r *table.Row) format.Answer {
	if r == nil {
		return a.Refuse(http.StatusNotFound)
	}
	closedBy := any(nil)
	if r.Text("state") == "closed" {
		closedBy = r.V["user"]
	}
	return a.show(q, "issue", &table.Row{ID: r.ID, V: r.V.With(table.Values{"closed_by": closedBy})})
}

func (a *API) onePull(q *table.Request, repo *table.Row, vars []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	r := a.Kinds["issues"].Find(repo.ID + "#" + vars[0])
	if r != nil && r.V["pull_id"] == nil {
		r = nil
	}
	return a.show(q, "full_pull", r)
}

func (a *API) oneComment(q *table.Request, repo *table.Row, vars []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	return a.show(q, "comment", a.of(repo, "comments", vars[0]))
}

// of is the record of a kind with an id, when it is of the repository.
func (a *API) of(repo *table.Row, kind, id string) *table.Row {
	if r := a.Kinds[kind].Find(id); r != nil && r.Text("repo") == repo.ID {
		return r
	}
	return nil
}

func (a *API) oneLabel(q *table.Request, repo *table.Row, vars []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	return a.show(q, "label", a.Kinds["labels"].Find(repo.ID+"/labels/"+strings.ToLower(vars[0])))
}

func (a *API) labelsOfIssue(q *table.Request, repo *table.Row, vars []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	r := a.Kinds["issues"].Find(repo.ID + "#" + vars[0])
	if r == nil {
		return a.Refuse(http.StatusNotFound)
	}
	return format.Answer{Status: http.StatusOK, Body: table.AppendList(nil, r.V["labels"].([]table.Part), q.Here)}
}

// oneCommit shows a commit. Alone it has the changed files, too.
func (a *API) oneCommit(q *table.Request, repo *table.Row, vars []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	r := a.Kinds["commits"].Find(repo.ID + "/commits/" + vars[0])
	if r == nil {
		return a.Refuse(http.StatusNotFound)
	}
	sha, commit := r.Text("tree"), r.Text("sha")
	file := map[string]any{
		"sha": sha, "filename": "README.md", "status": "modified", "additions": 3, "deletions": 1, "changes": 4,
		"blob_url":     "https://github.com/" + repo.ID + "/blob/" + commit + "/README.md",
		"raw_url":      "https://github.com/" + repo.ID + "/raw/" + commit + "/README.md",
		"contents_url": q.Here + "/repos/" + repo.ID + "/contents/README.md?ref=" + commit, "patch": "@@ -1 +1,3 @@",
	}
	return a.show(q, "commit", &table.Row{ID: r.ID, V: r.V.With(table.Values{
		"stats": map[string]int{"total": 4, "additions": 3, "deletions": 1}, "files": []any{file},
	})})
}

// oneRelease shows a release by its number, or the latest that is no prerelease.
func (a *API) oneRelease(q *table.Request, repo *table.Row, vars []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	if vars[0] != "latest" {
		return a.show(q, "release", a.of(repo, "releases", vars[0]))
	}
	found := a.Kinds["releases"].Select(func(r *table.Row) bool { return r.Text("repo") == repo.ID && r.V["prerelease"] == false }, "",
		false)
	return a.show(q, "release", append(found, nil)[0])
}

// contributors are statistics: the first time that they are asked for they are
// being computed, 202 with {}; then they are there.
func (a *API) contributors(q *table.Request, repo *table.Row, _ []string) format.Answer {
	if _, before := a.asked.LoadOrStore(repo.ID, true); !before {
		return format.Answer{Status: http.StatusAccepted, Body: []byte("{}")}
	}
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	type week struct {
		W int64 `json:"w"`
		A int   `json:"a"`
		D int   `json:"d"`
		C int   `json:"c"`
	}
	weeks, totals := map[string]map[int64]int{}, map[string]int64{}
	for _, r := range a.Kinds["commits"].Rows() {
		if who := r.Text("login"); r.Text("repo") == repo.ID {
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
		parts = append(parts, table.Part{T: a.shapes["contributor"], V: table.Values{"total": total, "weeks": list, "user": a.user(who),
			"login": who}})
	}
	slices.SortFunc(parts, func(x, y table.Part) int { return strings.Compare(x.V["login"].(string), y.V["login"].(string)) })
	return format.Answer{Status: http.StatusOK, Body: table.AppendList(nil, parts, q.Here)}
}

// search finds issues and pull requests: qualifiers repo, is, type, state, label and
// author, and words that the title or body has.
func (a *API) search(q *table.Request) format.Answer {
	asked := strings.Fields(q.Query.Get("q"))
	if len(asked) == 0 {
		return invalid("Search", "q", "missing")
	}
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	by, _ := order(q, "created", map[string]string{"created": "created", "updated": "updated", "comments": "comments"})
	rows := a.Kinds["issues"].Select(func(r *table.Row) bool {
		for _, word := range asked {
			if !matchesWord(r, word) {
				return false
			}
		}
		return true
	}, by, q.Query.Get("order") == "asc")
	total := int64(len(rows))
	rows, links := cut(q, "/search/issues", rows[:min(len(rows), 1000)])
	parts := make([]table.Part, len(rows))
	for i, r := range rows {
		parts[i] = a.part("issue", &table.Row{ID: r.ID, V: r.V.With(table.Values{"score": 1})}, q)
	}
	body := table.AppendValue([]byte(`{"total_count":`), total, "")
	// Octokit takes the first member that it does not know for the list.
	body = append(table.AppendList(append(body, `,"incomplete_results":false,"items":`...), parts, q.Here), `,"search_type":"lexical"}`...)
	answer := format.Answer{Status: http.StatusOK, Body: body}
	if links != "" {
		answer = with(answer, "Link", links)
	}
	return answer
}

// matchesWord tells whether an issue is what one word of a search asks for.
func matchesWord(r *table.Row, word string) bool {
	name, value, qualified := strings.Cut(word, ":")
	switch {
	case qualified && name == "repo":
		return strings.EqualFold(r.Text("repo"), value)
	case qualified && (name == "is" || name == "type" || name == "state"):
		pull := r.V["pull_id"] != nil
		return value == r.Text("state") || (value == "pr" || value == "pull-request") && pull || value == "issue" && !pull
	case qualified && name == "label":
		return hasLabels(r, []string{value})
	case qualified && name == "author":
		return r.Text("login") == value
	}
	return strings.Contains(strings.ToLower(r.Text("title")+" "+r.Text("body")), strings.ToLower(word))
}
