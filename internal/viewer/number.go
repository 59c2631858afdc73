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

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/viewer/actions"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// The bounds of a number's page.
const (
	maxPanels   = 6 // lists asked for the number
	maxPartners = 5 // other numbers named
	maxTurns    = 4 // messages shown of the newest conversation
)

// numberPage is what number.html shows.
type numberPage struct {
	Number string // as upstream writes it
	Shown  string // in groups
	Own    bool   // it is known to be one of ours
	Data   string
	Acts   []page.Link // the actions that take the number
	Parts  *page.Parts

	Removing []page.Link // the actions that erase it
}

// contact is when the number was in contact with us, as far as its lists say.
type contact struct {
	Last     *page.When // newest contact on this page
	First    *page.When // oldest contact on this page
	Partial  bool       // a list is missing or goes on: there may be more
	Partners []partner
	Recent   *messages // the end of the newest conversation; nil: there is none to show
}

// partner is a number in contact with the page's own, as far as shown.
type partner struct {
	Number, Shown, Href string
	Count               int64
	Own                 bool
}

// panel is one list asked for the number at one end of its records.
type panel struct {
	Asked  *page.Asked
	kind   *plan.Contact
	end    plan.End
	total  int64     // records beyond the page and on it, when all of the kind are held; 0: not known
	oldest time.Time // of them
}

// title is what the page calls the list.
func (pn *panel) title() string {
	return plan.UpperFirst(pn.kind.Kind.Spec.Title) + " " + pn.end.Column.Words
}

// numberReads are what a number's page is made of, all read at once.
type numberReads struct {
	number  string
	panels  []*panel
	owns    []*owner
	watched []*page.Asked   // the newest of kinds that are counted
	marked  map[string]bool // our own numbers, as the part that is drawn marks them
}

// serveNumber shows what is known of a number.
func serveNumber(q *page.Exchange) error {
	number, err := readNumber(q, "number")
	if err != nil {
		return err
	}
	if q.R.URL.RawQuery != "" {
		return page.BadRequest("This page takes no parameters", "Filter the lists it leads to.", nil)
	}
	if err := page.Audit(q, understudy.AuditEntry{Action: understudy.ActionSearch, What: "number", Values: []string{number}}); err != nil {
		return err
	}
	n := &numberReads{number: number, panels: makePanels(q, number)}
	for _, k := range q.Source.OwnKinds {
		if q.Rights.OwnVisible(k) {
			n.owns = append(n.owns, readOwner(q, k, number))
		}
	}
	for _, k := range q.Source.Kinds {
		if k.Spec.Rollup != "" && k.Browsable() && q.Rights.Gate.Read(q.Rights.Caller, k.PlannedLists[0].Newest) == nil {
			n.watched = append(n.watched, q.Beside(k.PlannedLists[0].Newest))
		}
	}
	p := &numberPage{Number: number, Shown: plan.GroupPhone(number), Data: q.Source.NumberHref(number) + page.DataSuffix}
	p.Parts = numberView{q, n}.numberParts()
	if q.Data != "" {
		return numberView{q, n}.numberData()
	}
	p.Own = numberView{q, n}.own()[number]
	if p.Acts = actions.With(q, q.Source, number, p.Own); !p.Own {
		p.Removing = actions.ErasePerson(q, number)
	}
	return q.Render(http.StatusOK, "number", p.Shown, p)
}

// numberView draws the page of a number.
type numberView struct {
	q *page.Exchange
	n *numberReads
}

// numberParts are the page's parts, each drawn from what it needs.
func (v numberView) numberParts() *page.Parts {
	var panes []*page.Future
	for _, pn := range v.n.panels {
		panes = append(panes, pn.Asked.Future)
	}
	made := func() (all []any) { // of what all lists say
		for _, pn := range v.n.panels {
			all = append(append(all, pn.Asked.Wait().Made(v.q)...), pn.total, pn.oldest)
		}
		return all
	}
	all := []*page.Part{{Title: "Contact", Needs: panes, Of: made, Draw: func() (string, any) {
		c := v.contact()
		c.Recent = v.newestConversation()
		return "contact", c
	}}}
	for _, o := range v.n.owns {
		of := func() []any { return append(o.newest.Made(v.q), append(o.record.Made(v.q), o.kind.Spec.Name)...) }
		all = append(all, &page.Part{Title: "Our own numbers", Needs: []*page.Future{o.Future}, Of: of, Draw: func() (string, any) {
			if l := v.drawOwner(o); l != nil {
				return "glimpse", l
			}
			return "", nil
		}})
	}
	for _, pn := range v.n.panels {
		of := func() []any { return append(pn.Asked.Wait().Made(v.q), pn.total, pn.oldest) }
		draw := func() (string, any) { return "glimpse", v.drawPanel(pn) }
		all = append(all, &page.Part{Title: pn.title(), Needs: []*page.Future{pn.Asked.Future}, Of: of, Draw: draw})
	}
	for _, w := range v.n.watched {
		title := plan.UpperFirst(w.Target.Kind.Title) + " about it"
		of := func() []any { return append(made(), w.Wait().Made(v.q)...) }
		draw := func() (string, any) { return "glimpse", v.mentions(title, w) }
		all = append(all, &page.Part{Title: title, Needs: slices.Concat(panes, []*page.Future{w.Future}), Of: of, Draw: draw})
	}
	for _, one := range all {
		of := one.Of
		one.Of = func() []any { v.n.marked = v.own(); return append(of(), v.n.marked) }
	}
	return v.q.Parts("number", all...)
}

