// Writes: issues, comments and labels made, changed and deleted.

package github

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

// writer answers what changes records.
type writer struct{ *API }

// fields are what a write of an issue, a comment or a label may have.
type fields struct {
	Title       *string   `json:"title"`
	Body        *string   `json:"body"`
	State       *string   `json:"state"`
	StateReason *string   `json:"state_reason"`
	Labels      *[]string `json:"labels"`
	Assignees   *[]string `json:"assignees"`
	Name        *string   `json:"name"`
	Color       *string   `json:"color"`
	Description *string   `json:"description"`
}

// read reads the JSON of a write; a word that it does not know it leaves out, as
// GitHub does.
func read(q *table.Request) (f fields, refused *format.Answer) {
	if err := json.Unmarshal(q.Body, &f); err != nil {
		a := refuse(http.StatusBadRequest, "Problems parsing JSON", "")
		return f, &a
	}
	return f, nil
}

// created is an answer with 201 and the address of the record.
func created(q *table.Request, answer format.Answer, path string) format.Answer {
	answer.Status = http.StatusCreated
	return with(answer, "Location", q.Here+path)
}

// values are what the fields change of an issue. The caller holds Mu.
func (a writer) values(repo string, f *fields, now int64) (table.Values, *format.Answer) {
	v := table.Values{"updated": table.Stamp(now)}
	if f.Title != nil {
		v["title"] = *f.Title
	}
	if f.Body != nil {
		v["body"] = *f.Body
	}
	if f.Labels != nil {
		v["labels"] = a.labelled(repo, *f.Labels)
	}
	if f.Assignees != nil {
		who := []table.Part{}
		for _, login := range *f.Assignees {
			if p, known := a.user(login).(table.Part); known {
				who = append(who, p)
			}
		}
		v["assignees"], v["assignee"] = who, nil
		if len(who) > 0 {
			v["assignee"] = who[0]
		}
	}
	if f.State == nil {
		return v, nil
	}
	switch v["state"] = *f.State; *f.State {
	case "closed":
		v["closed"], v["state_reason"] = table.Stamp(now), "completed"
		if f.StateReason != nil {
			v["state_reason"] = *f.StateReason
		}
	case "open":
		v["closed"], v["state_reason"] = table.Stamp(0), "reopened"
	default:
		refused := invalid("Issue", "state", "invalid")
		return nil, &refused
	}
	return v, nil
}

