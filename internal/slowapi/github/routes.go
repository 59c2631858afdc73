// Routes: the paths of the API, and their handlers.

package github

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// repoHandler answers a request for a path below the repository q.Parent. f has the fields in the body of a write.
type repoHandler = func(q *table.Request, f *fields) format.Answer

// idFormats are the formats of record ids by kind. The arguments are the name of the repository and the name of the
// record in a path.
var idFormats = map[string]string{
	"issues": "%s#%s", "comments": "%[2]s", "labels": "%s/labels/%s", "commits": "%s/commits/%s", "releases": "%[2]s",
}

// paths returns all routes. As at GitHub, each route below a repository exists twice: with the name and with the id
// of the repository.
func (a *API) paths() table.Routes {
	get := func(do table.Handler) map[string]table.Handler { return map[string]table.Handler{http.MethodGet: do} }
	all := table.Routes{
		{Pattern: "/", Handlers: get(func(q *table.Request) format.Answer {
			return format.Answer{Status: http.StatusOK, Body: []byte(`{"current_user_url":"` + q.BaseURL + `/user"}`)}
		})},
		{Pattern: "/graphql", Handlers: map[string]table.Handler{http.MethodPost: a.graphQL}},
		{Pattern: "/user", Handlers: get(a.showViewer)},
		{Pattern: "/users/*", Handlers: get(func(q *table.Request) format.Answer {
			return a.show(q, "public_user", a.world.Kinds["users"].Find(q.Vars[0]))
		})},
		{Pattern: "/rate_limit", Handlers: get(func(q *table.Request) format.Answer { return a.limits.show(q.Path) })},
		{Pattern: "/user/repos", List: true, Handlers: get(a.listRepos)},
		{Pattern: "/users/*/repos", List: true, Handlers: get(a.listRepos)},
		{Pattern: "/orgs/*/repos", List: true, Handlers: get(a.listRepos)},
		{Pattern: "/search/issues", List: true, Handlers: get(a.searchIssues)},
	}
	for _, p := range []struct {
		suffix string
		list   bool
		kind   string // the kind of the record that the last star stands for, which must exist; "" if it stands for none
		do     map[string]repoHandler
	}{
		{"", false, "", map[string]repoHandler{"GET": a.showRepo}},
		{"/issues", true, "", map[string]repoHandler{"GET": a.listIssues, "POST": a.createIssue}},
		{"/issues/comments", true, "", map[string]repoHandler{"GET": a.listComments}},
		{"/issues/comments/*", false, "comments",
			map[string]repoHandler{"GET": a.showRecord("comment"), "PATCH": a.updateComment, "DELETE": a.deleteComment}},
		{"/issues/*", false, "issues", map[string]repoHandler{"GET": a.showIssue, "PATCH": a.updateIssue}},
		{"/issues/*/comments", true, "", map[string]repoHandler{"GET": a.listComments, "POST": a.createComment}},
		{"/issues/*/labels", true, "", map[string]repoHandler{"GET": a.listIssueLabels, "POST": a.addLabels}},
		{"/labels", true, "", map[string]repoHandler{"GET": a.listLabels, "POST": a.createLabel}},
		{"/labels/*", false, "labels", map[string]repoHandler{"GET": a.showRecord("label"), "DELETE": a.deleteLabel}},
		{"/pulls", true, "", map[string]repoHandler{"GET": a.listPulls}},
		{"/pulls/*", false, "issues", map[string]repoHandler{"GET": a.showPull}},
		{"/commits", true, "", map[string]repoHandler{"GET": a.listCommits}},
		{"/commits/*", false, "commits", map[string]repoHandler{"GET": a.showCommit}},
		{"/releases", true, "", map[string]repoHandler{"GET": a.listReleases}},
		{"/releases/*", false, "", map[string]repoHandler{"GET": a.showRelease}},
		{"/stats/contributors", true, "", map[string]repoHandler{"GET": a.listContributors}},
	} {
		do := map[string]table.Handler{}
		for method, answer := range p.do {
			do[method] = func(q *table.Request) format.Answer { return a.answerInRepo(q, p.suffix, p.kind, answer) }
		}
		all = append(all, table.Route{Pattern: "/repos/*/*" + p.suffix, List: p.list, Handlers: do},
			table.Route{Pattern: "/repositories/*" + p.suffix, List: p.list, Handlers: do})
	}
	return all
}

// answerInRepo finds the repository and the record at a path, parses the body of a write, and calls do. If the
// repository had the name formerly, it redirects to the path with the id.
func (a *API) answerInRepo(q *table.Request, suffix, kind string, do repoHandler) (answer format.Answer) {
	if strings.HasPrefix(q.Path, "/repos/") {
		name := strings.ToLower(q.Vars[0] + "/" + q.Vars[1])
		if name == movedName {
			return a.redirectMoved(q)
		}
		q.Parent, q.Vars = a.world.Kinds["repos"].Find(name), q.Vars[2:]
	} else {
		for _, r := range a.world.Kinds["repos"].Rows() {
			if r.Text("id") == q.Vars[0] {
				q.Parent = r
			}
		}
		q.Vars = q.Vars[1:]
	}
	if q.Parent == nil {
		return a.refusal(http.StatusNotFound)
	}
	var f fields
	if q.Method != http.MethodGet && q.Method != http.MethodDelete && f.read(q.Body, suffix) != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON", "")
	}
	if kind != "" {
		if q.Row = a.record(q.Parent, kind, q.Vars[0]); q.Row == nil {
			return a.refusal(http.StatusNotFound)
		}
	}
	q.Path = "/repositories/" + q.Parent.Text("id") + suffix // the links to other pages of a list contain this path
	for _, part := range q.Vars {
		q.Path = strings.Replace(q.Path, "*", part, 1)
	}
	return do(q, &f)
}

// record returns a record of a kind by its name in paths of the repository. It returns nil if there is none.
func (a *API) record(repo *table.Row, kind, name string) *table.Row {
	if kind == "labels" {
		name = strings.ToLower(name)
	}
	if r := a.world.Kinds[kind].Find(fmt.Sprintf(idFormats[kind], repo.ID, name)); r != nil && r.Text("repo") == repo.ID {
		return r
	}
	return nil
}

// redirectMoved redirects from the former name of a repository to its id.
func (a *API) redirectMoved(q *table.Request) format.Answer {
	rest := strings.SplitN(q.Path, "/", 5)
	to := q.BaseURL + "/repositories/" + a.world.Kinds["repos"].Find(plan().Repositories[1].Name).Text("id")
	if len(rest) == 5 {
		to += "/" + rest[4]
	}
	if query := q.Query.Encode(); query != "" {
		to += "?" + query
	}
	answer := format.Answer{Status: http.StatusMovedPermanently, Header: map[string]string{"Location": to}}
	if q.Method != http.MethodGet {
		answer.Status = http.StatusTemporaryRedirect
	}
	answer.Body = []byte(`{"message":"Moved Permanently","url":` + strconv.Quote(to) +
		`,"documentation_url":"https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api#follow-redirects"}`)
	return answer
}
