// Related: the lists that lie under a record, small, on the record's page.

package viewer

import (
	"slices"
	"strings"

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
	Kind    *kindPlan
	Title   string
	Href    string // the list itself
	Table   table
	Shown   string // "20 of at least 50"
	AsOf    *when
	Problem string // why it is not there
}

// askedList is a list under a record, read unless the record counts it as
// empty.
type askedList struct {
	list    *listPlan
	target  *understudy.Target
	empty   bool
	reading reading
}

// relatedLists reads the lists under a record that the caller may see, and
// those kinds that are counted (alerts) picked by it, all at once. A list the
// record says is empty is not asked for.
func (q *visit) relatedLists(t *understudy.Target, row access.Row) []askedList {
	all := append(q.listsUnder(t, row), q.listsAbout(t)...)
	all = all[:min(len(all), maxLists)]
	targets := make([]*understudy.Target, len(all))
	for i, a := range all {
		if !a.empty {
			targets[i] = a.target
		}
	}
	for i, r := range q.readAll(targets) {
		all[i].reading = r
	}
	return all
}

// listsUnder are the lists whose path names the record, one of each kind.
func (q *visit) listsUnder(t *understudy.Target, row access.Row) []askedList {
	parts := strings.Split(t.ID, understudy.IDSeparator)
	var all []askedList
	for _, k := range q.source.kinds {
		i := slices.IndexFunc(k.lists, func(l *listPlan) bool { return l.parent.kind == q.kind })
		if i < 0 || q.v.Gate.Read(q.caller, k.lists[i].sample) != nil || !q.asOf.at.IsZero() && !k.remembered() {
			continue
		}
		if target := q.under(t, k.lists[i], parts); target != nil {
			all = append(all, askedList{list: k.lists[i], target: target, empty: k.lists[i].empty(row)})
		}
	}
	return all
}

// listsAbout are the lists of counted kinds that can be asked for the record.
func (q *visit) listsAbout(t *understudy.Target) []askedList {
	var all []askedList
	for _, k := range q.source.kinds {
		if k.Rollup == "" || !k.browsable() || k == q.kind {
			continue
		}
		for i, f := range k.lists[0].Filters {
			if !q.picks(k.Field(f.Field), f) || !q.offers(k.lists[0], i) {
				continue
			}
			query := understudy.Query{{Name: f.Name, Value: t.ID}}
			if target, err := q.source.Spec.Target(q.source.Name, k.lists[0].newest.Key.Path(), query.String()); err == nil {
				all = append(all, askedList{list: k.lists[0], target: target})
			}
		}
	}
	return all
}

// under is a list's newest page under a record.
func (q *visit) under(t *understudy.Target, l *listPlan, parts []string) *understudy.Target {
	path, ok := expand(l.Path, func(name string) (string, bool) {
		if v, ok := l.parent.fill(parts)(name); ok {
			return v, true
		}
		if v := t.Var(name); v != "" {
			return v, true
		}
		return q.source.fill(name)
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

// empty reports whether a record says that a list under it has no rows.
func (l *listPlan) empty(row access.Row) bool {
	if l.Count == "" {
		return false
	}
	v := row.Field(l.Count)
	return v.State == access.Seen && v.Text == "0"
}

// drawLists draws what was read of the lists under a record.
func (q *visit) drawLists(t *understudy.Target, asked []askedList, own map[string]bool) []relatedList {
	var all []relatedList
	for _, a := range asked {
		k := a.list.kind
		if a.empty {
			all = append(all, relatedList{Kind: k, Title: upperFirst(k.Title), Href: q.asOf.keep(q.source.place(a.target)), Shown: "0 rows"})
			continue
		}
		out := relatedList{Kind: k, Title: upperFirst(k.Title), Href: q.asOf.keep(q.source.place(a.target)), Problem: q.missing(a.reading), AsOf: q.agedAt(a.reading.answer)}
		rows := a.reading.rows()
		out.Shown = shown(rows, a.reading.more())
		columns := slices.DeleteFunc(q.columnsOf(k), func(c *column) bool { return c.Link == q.kind.Name }) // this record on every row
		s := q.sheet(k, q.source.given(a.target, nil), own)
		rows = rows[:min(len(rows), maxRows)]
		out.Table = q.table(s, out.Title, columns, rows)
		q.addPlaying(&out.Table, s, rows)
		all = append(all, out)
	}
	return all
}

// addPlaying adds a column with the contents of the rows, where they have any.
func (q *visit) addPlaying(t *table, s *sheet, rows []access.Row) {
	if len(s.kind.Media) == 0 || q.v.Media == nil || len(rows) == 0 {
		return
	}
	f := s.kind.byField[s.kind.Media[0].Field]
	t.Columns = append(slices.Clone(t.Columns), &column{Field: f.Field, title: f.title, heading: f.heading, class: "content"})
	for i, row := range rows {
		c := cell{Label: f.heading, Class: "content", Text: "—", Tone: "none"}
		c.Play = q.playing(s.kind, row, s.vars)
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
