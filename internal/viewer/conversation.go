// Conversation: what passed between two numbers, of every kind and in both directions, merged in time.
//
//	calls from A to B  ─┐
//	calls from B to A  ─┤  newest page of each, cut where the
//	messages A to B    ─┤─> first of them ends: nothing older     ─> days
//	messages B to A    ─┘  would be complete

package viewer

import (
	"encoding/json"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

// ownBefore is the moment a page of a conversation ends at, the newest when there is none.
const ownBefore = understudy.OwnPrefix + "before"

// conversationPage is what conversation.html shows.
type conversationPage struct {
	A, B  party
	Held  *messages // nil: it is on its way
	Data  string
	Parts *page.Parts
	Kept  []template.HTML // all but Parts, as it was drawn before; nil: it is not
}

// messages is what passed, up to a moment. It is one part: what is older than the
// end of any direction is not on the page, so that every direction is waited for.
type messages struct {
	A, B     party
	Days     []day // oldest first, as one reads
	Size     int64
	Problems []string
	Older    string
	Newer    string
	Newest   string
	Back     *page.When // from when on everything is on this page; nil: from the first
	Bound    string     // what is not on this page, and why
	Late     bool       // it comes after the head of the page
	Acts     []page.Link

	all []message
}

// direction is one kind in one direction.
type direction struct {
	Asked *page.Asked
	kind  *plan.Contact
	byA   bool
}

// serveConversation shows what passed between two numbers.
func serveConversation(q *page.Exchange) error {
	a, err := readNumber(q, "number")
	if err != nil {
		return err
	}
	b, err := readNumber(q, "other")
	if err != nil {
		return err
	}
	before, back, err := readConversationParams(q)
	if err != nil {
		return err
	}
	strands := readDirections(q, a, b, before)
	if len(strands) == 0 {
		return &page.Problem{Title: "Your role does not show conversations", Hint: "Its kinds cannot be filtered by both numbers at once.",
			Kind: understudy.ErrForbidden}
	}
	if err := page.Audit(q, understudy.AuditEntry{Action: understudy.ActionSearch, What: "conversation", Values: []string{a, b}}); err != nil {
		return err
	}
	own := q.V.Numbers.Begin(q)
	var needs []*page.Future
	for _, st := range strands {
		needs = append(needs, st.Asked.Future)
	}
	base := "/" + q.Source.Name + "/" + plan.NumberWord + "/" + a + "/" + b
	late, marked := false, sync.OnceValue(func() map[string]bool { return own.Wait(q) })
	merged := sync.OnceValue(func() *messages {
		t := &messages{A: findParty(q, a, marked()), B: findParty(q, b, marked()), Late: late}
		var older time.Time
		t.all, older = mergeStrands(q, strands, before, t)
		t.Size, t.Days = int64(len(t.all)), groupDays(q, t.all)
		turnConversation(q, t, base, older, before, back)
		return t
	})
	made := func() []any {
		all := []any{marked(), late}
		for _, st := range strands {
			all = append(all, st.Asked.Wait().Made(q)...)
		}
		return all
	}
	p := &conversationPage{Data: conversationAddress(base+page.DataSuffix, before, nil)}
	draw := func() (string, any) { return "talked", merged() }
	p.Parts = q.Parts("conversation", &page.Part{Title: "What passed between them", Needs: needs, Of: made, Draw: draw})
	if q.Data != "" {
		return sendConversation(q, merged())
	}
	head := func() any {
		if !late {
			p.Held = merged()
		}
		p.A, p.B = findParty(q, a, marked()), findParty(q, b, marked())
		return p
	}
	if late = p.Parts.Late > 0; late {
		head()
	} else {
		of := q.Identity("conversation").With(q.V.Seed, made()...)
		if p.Kept, err = q.Reply.Keep(of, head, "conversation-head"); err != nil {
			return err
		}
	}
	return q.Render(http.StatusOK, "conversation", plan.GroupPhone(a)+" and "+plan.GroupPhone(b), p)
}

func findParty(q *page.Exchange, number string, own map[string]bool) party {
	return party{Shown: plan.GroupPhone(number), Href: q.Source.NumberHref(number), Own: own[number]}
}

// readConversationParams reads where the page ends, and the ends of the newer ones.
func readConversationParams(q *page.Exchange) (before time.Time, back []string, err error) {
	params, err := understudy.ParseQuery(q.R.URL.RawQuery)
	if err != nil {
		return before, nil, err
	}
	for _, p := range params {
		var t time.Time
		if p.Value != "" {
			if t, err = understudy.ParseTime(p.Value, time.UTC, time.RFC3339); err != nil {
				return before, nil, page.BadRequest(understudy.Clip(p.Name)+" wants a moment such as 2026-06-01T12:00:00Z",
					"Start again from the newest page.", nil)
			}
		}
		switch p.Name {
		case ownBefore:
			before = t.UTC()
		case page.OwnBack:
			back = append(back, p.Value)
		default:
			return before, nil, page.UnknownWord("parameter", p.Name, []string{ownBefore, page.OwnBack}, nil)
		}
	}
	return before, back[max(0, len(back)-page.MaxBack):], nil
}

// readDirections begins to read what the caller may ask: each kind with two ends, both ways, up to a moment.
func readDirections(q *page.Exchange, a, b string, before time.Time) []direction {
	var all []direction
	for _, t := range q.Rights.ContactKinds(q.Source) {
		if !q.Rights.OffersBoth(t) {
			continue
		}
		until := findUntil(q, t)
		if !before.IsZero() && until == nil {
			continue // it has no way to older records; the newest page said so
		}
		for _, byA := range []bool{true, false} {
			from, to := a, b
			if !byA {
				from, to = b, a
			}
			if !byA && a == b {
				continue // both ways are one
			}
			query := t.Between(from, to)
			if !before.IsZero() {
				// One second more than wanted: whether upstream counts the edge in is its own affair.
				query = append(query, understudy.Param{Name: until.Name, Value: page.WriteDate(until.Type, before.Add(time.Second))})
			}
			if target, err := t.Target(query); err == nil && len(all) < maxPanels {
				all = append(all, direction{Asked: q.Beside(target), kind: t, byA: byA})
			}
		}
	}
	return all
}

// findUntil returns the filter by which a kind's records are asked for up to a moment,
// nil when there is none the caller may use.
func findUntil(q *page.Exchange, t *plan.Contact) *spec.Filter {
	for i, f := range t.List.Spec.Filters {
		if f.Op == "until" && f.Field == t.Kind.Spec.Clock && q.Rights.Offers(t.List, i) {
			return f
		}
	}
	return nil
}

// conversationAddress is the conversation up to a moment, zero for now, with the ends of the newer pages.
func conversationAddress(path string, before time.Time, back []string) string {
	var query understudy.Query
	if !before.IsZero() {
		query = append(query, understudy.Param{Name: ownBefore, Value: before.UTC().Format(time.RFC3339)})
	}
	for _, b := range back[max(0, len(back)-page.MaxBack):] {
		query = append(query, understudy.Param{Name: page.OwnBack, Value: b})
	}
	return path + plan.WithQuery(query)
}

// turnConversation works out where Older, Newer and Newest lead, and says what is not here.
func turnConversation(q *page.Exchange, p *messages, base string, older, before time.Time, back []string) {
	here := ""
	if !before.IsZero() {
		here = before.Format(time.RFC3339)
		p.Newest = base
		if n := len(back); n > 0 {
			newer, _ := understudy.ParseTime(back[n-1], time.UTC, time.RFC3339) // it was read as one; "" is now
			p.Newer = conversationAddress(base, newer, back[:n-1])
		}
	}
	if older.IsZero() {
		return
	}
	p.Back, p.Bound = q.Clock.Moment(older), "What is older is on the next page."
	for _, t := range q.Rights.ContactKinds(q.Source) {
		if findUntil(q, t) == nil && q.Rights.OffersBoth(t) {
			p.Bound = "Older " + t.Kind.Spec.Title + " cannot be asked for by time."
		}
	}
	p.Older = conversationAddress(base, older, append(slices.Clone(back), here))
}

// sendConversation sends the page as data, oldest first.
func sendConversation(q *page.Exchange, p *messages) error {
	type turnData struct {
		Kind   string          `json:"kind"`
		From   string          `json:"from"`
		At     string          `json:"at"`
		Record json.RawMessage `json:"record"`
	}
	all := []turnData{}
	for _, t := range p.all {
		from := q.R.PathValue("number")
		if !t.ByA {
			from, _ = readNumber(q, "other")
		}
		all = append(all, turnData{t.Kind, from, t.at.UTC().Format(time.RFC3339), t.raw})
	}
	problems := p.Problems
	if problems == nil {
		problems = []string{}
	}
	return q.SendJSON(map[string]any{"turns": all, "older": p.Older, "problems": problems})
}