// readNumber returns a number of the address. A caller that may not filter by any
// number is refused for every number: the page would tell of what is hidden.
func readNumber(q *page.Exchange, name string) (string, error) {
	if len(q.Source.Contacts) == 0 {
		return "", page.NotFound(q.Source.Spec.Title+" has no pages of numbers", "None of its kinds can be asked for a number.", "")
	}
	if len(q.Rights.ContactKinds(q.Source)) == 0 {
		role, t := q.Rights.Caller.Role(), q.Source.Contacts[0]
		return "", &page.Problem{
			Title: "Your role does not show whole numbers", Kind: understudy.ErrForbidden,
			Hint: "The page of a number is a filter on what role " + role + " does not fully see." +
				q.Rights.RemedyOf(t.Kind, t.Ends[0].Column.Spec.Name, t.Ends[1].Column.Spec.Name),
		}
	}
	text := q.R.PathValue(name)
	if q.Data != "" {
		text = strings.TrimSuffix(text, page.DataSuffix)
	}
	if !plan.IsNumber(text) {
		return "", page.NotFound(understudy.Clip(text)+" is no phone number", "Write it in full with + and country code, as in +15551234567.",
			page.SearchAddress("/search", query.SearchRequest{Text: text}))
	}
	return text, nil
}

// makePanels returns the lists the caller may ask for the number.
func makePanels(q *page.Exchange, number string) []*panel {
	var all []*panel
	for _, t := range q.Rights.ContactKinds(q.Source) {
		for _, e := range t.Ends {
			if !q.Rights.Offers(t.List, e.Filter) || len(all) == maxPanels {
				continue
			}
			target, err := t.Target(understudy.Query{{Name: t.List.Spec.Filters[e.Filter].Name, Value: number}})
			if err == nil {
				all = append(all, readPanel(q, &panel{Asked: &page.Asked{Target: target}, kind: t, end: e}, number))
			}
		}
	}
	return all
}

// readPanel begins to read a list of the number. When it goes on, and all records of
// the kind are held, those are counted.
func readPanel(q *page.Exchange, pn *panel, number string) *panel {
	k, flt := pn.kind.Kind, pn.kind.List.Spec.Filters[pn.end.Filter]
	whole := q.V.Options.Search != nil && q.Rights.Counts(k) && q.V.Snapshots.Of(q, q.Source).Kinds[k.Spec.Name].Complete
	pn.Asked.Future = q.Tasks.Begin(pn.Asked.Target.Key.String(), q.V.Glance, func(ctx context.Context) error {
		pn.Asked.Reading = q.Read(ctx, pn.Asked.Target)
		if !whole || !pn.Asked.Reading.More() {
			return pn.Asked.Reading.Err
		}
		is, ok := page.Condition(k.Spec.Field(flt.Field), flt, number)
		if !ok {
			return nil // the page says that there may be more
		}
		found, err := q.Search(ctx, q.Source, k, query.SearchRequest{Where: []query.FieldCondition{is}, Sort: "oldest", Facets: true, Limit: 1})
		if err != nil || found.Total == nil || found.Total.AtLeast {
			return nil // the page says that there may be more
		}
		for _, h := range q.Rights.Hits(q.Ctx, found) {
			pn.total = found.Total.N
			pn.oldest, _ = page.TimeOf(k, h.Row)
		}
		return nil
	})
	return pn
}

// own are our own numbers, as far as they are known by now.
func (v numberView) own() map[string]bool {
	own := map[string]bool{}
	for _, o := range v.n.owns {
		if o.Future.Over() {
			v.q.V.Numbers.Add(own, v.q.Rights.Caller.Role(), o.kind, o.newest)
			v.q.V.Numbers.Add(own, v.q.Rights.Caller.Role(), o.kind, o.record)
		}
	}
	return own
}

// contact says when the number was in contact, and with whom.
func (v numberView) contact() *contact {
	c := &contact{Partners: v.partners()}
	var first, last time.Time
	for _, pn := range v.n.panels {
		r := pn.Asked.Wait()
		c.Partial = c.Partial || r.More() && pn.oldest.IsZero() || r.Missing(v.q) != ""
		if first.IsZero() || !pn.oldest.IsZero() && pn.oldest.Before(first) {
			first = pn.oldest
		}
		for _, row := range r.Rows() {
			if t, ok := page.TimeOf(pn.kind.Kind, row); ok {
				last = page.Later(last, t)
				if first.IsZero() || t.Before(first) {
					first = t
				}
			}
		}
	}
	if !last.IsZero() {
		l, f := v.q.Clock.Say(last, false), v.q.Clock.Say(first, false)
		c.Last, c.First = &l, &f
	}
	return c
}