func (a writer) createIssue(q *table.Request, repo *table.Row, _ []string) format.Answer {
	f, refused := read(q)
	if refused != nil {
		return *refused
	}
	if f.Title == nil || *f.Title == "" {
		return invalid("Issue", "title", "missing_field")
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	v, refused := a.values(repo.ID, &f, a.Clock())
	if refused != nil {
		return *refused
	}
	v["created"], v["user"], v["login"] = v["updated"], a.user(a.Account), a.Account
	r := a.add(repo.ID, v)
	return created(q, a.issueAlone(q, r), "/repos/"+repo.ID+"/issues/"+r.Text("number"))
}

func (a writer) updateIssue(q *table.Request, repo *table.Row, vars []string) format.Answer {
	f, refused := read(q)
	if refused != nil {
		return *refused
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	r := a.Kinds["issues"].Find(repo.ID + "#" + vars[0])
	if r == nil {
		return a.Refuse(http.StatusNotFound)
	}
	v, refused := a.values(repo.ID, &f, a.Clock())
	if refused != nil {
		return *refused
	}
	r.V = r.V.With(v)
	return a.issueAlone(q, r)
}

func (a writer) createComment(q *table.Request, repo *table.Row, vars []string) format.Answer {
	f, refused := read(q)
	if refused != nil {
		return *refused
	}
	if f.Body == nil || *f.Body == "" {
		return invalid("IssueComment", "body", "missing_field")
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	issue := a.Kinds["issues"].Find(repo.ID + "#" + vars[0])
	if issue == nil {
		return a.Refuse(http.StatusNotFound)
	}
	r := a.comment(issue, a.Account, *f.Body, a.Clock())
	return created(q, a.show(q, "comment", r), "/repos/"+repo.ID+"/issues/comments/"+r.ID)
}

func (a writer) updateComment(q *table.Request, repo *table.Row, vars []string) format.Answer {
	f, refused := read(q)
	if refused != nil {
		return *refused
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	r := a.of(repo, "comments", vars[0])
	if r == nil {
		return a.Refuse(http.StatusNotFound)
	}
	if f.Body == nil || *f.Body == "" {
		return invalid("IssueComment", "body", "missing_field")
	}
	r.V = r.V.With(table.Values{"body": *f.Body, "updated": table.Stamp(a.Clock())})
	return a.show(q, "comment", r)
}

func (a writer) deleteComment(_ *table.Request, repo *table.Row, vars []string) format.Answer {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	r := a.of(repo, "comments", vars[0])
	if r == nil {
		return a.Refuse(http.StatusNotFound)
	}
	a.uncount(r)
	a.Kinds["comments"].Delete(r.ID)
	return format.Answer{Status: http.StatusNoContent}
}

// uncount lowers the number of comments of a comment's issue.
func (a writer) uncount(comment *table.Row) {
	if issue := a.Kinds["issues"].Find(comment.Text("repo") + "#" + comment.Text("number")); issue != nil {
		issue.V = issue.V.With(table.Values{"comments": issue.Number("comments") - 1})
	}
}

func (a writer) addLabels(q *table.Request, repo *table.Row, vars []string) format.Answer {
	var f fields
	if json.Unmarshal(q.Body, &f.Labels) != nil { // the names alone are taken, too
		var refused *format.Answer
		if f, refused = read(q); refused != nil {
			return *refused
		}
	}
	if f.Labels == nil {
		return invalid("Label", "labels", "missing_field")
	}
	a.Mu.Lock()
	r := a.Kinds["issues"].Find(repo.ID + "#" + vars[0])
	if r == nil {
		a.Mu.Unlock()
		return a.Refuse(http.StatusNotFound)
	}
	have := slices.Clone(r.V["labels"].([]table.Part))
	for _, p := range a.labelled(repo.ID, *f.Labels) {
		if !hasLabels(r, []string{p.V["name"].(string)}) {
			have = append(have, p)
		}
	}
	r.V = r.V.With(table.Values{"labels": have, "updated": table.Stamp(a.Clock())})
	a.Mu.Unlock()
	return a.labelsOfIssue(q, repo, vars)
}

func (a writer) createLabel(q *table.Request, repo *table.Row, _ []string) format.Answer {
	f, refused := read(q)
	if refused != nil {
		return *refused
	}
	if f.Name == nil || *f.Name == "" {
		return invalid("Label", "name", "missing_field")
	}
	color, about := "ededed", ""
	if f.Color != nil {
		color = *f.Color
	}
	if len(color) != 6 || strings.Trim(strings.ToLower(color), "0123456789abcdef") != "" {
		return invalid("Label", "color", "invalid")
	}
	if f.Description != nil {
		about = *f.Description
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if a.Kinds["labels"].Find(repo.ID+"/labels/"+strings.ToLower(*f.Name)) != nil {
		return invalid("Label", "name", "already_exists")
	}
	r := a.label(repo.ID, *f.Name, color, about, int64(len(a.Kinds["labels"].Rows())), false)
	return created(q, a.show(q, "label", r), "/repos/"+repo.ID+"/labels/"+r.Text("path"))
}

func (a writer) deleteLabel(_ *table.Request, repo *table.Row, vars []string) format.Answer {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if !a.Kinds["labels"].Delete(repo.ID + "/labels/" + strings.ToLower(vars[0])) {
		return a.Refuse(http.StatusNotFound)
	}
	for _, issue := range a.Kinds["issues"].Rows() {
		if issue.Text("repo") == repo.ID && hasLabels(issue, vars[:1]) {
			issue.V = issue.V.With(table.Values{"labels": slices.DeleteFunc(slices.Clone(issue.V["labels"].([]table.Part)), func(p table.Part) bool {
				return strings.EqualFold(p.V["name"].(string), vars[0])
			})})
		}
	}
	return format.Answer{Status: http.StatusNoContent}
}

// edit makes a change from outside: the title, body or state of an issue, the body
// of a comment.
func (a writer) edit(kind string, r *table.Row, set table.Values) (table.Values, error) {
	raw, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	var f fields
	if err := format.Strict(raw, &f); err != nil {
		return nil, err
	}
	if kind != "issues" && kind != "comments" {
		return nil, fmt.Errorf("only issues and comments are changed from outside")
	}
	v, refused := a.values(r.Text("repo"), &f, a.Clock())
	if refused != nil {
		return nil, fmt.Errorf("%s", refused.Body)
	}
	return v, nil
}
