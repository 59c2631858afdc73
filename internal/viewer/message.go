// The messages of a conversation: each call and message under its day, with its sender.

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

// day has the messages of one day in the reader's time zone.
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
	Facts  []page.Cell // the record's counts and durations, such as the number of segments, unless they are zero
	Failed bool

	at    time.Time
	raw   []byte
	other string // the phone number at the other end of the record; empty if the caller may not see it
}

// mergeDirections orders the messages of all directions by time, oldest first. If a direction has more pages, messages before
// the end of its page are left out. older is then the time of that end; it is zero if no message is left out.
func mergeDirections(q *page.Exchange, directions []direction, before time.Time, p *messages) (turns []message, older time.Time) {
	for _, s := range directions {
		r := s.Read.Wait()
		if why := r.MissingReason(q); why != "" {
			sender := p.B.Shown
			if s.isFromA {
				sender = p.A.Shown
			}
			p.Problems = append(p.Problems, plan.UpperFirst(s.kind.Kind.Spec.Title)+" from "+sender+" are not loaded: "+why)
			continue
		}
		rows := r.Rows()
		// the age of the answer is the fallback if no record of the page has a time
		oldest := q.Clock.Start.Add(-cmp.Or(r.Answer.Newest, r.Answer.CurrentAge()))
		for _, row := range rows {
			t, ok := readMessage(q, s, row, before)
			if !ok {
				continue
			}
			oldest = slices.MinFunc([]time.Time{oldest, t.at}, time.Time.Compare)
			if before.IsZero() || !t.at.After(before) {
				turns = append(turns, t)
			}
		}
		if r.HasMore() {
			older = slices.MaxFunc([]time.Time{older, oldest}, time.Time.Compare)
		}
	}
	slices.SortStableFunc(turns, func(a, b message) int { return a.at.Compare(b.at) })
	if older.IsZero() {
		return turns, older
	}
	kept := slices.DeleteFunc(slices.Clone(turns), func(t message) bool { return !t.at.After(older) })
	if len(kept) == 0 { // every message of the page has the same time, to the second
		kept = slices.DeleteFunc(turns, func(t message) bool { return t.at.Before(older) })
		older = older.Add(-time.Second)
	}
	if !before.IsZero() && !older.Before(before) {
		older = before.Add(-time.Second) // each older page must end at an earlier time than this page, so that the links do not repeat
	}
	return kept, older
}

// readMessage returns a record as a message. ok is false if the record has no time. On the newest page, a record
// without a value in its clock field may use another of its times.
func readMessage(q *page.Exchange, s direction, row access.Row, before time.Time) (message, bool) {
	k := s.kind.Kind
	at, ok := page.ClockTime(k, row)
	if !ok && before.IsZero() {
		at, ok = findFirstTime(k, row)
	}
	if !ok {
		return message{}, false
	}
	sheet := q.CellContext(k, nil, nil)
	t := message{ByA: s.isFromA, Kind: k.Spec.Singular, Href: sheet.RecordAddress(row), When: q.Clock.FormatMoment(at, false),
		Failed: page.HasFailed(k, row), at: at, raw: row.JSON()}
	t.When.Text = at.In(q.Clock.Zone).Format("15:04")
	end := s.kind.Ends[0]
	if s.isFromA {
		end = s.kind.Ends[1]
	}
	if v := row.Field(end.Column.Spec.Name); v.State == access.Seen && plan.IsNumber(v.Text) {
		t.other = v.Text
	}
	for _, c := range k.DefaultColumns {
		if q.Rights.Level(k, c.Spec.Name) == access.Hide && c.Shape != plan.Prose {
			continue
		}
		drawMessageCell(q, &t, sheet, c, row)
	}
	return t, true
}

// drawMessageCell adds one field of a record to its message: its text, its state, or a count unless it is zero.
func drawMessageCell(q *page.Exchange, t *message, s *page.CellContext, c *plan.Column, row access.Row) {
	cl := s.Cell(c, row, false)
	switch v := row.Field(c.Spec.Name); {
	case c.Shape == plan.Prose:
		t.Body = &cl
	case c.Shape == plan.Pill && t.State == nil && v.State == access.Seen:
		t.State = &cl
	case c.Shape == plan.Number && c.Spec.Class == "" && v.State == access.Seen && v.Text != "" && v.Text != "0":
		if l := s.Kind.CountedIn[c.Spec.Name]; l != nil && q.Rights.Gate.CheckRead(q.Rights.Caller, l.Sample) == nil {
			cl.Href = t.Href // the link leads to the record's page, which lists the counted records
		}
		t.Facts = append(t.Facts, cl)
	}
}

// findFirstTime returns the first of a record's fields that has a time.
func findFirstTime(k *plan.Kind, row access.Row) (time.Time, bool) {
	for _, f := range k.Spec.Fields {
		if v := row.Field(f.Name); spec.IsTimeType(f.Type) && v.State == access.Seen {
			if t, dateOnly, ok := page.ParseDate(f.Type, v.Text); ok && !dateOnly {
				return t, true
			}
		}
	}
	return time.Time{}, false
}

// groupDays groups messages by day in the reader's time zone.
func groupDays(q *page.Exchange, turns []message) []day {
	var all []day
	for _, t := range turns {
		l := t.at.In(q.Clock.Zone)
		stamp := l.Format(time.DateOnly)
		if len(all) == 0 || all[len(all)-1].Stamp != stamp {
			all = append(all, day{Title: page.FormatDay(l, q.Clock.Start.In(q.Clock.Zone)), Stamp: stamp})
		}
		d := &all[len(all)-1]
		d.Turns = append(d.Turns, t)
	}
	return all
}
