// Number: everything that is known of one phone number, each part by itself.

package viewer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"understudy/internal/viewer/plan"

	"understudy"
	"understudy/internal/access"
)

// The bounds of a number's page.
const (
	maxPanels   = 6 // lists asked for the number
	maxPartners = 5 // other numbers named
)

// numberPage is what number.html shows.
type numberPage struct {
	Number string // as upstream writes it
	Shown  string // in groups
	Own    bool   // it is known to be one of ours
	Data   string
	Parts  *parts
}

// contact is when the number was in contact with us, as far as its lists say.
type contact struct {
	Last     *when // newest contact on this page
	First    *when // oldest contact on this page
	Partial  bool  // a list is missing or goes on: there may be more
	Partners []partner
}

// partner is a number in contact with the page's own, as far as shown.
type partner struct {
	Number, Shown, Href string
	Count               int64
	Own                 bool
}

// panel is one list asked for the number at one end of its records.
type panel struct {
	*asked
	kind   *plan.Contact
	end    plan.End
	total  int64     // records beyond the page and on it, when all of the kind are held; 0: not known
	oldest time.Time // of them
}

// title is what the page calls the list.
func (pn *panel) title() string {
	return plan.UpperFirst(pn.kind.Kind.Title) + " " + pn.end.Column.Words
}

// numberReads are what a number's page is made of, all read at once.
type numberReads struct {
	number  string
	panels  []*panel
	owns    []*owner
	watched []*asked        // the newest of kinds that are counted
	marked  map[string]bool // our own numbers, as the part that is drawn marks them
}

// serveNumber shows what is known of a number.
func serveNumber(q *exchange) error {
	r := numberReader{q}
	number, err := r.numbered("number")
	if err != nil {
		return err
	}
	if q.r.URL.RawQuery != "" {
		return badRequest("This page takes no parameters", "Filter the lists it leads to.", nil)
	}
	n := &numberReads{number: number, panels: r.panels(number)}
	for _, k := range q.source.OwnKinds {
		if q.ownVisible(k) {
			n.owns = append(n.owns, r.owner(k, number))
		}
	}
	for _, k := range q.source.Kinds {
		if k.Rollup != "" && k.Browsable() && q.gate.Read(q.caller, k.PlannedLists[0].Newest) == nil {
			n.watched = append(n.watched, q.beside(k.PlannedLists[0].Newest))
		}
	}
	p := &numberPage{Number: number, Shown: plan.GroupPhone(number), Data: q.source.NumberHref(number) + dataSuffix}
	p.Parts = numberView{q, n}.numberParts()
	if q.data != "" {
		return numberView{q, n}.numberData()
	}
	p.Own = numberView{q, n}.own()[number]
	return q.render(http.StatusOK, "number", p.Shown, p)
}

// numberView draws the page of a number.
type numberView struct {
	*exchange
	n *numberReads
}

// numberParts are the page's parts, each drawn from what it needs.
func (q numberView) numberParts() *parts {
	var panes []*future
	for _, pn := range q.n.panels {
		panes = append(panes, pn.future)
	}
	made := func() (all []any) { // of what all lists say
		for _, pn := range q.n.panels {
			all = append(append(all, q.made(pn.wait())...), pn.total, pn.oldest)
		}
		return all
	}
	all := []*part{{title: "Contact", needs: panes, of: made, draw: func() (string, any) { return "contact", q.contact() }}}
	for _, o := range q.n.owns {
		of := func() []any { return append(q.made(o.newest), append(q.made(o.record), o.kind.Name)...) }
		all = append(all, &part{title: "Our own numbers", needs: []*future{o.future}, of: of, draw: func() (string, any) {
			if l := q.drawOwner(o); l != nil {
				return "glimpse", l
			}
			return "", nil
		}})
	}
	for _, pn := range q.n.panels {
		of := func() []any { return append(q.made(pn.wait()), pn.total, pn.oldest) }
		draw := func() (string, any) { return "glimpse", q.drawPanel(pn) }
		all = append(all, &part{title: pn.title(), needs: []*future{pn.future}, of: of, draw: draw})
	}
	for _, w := range q.n.watched {
		title := plan.UpperFirst(w.target.Kind.Title) + " about it"
		of := func() []any { return append(made(), q.made(w.wait())...) }
		draw := func() (string, any) { return "glimpse", q.mentions(title, w) }
		all = append(all, &part{title: title, needs: slices.Concat(panes, []*future{w.future}), of: of, draw: draw})
	}
	for _, one := range all {
		of := one.of
		one.of = func() []any { q.n.marked = q.own(); return append(of(), q.n.marked) }
	}
	return q.parts("number", all...)
}

