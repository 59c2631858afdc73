// Lists: filters, order, pages and Link headers.

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

// The default and the maximum of per_page, the number of records on a page.
const (
	defaultPageSize = 30
	maxPageSize     = 100
)

// selectPage returns the rows on the requested page, and the Link header of the page. If per_page or page is not
// valid, it uses the default.
func selectPage(q *table.Request, rows []*table.Row) ([]*table.Row, string) {
	number := func(name string, byDefault, limit int) int {
		n, err := strconv.Atoi(q.Query.Get(name))
		if err != nil || n < 1 {
			return byDefault
		}
		return min(n, limit)
	}
	size, page := number("per_page", defaultPageSize, maxPageSize), number("page", 1, 1<<30)
	last := max((len(rows)+size-1)/size, 1)
	var links []string
	link := func(page int, rel string) {
		q.Query.Set("page", strconv.Itoa(page))
		links = append(links, "<"+q.BaseURL+q.Path+"?"+q.Query.Encode()+`>; rel="`+rel+`"`)
	}
	if page > 1 {
		link(min(page-1, last), "prev")
	}
	if page < last {
		link(page+1, "next")
		link(last, "last")
	}
	if page > 1 {
		link(1, "first")
	}
	from := min((page-1)*size, len(rows))
	return rows[from:min(from+size, len(rows))], strings.Join(links, ", ")
}

// list answers with the requested page of a list. shape is the template for each row.
func (a *API) list(q *table.Request, shape string, rows []*table.Row) format.Answer {
	return answerPage(q, rows, func(r *table.Row) table.Part { return a.part(shape, r, q) }, func(parts []table.Part) any { return parts })
}

// answerPage answers with the requested page of a list and its links. show returns a row as JSON, and whole returns
// the body with the rows of the page.
func answerPage(q *table.Request, rows []*table.Row, show func(*table.Row) table.Part, whole func([]table.Part) any) format.Answer {
	rows, links := selectPage(q, rows)
	answer := table.Show(whole(table.Parts(rows, show)), q.BaseURL)
	if links != "" {
		answer = withHeader(answer, "Link", links)
	}
	return answer
}

