// Lists: filters, order, pages and their links.

package github

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// Pages: what GitHub takes when nothing is asked, and at most.
const (
	usualPage = 30
	maxPage   = 100
)

// cut is the page of rows that is asked for, and its Link header; what is no
// number counts as the usual. path is where the links lead.
func cut(q *table.Request, path string, rows []*table.Row) ([]*table.Row, string) {
	number := func(name string, usual, most int) int {
		n, err := strconv.Atoi(q.Query.Get(name))
		if err != nil || n < 1 {
			return usual
		}
		return min(n, most)
	}
	size, page := number("per_page", usualPage, maxPage), number("page", 1, 1<<30)
	last := max((len(rows)+size-1)/size, 1)
	var links []string
	if page > 1 {
		links = append(links, link(q.Here, path, q.Query, min(page-1, last), "prev"))
	}
	if page < last {
		links = append(links, link(q.Here, path, q.Query, page+1, "next"), link(q.Here, path, q.Query, last, "last"))
	}
	if page > 1 {
		links = append(links, link(q.Here, path, q.Query, 1, "first"))
	}
	from := min((page-1)*size, len(rows))
	return rows[from:min(from+size, len(rows))], strings.Join(links, ", ")
}

// list answers with a page of rows as a template shows them.
func (a *API) list(q *table.Request, path, shape string, rows []*table.Row) format.Answer {
	rows, links := cut(q, path, rows)
	parts := make([]table.Part, len(rows))
	for i, r := range rows {
		parts[i] = a.part(shape, r, q)
	}
	answer := format.Answer{Status: http.StatusOK, Body: table.AppendList(nil, parts, q.Here)}
	if links != "" {
		answer = with(answer, "Link", links)
	}
	return answer
}

