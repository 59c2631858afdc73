// Number: everything that is known of one phone number, each part by itself.

package viewer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
)

// The bounds of a number's page.
const (
	maxPanes    = 6 // lists asked for the number
	maxPartners = 5 // other numbers named
)

// numberPage is what number.html shows.
type numberPage struct {
	Number   string // as upstream writes it
	Shown    string // in groups
	Own      bool
	Lists    []relatedList
	Last     *when // newest contact on this page
	First    *when // oldest contact on this page
	Partial  bool  // a list is missing or goes on: there may be more
	Partners []partner
	Data     string
}

// partner is a number in contact with the page's own, as far as shown.
type partner struct {
	Number, Shown, Href string
	Count               int64
	Own                 bool
}

// pane is one list asked for the number at one end of its records.
type pane struct {
	talk  *talk
	end   end
	asked part
}

// part is one target of a page of several, and what came.
type part struct {
	target  *understudy.Target
	reading reading
}

// number shows what is known of a number.
func (v *Viewer) number(q *visit) error {
	number, err := q.numbered("number")
	if err != nil {
		return err
	}
	if q.r.URL.RawQuery != "" {
		return badRequest("This page takes no parameters", "Filter the lists it leads to.", nil)
	}
	panes := q.panes(number)
	var owns, watched []part
	for _, k := range q.source.own {
		if q.ownVisible(k) {
			owns = append(owns, part{target: k.lists[0].newest})
		}
	}
	for _, k := range q.source.kinds {
		if k.Rollup != "" && k.browsable() && q.v.Gate.Read(q.caller, k.lists[0].newest) == nil {
			watched = append(watched, part{target: k.lists[0].newest})
		}
	}
	all := make([]*part, 0, len(panes)+len(owns)+len(watched))
	for i := range panes {
		all = append(all, &panes[i].asked)
	}
	for i := range owns {
		all = append(all, &owns[i])
	}
	for i := range watched {
		all = append(all, &watched[i])
	}
	q.readParts(all)
	p := q.numberPage(number, panes, owns, watched)
	if q.data != "" {
		return q.numberData(p, panes)
	}
	return q.render(http.StatusOK, "number", p.Shown, p)
}

// numbered is a number of the address. A caller who may not filter by any
// number is refused, whatever the number: the page would tell of what is
// hidden.
func (q *visit) numbered(name string) (string, error) {
	if len(q.source.talks) == 0 {
		return "", notFound(q.source.Spec.Title+" has no pages of numbers", "None of its kinds can be asked for a number.", "")
	}
	if len(q.talks(q.source)) == 0 {
		role := q.caller.Role()
		return "", &problem{
			Title: "Your role does not show whole numbers", kind: understudy.ErrForbidden,
			Hint: "The page of a number is a filter on what role " + role + " does not fully see. Whoever runs this server can allow it with a line such as roles: {" +
				role + ": {" + q.source.Name + ": {phone: see}}}.",
		}
	}
	text := q.r.PathValue(name)
	if q.data != "" {
		text = strings.TrimSuffix(text, dataSuffix)
	}
	if !isNumber(text) {
		return "", notFound(clip(text)+" is no phone number", "Write it in full with + and country code, as in +15551234567.", searchHref(text))
	}
	return text, nil
}

// readParts reads the targets of several parts at once.
func (q *visit) readParts(all []*part) {
	targets := make([]*understudy.Target, len(all))
	for i, p := range all {
		targets[i] = p.target
	}
	for i, r := range q.readAll(targets) {
		all[i].reading = r
	}
}

// panes are the lists the caller may ask for the number.
func (q *visit) panes(number string) []pane {
	var all []pane
	for _, t := range q.talks(q.source) {
		for _, e := range t.ends {
			if !q.offers(t.list, e.filter) || len(all) == maxPanes {
				continue
			}
			target, err := t.to(understudy.Query{{Name: t.list.Filters[e.filter].Name, Value: number}})
			if err == nil {
				all = append(all, pane{talk: t, end: e, asked: part{target: target}})
			}
		}
	}
	return all
}

