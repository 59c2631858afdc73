// Routes: the paths of the API, and which records each shows.

package github

import (
	"net/http"
	"strconv"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

type (
	handler = func(*table.Request) format.Answer
	// inRepo answers a path below a repository; vars are those behind it.
	inRepo = func(q *table.Request, repo *table.Row, vars []string) format.Answer
)

// routes are all paths. Those of a repository are there twice, as at GitHub: by its
// name and by its number.
func (a *API) routes() table.Routes {
	w := writer{a}
	get := func(do handler) map[string]handler { return map[string]handler{http.MethodGet: do} }
	all := table.Routes{
		{Pattern: "/", Do: get(func(q *table.Request) format.Answer {
			return format.Answer{Status: http.StatusOK, Body: []byte(`{"current_user_url":"` + q.Here + `/user"}`)}
		})},
		{Pattern: "/graphql", Do: map[string]handler{http.MethodPost: a.graphQL}},
		{Pattern: "/user", Do: get(a.me)},
		{Pattern: "/users/*", Do: get(a.oneUser)},
		{Pattern: "/rate_limit", Do: get(func(q *table.Request) format.Answer { return a.limits.show(q.Path) })},
		{Pattern: "/user/repos", List: true, Do: get(a.myRepos)},
		{Pattern: "/users/*/repos", List: true, Do: get(a.reposOf)},
		{Pattern: "/orgs/*/repos", List: true, Do: get(a.reposOf)},
		{Pattern: "/search/issues", List: true, Do: get(a.search)},
	}
	for _, one := range []struct {
		suffix string
		list   bool
		do     map[string]inRepo
	}{
		{"", false, map[string]inRepo{"GET": a.oneRepo}},
		{"/issues", true, map[string]inRepo{"GET": a.listIssues, "POST": w.createIssue}},
		{"/issues/comments", true, map[string]inRepo{"GET": a.listComments}},
		{"/issues/comments/*", false, map[string]inRepo{"GET": a.oneComment, "PATCH": w.updateComment, "DELETE": w.deleteComment}},
		{"/issues/*", false, map[string]inRepo{"GET": a.oneIssue, "PATCH": w.updateIssue}},
		{"/issues/*/comments", true, map[string]inRepo{"GET": a.listComments, "POST": w.createComment}},
		{"/issues/*/labels", true, map[string]inRepo{"GET": a.labelsOfIssue, "POST": w.addLabels}},
		{"/labels", true, map[string]inRepo{"GET": a.listLabels, "POST": w.createLabel}},
		{"/labels/*", false, map[string]inRepo{"GET": a.oneLabel, "DELETE": w.deleteLabel}},
		{"/pulls", true, map[string]inRepo{"GET": a.listPulls}},
		{"/pulls/*", false, map[string]inRepo{"GET": a.onePull}},
		{"/commits", true, map[string]inRepo{"GET": a.listCommits}},
		{"/commits/*", false, map[string]inRepo{"GET": a.oneCommit}},
		{"/releases", true, map[string]inRepo{"GET": a.listReleases}},
		{"/releases/*", false, map[string]inRepo{"GET": a.oneRelease}},
		{"/stats/contributors", true, map[string]inRepo{"GET": a.contributors}},
	} {
		named, numbered := map[string]handler{}, map[string]handler{}
		for method, do := range one.do {
			named[method] = func(q *table.Request) format.Answer { return a.named(q, do) }
			numbered[method] = func(q *table.Request) format.Answer { return a.numbered(q, do) }
		}
		all = append(all, table.Route{Pattern: "/repos/*/*" + one.suffix, List: one.list, Do: named},
			table.Route{Pattern: "/repositories/*" + one.suffix, List: one.list, Do: numbered})
	}
	return all
}

// named finds the repository by its name. A name it had before leads to its number.
func (a *API) named(q *table.Request, do inRepo) format.Answer {
	name := strings.ToLower(q.Vars[0] + "/" + q.Vars[1])
	a.Mu.RLock()
	moved, repo := a.Kinds["repos"].Find(repositories[1].name), a.Kinds["repos"].Find(name)
	a.Mu.RUnlock()
	if name == movedName {
		rest := strings.SplitN(q.Path, "/", 5)
		to := q.Here + "/repositories/" + moved.Text("id")
		if len(rest) == 5 {
			to += "/" + rest[4]
		}
		if query := q.Query.Encode(); query != "" {
			to += "?" + query
		}
		status := http.StatusMovedPermanently
		if q.Method != http.MethodGet && q.Method != http.MethodHead {
			status = http.StatusTemporaryRedirect
		}
		answer := format.Answer{Status: status, Header: map[string]string{"Location": to}}
		answer.Body = []byte(`{"message":"Moved Permanently","url":` + strconv.Quote(to) +
			`,"documentation_url":"https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api#follow-redirects"}`)
		return answer
	}
	if repo == nil {
		return a.Refuse(http.StatusNotFound)
	}
	return do(q, repo, q.Vars[2:])
}

// numbered finds the repository by its number.
func (a *API) numbered(q *table.Request, do inRepo) format.Answer {
	a.Mu.RLock()
	var repo *table.Row
	for _, r := range a.Kinds["repos"].Rows() {
		if r.Text("id") == q.Vars[0] {
			repo = r
		}
	}
	a.Mu.RUnlock()
	if repo == nil {
		return a.Refuse(http.StatusNotFound)
	}
	return do(q, repo, q.Vars[1:])
}