// part returns a record with its template. The header Accept may request a rendered body: html+json adds body_html,
// text+json adds body_text, and full+json adds both.
func (a *API) part(shape string, r *table.Row, q *table.Request) table.Part {
	v := r.Values
	accept, more := q.Header.Get("Accept"), table.Values{}
	body, hasBody := v["body"].(string)
	full := strings.Contains(accept, ".full+json")
	if hasBody && (full || strings.Contains(accept, ".html+json")) {
		more["body_html"] = "<p dir=\"auto\">" + htmlEscaper.Replace(body) + "</p>"
	}
	if hasBody && (full || strings.Contains(accept, ".text+json")) {
		more["body_text"] = body
	}
	if len(more) > 0 {
		v = v.With(more)
	}
	return table.Part{Template: a.builder.shapes[shape], Values: v}
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// show answers with one record. If r is nil, it answers 404.
func (a *API) show(q *table.Request, shape string, r *table.Row) format.Answer {
	if r == nil {
		return a.refusal(http.StatusNotFound)
	}
	return table.Show(a.part(shape, r, q), q.BaseURL)
}

// order returns the name of the value by which the parameter sort orders a list. comments is how the list's parameter
// names the number of comments.
func order(q *table.Request, comments string) (by string) {
	switch sort := q.Query.Get("sort"); sort {
	case "updated":
		return sort
	case comments:
		return "comments"
	}
	return "created"
}

// readTime parses a parameter with a time, in Unix seconds. It returns 0 if the parameter is missing, and false if it
// is not valid.
func readTime(q *table.Request, name string) (int64, bool) {
	text := q.Query.Get(name)
	if text == "" {
		return 0, true
	}
	at, err := time.Parse(time.RFC3339, text)
	return at.Unix(), err == nil
}

// listIssues answers with a list of issues in a repository, which includes pull requests.
func (a *API) listIssues(q *table.Request, _ *fields) format.Answer {
	from, ok := readTime(q, "since")
	state := cmp.Or(q.Query.Get("state"), "open")
	if !ok || !slices.Contains([]string{"open", "closed", "all"}, state) {
		return newInvalid("Issue", map[bool]string{true: "state", false: "since"}[ok], "invalid")
	}
	var wanted []string
	if labels := q.Query.Get("labels"); labels != "" {
		wanted = strings.Split(labels, ",")
	}
	rows := a.world.Kinds["issues"].Select(func(r *table.Row) bool {
		return r.Text("repo") == q.Parent.ID && (state == "all" || r.Text("state") == state) && r.Number("updated") >= from &&
			hasLabels(r, wanted) && isPerson(q.Query.Get("creator"), r.Values["login"]) &&
			isChosen(q.Query.Get("assignee"), r, "assignee", "login") &&
			isChosen(q.Query.Get("milestone"), r, "milestone", "number")
	}, order(q, "comments"), q.Query.Get("direction") == "asc")
	return a.list(q, "issue", rows)
}

// hasLabels reports whether an issue has all of these labels.
func hasLabels(r *table.Row, wanted []string) bool {
	parts, _ := r.Values["labels"].([]table.Part)
	for _, name := range wanted {
		if !slices.ContainsFunc(parts, func(p table.Part) bool {
			have, _ := p.Values["name"].(string)
			return strings.EqualFold(have, strings.TrimSpace(name))
		}) {
			return false
		}
	}
	return true
}

func isPerson(wanted string, login any) bool { return wanted == "" || login == wanted }

// isChosen reports whether an issue matches the filter assignee or milestone. wanted is "none", or "*" for any, or a
// text. The issue's value name must have the text in its field member.
func isChosen(wanted string, r *table.Row, name, member string) bool {
	p, there := r.Values[name].(table.Part)
	switch wanted {
	case "":
		return true
	case "none":
		return !there
	case "*":
		return there
	}
	return there && (&table.Row{Values: p.Values}).Text(member) == wanted
}

// listPulls answers with a list of pull requests in a repository.
func (a *API) listPulls(q *table.Request, _ *fields) format.Answer {
	state := cmp.Or(q.Query.Get("state"), "open")
	rows := a.world.Kinds["issues"].Select(func(r *table.Row) bool {
		return r.Text("repo") == q.Parent.ID && r.Values["pull_id"] != nil && (state == "all" || r.Text("state") == state) &&
			isBranch(q.Query.Get("head"), r.Values["head"]) && isBranch(q.Query.Get("base"), r.Values["base"])
	}, order(q, "popularity"), q.Query.Get("direction") == "asc")
	return a.list(q, "pull", rows)
}

// isBranch reports whether a branch is the wanted one. wanted is REF or OWNER:REF, or "" for any branch.
func isBranch(wanted string, branch any) bool {
	p, _ := branch.(table.Part)
	ref, _ := p.Values["ref"].(string)
	login, _ := p.Values["login"].(string)
	return wanted == "" || wanted == ref || wanted == login+":"+ref
}

// listComments answers with a list of comments: those of an issue, oldest first, or those of a repository.
func (a *API) listComments(q *table.Request, _ *fields) format.Answer {
	from, ok := readTime(q, "since")
	if !ok {
		return newInvalid("IssueComment", "since", "invalid")
	}
	of, by, ascending := "", "", true
	if len(q.Vars) == 1 {
		if of = q.Vars[0]; a.record(q.Parent, "issues", of) == nil {
			return a.refusal(http.StatusNotFound)
		}
	} else if by = q.Query.Get("sort"); by == "created" || by == "updated" {
		ascending = q.Query.Get("direction") != "desc"
	} else {
		by = ""
	}
	rows := a.world.Kinds["comments"].Select(func(r *table.Row) bool {
		return r.Text("repo") == q.Parent.ID && (of == "" || r.Text("number") == of) && r.Number("updated") >= from
	}, by, ascending)
	return a.list(q, "comment", rows)
}

// listLabels answers with a list of labels in a repository, ordered by name.
func (a *API) listLabels(q *table.Request, _ *fields) format.Answer {
	rows := a.world.Kinds["labels"].Select(matchRepo(q.Parent), "", true)
	slices.SortStableFunc(rows, func(x, y *table.Row) int {
		return strings.Compare(strings.ToLower(x.Text("name")), strings.ToLower(y.Text("name")))
	})
	return a.list(q, "label", rows)
}

// matchRepo returns a function that reports whether a record belongs to a repository.
func matchRepo(repo *table.Row) func(*table.Row) bool {
	return func(r *table.Row) bool { return r.Text("repo") == repo.ID }
}

// listCommits answers with a list of commits in a repository.
func (a *API) listCommits(q *table.Request, _ *fields) format.Answer {
	from, ok := readTime(q, "since")
	until, fine := readTime(q, "until")
	if !ok || !fine {
		return newInvalid("Commit", "since", "invalid")
	}
	rows := a.world.Kinds["commits"].Select(func(r *table.Row) bool {
		at := r.Number("created")
		return r.Text("repo") == q.Parent.ID && at >= from && (until == 0 || at <= until) && isPerson(q.Query.Get("author"), r.Values["login"])
	}, "", false)
	return a.list(q, "commit", rows)
}

// listReleases answers with a list of releases in a repository.
func (a *API) listReleases(q *table.Request, _ *fields) format.Answer {
	return a.list(q, "release", a.world.Kinds["releases"].Select(matchRepo(q.Parent), "", false))
}

// listRepos answers with a list of all repositories, or of those of a user or an organization. Unless the parameter
// sort is given, they are ordered by name.
func (a *API) listRepos(q *table.Request) format.Answer {
	prefix := ""
	if len(q.Vars) > 0 {
		owner := a.world.Kinds["users"].Find(q.Vars[0])
		if owner == nil || strings.HasPrefix(q.Path, "/orgs/") && owner.Text("type") != "Organization" {
			return a.refusal(http.StatusNotFound)
		}
		prefix = q.Vars[0] + "/"
	}
	rows := a.world.Kinds["repos"].Select(func(r *table.Row) bool { return strings.HasPrefix(r.ID, prefix) }, "", false)
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
		rows[i] = a.withOpenIssues(r)
	}
	return a.list(q, "repository", rows)
}
