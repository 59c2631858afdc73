// Routes: the paths of the API, and which records each shows.

package github

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// inRepo answers a request below the repository q.Of, with what a write has in f.
type inRepo = func(q *table.Request, f *fields) format.Answer

// keys are the ids of the records of a repository, made of its name and of what stands in a path.
var keys = map[string]string{
	"issues": "%s#%s", "comments": "%[2]s", "labels": "%s/labels/%s", "commits": "%s/commits/%s", "releases": "%[2]s",
}

// paths returns the routes of all records. Those of a repository are there twice, as at GitHub: by its
// name and by its number.
func (a *API) paths() table.Routes {
	get := func(do table.Handler) map[string]table.Handler { return map[string]table.Handler{http.MethodGet: do} }
	all := table.Routes{
		{Pattern: "/", Handlers: get(func(q *table.Request) format.Answer {
			return format.Answer{Status: http.StatusOK, Body: []byte(`{"current_user_url":"` + q.BaseURL + `/user"}`)}
		})},
		{Pattern: "/graphql", Handlers: map[string]table.Handler{http.MethodPost: a.graphQL}},
		{Pattern: "/user", Handlers: get(a.me)},
		{Pattern: "/users/*", Handlers: get(func(q *table.Request) format.Answer {
			return a.show(q, "public_user", a.world.Kinds["users"].Find(q.Vars[0]))
		})},
		{Pattern: "/rate_limit", Handlers: get(func(q *table.Request) format.Answer { return a.limits.show(q.Path) })},
		{Pattern: "/user/repos", List: true, Handlers: get(a.repos)},
		{Pattern: "/users/*/repos", List: true, Handlers: get(a.repos)},
		{Pattern: "/orgs/*/repos", List: true, Handlers: get(a.repos)},
		{Pattern: "/search/issues", List: true, Handlers: get(a.search)},
	}
	for _, one := range []struct {
		suffix string
		list   bool
		kind   string // of the record that the last star names, which must be there
		do     map[string]inRepo
	}{
		{"", false, "", map[string]inRepo{"GET": a.oneRepo}},
		{"/issues", true, "", map[string]inRepo{"GET": a.listIssues, "POST": a.createIssue}},
		{"/issues/comments", true, "", map[string]inRepo{"GET": a.listComments}},
		{"/issues/comments/*", false, "comments",
			map[string]inRepo{"GET": a.shows("comment"), "PATCH": a.updateComment, "DELETE": a.deleteComment}},
		{"/issues/*", false, "issues", map[string]inRepo{"GET": a.issueAlone, "PATCH": a.updateIssue}},
		{"/issues/*/comments", true, "", map[string]inRepo{"GET": a.listComments, "POST": a.createComment}},
		{"/issues/*/labels", true, "", map[string]inRepo{"GET": a.labelsOfIssue, "POST": a.addLabels}},
		{"/labels", true, "", map[string]inRepo{"GET": a.listLabels, "POST": a.createLabel}},
		{"/labels/*", false, "labels", map[string]inRepo{"GET": a.shows("label"), "DELETE": a.deleteLabel}},
		{"/pulls", true, "", map[string]inRepo{"GET": a.listPulls}},
		{"/pulls/*", false, "issues", map[string]inRepo{"GET": a.onePull}},
		{"/commits", true, "", map[string]inRepo{"GET": a.listCommits}},
		{"/commits/*", false, "commits", map[string]inRepo{"GET": a.oneCommit}},
		{"/releases", true, "", map[string]inRepo{"GET": a.listReleases}},
		{"/releases/*", false, "", map[string]inRepo{"GET": a.oneRelease}},
		{"/stats/contributors", true, "", map[string]inRepo{"GET": a.contributors}},
	} {
		do := map[string]table.Handler{}
		for method, answer := range one.do {
			do[method] = func(q *table.Request) format.Answer { return a.below(q, one.suffix, one.kind, answer) }
		}
		all = append(all, table.Route{Pattern: "/repos/*/*" + one.suffix, List: one.list, Handlers: do},
			table.Route{Pattern: "/repositories/*" + one.suffix, List: one.list, Handlers: do})
	}
	return all
}

// below finds the repository and the record of a path, and what a write sets. A name that
// the repository had before leads to its number.
func (a *API) below(q *table.Request, suffix, kind string, do inRepo) (answer format.Answer) {
	if strings.HasPrefix(q.Path, "/repos/") {
		name := strings.ToLower(q.Vars[0] + "/" + q.Vars[1])
		if name == movedName {
			return a.moved(q)
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
	q.Path = "/repositories/" + q.Parent.Text("id") + suffix // where the links of lists lead
	for _, part := range q.Vars {
		q.Path = strings.Replace(q.Path, "*", part, 1)
	}
	return do(q, &f)
}

// record returns the record of a kind that a path below a repository names; nil for none.
func (a *API) record(repo *table.Row, kind, name string) *table.Row {
	if kind == "labels" {
		name = strings.ToLower(name)
	}
	if r := a.world.Kinds[kind].Find(fmt.Sprintf(keys[kind], repo.ID, name)); r != nil && r.Text("repo") == repo.ID {
		return r
	}
	return nil
}

// moved leads from the name that a repository had before to its number.
func (a *API) moved(q *table.Request) format.Answer {
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