func (q *visit) numberPage(number string, panes []pane, owns, watched []part) *numberPage {
	p := &numberPage{Number: number, Shown: groupPhone(number), Data: q.source.numberHref(number) + dataSuffix}
	own := map[string]bool{}
	for _, o := range owns {
		q.addOwn(own, q.source.byName[o.target.Kind.Name], o.reading)
	}
	for _, o := range owns {
		if l, ok := q.owner(number, o); ok {
			p.Lists, p.Own = append(p.Lists, l), true
			own[number] = true
		}
	}
	var first, last time.Time
	ids := map[string]bool{}
	for _, pn := range panes {
		rows := pn.asked.reading.rows()
		p.Partial = p.Partial || pn.asked.reading.more() || q.missing(pn.asked.reading) != ""
		for _, row := range rows {
			ids[row.ID] = true
			if t, ok := pn.talk.kind.time(row); ok {
				last = later(last, t)
				if first.IsZero() || t.Before(first) {
					first = t
				}
			}
		}
		s := q.sheet(pn.talk.kind, nil, own)
		s.filters = q.phoneFilters(pn.talk.list)
		columns := slices.DeleteFunc(q.columnsOf(pn.talk.kind), func(c *column) bool { return c == pn.end.column }) // this number on every row
		title := upperFirst(pn.talk.kind.Title) + " " + pn.end.column.title
		p.Lists = append(p.Lists, q.glimpseOf(pn.asked, title, s, columns, rows))
	}
	delete(ids, "")
	if !last.IsZero() {
		l, f := say(last, q.start, q.zone, false), say(first, q.start, q.zone, false)
		p.Last, p.First = &l, &f
	}
	p.Partners = q.partners(number, panes, own)
	for _, w := range watched {
		p.Lists = append(p.Lists, q.mentions(number, ids, w, own))
	}
	return p
}

// glimpseOf draws one list of the page.
func (q *visit) glimpseOf(p part, title string, s *sheet, columns []*column, rows []access.Row) relatedList {
	return relatedList{
		Kind: s.kind, Title: title, Href: q.source.place(p.target), Problem: q.missing(p.reading), AsOf: q.agedAt(p.reading.answer),
		Shown: shown(rows, p.reading.more()), Table: q.table(s, title, columns, rows[:min(len(rows), maxRows)]),
	}
}

// owner is our own record of the number, where it is one of ours. When the
// newest page does not have it and there are older ones, it is asked for.
func (q *visit) owner(number string, o part) (relatedList, bool) {
	k := q.source.byName[o.target.Kind.Name]
	rows := rowsOf(k, number, o.reading)
	if len(rows) == 0 && o.reading.more() {
		if t := q.ownTarget(k, number); t != nil {
			o = part{t, q.readAll([]*understudy.Target{t})[0]}
			rows = rowsOf(k, number, o.reading)
		}
	}
	if len(rows) == 0 {
		return relatedList{}, false
	}
	columns := slices.DeleteFunc(q.columnsOf(k), func(c *column) bool { return c.Name == k.Own })
	l := q.glimpseOf(o, "One of our own numbers", q.sheet(k, nil, nil), columns, rows)
	l.Shown, l.Href = "", q.source.place(k.lists[0].newest)
	return l, true
}

// rowsOf are the rows of our own record of a number.
func rowsOf(k *kindPlan, number string, r reading) []access.Row {
	return slices.DeleteFunc(r.rows(), func(row access.Row) bool {
		v := row.Field(k.Own)
		return v.State != access.Seen || v.Text != number
	})
}

// ownTarget asks for our own record of a number by a filter, nil when the list
// has none for it.
func (q *visit) ownTarget(k *kindPlan, number string) *understudy.Target {
	for i, f := range k.lists[0].Filters {
		if f.Field == k.Own && (f.Op == "is" || f.Op == "digits") && q.offers(k.lists[0], i) {
			t, err := q.source.Spec.Target(q.source.Name, k.lists[0].newest.Key.Path(), understudy.Query{{Name: f.Name, Value: number}}.String())
			if err == nil {
				return t
			}
		}
	}
	return nil
}