// part is a record as a template shows it, with the texts that the media type asks
// for: application/vnd.github.full+json has both, html and text one.
func (a *API) part(shape string, r *table.Row, q *table.Request) table.Part {
	v := r.V
	accept, more := q.Header.Get("Accept"), table.Values{}
	body, hasBody := v["body"].(string)
	full := strings.Contains(accept, ".full+json")
	if hasBody && (full || strings.Contains(accept, ".html+json")) {
		more["body_html"] = "<p dir=\"auto\">" + escape.Replace(body) + "</p>"
	}
	if hasBody && (full || strings.Contains(accept, ".text+json")) {
		more["body_text"] = body
	}
	if len(more) > 0 {
		v = v.With(more)
	}
	return table.Part{T: a.shapes[shape], V: v}
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// show answers with one record, or 404 for none.
func (a *API) show(q *table.Request, shape string, r *table.Row) format.Answer {
	if r == nil {
		return a.Refuse(http.StatusNotFound)
	}
	p := a.part(shape, r, q)
	return format.Answer{Status: http.StatusOK, Body: p.T.Append(nil, p.V, q.Here)}
}

// below is a path below the repository's number, where its lists' links lead.
func below(repo *table.Row, path string) string { return "/repositories/" + repo.Text("id") + path }

// order reads sort and direction; usual is the order without.
func order(q *table.Request, usual string, known map[string]string) (by string, ascending bool) {
	by = known[usual]
	if asked, ok := known[q.Query.Get("sort")]; ok {
		by = asked
	}
	return by, q.Query.Get("direction") == "asc"
}

// since reads a time; the zero time narrows nothing.
func since(q *table.Request, name string) (int64, bool) {
	text := q.Query.Get(name)
	if text == "" {
		return 0, true
	}
	at, err := time.Parse(time.RFC3339, text)
	return at.Unix(), err == nil
}

// listIssues is the list of a repository's issues, pull requests among them.
func (a *API) listIssues(q *table.Request, repo *table.Row, _ []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	from, ok := since(q, "since")
	state := q.Query.Get("state")
	if state == "" {
		state = "open"
	}
	if !ok || !slices.Contains([]string{"open", "closed", "all"}, state) {
		return invalid("Issue", map[bool]string{true: "state", false: "since"}[ok], "invalid")
	}
	var wanted []string
	if asked := q.Query.Get("labels"); asked != "" {
		wanted = strings.Split(asked, ",")
	}
	by, ascending := order(q, "created", map[string]string{"created": "created", "updated": "updated", "comments": "comments"})
	rows := a.Kinds["issues"].Select(func(r *table.Row) bool {
		return r.Text("repo") == repo.ID && (state == "all" || r.Text("state") == state) && r.Number("updated") >= from &&
			hasLabels(r, wanted) && isPerson(q.Query.Get("creator"), r.V["login"]) && isAssigned(q.Query.Get("assignee"), r) &&
			inMilestone(q.Query.Get("milestone"), r)
	}, by, ascending)
	return a.list(q, below(repo, "/issues"), "issue", rows)
}

// hasLabels tells whether an issue has all of these labels.
func hasLabels(r *table.Row, wanted []string) bool {
	parts, _ := r.V["labels"].([]table.Part)
	for _, name := range wanted {
		if !slices.ContainsFunc(parts, func(p table.Part) bool {
			have, _ := p.V["name"].(string)
			return strings.EqualFold(have, strings.TrimSpace(name))
		}) {
			return false
		}
	}
	return true
}

func isPerson(asked string, login any) bool { return asked == "" || login == asked }

// isAssigned reads assignee: a login, none or * for anybody.
func isAssigned(asked string, r *table.Row) bool {
	p, assigned := r.V["assignee"].(table.Part)
	switch asked {
	case "":
		return true
	case "none":
		return !assigned
	case "*":
		return assigned
	}
	return assigned && p.V["login"] == asked
}

// inMilestone reads milestone: a number, none or * for any.
func inMilestone(asked string, r *table.Row) bool {
	p, there := r.V["milestone"].(table.Part)
	switch asked {
	case "":
		return true
	case "none":
		return !there
	case "*":
		return there
	}
	number, _ := p.V["number"].(int64)
	return there && strconv.FormatInt(number, 10) == asked
}

// listPulls is the list of a repository's pull requests.
func (a *API) listPulls(q *table.Request, repo *table.Row, _ []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	state := q.Query.Get("state")
	if state == "" {
		state = "open"
	}
	by, ascending := order(q, "created", map[string]string{"created": "created", "updated": "updated", "popularity": "comments"})
	rows := a.Kinds["issues"].Select(func(r *table.Row) bool {
		return r.Text("repo") == repo.ID && r.V["pull_id"] != nil && (state == "all" || r.Text("state") == state) &&
			isBranch(q.Query.Get("head"), r.V["head"]) && isBranch(q.Query.Get("base"), r.V["base"])
	}, by, ascending)
	return a.list(q, below(repo, "/pulls"), "pull", rows)
}

// isBranch compares a branch with REF or OWNER:REF.
func isBranch(asked string, branch any) bool {
	p, _ := branch.(table.Part)
	ref, _ := p.V["ref"].(string)
	login, _ := p.V["login"].(string)
	return asked == "" || asked == ref || asked == login+":"+ref
}

// listComments is the list of an issue's comments, the oldest first, or of those of
// a whole repository.
func (a *API) listComments(q *table.Request, repo *table.Row, vars []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	from, ok := since(q, "since")
	if !ok {
		return invalid("IssueComment", "since", "invalid")
	}
	of, by, ascending, path := "", "", true, "/issues/comments"
	if len(vars) == 1 {
		of, path = vars[0], "/issues/"+vars[0]+"/comments"
		if a.Kinds["issues"].Find(repo.ID+"#"+of) == nil {
			return a.Refuse(http.StatusNotFound)
		}
	} else if by = q.Query.Get("sort"); by == "created" || by == "updated" {
		ascending = q.Query.Get("direction") != "desc"
	} else {
		by = ""
	}
	rows := a.Kinds["comments"].Select(func(r *table.Row) bool {
		return r.Text("repo") == repo.ID && (of == "" || r.Text("number") == of) && r.Number("updated") >= from
	}, by, ascending)
	return a.list(q, below(repo, path), "comment", rows)
}

// listLabels is the list of a repository's labels, in the order of their names.
func (a *API) listLabels(q *table.Request, repo *table.Row, _ []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	rows := a.Kinds["labels"].Select(a.in(repo), "", true)
	slices.SortStableFunc(rows, func(x, y *table.Row) int {
		return strings.Compare(strings.ToLower(x.Text("name")), strings.ToLower(y.Text("name")))
	})
	return a.list(q, below(repo, "/labels"), "label", rows)
}

// in passes the records of a repository.
func (a *API) in(repo *table.Row) func(*table.Row) bool {
	return func(r *table.Row) bool { return r.Text("repo") == repo.ID }
}

// listCommits is the list of a repository's commits.
func (a *API) listCommits(q *table.Request, repo *table.Row, _ []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	from, ok := since(q, "since")
	until, fine := since(q, "until")
	if !ok || !fine {
		return invalid("Commit", "since", "invalid")
	}
	rows := a.Kinds["commits"].Select(func(r *table.Row) bool {
		at := r.Number("created")
		return r.Text("repo") == repo.ID && at >= from && (until == 0 || at <= until) && isPerson(q.Query.Get("author"), r.V["login"])
	}, "", false)
	return a.list(q, below(repo, "/commits"), "commit", rows)
}

// listReleases is the list of a repository's releases.
func (a *API) listReleases(q *table.Request, repo *table.Row, _ []string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	return a.list(q, below(repo, "/releases"), "release", a.Kinds["releases"].Select(a.in(repo), "", false))
}

// myRepos is the list of all repositories: those of the account and of its
// organization, in the order of their names.
func (a *API) myRepos(q *table.Request) format.Answer { return a.repos(q, "") }

// reposOf is the list of the repositories of a person or an organization.
func (a *API) reposOf(q *table.Request) format.Answer {
	a.Mu.RLock()
	owner := a.Kinds["users"].Find(q.Vars[0])
	a.Mu.RUnlock()
	if owner == nil || strings.HasPrefix(q.Path, "/orgs/") && owner.Text("type") != "Organization" {
		return a.Refuse(http.StatusNotFound)
	}
	return a.repos(q, q.Vars[0]+"/")
}

func (a *API) repos(q *table.Request, prefix string) format.Answer {
	a.Mu.RLock()
	defer a.Mu.RUnlock()
	rows := a.Kinds["repos"].Select(func(r *table.Row) bool { return strings.HasPrefix(r.ID, prefix) }, "", false)
	direction := q.Query.Get("direction")
	if by := q.Query.Get("sort"); slices.Contains([]string{"created", "updated", "pushed"}, by) {
		slices.SortStableFunc(rows, func(x, y *table.Row) int { return cmp.Compare(y.Number(by), x.Number(by)) })
		direction = cmp.Or(direction, "desc")
	} else {
		slices.SortFunc(rows, func(x, y *table.Row) int { return strings.Compare(y.ID, x.ID) })
	}
	if direction != "desc" {
		slices.Reverse(rows)
	}
	for i, r := range rows {
		rows[i] = a.counted(r)
	}
	return a.list(q, q.Path, "repository", rows)
}
