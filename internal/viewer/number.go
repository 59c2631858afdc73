// The page of one phone number: whom it was in contact with, and its calls, messages and other records.

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

// The limits of a number's page.
const (
	maxNumberLists    = 6 // the maximum number of lists that the page reads
	maxPartners       = 5 // the maximum number of other phone numbers that the page shows
	maxRecentMessages = 4 // the number of messages shown from the newest conversation
)

// numberPage is the data of the template number.html.
type numberPage struct {
	Number  string // the phone number as upstream writes it
	Shown   string // the phone number with its digits in groups, for people
	Own     bool   // whether the phone number is known to be one of our own when the page is sent
	Data    string
	Actions []page.Link // links to the actions that can use the phone number
	Parts   *page.Parts

	DeleteActions []page.Link // links to the actions that delete the records of the phone number
}

// contact says when and with whom the number was in contact. It knows only the records that the lists of the page show.
type contact struct {
	Last     *page.When // the newest contact in the lists of this page
	First    *page.When // the oldest contact in the lists of this page
	Partial  bool       // whether there may be more contacts, because a list is missing or has more pages
	Partners []partner
	Recent   *messages // the last messages of the newest conversation; nil if the number has no conversation
}

// partner is a number that was in contact with the page's number.
type partner struct {
	Number, Shown, Href string
	Count               int64
	Own                 bool
}

// panel is one list of records that have the page's number at a certain end, such as the calls to the number.
type panel struct {
	Read   *page.TargetRead
	kind   *plan.Contact
	end    plan.End
	total  int64     // the number of matching records; 0 unless the search could count them all
	oldest time.Time // the time of the oldest matching record; zero if it is not known
}

func (pn *panel) title() string {
	return plan.UpperFirst(pn.kind.Kind.Spec.Title) + " " + pn.end.Column.Words
}

// numberReads are the reads in the background of the page of a number.
type numberReads struct {
	number     string
	panels     []*panel
	owners     []*ownNumberLookup
	rollups    []*page.TargetRead // the newest pages of kinds whose records are shown as counts, such as alerts
	ownNumbers map[string]bool    // the set of our own numbers that are known when a part of the page is drawn
}

// serveNumber shows what is known about a number.
func serveNumber(q *page.Exchange) error {
	number, err := readNumber(q, "number")
	if err != nil {
		return err
	}
	if q.R.URL.RawQuery != "" {
		return page.NewBadRequest("This page takes no parameters", "Use the filters of its lists.", nil)
	}
	entry := understudy.AuditEntry{Action: understudy.ActionSearch, What: "number", Values: []string{number}}
	if err := page.WriteAudit(q, entry); err != nil {
		return err
	}
	n := &numberReads{number: number, panels: readPanels(q, number)}
	for _, k := range q.Source.OwnKinds {
		if q.Rights.CanSeeOwnNumbers(k) {
			n.owners = append(n.owners, lookUpOwnNumber(q, k, number))
		}
	}
	for _, k := range q.Source.Kinds {
		if k.Spec.Rollup != "" && k.IsBrowsable() && q.Rights.Gate.CheckRead(q.Rights.Caller, k.PlannedLists[0].Newest) == nil {
			n.rollups = append(n.rollups, q.StartRead(k.PlannedLists[0].Newest))
		}
	}
	p := &numberPage{Number: number, Shown: plan.GroupPhone(number), Data: q.Source.NumberHref(number) + page.DataSuffix}
	p.Parts = numberView{q, n}.parts()
	if q.DataFormat != "" {
		return numberView{q, n}.sendNumber()
	}
	p.Own = numberView{q, n}.ownNumbers()[number]
	if p.Actions = actions.NumberLinks(q, q.Source, number, p.Own); !p.Own {
		p.DeleteActions = actions.ErasePerson(q, number)
	}
	return q.Render(http.StatusOK, "number", p.Shown, p)
}

// numberView renders the page of a number.
type numberView struct {
	q     *page.Exchange
	reads *numberReads
}