// mentions are the newest records of a kind that is counted (alerts) which
// hold the number, or name a record of this page. Upstream cannot be asked for
// that, so its newest page is looked through, and the page says so.
func (q *visit) mentions(number string, ids map[string]bool, w part, own map[string]bool) relatedList {
	k := q.source.byName[w.target.Kind.Name]
	all := w.reading.rows()
	digits := strings.TrimPrefix(number, "+")
	rows := slices.DeleteFunc(slices.Clone(all), func(row access.Row) bool {
		return !slices.ContainsFunc(row.Fields(), func(v access.Value) bool {
			return v.State == access.Seen && (ids[v.Text] || len(digits) > 6 && strings.Contains(v.Text, digits))
		})
	})
	l := q.glimpseOf(w, upperFirst(k.Title)+" about it", q.sheet(k, nil, own), q.columnsOf(k), rows)
	l.Shown = fmt.Sprintf("%s of the newest %s name it or a record above", thousands(int64(len(rows))), thousands(int64(len(all))))
	return l
}

// partners are the numbers most often at the other end.
func (q *visit) partners(number string, panes []pane, own map[string]bool) []partner {
	counts := map[string]int64{}
	for _, pn := range panes {
		if !q.offersBoth(pn.talk) {
			continue
		}
		other := pn.talk.ends[0]
		if other.column == pn.end.column {
			other = pn.talk.ends[1]
		}
		for _, row := range pn.asked.reading.rows() {
			if v := row.Field(other.column.Name); v.State == access.Seen && isNumber(v.Text) {
				counts[v.Text]++
			}
		}
	}
	delete(counts, number)
	var all []partner
	for _, other := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}) {
		if len(all) < maxPartners {
			all = append(all, partner{other, groupPhone(other), q.source.numberHref(number) + "/" + other, counts[other], own[other]})
		}
	}
	return all
}

// numberData is the page as data.
func (q *visit) numberData(p *numberPage, panes []pane) error {
	type listData struct {
		Kind    string            `json:"kind"`
		Field   string            `json:"field"`
		Href    string            `json:"href"`
		More    bool              `json:"more"`
		Problem string            `json:"problem,omitempty"`
		Records []json.RawMessage `json:"records"`
	}
	type partnerData struct {
		Number string `json:"number"`
		Count  int64  `json:"count"`
		Href   string `json:"href"`
	}
	out := struct {
		Number   string        `json:"number"`
		Own      bool          `json:"own"`
		First    string        `json:"first,omitempty"`
		Last     string        `json:"last,omitempty"`
		Partial  bool          `json:"partial"`
		Lists    []listData    `json:"lists"`
		Partners []partnerData `json:"partners"`
	}{Number: p.Number, Own: p.Own, Partial: p.Partial, Partners: []partnerData{}}
	if p.Last != nil {
		out.First, out.Last = p.First.Stamp, p.Last.Stamp
	}
	for _, pn := range panes {
		r := pn.asked.reading
		l := listData{
			Kind: pn.talk.kind.Name, Field: pn.end.column.Name, Href: q.source.place(pn.asked.target), More: r.more(), Problem: q.missing(r), Records: []json.RawMessage{},
		}
		for _, row := range r.rows() {
			l.Records = append(l.Records, row.Raw())
		}
		out.Lists = append(out.Lists, l)
	}
	for _, other := range p.Partners {
		out.Partners = append(out.Partners, partnerData{other.Number, other.Count, other.Href})
	}
	return q.sendJSON(out)
}

// sendJSON sends a value as data.
func (q *visit) sendJSON(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("viewer: %s: %w", q.r.URL.Path, err)
	}
	q.send(http.StatusOK, "application/json", append(body, '\n'))
	return nil
}
