// Messages of a conversation: each call and message in its day, with who spoke.

package viewer

import (
	"cmp"
	"slices"
	"time"

	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/plan"
	"understudy/spec"
)

type party struct {
	Shown, Href string
	Own         bool
}

// day is the messages of one day of the reader's calendar.
type day struct {
	Title string
	Stamp string
	Turns []message
}

// message is one record of a conversation.
type message struct {
	ByA    bool
	Kind   string
	Href   string
	When   page.When
	Body   *page.Cell
	State  *page.Cell
	Facts  []page.Cell // counts and lengths that say something
	Failed bool

	at    time.Time
	raw   []byte
	other string // the number at the other end; "": the caller does not see it
}

// mergeStrands orders the messages of all directions in time, oldest first, down to where the first direction that
// goes on ends: below that some would be missing. older is that moment, zero when this is the beginning.
func mergeStrands(q *page.Exchange, strands []direction, before time.Time, p *messages) (turns []message, older time.Time) {
	for _, s := range strands {
		r := s.Asked.Wait()
		if why := r.Missing(q); why != "" {
			p.Problems = append(p.Problems, plan.UpperFirst(s.kind.Kind.Spec.Title)+" from "+findSender(q, p, s)+" are not loaded: "+why)
			continue
		}
		rows := r.Rows()
		oldest := q.Clock.Start.Add(-cmp.Or(r.Answer.Newest, r.Answer.CurrentAge())) // as the page says it is of, when it places none
		for _, row := range rows {
			t, ok := readMessage(q, s, row, before)
			if !ok {
				continue
			}
			oldest = page.Earlier(oldest, t.at)
			if before.IsZero() || !t.at.After(before) {
				turns = append(turns, t)
			}
		}
		if r.More() {
			older = page.Later(older, oldest)
		}
	}
	slices.SortStableFunc(turns, func(a, b message) int { return a.at.Compare(b.at) })
	if older.IsZero() {
		return turns, older
	}
	kept := slices.DeleteFunc(slices.Clone(turns), func(t message) bool { return !t.at.After(older) })
	if len(kept) == 0 { // a whole page within one second
		kept = slices.DeleteFunc(turns, func(t message) bool { return t.at.Before(older) })
		older = older.Add(-time.Second)
	}
	if !before.IsZero() && !older.Before(before) {
		older = before.Add(-time.Second) // every page is a step back
	}
	return kept, older
}

func findSender(q *page.Exchange, p *messages, s direction) string {
	if s.byA {
		return p.A.Shown
	}
	return p.B.Shown
}

// readMessage returns a record as a message. One without a time is placed by another of its times, on the newest page
// alone: upstream leaves it out when asked for a span.
func readMessage(q *page.Exchange, s direction, row access.Row, before time.Time) (message, bool) {
	k := s.kind.Kind
	at, ok := page.TimeOf(k, row)
	if !ok && before.IsZero() {
		at, ok = anyTime(k, row)
	}
	if !ok {
		return message{}, false
	}
	sheet := q.CellContext(k, nil, nil)
	t := message{ByA: s.byA, Kind: k.Spec.One, Href: sheet.RecordOf(row), When: q.Clock.Say(at, false),
		Failed: page.Failed(k, row), at: at, raw: row.Raw()}
	t.When.Text = at.In(q.Clock.Zone).Format("15:04")
	end := s.kind.Ends[0]
	if s.byA {
		end = s.kind.Ends[1]
	}
	if v := row.Field(end.Column.Spec.Name); v.State == access.Seen && plan.IsNumber(v.Text) {
		t.other = v.Text
	}
	for _, c := range k.Shown {
		if q.Rights.Level(k, c.Spec.Name) == access.Hide && c.Shape != plan.Prose {
			continue
		}
		drawMessageCell(q, &t, sheet, c, row)
	}
	return t, true
}

// drawMessageCell keeps what a message shows of one column: its words, its state, and the counts that are not zero.
func drawMessageCell(q *page.Exchange, t *message, s *page.CellContext, c *plan.Column, row access.Row) {
	cl := s.Cell(c, row, false)
	switch v := row.Field(c.Spec.Name); {
	case c.Shape == plan.Prose:
		t.Body = &cl
	case c.Shape == plan.Pill && t.State == nil && v.State == access.Seen:
		t.State = &cl
	case c.Shape == plan.Number && c.Spec.Class == "" && v.State == access.Seen && v.Text != "" && v.Text != "0":
		if l := s.Kind.CountedIn[c.Spec.Name]; l != nil && q.Rights.Gate.Read(q.Rights.Caller, l.Sample) == nil {
			cl.Href = t.Href // the record's page shows what is counted
		}
		t.Facts = append(t.Facts, cl)
	}
}

// anyTime is the first time a record has.
func anyTime(k *plan.Kind, row access.Row) (time.Time, bool) {
	for _, f := range k.Spec.Fields {
		if v := row.Field(f.Name); spec.IsTime(f.Type) && v.State == access.Seen {
			if t, dateOnly, ok := page.ParseDate(f.Type, v.Text); ok && !dateOnly {
				return t, true
			}
		}
	}
	return time.Time{}, false
}

// groupDays parts messages by the reader's calendar.
func groupDays(q *page.Exchange, turns []message) []day {
	var all []day
	for _, t := range turns {
		l := t.at.In(q.Clock.Zone)
		stamp := l.Format(time.DateOnly)
		if len(all) == 0 || all[len(all)-1].Stamp != stamp {
			all = append(all, day{Title: page.SayDay(l, q.Clock.Start.In(q.Clock.Zone)), Stamp: stamp})
		}
		d := &all[len(all)-1]
		d.Turns = append(d.Turns, t)
	}
	return all
}
