// Related: the lists that lie under a record, small, on the record's page.

package viewer

import (
	"context"
	"slices"
	"strings"
	"understudy/internal/viewer/plan"

	"understudy"
	"understudy/internal/access"
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
	Table   table
	Shown   string // "20 of at least 50"
	AsOf    *when
	Problem string // why it is not there
	Note    string // what to know of the rows
}

// askedList is a list under a record, read unless the record counts it as
// empty.
type askedList struct {
	*asked // nil: it is not read
	list   *plan.List
	target *understudy.Target
	empty  bool
	href   string
	kept   []access.Row // of one that upstream says is empty
}

// relatedLists are the lists under a record that the caller may see, and those
// kinds that are counted (alerts) picked by it. The record's id alone names them.
func (q *record) relatedLists(t *understudy.Target) []*askedList {
	all := append(q.listsUnder(t), q.listsAbout(t)...)
	all = all[:min(len(all), maxLists)]
	for _, a := range all {
		a.href = q.asOf.keep(q.source.Place(a.target))
	}
	return all
}

// besideRecord begins to read the lists while upstream is asked for the record
// above them. A role that finds some records of the kind alone waits for the
// record: nothing is asked about one it may not find. So does a list that the
// record counts: most messages have no media.
func (q *record) besideRecord(lists []*askedList) func() {
	if !q.counts(q.kind) {
		return nil
	}
	return func() {
		for _, a := range lists {
			if !q.countedBy(a) {
				q.readUnder(a)
			}
		}
	}
}

// countedBy reports whether the page's record says how many rows a list has.
func (q *record) countedBy(a *askedList) bool {
	return a.list.Count != "" && a.list.Under.Kind == q.kind
}

// readOf reads the lists of a record that has come. One that the record says is
// empty is not read.
func (q *record) readOf(row access.Row, lists []*askedList) {
	for _, a := range lists {
		if a.empty = q.countedBy(a) && saysEmpty(a.list, row); !a.empty {
			q.readUnder(a)
		}
	}
}

// leave ends the read of a list, if it has begun.
func (a *askedList) leave() {
	if a.asked != nil {
		a.stop()
	}
}

// readUnder begins to read a list under the record, if that has not begun. Of some
// kinds upstream lists nothing any more once the record has ended (participants of
// a conference): then those that are kept stand there.
func (q *record) readUnder(a *askedList) {
	if a.asked != nil {
		return
	}
	a.asked = &asked{target: a.target}
	a.future = q.begin(a.target.Key.String(), q.v.glance, func(ctx context.Context) error {
		a.reading = q.read(ctx, a.target)
		if r := a.reading; q.missing(r) == "" && len(r.rows()) == 0 && !r.more() && a.list.Under.Kind == q.kind {
			a.kept = q.keptUnder(ctx, a)
		}
		return a.reading.err
	})
}

// keptUnder are the records that are held of a list under a record, as the caller
// may find them; none of one whose path names what the caller does not see.
func (q *record) keptUnder(ctx context.Context, a *askedList) []access.Row {
	k := a.list.Kind
	if !q.findable() || !q.asOf.at.IsZero() || !k.Remembered() {
		return nil
	}
	var text []string
	for _, v := range a.target.Vars {
		part, ok := q.underCondition(k, v.Name, v.Value)
		if !ok {
			return nil
		}
		text = append(text, part)
	}
	for field, value := range a.list.Only {
		text = append(text, field+"="+quote(value))
	}
	found, err := q.search(ctx, k, understudy.SearchAsk{Text: strings.TrimSpace(strings.Join(text, " ")), Limit: maxRows})
	if err != nil {
		return nil // upstream's own answer is there
	}
	var rows []access.Row
	for _, h := range q.hits(found) {
		rows = append(rows, h.row)
	}
	return rows
}

// listsUnder are the lists whose path names the record, one of each kind.
func (q *record) listsUnder(t *understudy.Target) []*askedList {
	parts := strings.Split(t.ID, understudy.IDSeparator)
	var all []*askedList
	for _, k := range q.source.Kinds {
		i := slices.IndexFunc(k.PlannedLists, func(l *plan.List) bool { return l.Under.Kind == q.kind })
		if i < 0 || q.gate.Read(q.caller, k.PlannedLists[i].Sample) != nil || !q.asOf.at.IsZero() && !k.Remembered() {
			continue
		}
		if target := q.under(t, k.PlannedLists[i], parts); target != nil {
			all = append(all, &askedList{list: k.PlannedLists[i], target: target})
		}
	}
	return all
}

