// Actions on the records that are selected on a page.

package actions

import (
	"fmt"
	"strings"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
)

// doExport is the value of the button that exports the selected records as CSV.
const doExport = "csv"

// maxSelected is the maximum number of selected records. It is small enough for their ids to fit into the address of an export.
const maxSelected = 100

// runSelected does to the selected records what the button of the form says. If the caller may not mark one of the
// records, it marks none.
func runSelected(q *page.Exchange) error {
	if err := q.R.ParseForm(); err != nil {
		return errInvalidForm
	}
	names, back := q.R.PostForm["record"], page.LocalPath(q.R.PostForm.Get("back"))
	wrong := func(title, hint string) error {
		return &page.Problem{Title: title, Hint: hint, Href: back, Link: "Back", Kind: understudy.ErrInvalid}
	}
	switch {
	case len(names) == 0:
		return wrong("No row is selected", "Tick the boxes of some rows first.")
	case len(names) > maxSelected:
		return wrong(fmt.Sprintf("%d rows are selected", len(names)), fmt.Sprintf("At most %d can be selected at once.", maxSelected))
	}
	var all []selected
	for _, name := range names {
		one, ok := readSelected(q, name)
		if !ok {
			return wrong("This form is not valid", "Start again from the list.")
		}
		all = append(all, one)
	}
	switch do := q.R.PostForm.Get("do"); do {
	case doHandled:
		return markSelected(q, all, &understudy.Mark{By: q.Rights.Caller.Name, At: q.Clock.Start}, "mark as handled", "marked as handled", back)
	case doOpen:
		return markSelected(q, all, nil, "remove the mark as handled", "reopened", back)
	case doExport:
		q.RedirectBack(exportHref(all), "")
		return nil
	default:
		return page.NewUnknownWord("form", do, []string{doHandled, doOpen, doExport}, nil)
	}
}

// selected is one selected record.
type selected struct {
	kind *plan.Kind
	id   string
}

// readSelected parses the value of a check box. ok is false if the caller may not see the record's kind.
func readSelected(q *page.Exchange, name string) (one selected, ok bool) {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) != 3 || parts[2] == "" {
		return one, false
	}
	s := q.V.ByName[parts[0]]
	if s == nil || !q.Rights.CanSee(s) {
		return one, false
	}
	k := s.ByName[parts[1]]
	return selected{k, parts[2]}, k != nil && q.Rights.CanSeeKind(k)
}

// markSelected sets a mark on records, or removes it if m is nil, and redirects to the address back. The page there
// shows the message done.
func markSelected(q *page.Exchange, all []selected, m *understudy.Mark, what, done, back string) error {
	byKind := map[*plan.Kind][]string{}
	for i, one := range all {
		q.Source, q.Kind = one.kind.Source, one.kind
		t, err := noteTarget(q, one.id)
		if err != nil {
			return err
		}
		all[i].id = t.ID
		byKind[one.kind] = append(byKind[one.kind], t.ID)
	}
	for k, ids := range byKind {
		err := page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionNote, What: what, Source: k.Source.Name, Kind: k.Spec.Name,
			IDs: ids})
		if err != nil {
			return err
		}
	}
	for i, one := range all {
		if err := q.V.Options.Annotations.MarkHandled(q.Ctx, one.kind.Source.Name, one.kind.Spec.Name, one.id, m); err != nil {
			return &page.Problem{Title: fmt.Sprintf("%d of %d records are %s", i, len(all), done), Hint: page.Sentence(err), Href: back,
				Link: "Back", Kind: err}
		}
	}
	said := fmt.Sprintf("%d records are %s.", len(all), done)
	if len(all) == 1 {
		said = "One record is " + done + "."
	}
	q.RedirectBack(back, said)
	return nil
}

// exportHref returns the address that exports the records as CSV: a list if all have the same kind, else a search.
func exportHref(all []selected) string {
	var ids []string
	source, kind := all[0].kind.Source.Name, all[0].kind.Spec.Name
	for _, one := range all {
		ids = append(ids, one.id)
		if one.kind.Source.Name != source {
			source = ""
		}
		if one.kind.Spec.Name != kind {
			kind = ""
		}
	}
	if k := all[0].kind; source != "" && kind != "" && k.IsBrowsable() {
		return k.Href + page.CsvSuffix + plan.WithQuery(understudy.Query{{Name: understudy.OwnPrefix + "q", Value: page.IDCondition(ids)}})
	}
	return page.SearchAddress("/search"+page.CsvSuffix, query.SearchRequest{Text: page.IDCondition(ids), Source: source})
}
