// The page of the audit log. Its filters answer who has looked at what.

// Package trail shows the audit log to administrators.
package trail

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/audit"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// Path is the page of the audit log.
const Path = page.ControlPrefix + "audit"

// Routes returns the routes, which only administrators may use.
func Routes() []page.Route {
	const what = "read the audit log"
	return []page.Route{{Pattern: "GET " + Path, Handler: page.AdministratorHandler(what, serve)},
		{Pattern: "GET " + csvPath, Handler: page.AdministratorHandler(what, serveCSV)}}
}

// whatLog is the field What of audit entries for reads of the audit log itself.
const whatLog = "audit log"

// trailPage is the data of the template audit.html.
type trailPage struct {
	Form    form
	Asked   string // the question that the filters answer, such as "Who looked at this record?"
	Rows    []row
	CSV     string
	Older   string
	Newest  string
	Looked  *page.When // the time of the entry at which the search ran out of time; older entries may match too
	Figures audit.Stats
	Signed  *page.When
	Taken   *page.When // when the receiver of the log took its newest lines
}

// form has the values of the filter form.
type form struct {
	Who, Value, Record string
	Since, Until       string
	Actions            []page.Option
	Set                int
	Zone               string
}

// row is one audit entry as the page shows it.
type row struct {
	When      page.When
	Who, Role string
	By        string // who acted, if that was neither a person nor a program with a credential, such as the command line
	What      string // what was done, in words
	More      string // details of the action
	Of        string // the title of the kind to which the records belong
	Records   []page.Link
	Others    int // the number of records that the row does not link to
	Rows      int64
	Request   string
	Refused   bool
}

// maxRecords is the maximum number of records that the row of an entry links to.
const maxRecords = 3

// The names of the page's parameters.
const (
	paramWho    = "who"
	paramAction = "action"
	paramValue  = "value"
	paramRecord = "record"
	paramSince  = "since"
	paramUntil  = "until"
	paramBefore = "before"
)

var params = []string{paramWho, paramAction, paramValue, paramRecord, paramSince, paramUntil, paramBefore}

func readFilters(q *page.Exchange) (given url.Values, f audit.Filter, err error) {
	if q.V.Options.Trail == nil {
		return nil, f, page.NewNotFound("There is no audit log", "It is turned off in the settings (audit.off).", "/")
	}
	if given, err = url.ParseQuery(q.R.URL.RawQuery); err != nil {
		return nil, f, page.NewBadRequest("This address is not valid", "Start again from the newest entries.", nil)
	}
	for name := range given {
		if !slices.Contains(params, name) {
			return nil, f, page.NewUnknownWord("parameter", name, params, nil)
		}
	}
	f, err = filter(q, given)
	return given, f, err
}

// serve shows the newest audit entries that match the filters. It also writes an entry about this read of the log.
func serve(q *page.Exchange) error {
	given, f, err := readFilters(q)
	if err != nil {
		return err
	}
	if err := page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionAdminister, What: whatLog}); err != nil {
		return err
	}
	found, err := q.V.Options.Trail.Search(q.Ctx, f)
	if err != nil {
		return err
	}
	p := trailPage{Form: formOf(q, given), Asked: questionText(f), Figures: q.V.Options.Trail.Stats(),
		CSV: csvPath + strings.TrimPrefix(address(given, ""), Path)}
	if p.Figures.SignedAt != nil {
		p.Signed = q.Clock.Moment(*p.Figures.SignedAt)
	}
	if s := p.Figures.Sending; s != nil && s.TakenAt != nil {
		p.Taken = q.Clock.Moment(*s.TakenAt)
	}
	ended := map[string]bool{} // the ids of requests whose last entry has been shown, so that their earlier entries are left out
	for i := range found.Entries {
		e := &found.Entries[i]
		if e.Action == understudy.ActionExport && e.Request != "" {
			if ended[e.Request] && e.What == whatBegins {
				continue
			}
			ended[e.Request] = true
		}
		p.Rows = append(p.Rows, rowOf(q, e))
	}
	if f.Before != "" {
		p.Newest = address(given, "")
	}
	if found.Next != "" {
		p.Older = address(given, found.Next)
	}
	if !found.Looked.IsZero() {
		p.Looked = q.Clock.Moment(found.Looked)
	}
	return q.Render(http.StatusOK, "audit", "Audit log", p)
}

// address returns the address of the page with the same filters, beginning with the entry before.
func address(given url.Values, before string) string {
	next := url.Values{}
	for _, name := range params {
		if v := given.Get(name); v != "" && name != paramBefore {
			next.Set(name, v)
		}
	}
	if before != "" {
		next.Set(paramBefore, before)
	}
	if len(next) == 0 {
		return Path
	}
	return Path + "?" + next.Encode()
}

