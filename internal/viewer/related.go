// The short lists on a record's page, such as the lists whose path names the record.

package viewer

import (
	"context"
	"slices"
	"strings"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// The limits of the lists on a record's page.
const (
	maxLists = 4  // the number of lists under a record
	maxRows  = 20 // the number of rows of each list
)

// relatedList is one short list on the page of a record or number, with a link to the complete list.
type relatedList struct {
	Kind    *plan.Kind
	Title   string
	Href    string // the address of the complete list
	Table   page.Table
	Shown   string // the number of rows, such as "20 of at least 50"
	AsOf    *page.When
	Problem string // why the list could not be read, in words; empty if it was read
	Note    string // a remark about the list, shown above its rows
}

// relatedRead is a list on a record's page while it is being read.
type relatedRead struct {
	read       *page.TargetRead // the running or finished read of the list; nil until it starts
	list       *plan.List
	target     *spec.Target
	isEmpty    bool
	href       string
	storedRows []access.Row // rows from the store, shown because upstream's list is empty
}

// prefetchLists returns a function that starts to read the lists while the record itself is being read. It returns nil if the
// role may see only some records of the kind, because requests must not depend on a record that the caller may not see. A list
// is not prefetched if a field of the record has its number of rows, because such lists are mostly empty.
func (rv *recordView) prefetchLists(lists []*relatedRead) func() {
	if !rv.q.Rights.CanCount(rv.q.Kind) {
		return nil
	}
	return func() {
		for _, a := range lists {
			if !rv.hasRowCount(a) {
				rv.readList(a)
			}
		}
	}
}

// hasRowCount reports whether a field of the page's record has the number of rows of the list.
func (rv *recordView) hasRowCount(a *relatedRead) bool {
	return a.list.Spec.Count != "" && a.list.Parent.Kind == rv.q.Kind
}

// readList starts to read a list of the record, unless it has started before. Some lists become empty upstream when
// the record ends, such as the participants of a conference. In this case readList reads the rows from the store.
func (rv *recordView) readList(a *relatedRead) {
	if a.read != nil {
		return
	}
	a.read = &page.TargetRead{Target: a.target}
	a.read.Future = rv.q.Tasks.Begin(a.target.Key.String(), rv.q.V.PartTimeout, func(ctx context.Context) error {
		a.read.Reading = rv.q.Read(ctx, a.target)
		if r := a.read.Reading; r.MissingReason(rv.q) == "" && len(r.Rows()) == 0 && !r.HasMore() && a.list.Parent.Kind == rv.q.Kind {
			a.storedRows = rv.storedRows(ctx, a)
		}
		return a.read.Reading.Err
	})
}

// storedRows returns the stored rows of a list that the caller may find. It returns none if the path of the list
// contains a value that the caller may not see.
func (rv *recordView) storedRows(ctx context.Context, a *relatedRead) []access.Row {
	k := a.list.Kind
	if rv.q.V.Options.Search == nil || !rv.q.Clock.AsOf.At.IsZero() || !k.HasRecords() {
		return nil
	}
	where, ok := rv.q.Rights.ListConditions(a.list, a.target, false)
	if !ok {
		return nil
	}
	found, err := rv.q.Search(ctx, rv.q.Source, k, query.SearchRequest{Where: where, Limit: maxRows})
	if err != nil {
		return nil // the page then shows upstream's answer, which is empty
	}
	var rows []access.Row
	for _, h := range rv.q.Rights.Hits(rv.q.Ctx, found) {
		rows = append(rows, h.Row)
	}
	return rows
}

// childLists returns the lists whose path contains the record's id, at most one list of each kind.
func (rv *recordView) childLists(t *spec.Target) []*relatedRead {
	parts := strings.Split(t.ID, spec.IDSeparator)
	var all []*relatedRead
	for _, k := range rv.q.Source.Kinds {
		i := slices.IndexFunc(k.PlannedLists, func(l *plan.List) bool { return l.Parent.Kind == rv.q.Kind })
		if i < 0 || rv.q.Rights.Gate.CheckRead(rv.q.Rights.Caller, k.PlannedLists[i].Sample) != nil ||
			!rv.q.Clock.AsOf.At.IsZero() && !k.HasRecords() {
			continue
		}
		if target := rv.listTargetUnder(t, k.PlannedLists[i], parts); target != nil {
			all = append(all, &relatedRead{list: k.PlannedLists[i], target: target})
		}
	}
	return all
}

// rollupLists returns the lists of counted kinds (such as alerts) that can be filtered by the record's id.
func (rv *recordView) rollupLists(t *spec.Target) []*relatedRead {
	var all []*relatedRead
	for _, k := range rv.q.Source.Kinds {
		if k.Spec.Rollup == "" || !k.IsBrowsable() || k == rv.q.Kind {
			continue
		}
		for i, f := range k.PlannedLists[0].Spec.Filters {
			if !rv.canFilterByRecord(k, k.Spec.Field(f.Field), f) || !rv.q.Rights.CanFilter(k.PlannedLists[0], i) {
				continue
			}
			params := understudy.Query{{Name: f.Name, Value: t.ID}}
			if target, err := rv.q.Source.Spec.Resolve(rv.q.Source.Name, k.PlannedLists[0].Newest.Key.Path(), params.String()); err == nil {
				all = append(all, &relatedRead{list: k.PlannedLists[0], target: target})
			}
		}
	}
	return all
}

// listTargetUnder returns the newest page of a list below a record. It returns nil if a variable of the list's path
// has no value.
func (rv *recordView) listTargetUnder(t *spec.Target, l *plan.List, parts []string) *spec.Target {
	path, ok := l.Spec.Template().FillEscaped(func(name string) (string, bool) {
		if v, ok := l.Parent.Fill(parts)(name); ok {
			return v, true
		}
		if v := t.Var(name); v != "" {
			return v, true
		}
		return rv.q.Source.Config.PathVar(name)
	})
	if !ok {
		return nil
	}
	target, err := rv.q.Source.Spec.Resolve(rv.q.Source.Name, path, "")
	if err != nil || target.List != l.Spec {
		return nil // the id contains characters that would make the path the address of another list
	}
	return target
}

// hasNoRows reports whether the record's own count says that the list has no rows.
func hasNoRows(l *plan.List, row access.Row) bool {
	v := row.Field(l.Spec.Count)
	return v.State == access.Seen && v.Text == "0"
}

func (rv *recordView) listPart(a *relatedRead, own map[string]bool) *page.Part {
	title := plan.UpperFirst(a.list.Kind.Spec.Title)
	if a.isEmpty {
		return &page.Part{Title: title, Draw: func() (string, any) {
			return "glimpse", &relatedList{Kind: a.list.Kind, Title: title, Href: a.href, Shown: "0 rows"}
		}}
	}
	of := func() []any { return rv.listInputs(a, own) }
	return &page.Part{Title: title, Needs: []*page.Future{a.read.Future}, Inputs: of, Draw: func() (string, any) {
		return "glimpse", rv.drawList(a, title, own)
	}}
}

// listInputs returns the values that a list is drawn from, as the key of its cache. It returns nil, so that nothing
// is cached, if the list shows audio or images: their addresses belong to one session and expire.
func (rv *recordView) listInputs(a *relatedRead, own map[string]bool) []any {
	r := a.read.Wait()
	if len(a.list.Kind.Spec.Media) > 0 && rv.q.V.Options.Media != nil && len(a.storedRows)+len(r.Rows()) > 0 {
		return nil
	}
	all := append(r.Inputs(rv.q), own)
	for _, row := range a.storedRows {
		all = append(all, row.ID, row.JSON())
	}
	return all
}

// drawList draws a list of the record's page.
func (rv *recordView) drawList(a *relatedRead, title string, own map[string]bool) *relatedList {
	r, k := a.read.Wait(), a.list.Kind
	rows := r.Rows()
	if len(a.storedRows) > 0 {
		rows = a.storedRows
	}
	out := &relatedList{Kind: k, Title: title, Href: a.href, Problem: r.MissingReason(rv.q), AsOf: rv.q.Clock.AnswerTime(r.Answer),
		Shown: rowCountText(rows, r.HasMore())}
	if len(a.storedRows) > 0 {
		out.Shown = page.Thousands(int64(len(rows))) + " stored"
		out.Note = rv.q.Source.Spec.Title + " no longer lists any of them."
	}
	// A column that links to this record would have the same value on every row.
	columns := slices.DeleteFunc(rv.q.Rights.ColumnsOf(k), func(c *plan.Column) bool { return c.Spec.Link == rv.q.Kind.Spec.Name })
	s := rv.q.CellContext(k, rv.q.Source.AddressVars(a.target, nil), own)
	rows = rows[:min(len(rows), maxRows)]
	out.Table = s.Table(title, columns, rows)
	rv.addPlaying(&out.Table, s, rows)
	return out
}

// addPlaying adds a column with audio players or images, if records of the kind have any.
func (rv *recordView) addPlaying(t *page.Table, s *page.CellContext, rows []access.Row) {
	if len(s.Kind.Spec.Media) == 0 || rv.q.V.Options.Media == nil || len(rows) == 0 {
		return
	}
	f := s.Kind.ByField[s.Kind.Spec.Media[0].Field]
	t.Heads = append(t.Heads, page.Heading{Column: &plan.Column{Spec: f.Spec, Words: f.Words, Heading: f.Heading, CellClass: "content"}})
	for i, row := range rows {
		c := page.Cell{Label: f.Heading, Class: "content", Text: "—", Tone: "none"}
		c.Play = rv.q.Contents(s.Kind, row, s.Vars)
		t.Rows[i].Cells = append(t.Rows[i].Cells, c)
	}
}

// rowCountText returns how many rows there are, and how many of them the page shows.
func rowCountText(rows []access.Row, more bool) string {
	n := len(rows)
	switch count := page.Thousands(int64(n)); {
	case more:
		return page.Thousands(int64(min(n, maxRows))) + " of more than " + count
	case n > maxRows:
		return page.Thousands(maxRows) + " of " + count
	case n == 1:
		return "1 row"
	default:
		return count + " rows"
	}
}