// parts returns the parts of the page. Each part is drawn as soon as the lists that it needs are read.
func (v numberView) parts() *page.Parts {
	var panes []*page.Future
	for _, pn := range v.reads.panels {
		panes = append(panes, pn.Read.Future)
	}
	made := func() (all []any) { // made returns all values that the lists are drawn from
		for _, pn := range v.reads.panels {
			all = append(append(all, pn.Read.Wait().Inputs(v.q)...), pn.total, pn.oldest)
		}
		return all
	}
	all := []*page.Part{{Title: "Contact", Needs: panes, Inputs: made, Draw: func() (string, any) {
		c := v.contact()
		c.Recent = v.newestConversation()
		return "contact", c
	}}}
	for _, o := range v.reads.owners {
		of := func() []any { return append(o.newest.Inputs(v.q), append(o.record.Inputs(v.q), o.kind.Spec.Name)...) }
		all = append(all, &page.Part{Title: "Our own numbers", Needs: []*page.Future{o.Future}, Inputs: of, Draw: func() (string, any) {
			if l := v.drawOwnNumber(o); l != nil {
				return "glimpse", l
			}
			return "", nil
		}})
	}
	for _, pn := range v.reads.panels {
		of := func() []any { return append(pn.Read.Wait().Inputs(v.q), pn.total, pn.oldest) }
		draw := func() (string, any) { return "glimpse", v.drawPanel(pn) }
		all = append(all, &page.Part{Title: pn.title(), Needs: []*page.Future{pn.Read.Future}, Inputs: of, Draw: draw})
	}
	for _, w := range v.reads.rollups {
		title := plan.UpperFirst(w.Target.Kind.Title) + " about it"
		of := func() []any { return append(made(), w.Wait().Inputs(v.q)...) }
		draw := func() (string, any) { return "glimpse", v.drawMentions(title, w) }
		all = append(all, &page.Part{Title: title, Needs: slices.Concat(panes, []*page.Future{w.Future}), Inputs: of, Draw: draw})
	}
	for _, one := range all {
		of := one.Inputs
		one.Inputs = func() []any { v.reads.ownNumbers = v.ownNumbers(); return append(of(), v.reads.ownNumbers) }
	}
	return v.q.Parts("number", all...)
}

// readNumber returns the phone number in the address. It returns an error if the caller may not filter any list by
// numbers, because the page would then reveal hidden numbers.
func readNumber(q *page.Exchange, name string) (string, error) {
	if len(q.Source.Contacts) == 0 {
		return "", page.NewNotFound(q.Source.Spec.Title+" has no pages of numbers", "None of its lists can be filtered by number.", "")
	}
	if len(q.Rights.ContactKinds(q.Source)) == 0 {
		role, t := q.Rights.Caller.Role(), q.Source.Contacts[0]
		return "", &page.Problem{
			Title: "Your role can't see whole numbers", Kind: understudy.ErrForbidden,
			Hint: "This page filters by the whole number, which the role " + role + " can't see." +
				q.Rights.RemedyOf(t.Kind, t.Ends[0].Column.Spec.Name, t.Ends[1].Column.Spec.Name),
		}
	}
	text := q.R.PathValue(name)
	if q.DataFormat != "" {
		text = strings.TrimSuffix(text, page.DataSuffix)
	}
	if !plan.IsNumber(text) {
		return "", page.NewNotFound(understudy.Clip(text)+" is not a phone number",
			"Write the whole number with + and the country code, like +15551234567.",
			page.SearchAddress("/search", query.SearchRequest{Text: text}))
	}
	return text, nil
}

// readPanels starts to read the lists that have the number at one end, if the caller may filter them by it.
func readPanels(q *page.Exchange, number string) []*panel {
	var all []*panel
	for _, t := range q.Rights.ContactKinds(q.Source) {
		for _, e := range t.Ends {
			if !q.Rights.CanFilter(t.List, e.Filter) || len(all) == maxNumberLists {
				continue
			}
			target, err := t.MakeTarget(understudy.Query{{Name: t.List.Spec.Filters[e.Filter].Name, Value: number}})
			if err == nil {
				all = append(all, readPanel(q, &panel{Read: &page.TargetRead{Target: target}, kind: t, end: e}, number))
			}
		}
	}
	return all
}