// filter returns the filters in an address as a filter of the audit log.
func filter(q *page.Exchange, given url.Values) (f audit.Filter, err error) {
	get := func(name string) string { return strings.TrimSpace(given.Get(name)) }
	f = audit.Filter{Caller: get(paramWho), Action: understudy.Action(get(paramAction)), Value: get(paramValue), ID: get(paramRecord),
		Before: get(paramBefore)}
	for _, bound := range []struct {
		name string
		to   *time.Time
	}{{paramSince, &f.Since}, {paramUntil, &f.Until}} {
		text := get(bound.name)
		if text == "" {
			continue
		}
		at, ok := page.ParseMoment(text, q.Clock.Zone)
		if !ok {
			return f, page.NewBadRequest("“"+understudy.Clip(text)+"” is not a time", "Write "+bound.name+" as 2026-06-01 or 2026-06-01T12:00.", nil)
		}
		*bound.to = at
	}
	if p := understudy.ParsePhone(f.Value); p.Digits != "" && !p.HasCountryCode && f.Value != "" && strings.Trim(f.Value, "0123456789") != "" {
		return f, page.NewBadRequest("“"+understudy.Clip(f.Value)+"” has no country code",
			"Write the whole number with + and the country code, like +15551234567.", nil)
	}
	return f, nil
}

func formOf(q *page.Exchange, given url.Values) form {
	f := form{Who: given.Get(paramWho), Value: given.Get(paramValue), Record: given.Get(paramRecord), Since: given.Get(paramSince),
		Until: given.Get(paramUntil), Zone: q.Clock.Zone.String()}
	action := given.Get(paramAction)
	f.Actions = []page.Option{{Value: "", Text: "everything", Selected: action == ""}}
	for _, a := range understudy.Actions {
		f.Actions = append(f.Actions, page.Option{Value: string(a), Text: actionTexts[a], Selected: action == string(a)})
	}
	for _, name := range params {
		if name != paramBefore && given.Get(name) != "" {
			f.Set++
		}
	}
	return f
}

// actionTexts are the texts for actions.
var actionTexts = map[understudy.Action]string{
	understudy.ActionList: "opened a list", understudy.ActionRecord: "opened a record", understudy.ActionSearch: "searched",
	understudy.ActionPlay: "played a file", understudy.ActionExport: "exported", understudy.ActionSend: "sent or changed",
	understudy.ActionDelete: "deleted", understudy.ActionNote: "wrote notes", understudy.ActionSignIn: "signed in or out",
	understudy.ActionAdminister: "managed",
}

// questionText returns the question that the filters answer, in words.
func questionText(f audit.Filter) string {
	switch {
	case f.Value != "" && understudy.ParsePhone(f.Value).Digits != "":
		return "Who looked at " + plan.GroupPhone(f.Value) + "?"
	case f.Value != "":
		return "Who searched for “" + understudy.Clip(f.Value) + "”?"
	case f.ID != "":
		return "Who looked at " + page.ShortID(f.ID) + "?"
	case f.Caller != "":
		return "What did " + understudy.Clip(f.Caller) + " do?"
	}
	return ""
}

// rowOf returns an audit entry as the page shows it.
func rowOf(q *page.Exchange, e *audit.Entry) row {
	out := row{When: q.Clock.FormatMoment(e.At, true), Who: e.Caller, Role: e.Role, What: actionTexts[e.Action], More: e.What, Of: e.Kind,
		Rows: e.Rows, Request: e.Request, Refused: e.Status >= http.StatusBadRequest}
	if e.Count > 0 {
		out.More = page.Thousands(e.Count) + " times"
		if e.Count == 1 {
			out.More = "once"
		}
	}
	var kind *plan.Kind
	if s := q.V.ByName[e.Source]; s != nil {
		kind = s.ByName[e.Kind]
	}
	if kind != nil {
		out.Of = kind.Spec.Title
	}
	out.describe(e, kind)
	for i, id := range e.IDs {
		if i == maxRecords {
			break
		}
		if id == "" { // a kind with just one record, such as a balance, has no id to show
			continue
		}
		l := page.Link{Text: page.ShortID(id)}
		if kind != nil && len(kind.Spec.Instances) > 0 {
			l.Href = kind.Href + "/" + url.PathEscape(id)
		}
		out.Records = append(out.Records, l)
	}
	out.Others = max(len(e.IDs)-maxRecords, 0)
	return out
}

// The field What of the audit entries for an export: before its first rows are sent, and before its last.
const (
	whatBegins = "export begins"
	whatExport = "export"
)

// plainTexts are the texts for entries that need no number of records, by their field What.
var plainTexts = map[string]string{whatLog: "opened the audit log", "lookup": "looked up a number", "number": "opened a number",
	"conversation": "opened a conversation", "sum": "added up records"}

// describe sets what was done in words. If a command or a signal did it, describe says so.
func (r *row) describe(e *audit.Entry, kind *plan.Kind) {
	of := cmp.Or(e.Kind, "rows")
	switch {
	case kind != nil && e.Rows == 1 && kind.Spec.Singular != "":
		of = kind.Spec.Singular
	case kind != nil:
		of = plan.LowerFirst(kind.Spec.Title)
	}
	many := page.Thousands(e.Rows) + " " + of
	switch {
	case e.What == whatLog && e.Action == understudy.ActionExport:
		r.What, r.More = "exported the audit log", ""
	case plainTexts[e.What] != "":
		r.What, r.More = plainTexts[e.What], ""
	case e.Action != understudy.ActionExport:
		r.What = cmp.Or(r.What, string(e.Action))
	case e.What == whatBegins:
		r.What, r.More = "started to export "+of, ""
	case e.What == whatExport:
		r.What, r.More = "exported "+many, ""
	default: // the entry is for rows of a list after the first, or for rows that a watch has sent
		r.What = "exported " + many
	}
	switch e.Caller {
	case understudy.CommandCaller.Name:
		r.By = "the command line"
	case "SIGHUP":
		r.By = "a signal"
	}
}
