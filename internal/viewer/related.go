// Related: the lists that lie under a record, small, on the record's page.

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

// The bounds of what one page shows of other lists.
const (
	maxLists = 4  // lists under a record
	maxRows  = 20 // rows of each
)

// relatedList is one list on another page.
type relatedList struct {
	Kind    *plan.Kind
	Title   string
	Href    string // the list itself
	Table   page.Table
	Shown   string // "20 of at least 50"
	AsOf    *page.When
	Problem string // why it is not there
	Note    string // what to know of the rows
}

// askedList is a list under a record, read unless the record counts it as empty.
type askedList struct {
	Asked  *page.Asked // nil: it is not read
	list   *plan.List
	target *spec.Target
	empty  bool
	href   string
	kept   []access.Row // of one that upstream says is empty
}

// relatedLists are the lists under a record that the caller may see, and those
// kinds that are counted (alerts) picked by it. The record's id alone names them.
func (rv *record) relatedLists(t *spec.Target) []*askedList {
	all := append(rv.listsUnder(t), rv.listsAbout(t)...)
	all = all[:min(len(all), maxLists)]
	for _, a := range all {
		a.href = rv.q.Clock.AsOf.Keep(rv.q.Source.Place(a.target))
	}
	return all
}

// besideRecord begins to read the lists while upstream is asked for the record above them. A role that finds some
// records of the kind alone waits for the record: nothing is asked about one it may not find. So does a list that the
// record counts: most messages have no media.
func (rv *record) besideRecord(lists []*askedList) func() {
	if !rv.q.Rights.Counts(rv.q.Kind) {
		return nil
	}
	return func() {
		for _, a := range lists {
			if !rv.countedBy(a) {
				rv.readUnder(a)
			}
		}
	}
}

// countedBy reports whether the page's record says how many rows a list has.
func (rv *record) countedBy(a *askedList) bool {
	return a.list.Spec.Count != "" && a.list.Under.Kind == rv.q.Kind
}

// readOf reads the lists of a record that has come. One that the record says is empty is not read.
func (rv *record) readOf(row access.Row, lists []*askedList) {
	for _, a := range lists {
		if a.empty = rv.countedBy(a) && saysEmpty(a.list, row); !a.empty {
			rv.readUnder(a)
		}
	}
}

// leave ends the read of a list, if it has begun.
func (a *askedList) leave() {
	if a.Asked != nil {
		a.Asked.Future.Stop()
	}
}

// readUnder begins to read a list under the record, if that has not begun. Of some kinds upstream lists nothing any
// more once the record has ended (participants of a conference): then those that are kept stand there.
func (rv *record) readUnder(a *askedList) {
	if a.Asked != nil {
		return
	}
	a.Asked = &page.Asked{Target: a.target}
	a.Asked.Future = rv.q.Tasks.Begin(a.target.Key.String(), rv.q.V.Glance, func(ctx context.Context) error {
		a.Asked.Reading = rv.q.Read(ctx, a.target)
		if r := a.Asked.Reading; r.Missing(rv.q) == "" && len(r.Rows()) == 0 && !r.More() && a.list.Under.Kind == rv.q.Kind {
			a.kept = rv.keptUnder(ctx, a)
		}
		return a.Asked.Reading.Err
	})
}

// keptUnder are the held records of a list under a record that the caller may find.
// There are none when the path of the list names what the caller does not see.
func (rv *record) keptUnder(ctx context.Context, a *askedList) []access.Row {
	k := a.list.Kind
	if rv.q.V.Options.Search == nil || !rv.q.Clock.AsOf.At.IsZero() || !k.Remembered() {
		return nil
	}
	where, ok := rv.q.Rights.ListConditions(a.list, a.target, false)
	if !ok {
		return nil
	}
	found, err := rv.q.Search(ctx, rv.q.Source, k, query.SearchRequest{Where: where, Limit: maxRows})
	if err != nil {
		return nil // upstream's own answer is there
	}
	var rows []access.Row
	for _, h := range rv.q.Rights.Hits(rv.q.Ctx, found) {
		rows = append(rows, h.Row)
	}
	return rows
}

// listsUnder are the lists whose path names the record, one of each kind.
func (rv *record) listsUnder(t *spec.Target) []*askedList {
	parts := strings.Split(t.ID, spec.IDSeparator)
	var all []*askedList
	for _, k := range rv.q.Source.Kinds {
		i := slices.IndexFunc(k.PlannedLists, func(l *plan.List) bool { return l.Under.Kind == rv.q.Kind })
		if i < 0 || rv.q.Rights.Gate.Read(rv.q.Rights.Caller, k.PlannedLists[i].Sample) != nil ||
			!rv.q.Clock.AsOf.At.IsZero() && !k.Remembered() {
			continue
		}
		if target := rv.under(t, k.PlannedLists[i], parts); target != nil {
			all = append(all, &askedList{list: k.PlannedLists[i], target: target})
		}
	}
	return all
}