// newestConversation returns the end of the conversation that the number had last, as far as its lists say; nil: there is none.
func (v numberView) newestConversation() *messages {
	var strands []direction
	for _, pn := range v.n.panels {
		if v.q.Rights.OffersBoth(pn.kind) {
			strands = append(strands, direction{Asked: pn.Asked, kind: pn.kind, byA: pn.end.Column == pn.kind.Ends[0].Column})
		}
	}
	p := &messages{A: findParty(v.q, v.n.number, v.n.marked)}
	turns, _ := mergeStrands(v.q, strands, time.Time{}, p)
	turns = slices.DeleteFunc(turns, func(t message) bool { return t.other == "" || t.other == v.n.number })
	if len(turns) == 0 {
		return nil
	}
	other := turns[len(turns)-1].other
	turns = slices.DeleteFunc(turns, func(t message) bool { return t.other != other })
	p.B = findParty(v.q, other, v.n.marked)
	p.Newest = v.q.Source.NumberHref(v.n.number) + "/" + other + "#newest"
	p.Days = groupDays(v.q, turns[max(0, len(turns)-maxTurns):])
	return p
}

func (v numberView) drawPanel(pn *panel) *relatedList {
	s := v.q.CellContext(pn.kind.Kind, nil, v.n.marked)
	s.Filters = v.q.Rights.PhoneFilters(pn.kind.List)
	// This number is on every row.
	columns := slices.DeleteFunc(v.q.Rights.ColumnsOf(pn.kind.Kind), func(c *plan.Column) bool { return c == pn.end.Column })
	r := pn.Asked.Wait()
	l := v.glimpseOf(pn.Asked.Target, r, pn.title(), s, columns, r.Rows())
	if rows := min(len(r.Rows()), maxRows); pn.total > int64(rows) {
		l.Shown = page.Thousands(int64(rows)) + " of " + page.Thousands(pn.total)
	}
	return l
}

// glimpseOf draws one list of the page.
func (v numberView) glimpseOf(t *spec.Target, r page.Reading, title string, s *page.CellContext, columns []*plan.Column,
	rows []access.Row) *relatedList {
	return &relatedList{
		Kind: s.Kind, Title: title, Href: v.q.Source.Place(t), Problem: r.Missing(v.q), AsOf: v.q.Clock.AgedAt(r.Answer),
		Shown: shown(rows, r.More()), Table: s.Table(title, columns, rows[:min(len(rows), maxRows)]),
	}
}

// mentions are the newest records of a kind that is counted (alerts) which hold the number, or name a record of this
// page. Upstream cannot be asked for that, so its newest page is looked through, and the page says so.
func (v numberView) mentions(title string, w *page.Asked) *relatedList {
	ids := map[string]bool{}
	for _, pn := range v.n.panels {
		for _, row := range pn.Asked.Wait().Rows() {
			ids[row.ID] = true
		}
	}
	delete(ids, "")
	k := v.q.Source.ByName[w.Target.Kind.Name]
	all := w.Wait().Rows()
	digits := strings.TrimPrefix(v.n.number, "+")
	rows := slices.DeleteFunc(slices.Clone(all), func(row access.Row) bool {
		return !slices.ContainsFunc(row.Fields(), func(v access.Value) bool {
			return v.State == access.Seen && (ids[v.Text] || len(digits) > 6 && strings.Contains(v.Text, digits))
		})
	})
	l := v.glimpseOf(w.Target, w.Wait(), title, v.q.CellContext(k, nil, v.n.marked), v.q.Rights.ColumnsOf(k), rows)
	l.Shown = fmt.Sprintf("%s of the newest %s name it or a record above", page.Thousands(int64(len(rows))), page.Thousands(int64(len(all))))
	return l
}

// partners are the numbers most often at the other end.
func (v numberView) partners() []partner {
	counts := map[string]int64{}
	for _, pn := range v.n.panels {
		if !v.q.Rights.OffersBoth(pn.kind) {
			continue
		}
		other := pn.kind.Ends[0]
		if other.Column == pn.end.Column {
			other = pn.kind.Ends[1]
		}
		for _, row := range pn.Asked.Wait().Rows() {
			if v := row.Field(other.Column.Spec.Name); v.State == access.Seen && plan.IsNumber(v.Text) {
				counts[v.Text]++
			}
		}
	}
	delete(counts, v.n.number)
	var all []partner
	for _, other := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}) {
		if len(all) < maxPartners {
			all = append(all, partner{other, plan.GroupPhone(other), v.q.Source.NumberHref(v.n.number) + "/" + other, counts[other],
				v.n.marked[other]})
		}
	}
	return all
}