// listsAbout are the lists of counted kinds that can be asked for the record.
func (q *record) listsAbout(t *understudy.Target) []*askedList {
	var all []*askedList
	for _, k := range q.source.Kinds {
		if k.Rollup == "" || !k.Browsable() || k == q.kind {
			continue
		}
		for i, f := range k.PlannedLists[0].Filters {
			if !q.picks(k.Field(f.Field), f) || !q.offers(k.PlannedLists[0], i) {
				continue
			}
			query := understudy.Query{{Name: f.Name, Value: t.ID}}
			if target, err := q.source.Spec.Target(q.source.Name, k.PlannedLists[0].Newest.Key.Path(), query.String()); err == nil {
				all = append(all, &askedList{list: k.PlannedLists[0], target: target})
			}
		}
	}
	return all
}

// under is a list's newest page under a record.
func (q *record) under(t *understudy.Target, l *plan.List, parts []string) *understudy.Target {
	path, ok := plan.Expand(l.Path, func(name string) (string, bool) {
		if v, ok := l.Under.Fill(parts)(name); ok {
			return v, true
		}
		if v := t.Var(name); v != "" {
			return v, true
		}
		return q.source.Fill(name)
	})
	if !ok {
		return nil
	}
	target, err := q.source.Spec.Target(q.source.Name, path, "")
	if err != nil || target.List != l.List {
		return nil // an id that would make the path another one's
	}
	return target
}

// empty reports whether a record that counts a list says that it has no rows.
func saysEmpty(l *plan.List, row access.Row) bool {
	v := row.Field(l.Count)
	return v.State == access.Seen && v.Text == "0"
}

// listPart is a list's place on the record's page.
func (q *record) listPart(a *askedList, own map[string]bool) *part {
	title := plan.UpperFirst(a.list.Kind.Title)
	if a.empty {
		return &part{title: title, draw: func() (string, any) {
			return "glimpse", &relatedList{Kind: a.list.Kind, Title: title, Href: a.href, Shown: "0 rows"}
		}}
	}
	of := func() []any { return q.madeList(a, own) }
	return &part{title: title, needs: []*future{a.future}, of: of, draw: func() (string, any) {
		return "glimpse", q.drawList(a, title, own)
	}}
}

// madeList is what a list under a record is made of; nothing of one that shows
// contents, whose addresses are a session's and end.
func (q *record) madeList(a *askedList, own map[string]bool) []any {
	r := a.wait()
	if len(a.list.Kind.Media) > 0 && q.v.Media != nil && len(a.kept)+len(r.rows()) > 0 {
		return nil
	}
	all := append(q.made(r), own)
	for _, row := range a.kept {
		all = append(all, row.ID, row.Raw())
	}
	return all
}

// drawList draws what was read of a list under a record.
func (q *record) drawList(a *askedList, title string, own map[string]bool) *relatedList {
	r, k := a.wait(), a.list.Kind
	rows := r.rows()
	if len(a.kept) > 0 {
		rows = a.kept
	}
	out := &relatedList{Kind: k, Title: title, Href: a.href, Problem: q.missing(r), AsOf: q.agedAt(r.answer), Shown: shown(rows, r.more())}
	if len(a.kept) > 0 {
		out.Shown = thousands(int64(len(rows))) + " kept"
		out.Note = q.source.Spec.Title + " lists none of them any more."
	}
	columns := slices.DeleteFunc(q.columnsOf(k), func(c *plan.Column) bool { return c.Link == q.kind.Name }) // this record on every row
	s := q.cellContext(k, q.source.Given(a.target, nil), own)
	rows = rows[:min(len(rows), maxRows)]
	out.Table = s.table(title, columns, rows)
	q.addPlaying(&out.Table, s, rows)
	return out
}

// addPlaying adds a column with the contents of the rows, where they have any.
func (q *record) addPlaying(t *table, s *cellContext, rows []access.Row) {
	if len(s.kind.Media) == 0 || q.v.Media == nil || len(rows) == 0 {
		return
	}
	f := s.kind.ByField[s.kind.Media[0].Field]
	t.Columns = append(slices.Clone(t.Columns), &plan.Column{Field: f.Field, Words: f.Words, Heading: f.Heading, CellClass: "content"})
	for i, row := range rows {
		c := cell{Label: f.Heading, Class: "content", Text: "—", Tone: "none"}
		c.Play = q.contents(s.kind, row, s.vars)
		t.Rows[i].Cells = append(t.Rows[i].Cells, c)
	}
}

// shown says how many rows there are, and how many of them are on the page.
func shown(rows []access.Row, more bool) string {
	n := len(rows)
	switch count := thousands(int64(n)); {
	case more:
		return thousands(int64(min(n, maxRows))) + " of more than " + count
	case n > maxRows:
		return thousands(maxRows) + " of " + count
	case n == 1:
		return "1 row"
	default:
		return count + " rows"
	}
}
