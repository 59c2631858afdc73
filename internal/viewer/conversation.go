// The conversation page: the records of every kind exchanged between two numbers, in both directions, ordered by
// time.
//
//	calls from A to B  ─┐
//	calls from B to A  ─┤  newest page of each; cut where the
//	messages A to B    ─┤─> first page ends, because older      ─> days
//	messages B to A    ─┘  records would be incomplete

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

// paramBefore is the parameter with the moment at which a page of a conversation ends. Without it the newest page
// is shown.
const paramBefore = understudy.OwnPrefix + "before"

// conversationPage is the data of the template conversation.html.
type conversationPage struct {
	A, B       party
	Messages   *messages // the messages, or nil if they are sent later as a part of the page
	Data       string
	Parts      *page.Parts
	CachedHTML []template.HTML // the rendered HTML of the page without Parts, if it was cached for an earlier request; else nil
}

// messages are the records exchanged between two numbers up to a moment. The page shows them as one part, after the lists of
// all directions are read. Records older than the end of an incomplete list are left out, so that no direction has gaps.
type messages struct {
	A, B          party
	Days          []day // the days that have messages, oldest first
	Size          int64
	Problems      []string
	Older         string
	Newer         string
	Newest        string
	CompleteSince *page.When // the page shows every message since this moment; nil if it reaches back to the first message
	OlderNote     string     // a sentence that says which older records are not on this page, and why
	Late          bool       // whether the messages are sent later than the head of the page
	Actions       []page.Link

	all []message
}

// direction is the list of one kind's records that one of the two numbers sent to the other.
type direction struct {
	Read    *page.TargetRead
	kind    *plan.Contact
	isFromA bool
}

// serveConversation shows the records exchanged between two numbers.
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
	directions := readDirections(q, a, b, before)
	if len(directions) == 0 {
		return &page.Problem{Title: "Your role can't see conversations", Hint: "This needs lists that it can filter by both numbers at once.",
			Kind: understudy.ErrForbidden}
	}
	entry := understudy.AuditEntry{Action: understudy.ActionSearch, What: "conversation", Values: []string{a, b}}
	if err := page.WriteAudit(q, entry); err != nil {
		return err
	}
	own := q.V.Numbers.Begin(q)
	var needs []*page.Future
	for _, st := range directions {
		needs = append(needs, st.Read.Future)
	}
	base := "/" + q.Source.Name + "/" + plan.NumberWord + "/" + a + "/" + b
	late, marked := false, sync.OnceValue(func() map[string]bool { return own.Wait(q) })
	merged := sync.OnceValue(func() *messages {
		t := &messages{A: newParty(q, a, marked()), B: newParty(q, b, marked()), Late: late}
		var older time.Time
		t.all, older = mergeDirections(q, directions, before, t)
		t.Size, t.Days = int64(len(t.all)), groupDays(q, t.all)
		setConversationLinks(q, t, base, older, before, back)
		return t
	})
	made := func() []any {
		all := []any{marked(), late}
		for _, st := range directions {
			all = append(all, st.Read.Wait().Inputs(q)...)
		}
		return all
	}
	p := &conversationPage{Data: conversationAddress(base+page.DataSuffix, before, nil)}
	draw := func() (string, any) { return "talked", merged() }
	p.Parts = q.Parts("conversation", &page.Part{Title: "What passed between them", Needs: needs, Inputs: made, Draw: draw})
	if q.DataFormat != "" {
		return sendConversation(q, merged())
	}
	head := func() any {
		if !late {
			p.Messages = merged()
		}
		p.A, p.B = newParty(q, a, marked()), newParty(q, b, marked())
		return p
	}
	if late = p.Parts.PendingParts > 0; late {
		head()
	} else {
		of := q.Identity("conversation").With(q.V.Seed, made()...)
		if p.CachedHTML, err = q.Reply.RenderCached(of, head, "conversation-head"); err != nil {
			return err
		}
	}
	return q.Render(http.StatusOK, "conversation", plan.GroupPhone(a)+" and "+plan.GroupPhone(b), p)
}

func newParty(q *page.Exchange, number string, own map[string]bool) party {
	return party{Shown: plan.GroupPhone(number), Href: q.Source.NumberHref(number), Own: own[number]}
}