// readPanel starts to read a list that is filtered by the number. If the list has more pages and all records of the
// kind are stored, it also counts the matching records.
func readPanel(q *page.Exchange, pn *panel, number string) *panel {
	k, flt := pn.kind.Kind, pn.kind.List.Spec.Filters[pn.end.Filter]
	whole := q.V.Options.Search != nil && q.Rights.CanCount(k) && q.V.Snapshots.Get(q, q.Source).Kinds[k.Spec.Name].Complete
	pn.Read.Future = q.Tasks.Begin(pn.Read.Target.Key.String(), q.V.PartTimeout, func(ctx context.Context) error {
		pn.Read.Reading = q.Read(ctx, pn.Read.Target)
		if !whole || !pn.Read.Reading.HasMore() {
			return pn.Read.Reading.Err
		}
		is, ok := page.Condition(k.Spec.Field(flt.Field), flt, number)
		if !ok {
			return nil // without the count, the page says that there may be more contacts
		}
		found, err := q.Search(ctx, q.Source, k, query.SearchRequest{Where: []query.FieldCondition{is}, Sort: "oldest", Facets: true, Limit: 1})
		if err != nil || found.Total == nil || found.Total.AtLeast {
			return nil // without the count, the page says that there may be more contacts
		}
		for _, h := range q.Rights.Hits(q.Ctx, found) {
			pn.total = found.Total.N
			pn.oldest, _ = page.ClockTime(k, h.Row)
		}
		return nil
	})
	return pn
}

// ownNumbers returns the set of our own numbers in the answers that have been received so far.
func (v numberView) ownNumbers() map[string]bool {
	own := map[string]bool{}
	for _, o := range v.reads.owners {
		if o.Future.HasEnded() {
			v.q.V.Numbers.Add(own, v.q.Rights.Caller.Role(), o.kind, o.newest)
			v.q.V.Numbers.Add(own, v.q.Rights.Caller.Role(), o.kind, o.record)
		}
	}
	return own
}

// contact returns when and with whom the number was in contact, according to the lists of the page.
func (v numberView) contact() *contact {
	c := &contact{Partners: v.partners()}
	var first, last time.Time
	for _, pn := range v.reads.panels {
		r := pn.Read.Wait()
		c.Partial = c.Partial || r.HasMore() && pn.oldest.IsZero() || r.MissingReason(v.q) != ""
		if first.IsZero() || !pn.oldest.IsZero() && pn.oldest.Before(first) {
			first = pn.oldest
		}
		for _, row := range r.Rows() {
			if t, ok := page.ClockTime(pn.kind.Kind, row); ok {
				last = slices.MaxFunc([]time.Time{last, t}, time.Time.Compare)
				if first.IsZero() || t.Before(first) {
					first = t
				}
			}
		}
	}
	if !last.IsZero() {
		l, f := v.q.Clock.FormatMoment(last, false), v.q.Clock.FormatMoment(first, false)
		c.Last, c.First = &l, &f
	}
	return c
}

// newestConversation returns the last messages of the number's newest conversation, according to the lists of the
// page. It returns nil if there is none.
func (v numberView) newestConversation() *messages {
	var directions []direction
	for _, pn := range v.reads.panels {
		if v.q.Rights.CanFilterBoth(pn.kind) {
			directions = append(directions, direction{Read: pn.Read, kind: pn.kind, isFromA: pn.end.Column == pn.kind.Ends[0].Column})
		}
	}
	p := &messages{A: newParty(v.q, v.reads.number, v.reads.ownNumbers)}
	turns, _ := mergeDirections(v.q, directions, time.Time{}, p)
	turns = slices.DeleteFunc(turns, func(t message) bool { return t.other == "" || t.other == v.reads.number })
	if len(turns) == 0 {
		return nil
	}
	other := turns[len(turns)-1].other
	turns = slices.DeleteFunc(turns, func(t message) bool { return t.other != other })
	p.B = newParty(v.q, other, v.reads.ownNumbers)
	p.Newest = v.q.Source.NumberHref(v.reads.number) + "/" + other + "#newest"
	p.Days = groupDays(v.q, turns[max(0, len(turns)-maxRecentMessages):])
	return p
}