// numberReader reads what is known of a number.
type numberReader struct{ *exchange }

// numbered is a number of the address. A caller who may not filter by any
// number is refused, whatever the number: the page would tell of what is
// hidden.
func (q numberReader) numbered(name string) (string, error) {
	if len(q.source.Contacts) == 0 {
		return "", notFound(q.source.Spec.Title+" has no pages of numbers", "None of its kinds can be asked for a number.", "")
	}
	if len(q.contactKinds(q.source)) == 0 {
		role, t := q.caller.Role(), q.source.Contacts[0]
		return "", &problem{
			Title: "Your role does not show whole numbers", kind: understudy.ErrForbidden,
			Hint: "The page of a number is a filter on what role " + role + " does not fully see." + q.remedyOf(t.Kind, t.Ends[0].Column.Name, t.Ends[1].Column.Name),
		}
	}
	text := q.r.PathValue(name)
	if q.data != "" {
		text = strings.TrimSuffix(text, dataSuffix)
	}
	if !plan.IsNumber(text) {
		return "", notFound(clip(text)+" is no phone number", "Write it in full with + and country code, as in +15551234567.", searchHref(text))
	}
	return text, nil
}

// panels are the lists the caller may ask for the number.
func (q numberReader) panels(number string) []*panel {
	var all []*panel
	for _, t := range q.contactKinds(q.source) {
		for _, e := range t.Ends {
			if !q.offers(t.List, e.Filter) || len(all) == maxPanels {
				continue
			}
			target, err := t.Target(understudy.Query{{Name: t.List.Filters[e.Filter].Name, Value: number}})
			if err == nil {
				all = append(all, q.readPanel(&panel{asked: &asked{target: target}, kind: t, end: e}, number))
			}
		}
	}
	return all
}

// readPanel begins to read a list of the number. When it goes on, and all records of
// the kind are held, those are counted.
func (q numberReader) readPanel(pn *panel, number string) *panel {
	k, flt := pn.kind.Kind, pn.kind.List.Filters[pn.end.Filter]
	whole := q.findable() && q.counts(k) && q.v.snapshots.of(q.exchange, q.source).Kinds[k.Name].Complete
	pn.future = q.begin(pn.target.Key.String(), q.v.glance, func(ctx context.Context) error {
		pn.reading = q.read(ctx, pn.target)
		if !whole || !pn.reading.more() {
			return pn.reading.err
		}
		found, err := q.search(ctx, k, understudy.SearchAsk{Text: condition(k.Field(flt.Field), flt, number), Sort: "oldest", Facets: true, Limit: 1})
		if err != nil || found.Total == nil || found.Total.AtLeast {
			return nil // the page says that there may be more
		}
		for _, h := range q.hits(found) {
			pn.total = found.Total.N
			pn.oldest, _ = timeOf(k, h.row)
		}
		return nil
	})
	return pn
}

// own are our own numbers, as far as they are known by now.
func (q numberView) own() map[string]bool {
	own := map[string]bool{}
	for _, o := range q.n.owns {
		if o.over() {
			q.addOwn(own, o.kind, o.newest)
			q.addOwn(own, o.kind, o.record)
		}
	}
	return own
}