// readConversationParams parses the address: before is the moment at which the page ends, and back has the moments at
// which the newer pages end.
func readConversationParams(q *page.Exchange) (before time.Time, back []string, err error) {
	params, err := understudy.ParseQuery(q.R.URL.RawQuery)
	if err != nil {
		return before, nil, err
	}
	for _, p := range params {
		var t time.Time
		if p.Value != "" {
			if t, err = understudy.ParseTime(p.Value, time.UTC, time.RFC3339); err != nil {
				return before, nil, page.NewBadRequest(understudy.Clip(p.Name)+" needs a time like 2026-06-01T12:00:00Z",
					"Start again from the newest page.", nil)
			}
		}
		switch p.Name {
		case paramBefore:
			before = t.UTC()
		case page.ParamBack:
			back = append(back, p.Value)
		default:
			return before, nil, page.NewUnknownWord("parameter", p.Name, []string{paramBefore, page.ParamBack}, nil)
		}
	}
	return before, back[max(0, len(back)-page.MaxBack):], nil
}

// readDirections starts to read the lists of a conversation: both directions of each kind that has two ends and
// that the caller may filter by both.
func readDirections(q *page.Exchange, a, b string, before time.Time) []direction {
	var all []direction
	for _, t := range q.Rights.ContactKinds(q.Source) {
		if !q.Rights.CanFilterBoth(t) {
			continue
		}
		until := findUntilFilter(q, t)
		if !before.IsZero() && until == nil {
			continue // without a filter for the time, only the newest records of the kind can be shown
		}
		for _, byA := range []bool{true, false} {
			from, to := a, b
			if !byA {
				from, to = b, a
			}
			if !byA && a == b {
				continue // both directions are the same list if the two numbers are equal
			}
			query := t.NumberFilters(from, to)
			if !before.IsZero() {
				// Some APIs leave out records of exactly the moment in a filter, so the filter names the second after it.
				query = append(query, understudy.Param{Name: until.Name, Value: page.WriteDate(until.Type, before.Add(time.Second))})
			}
			if target, err := t.MakeTarget(query); err == nil && len(all) < maxNumberLists {
				all = append(all, direction{Read: q.StartRead(target), kind: t, isFromA: byA})
			}
		}
	}
	return all
}

// findUntilFilter returns the filter that requests a kind's records up to a moment. It returns nil if there is none
// that the caller may use.
func findUntilFilter(q *page.Exchange, t *plan.Contact) *spec.Filter {
	for i, f := range t.List.Spec.Filters {
		if f.Op == "until" && f.Field == t.Kind.Spec.Clock && q.Rights.CanFilter(t.List, i) {
			return f
		}
	}
	return nil
}

// conversationAddress returns the address of the conversation up to the moment before. A zero moment means now. back
// has the moments at which the newer pages end.
func conversationAddress(path string, before time.Time, back []string) string {
	var query understudy.Query
	if !before.IsZero() {
		query = append(query, understudy.Param{Name: paramBefore, Value: before.UTC().Format(time.RFC3339)})
	}
	for _, b := range back[max(0, len(back)-page.MaxBack):] {
		query = append(query, understudy.Param{Name: page.ParamBack, Value: b})
	}
	return path + plan.WithQuery(query)
}

// setConversationLinks sets the links to the older, the newer and the newest page. It sets a note if older records
// are not shown.
func setConversationLinks(q *page.Exchange, p *messages, base string, older, before time.Time, back []string) {
	here := ""
	if !before.IsZero() {
		here = before.Format(time.RFC3339)
		p.Newest = base
		if n := len(back); n > 0 {
			// readConversationParams has checked the text; an empty text means now
			newer, _ := understudy.ParseTime(back[n-1], time.UTC, time.RFC3339)
			p.Newer = conversationAddress(base, newer, back[:n-1])
		}
	}
	if older.IsZero() {
		return
	}
	p.CompleteSince, p.OlderNote = q.Clock.Moment(older), "What is older is on the next page."
	for _, t := range q.Rights.ContactKinds(q.Source) {
		if findUntilFilter(q, t) == nil && q.Rights.CanFilterBoth(t) {
			p.OlderNote = "Older " + t.Kind.Spec.Title + " can't be filtered by time."
		}
	}
	p.Older = conversationAddress(base, older, append(slices.Clone(back), here))
}

// sendConversation sends the page as JSON, oldest record first.
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