func (v numberView) drawPanel(pn *panel) *relatedList {
	s := v.q.CellContext(pn.kind.Kind, nil, v.reads.ownNumbers)
	s.Filters = v.q.Rights.PhoneFilters(pn.kind.List)
	// The column that always has the page's own number is left out.
	columns := slices.DeleteFunc(v.q.Rights.ColumnsOf(pn.kind.Kind), func(c *plan.Column) bool { return c == pn.end.Column })
	r := pn.Read.Wait()
	l := v.drawRelatedList(pn.Read.Target, r, pn.title(), s, columns, r.Rows())
	if rows := min(len(r.Rows()), maxRows); pn.total > int64(rows) {
		l.Shown = page.Thousands(int64(rows)) + " of " + page.Thousands(pn.total)
	}
	return l
}

func (v numberView) drawRelatedList(t *spec.Target, r page.Reading, title string, s *page.CellContext, columns []*plan.Column,
	rows []access.Row) *relatedList {
	return &relatedList{
		Kind: s.Kind, Title: title, Href: v.q.Source.Place(t), Problem: r.MissingReason(v.q), AsOf: v.q.Clock.AnswerTime(r.Answer),
		Shown: rowCountText(rows, r.HasMore()), Table: s.Table(title, columns, rows[:min(len(rows), maxRows)]),
	}
}

// drawMentions draws the newest records of a counted kind (such as alerts) that contain the number or the id of a record on this
// page. Upstream has no filter for that. So mentions reads only upstream's newest page, and the heading says so.
func (v numberView) drawMentions(title string, w *page.TargetRead) *relatedList {
	ids := map[string]bool{}
	for _, pn := range v.reads.panels {
		for _, row := range pn.Read.Wait().Rows() {
			ids[row.ID] = true
		}
	}
	delete(ids, "")
	k := v.q.Source.ByName[w.Target.Kind.Name]
	all := w.Wait().Rows()
	digits := strings.TrimPrefix(v.reads.number, "+")
	rows := slices.DeleteFunc(slices.Clone(all), func(row access.Row) bool {
		return !slices.ContainsFunc(row.Fields(), func(v access.Value) bool {
			return v.State == access.Seen && (ids[v.Text] || len(digits) > 6 && strings.Contains(v.Text, digits))
		})
	})
	l := v.drawRelatedList(w.Target, w.Wait(), title, v.q.CellContext(k, nil, v.reads.ownNumbers), v.q.Rights.ColumnsOf(k), rows)
	l.Shown = fmt.Sprintf("%s of the newest %s name it or a record above", page.Thousands(int64(len(rows))), page.Thousands(int64(len(all))))
	return l
}

// partners returns the phone numbers that most often called or wrote to the page's number, or received its calls and messages.
func (v numberView) partners() []partner {
	counts := map[string]int64{}
	for _, pn := range v.reads.panels {
		if !v.q.Rights.CanFilterBoth(pn.kind) {
			continue
		}
		other := pn.kind.Ends[0]
		if other.Column == pn.end.Column {
			other = pn.kind.Ends[1]
		}
		for _, row := range pn.Read.Wait().Rows() {
			if v := row.Field(other.Column.Spec.Name); v.State == access.Seen && plan.IsNumber(v.Text) {
				counts[v.Text]++
			}
		}
	}
	delete(counts, v.reads.number)
	var all []partner
	for _, other := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}) {
		if len(all) < maxPartners {
			all = append(all, partner{other, plan.GroupPhone(other), v.q.Source.NumberHref(v.reads.number) + "/" + other, counts[other],
				v.reads.ownNumbers[other]})
		}
	}
	return all
}