// listsAbout are the lists of counted kinds that can be asked for the record.
func (rv *record) listsAbout(t *spec.Target) []*askedList {
	var all []*askedList
	for _, k := range rv.q.Source.Kinds {
		if k.Spec.Rollup == "" || !k.Browsable() || k == rv.q.Kind {
			continue
		}
		for i, f := range k.PlannedLists[0].Spec.Filters {
			if !rv.picks(k, k.Spec.Field(f.Field), f) || !rv.q.Rights.Offers(k.PlannedLists[0], i) {
				continue
			}
			params := understudy.Query{{Name: f.Name, Value: t.ID}}
			if target, err := rv.q.Source.Spec.Target(rv.q.Source.Name, k.PlannedLists[0].Newest.Key.Path(), params.String()); err == nil {
				all = append(all, &askedList{list: k.PlannedLists[0], target: target})
			}
		}
	}
	return all
}

// under is a list's newest page under a record.
func (rv *record) under(t *spec.Target, l *plan.List, parts []string) *spec.Target {
	path, ok := l.Spec.Template().FillEscaped(func(name string) (string, bool) {
		if v, ok := l.Under.Fill(parts)(name); ok {
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
	target, err := rv.q.Source.Spec.Target(rv.q.Source.Name, path, "")
	if err != nil || target.List != l.Spec {
		return nil // an id that would make the path another one's
	}
	return target
}

// empty reports whether a record that counts a list says that it has no rows.
func saysEmpty(l *plan.List, row access.Row) bool {
	v := row.Field(l.Spec.Count)
	return v.State == access.Seen && v.Text == "0"
}

// listPart is a list's place on the record's page.
func (rv *record) listPart(a *askedList, own map[string]bool) *page.Part {
	title := plan.UpperFirst(a.list.Kind.Spec.Title)
	if a.empty {
		return &page.Part{Title: title, Draw: func() (string, any) {
			return "glimpse", &relatedList{Kind: a.list.Kind, Title: title, Href: a.href, Shown: "0 rows"}
		}}
	}
	of := func() []any { return rv.madeList(a, own) }
	return &page.Part{Title: title, Needs: []*page.Future{a.Asked.Future}, Of: of, Draw: func() (string, any) {
		return "glimpse", rv.drawList(a, title, own)
	}}
}

// madeList is what a list under a record is made of; nothing of one that shows
// contents, whose addresses are a session's and end.
func (rv *record) madeList(a *askedList, own map[string]bool) []any {
	r := a.Asked.Wait()
	if len(a.list.Kind.Spec.Media) > 0 && rv.q.V.Options.Media != nil && len(a.kept)+len(r.Rows()) > 0 {
		return nil
	}
	all := append(r.Made(rv.q), own)
	for _, row := range a.kept {
		all = append(all, row.ID, row.Raw())
	}
	return all
}

// drawList draws what was read of a list under a record.
func (rv *record) drawList(a *askedList, title string, own map[string]bool) *relatedList {
	r, k := a.Asked.Wait(), a.list.Kind
	rows := r.Rows()
	if len(a.kept) > 0 {
		rows = a.kept
	}
	out := &relatedList{Kind: k, Title: title, Href: a.href, Problem: r.Missing(rv.q), AsOf: rv.q.Clock.AgedAt(r.Answer),
		Shown: shown(rows, r.More())}
	if len(a.kept) > 0 {
		out.Shown = page.Thousands(int64(len(rows))) + " kept"
		out.Note = rv.q.Source.Spec.Title + " lists none of them any more."
	}
	// A column that links to this record would say the same on every row.
	columns := slices.DeleteFunc(rv.q.Rights.ColumnsOf(k), func(c *plan.Column) bool { return c.Spec.Link == rv.q.Kind.Spec.Name })
	s := rv.q.CellContext(k, rv.q.Source.Given(a.target, nil), own)
	rows = rows[:min(len(rows), maxRows)]
	out.Table = s.Table(title, columns, rows)
	rv.addPlaying(&out.Table, s, rows)
	return out
}

// addPlaying adds a column with the contents of the rows, where they have any.
func (rv *record) addPlaying(t *page.Table, s *page.CellContext, rows []access.Row) {
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

// shown says how many rows there are, and how many of them are on the page.
func shown(rows []access.Row, more bool) string {
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
