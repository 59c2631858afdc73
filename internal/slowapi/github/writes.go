// Handlers that create, change and delete issues, comments and labels.

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

// fields are the fields in the body of a write. A field is nil if the body does not have it.
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

// read parses the JSON body of a write to a path below a repository. Like GitHub, it ignores fields that it does not
// know. For the labels of an issue, the body may also be an array of names.
func (f *fields) read(body []byte, suffix string) error {
	if suffix == "/issues/*/labels" && json.Unmarshal(body, &f.Labels) == nil {
		return nil
	}
	*f = fields{}
	return json.Unmarshal(body, f)
}

// withLocation returns the answer with the status 201 and a Location header, which has the URL of the new record.
func withLocation(q *table.Request, answer format.Answer, path string) format.Answer {
	answer.Status = http.StatusCreated
	return withHeader(answer, "Location", q.BaseURL+path)
}

// changedValues returns the values that the fields change in an issue. If a field is not valid, it returns an error
// response. The caller holds Mu.
func (a *API) changedValues(repo string, f *fields, now int64) (table.Values, *format.Answer) {
	v := table.Values{"updated": table.Stamp(now)}
	if f.Title != nil {
		v["title"] = *f.Title
	}
	if f.Body != nil {
		v["body"] = *f.Body
	}
	if f.Labels != nil {
		v["labels"] = a.builder.labelParts(repo, *f.Labels)
	}
	if f.Assignees != nil {
		who := []table.Part{}
		for _, login := range *f.Assignees {
			if p, known := a.builder.user(login).(table.Part); known {
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
		return nil, new(newInvalid("Issue", "state", "invalid"))
	}
	return v, nil
}

func (a *API) createIssue(q *table.Request, f *fields) format.Answer {
	if f.Title == nil || *f.Title == "" {
		return newInvalid("Issue", "title", "missing_field")
	}
	v, refused := a.changedValues(q.Parent.ID, f, a.world.Clock())
	if refused != nil {
		return *refused
	}
	v["created"], v["user"], v["login"] = v["updated"], a.builder.user(a.world.Account), a.world.Account
	q.Row = a.builder.addIssue(q.Parent.ID, v)
	return withLocation(q, a.showIssue(q, f), "/repos/"+q.Parent.ID+"/issues/"+q.Row.Text("number"))
}

func (a *API) updateIssue(q *table.Request, f *fields) format.Answer {
	v, refused := a.changedValues(q.Parent.ID, f, a.world.Clock())
	if refused != nil {
		return *refused
	}
	q.Row.Values = q.Row.Values.With(v)
	return a.showIssue(q, f)
}

func (a *API) createComment(q *table.Request, f *fields) format.Answer {
	if f.Body == nil || *f.Body == "" {
		return newInvalid("IssueComment", "body", "missing_field")
	}
	issue := a.record(q.Parent, "issues", q.Vars[0])
	if issue == nil {
		return a.refusal(http.StatusNotFound)
	}
	r := a.builder.addComment(issue, a.world.Account, *f.Body, a.world.Clock())
	return withLocation(q, a.show(q, "comment", r), "/repos/"+q.Parent.ID+"/issues/comments/"+r.ID)
}

func (a *API) updateComment(q *table.Request, f *fields) format.Answer {
	if f.Body == nil || *f.Body == "" {
		return newInvalid("IssueComment", "body", "missing_field")
	}
	q.Row.Values = q.Row.Values.With(table.Values{"body": *f.Body, "updated": table.Stamp(a.world.Clock())})
	return a.show(q, "comment", q.Row)
}

func (a *API) deleteComment(q *table.Request, _ *fields) format.Answer {
	if issue := a.record(q.Parent, "issues", q.Row.Text("number")); issue != nil {
		issue.Values = issue.Values.With(table.Values{"comments": issue.Number("comments") - 1})
	}
	a.world.Kinds["comments"].Delete(q.Row)
	return format.Answer{Status: http.StatusNoContent}
}

// addLabels adds labels to an issue and answers with all labels of the issue.
func (a *API) addLabels(q *table.Request, f *fields) format.Answer {
	if f.Labels == nil {
		return newInvalid("Label", "labels", "missing_field")
	}
	r := a.record(q.Parent, "issues", q.Vars[0])
	if r == nil {
		return a.refusal(http.StatusNotFound)
	}
	have := slices.Clone(r.Values["labels"].([]table.Part))
	for _, p := range a.builder.labelParts(q.Parent.ID, *f.Labels) {
		if !hasLabels(r, []string{p.Values["name"].(string)}) {
			have = append(have, p)
		}
	}
	r.Values = r.Values.With(table.Values{"labels": have, "updated": table.Stamp(a.world.Clock())})
	return a.listIssueLabels(q, f)
}

// createLabel adds a label to a repository. Its default color is ededed.
func (a *API) createLabel(q *table.Request, f *fields) format.Answer {
	if f.Name == nil || *f.Name == "" {
		return newInvalid("Label", "name", "missing_field")
	}
	color, about := "ededed", ""
	if f.Color != nil {
		color = *f.Color
	}
	if len(color) != 6 || strings.Trim(strings.ToLower(color), "0123456789abcdef") != "" {
		return newInvalid("Label", "color", "invalid")
	}
	if f.Description != nil {
		about = *f.Description
	}
	if a.record(q.Parent, "labels", *f.Name) != nil {
		return newInvalid("Label", "name", "already_exists")
	}
	r := a.builder.addLabel(q.Parent.ID, *f.Name, color, about, int64(len(a.world.Kinds["labels"].Rows())), false)
	return withLocation(q, a.show(q, "label", r), "/repos/"+q.Parent.ID+"/labels/"+r.Text("path"))
}

func (a *API) deleteLabel(q *table.Request, _ *fields) format.Answer {
	a.world.Kinds["labels"].Delete(q.Row)
	for _, issue := range a.world.Kinds["issues"].Rows() {
		if issue.Text("repo") == q.Parent.ID && hasLabels(issue, q.Vars) {
			labels := slices.Clone(issue.Values["labels"].([]table.Part))
			issue.Values = issue.Values.With(table.Values{"labels": slices.DeleteFunc(labels, func(p table.Part) bool {
				return strings.EqualFold(p.Values["name"].(string), q.Vars[0])
			})})
		}
	}
	return format.Answer{Status: http.StatusNoContent}
}

// readEdit returns the values of an issue or comment that POST /-/edit sets.
func (a *API) readEdit(kind string, r *table.Row, set table.Values) (table.Values, error) {
	raw, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	var f fields
	if err := format.DecodeStrict(raw, &f); err != nil {
		return nil, err
	}
	if kind != "issues" && kind != "comments" {
		return nil, fmt.Errorf("only issues and comments are changed from outside")
	}
	v, refused := a.changedValues(r.Text("repo"), &f, a.world.Clock())
	if refused != nil {
		return nil, fmt.Errorf("%s", refused.Body)
	}
	return v, nil
}
