// Conversation: what passed between two numbers, of every kind and in both
// directions, merged in time.
//
//	calls from A to B  ─┐
//	calls from B to A  ─┤  newest page of each, cut where the
//	messages A to B    ─┤─> first of them ends: nothing older     ─> days
//	messages B to A    ─┘  would be complete

package viewer

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"understudy"
)

// ownBefore is the moment a page of a conversation ends at, the newest when
// there is none.
const ownBefore = understudy.OwnPrefix + "before"

// conversationPage is what conversation.html shows.
type conversationPage struct {
	A, B     speaker
	Days     []day // oldest first, as one reads
	Size     int64
	Problems []string
	Older    string
	Newer    string
	Newest   string
	Bound    string // what is not on this page, and why
	Data     string
}

// strand is one kind in one direction.
type strand struct {
	talk  *talk
	byA   bool
	asked part
}

// conversation shows what passed between two numbers.
func (v *Viewer) conversation(q *visit) error {
	a, err := q.numbered("number")
	if err != nil {
		return err
	}
	b, err := q.numbered("other")
	if err != nil {
		return err
	}
	before, back, err := q.conversationParams()
	if err != nil {
		return err
	}
	strands := q.strands(a, b, before)
	if len(strands) == 0 {
		return &problem{Title: "Your role does not show conversations", Hint: "Its kinds cannot be filtered by both numbers at once.", kind: understudy.ErrForbidden}
	}
	own := q.v.numbers.begin(q)
	parts := make([]*part, len(strands))
	for i := range strands {
		parts[i] = &strands[i].asked
	}
	q.readParts(parts)
	marked := own.wait(q)
	p := &conversationPage{A: q.speaker(a, marked), B: q.speaker(b, marked)}
	turns, older := q.merge(strands, before, p)
	p.Size = int64(len(turns))
	p.Days = q.days(turns)
	q.turnConversation(p, a+"/"+b, before, older, back)
	if q.data != "" {
		return q.conversationData(p, turns)
	}
	return q.render(http.StatusOK, "conversation", p.A.Shown+" and "+p.B.Shown, p)
}

func (q *visit) speaker(number string, own map[string]bool) speaker {
	return speaker{Shown: groupPhone(number), Href: q.source.numberHref(number), Own: own[number]}
}

// conversationParams reads where the page ends, and the ends of the newer ones.
func (q *visit) conversationParams() (before time.Time, back []string, err error) {
	params, err := understudy.ParseQuery(q.r.URL.RawQuery)
	if err != nil {
		return before, nil, err
	}
	for _, p := range params {
		var t time.Time
		if p.Value != "" {
			if t, err = time.Parse(time.RFC3339, p.Value); err != nil {
				return before, nil, badRequest(clip(p.Name)+" wants a moment such as 2026-06-01T12:00:00Z", "Start again from the newest page.", nil)
			}
		}
		switch p.Name {
		case ownBefore:
			before = t.UTC()
		case ownBack:
			back = append(back, p.Value)
		default:
			return before, nil, unknownWord("parameter", p.Name, []string{ownBefore, ownBack}, nil)
		}
	}
	return before, back[max(0, len(back)-maxBack):], nil
}

// strands are what the caller may ask: each kind with two ends, both ways, up
// to a moment.
func (q *visit) strands(a, b string, before time.Time) []strand {
	var all []strand
	for _, t := range q.talks(q.source) {
		if !q.offersBoth(t) {
			continue
		}
		until := q.until(t)
		if !before.IsZero() && until == nil {
			continue // it has no way to older records; the newest page said so
		}
		for _, byA := range []bool{true, false} {
			from, to := a, b
			if !byA {
				from, to = b, a
			}
			query := t.between(from, to)
			if !before.IsZero() {
				// One second more than wanted: whether upstream counts the edge in is its own affair.
				query = append(query, understudy.Param{Name: until.Name, Value: writeDate(until.Type, before.Add(time.Second))})
			}
			if target, err := t.to(query); err == nil && len(all) < maxPanes {
				all = append(all, strand{talk: t, byA: byA, asked: part{target: target}})
			}
		}
		if a == b {
			all = all[:len(all)-1] // both ways are one
		}
	}
	return all
}

// until is the filter by which a talk's records are asked for up to a moment,
// nil when there is none the caller may use.
func (q *visit) until(t *talk) *understudy.Filter {
	for i, f := range t.list.Filters {
		if f.Op == "until" && f.Field == t.kind.Clock && q.offers(t.list, i) {
			return f
		}
	}
	return nil
}

// turnConversation works out where Older, Newer and Newest lead, and says what
// is not here.
func (q *visit) turnConversation(p *conversationPage, numbers string, before, older time.Time, back []string) {
	base := "/" + q.source.Name + "/" + numberWord + "/" + numbers
	address := func(suffix, before string, back []string) string {
		var query understudy.Query
		if before != "" {
			query = append(query, understudy.Param{Name: ownBefore, Value: before})
		}
		for _, b := range back[max(0, len(back)-maxBack):] {
			query = append(query, understudy.Param{Name: ownBack, Value: b})
		}
		return base + suffix + withQuery(query)
	}
	here := ""
	if !before.IsZero() {
		here = before.Format(time.RFC3339)
		p.Newest = address("", "", nil)
		if n := len(back); n > 0 {
			p.Newer = address("", back[n-1], back[:n-1])
		}
	}
	p.Data = address(dataSuffix, here, nil)
	if older.IsZero() {
		return
	}
	p.Bound = "Complete back to " + q.moment(older).Text + ". What is older is on the next page."
	for _, t := range q.talks(q.source) {
		if q.until(t) == nil && q.offersBoth(t) {
			p.Bound = "Complete back to " + q.moment(older).Text + ". Older " + t.kind.Title + " cannot be asked for by time."
		}
	}
	p.Older = address("", older.UTC().Format(time.RFC3339), append(slices.Clone(back), here))
}

// conversationData is the page as data, oldest first.
func (q *visit) conversationData(p *conversationPage, turns []turn) error {
	type turnData struct {
		Kind   string          `json:"kind"`
		From   string          `json:"from"`
		At     string          `json:"at"`
		Record json.RawMessage `json:"record"`
	}
	all := []turnData{}
	for _, t := range turns {
		from := q.r.PathValue("number")
		if !t.ByA {
			from, _ = q.numbered("other")
		}
		all = append(all, turnData{t.Kind, from, t.at.UTC().Format(time.RFC3339), t.raw})
	}
	problems := p.Problems
	if problems == nil {
		problems = []string{}
	}
	return q.sendJSON(map[string]any{"turns": all, "older": p.Older, "problems": problems})
}
