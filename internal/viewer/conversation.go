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
	"understudy/internal/access"
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

type speaker struct {
	Shown, Href string
	Own         bool
}

// day is the turns of one day of the reader's calendar.
type day struct {
	Title string
	Stamp string
	Turns []turn
}

// turn is one record of a conversation.
type turn struct {
	ByA    bool
	Kind   string
	Href   string
	When   when
	Body   *cell
	State  *cell
	Facts  []cell // counts and lengths that say something
	Failed bool

	at  time.Time
	raw []byte
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

// merge orders the turns of all strands in time, oldest first, down to where
// the first strand that goes on ends: below that some would be missing. older
// is that moment, zero when this is the beginning.
func (q *visit) merge(strands []strand, before time.Time, p *conversationPage) (turns []turn, older time.Time) {
	now := q.start
	for _, s := range strands {
		r := s.asked.reading
		if why := q.missing(r); why != "" {
			p.Problems = append(p.Problems, upperFirst(s.talk.kind.Title)+" from "+q.sender(p, s)+" are not loaded: "+why)
			continue
		}
		rows := r.rows()
		oldest := now
		for _, row := range rows {
			t, ok := q.turnOf(s, row, before)
			if !ok {
				continue
			}
			oldest = earlier(oldest, t.at)
			if before.IsZero() || !t.at.After(before) {
				turns = append(turns, t)
			}
		}
		if r.more() {
			older = later(older, oldest)
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return a.at.Compare(b.at) })
	if older.IsZero() {
		return turns, older
	}
	kept := slices.DeleteFunc(slices.Clone(turns), func(t turn) bool { return !t.at.After(older) })
	if len(kept) == 0 { // a whole page within one second
		kept = slices.DeleteFunc(turns, func(t turn) bool { return t.at.Before(older) })
		older = older.Add(-time.Second)
	}
	if !before.IsZero() && !older.Before(before) {
		older = before.Add(-time.Second) // every page is a step back
	}
	return kept, older
}

func (q *visit) sender(p *conversationPage, s strand) string {
	if s.byA {
		return p.A.Shown
	}
	return p.B.Shown
}

// turnOf is a record as a turn. One without a time is placed by another of its
// times, on the newest page alone: upstream leaves it out when asked for a
// span.
func (q *visit) turnOf(s strand, row access.Row, before time.Time) (turn, bool) {
	k := s.talk.kind
	at, ok := k.time(row)
	if !ok && before.IsZero() {
		at, ok = k.anyTime(row)
	}
	if !ok {
		return turn{}, false
	}
	sheet := q.sheet(k, nil, nil)
	t := turn{ByA: s.byA, Kind: k.One, Href: sheet.recordOf(row), When: say(at, q.start, q.zone, false), Failed: k.failed(row), at: at, raw: row.Raw()}
	t.When.Text = at.In(q.zone).Format("15:04")
	for _, c := range k.columns {
		if q.v.Gate.Level(q.caller, q.source.Name, k.Name, c.Name) == access.Hide && c.shape != prose {
			continue
		}
		q.turnCell(&t, sheet, c, row)
	}
	return t, true
}

// turnCell keeps what a turn shows of one column: its words, its state, and
// the counts that are not zero.
func (q *visit) turnCell(t *turn, s *sheet, c *column, row access.Row) {
	cl := q.cell(s, c, row, false)
	switch v := row.Field(c.Name); {
	case c.shape == prose:
		t.Body = &cl
	case c.shape == pill && t.State == nil && v.State == access.Seen:
		t.State = &cl
	case c.shape == number && c.Class == "" && v.State == access.Seen && v.Text != "" && v.Text != "0":
		if l := s.kind.counts[c.Name]; l != nil && q.v.Gate.Read(q.caller, l.sample) == nil {
			cl.Href = t.Href // the record's page shows what is counted
		}
		t.Facts = append(t.Facts, cl)
	}
}

// anyTime is the first time a record has.
func (k *kindPlan) anyTime(row access.Row) (time.Time, bool) {
	for _, f := range k.Fields {
		if v := row.Field(f.Name); isDate(f.Type) && v.State == access.Seen {
			if t, dateOnly, ok := parseDate(f.Type, v.Text); ok && !dateOnly {
				return t, true
			}
		}
	}
	return time.Time{}, false
}

// days parts turns by the reader's calendar.
func (q *visit) days(turns []turn) []day {
	var all []day
	for _, t := range turns {
		l := t.at.In(q.zone)
		stamp := l.Format(time.DateOnly)
		if len(all) == 0 || all[len(all)-1].Stamp != stamp {
			all = append(all, day{Title: sayDay(l, q.start.In(q.zone)), Stamp: stamp})
		}
		d := &all[len(all)-1]
		d.Turns = append(d.Turns, t)
	}
	return all
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