// contact says when the number was in contact, and with whom.
func (q numberView) contact() *contact {
	c := &contact{Partners: q.partners()}
	var first, last time.Time
	for _, pn := range q.n.panels {
		r := pn.wait()
		c.Partial = c.Partial || r.more() && pn.oldest.IsZero() || q.missing(r) != ""
		if first.IsZero() || !pn.oldest.IsZero() && pn.oldest.Before(first) {
			first = pn.oldest
		}
		for _, row := range r.rows() {
			if t, ok := timeOf(pn.kind.Kind, row); ok {
				last = later(last, t)
				if first.IsZero() || t.Before(first) {
					first = t
				}
			}
		}
	}
	if !last.IsZero() {
		l, f := say(last, q.start, q.zone, false), say(first, q.start, q.zone, false)
		c.Last, c.First = &l, &f
	}
	return c
}

func (q numberView) drawPanel(pn *panel) *relatedList {
	s := q.cellContext(pn.kind.Kind, nil, q.n.marked)
	s.filters = q.phoneFilters(pn.kind.List)
	// This number is on every row.
	columns := slices.DeleteFunc(q.columnsOf(pn.kind.Kind), func(c *plan.Column) bool { return c == pn.end.Column })
	r := pn.wait()
	l := q.glimpseOf(pn.target, r, pn.title(), s, columns, r.rows())
	if rows := min(len(r.rows()), maxRows); pn.total > int64(rows) {
		l.Shown = thousands(int64(rows)) + " of " + thousands(pn.total)
	}
	return l
}

// glimpseOf draws one list of the page.
func (q numberView) glimpseOf(t *understudy.Target, r reading, title string, s *cellContext, columns []*plan.Column, rows []access.Row) *relatedList {
	return &relatedList{
		Kind: s.kind, Title: title, Href: q.source.Place(t), Problem: q.missing(r), AsOf: q.agedAt(r.answer),
		Shown: shown(rows, r.more()), Table: s.table(title, columns, rows[:min(len(rows), maxRows)]),
	}
}

// mentions are the newest records of a kind that is counted (alerts) which
// hold the number, or name a record of this page. Upstream cannot be asked for
// that, so its newest page is looked through, and the page says so.
func (q numberView) mentions(title string, w *asked) *relatedList {
	ids := map[string]bool{}
	for _, pn := range q.n.panels {
		for _, row := range pn.wait().rows() {
			ids[row.ID] = true
		}
	}
	delete(ids, "")
	k := q.source.ByName[w.target.Kind.Name]
	all := w.wait().rows()
	digits := strings.TrimPrefix(q.n.number, "+")
	rows := slices.DeleteFunc(slices.Clone(all), func(row access.Row) bool {
		return !slices.ContainsFunc(row.Fields(), func(v access.Value) bool {
			return v.State == access.Seen && (ids[v.Text] || len(digits) > 6 && strings.Contains(v.Text, digits))
		})
	})
	l := q.glimpseOf(w.target, w.wait(), title, q.cellContext(k, nil, q.n.marked), q.columnsOf(k), rows)
	l.Shown = fmt.Sprintf("%s of the newest %s name it or a record above", thousands(int64(len(rows))), thousands(int64(len(all))))
	return l
}

// partners are the numbers most often at the other end.
func (q numberView) partners() []partner {
	counts := map[string]int64{}
	for _, pn := range q.n.panels {
		if !q.offersBoth(pn.kind) {
			continue
		}
		other := pn.kind.Ends[0]
		if other.Column == pn.end.Column {
			other = pn.kind.Ends[1]
		}
		for _, row := range pn.wait().rows() {
			if v := row.Field(other.Column.Name); v.State == access.Seen && plan.IsNumber(v.Text) {
				counts[v.Text]++
			}
		}
	}
	delete(counts, q.n.number)
	var all []partner
	for _, other := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}) {
		if len(all) < maxPartners {
			all = append(all, partner{other, plan.GroupPhone(other), q.source.NumberHref(q.n.number) + "/" + other, counts[other], q.n.marked[other]})
		}
	}
	return all
}
