// Random questions to a store on SQLite and to one on PostgreSQL, whose answers are compared.

package store_test

import (
	"fmt"
	"strings"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/internal/store/storetest"
)

// drawQuery returns a query without a text. A few make no sense; both stores must then refuse them in the same words.
func (e *engines) drawQuery() (q query.RecordQuery) {
	some := func(n int) bool { return e.rng.IntN(n) == 0 }
	of := pick(e.rng, thingKinds)
	if !some(4) {
		q.Source = of.source
	}
	if !some(3) {
		q.Kinds = []string{of.kind}
	} else if some(2) && q.Source == "twilio" {
		q.Kinds = []string{"calls", "messages"}
	}
	if some(12) {
		q.Shape = pick(e.rng, append([]string{of.kind}, e.shapes...))
	}
	if some(20) {
		q.Parent = e.drawThing(of.source, of.kind).id
	}
	for some(20) || len(q.IDs) > 0 && !some(4) {
		q.IDs = append(q.IDs, e.drawThing(of.source, of.kind).id)
	}
	if some(8) {
		q.From, q.To = e.drawSpan()
	}
	for some(3) && len(q.Predicates) < 3 {
		q.Predicates = append(q.Predicates, e.drawPredicate())
	}
	if some(12) {
		q.Rule = append(q.Rule, e.drawPredicate())
	}
	if some(12) && q.Source != "" {
		q.Since = e.rng.Int64N(e.changes[q.Source] + 2)
	}
	if some(8) && len(e.orders) > 0 {
		q.Below = pick(e.rng, e.orders)
	}
	q.ConstantEffort, q.OldestFirst = some(4), some(2)
	if some(2) {
		q.Limit = 1 + e.rng.IntN(20)
	}
	if some(2) {
		q.ExpectedRows = e.rng.IntN(30)
	}
	return q
}

// drawSearch returns a query with a text, most often with few other conditions.
func (e *engines) drawSearch() query.RecordQuery {
	q := e.drawQuery()
	if e.rng.IntN(3) > 0 {
		q = query.RecordQuery{Source: q.Source, OldestFirst: q.OldestFirst, Limit: q.Limit, ExpectedRows: q.ExpectedRows}
	}
	q.Rule, q.Text = nil, e.drawText(e.rng.IntN(4))
	return q
}

// drawSpan returns times around a record's. At most one of them is 0.
func (e *engines) drawSpan() (from, to int64) {
	from = e.now.Load() - 86_400
	if len(e.things) > 0 {
		from = pick(e.rng, e.things).created + e.rng.Int64N(5) - 2
	}
	switch to = from + pick(e.rng, []int64{1, 3, 10_000, 20_000_000}); e.rng.IntN(4) {
	case 0:
		return 0, to
	case 1:
		return from, 0
	}
	return from, to
}

func (e *engines) drawPredicate() (p query.Predicate) {
	switch e.rng.IntN(6) {
	case 0:
		p.Number = pick(e.rng, people)
		p.Field = pick(e.rng, []string{"", "from", "to"})
	case 1, 2:
		p.From, p.To = e.drawSpan()
		p.Field = pick(e.rng, []string{"", "", "start_time", "end_time", "date_sent", "at"})
	default:
		p.Field = pick(e.rng, []string{"status", "status", "direction", "from", "to", "parent_call_sid", "caller_name", "sid", "nothing"})
		for range 1 + e.rng.IntN(3) {
			p.Any = append(p.Any, pick(e.rng, []string{"completed", "busy", "queued", "inbound", "7", "true", pick(e.rng, people),
				pick(e.rng, e.vocabulary), e.drawThing("twilio", "calls").id}))
		}
	}
	return p
}

// drawText returns a random text of words, beginnings and phrases, combined at most so many times.
func (e *engines) drawText(depth int) *query.Text {
	t := &query.Text{Op: query.TextOp(e.rng.IntN(6))}
	if depth == 0 {
		t.Op %= query.TextAnd
	}
	switch t.Op {
	case query.TextWord, query.TextPrefix:
		word := []rune(strings.ToValidUTF8(pick(e.rng, e.vocabulary), ""))
		if t.Op == query.TextPrefix && len(word) > 1 {
			word = word[:1+e.rng.IntN(len(word)-1)]
		}
		t.Words = []string{string(word)}
	case query.TextPhrase:
		t.Words, t.Prefix = []string{e.drawWords(2), e.drawWords(2)}, e.rng.IntN(2) == 0
	case query.TextNot:
		t.Parts = []*query.Text{e.drawText(depth - 1), e.drawText(depth - 1)}
	default:
		for range 1 + e.rng.IntN(3) {
			t.Parts = append(t.Parts, e.drawText(depth-1))
		}
	}
	if t.Op < query.TextAnd && e.rng.IntN(4) == 0 {
		t.Fields = map[string][]string{}
		for range e.rng.IntN(4) {
			kind := pick(e.rng, thingKinds).kind
			t.Fields[kind] = append(t.Fields[kind], pick(e.rng, []string{"body", "status", "direction", "error_message", "caller_name", "to"}))
		}
	}
	return t
}

// showPage returns all of a page as a text.
func showPage(p *understudy.Page) string {
	if p == nil {
		return "no page"
	}
	rest := *p
	rest.Body = nil
	return fmt.Sprintf("%#v %q", rest, p.Body)
}

// showRecord returns all of a record as a text.
func showRecord(r *understudy.Record) string {
	if r == nil {
		return "no record"
	}
	rest := *r
	rest.Body = nil
	return fmt.Sprintf("%#v %q", rest, r.Body)
}

// compareSeek asks for the records of a query, part after part if it has a limit, and for their number. It returns how many
// records each store found.
func (e *engines) compareSeek(q query.RecordQuery) (found int) {
	e.t.Helper()
	most := int64(e.rng.IntN(3) * 5)
	what := fmt.Sprintf("seek %+v, text %s", q, showText(q.Text))
	e.compare(what, func(s engine) (string, error) {
		var b strings.Builder
		next := q
		for part := 0; ; part++ {
			n := 0
			err := s.Seek(e.t.Context(), next, func(h query.Hit) bool {
				fmt.Fprintf(&b, "%s clock %d order %d\n", showRecord(h.Record), h.Clock, h.Order)
				n, next.Below, found = n+1, h.Order, found+1
				if len(e.orders) < 1000 {
					e.orders = append(e.orders, h.Order)
				}
				return true
			})
			if err != nil {
				return b.String(), err
			}
			if b.WriteString("\n"); n < q.Limit || q.Limit == 0 || part == 5 {
				break
			}
		}
		count, err := s.Count(e.t.Context(), q, most, time.Time{})
		return fmt.Sprintf("%scount %+v", &b, count), err
	})
	return found / len(e.all)
}

// showText returns a text as people can read it.
func showText(t *query.Text) string {
	if t == nil {
		return "none"
	}
	var parts []string
	for _, p := range t.Parts {
		parts = append(parts, showText(p))
	}
	return fmt.Sprintf("{op %d %q prefix %v fields %v (%s)}", t.Op, t.Words, t.Prefix, t.Fields, strings.Join(parts, " "))
}

// compareReads asks for the state of kinds, for changes, for windows, and for a few records and pages.
func (e *engines) compareReads() {
	e.t.Helper()
	of := pick(e.rng, thingKinds)
	e.compare("kinds of "+of.source, func(s engine) (string, error) {
		all, err := s.ReadKinds(e.t.Context(), of.source)
		return fmt.Sprintf("%#v", all), err
	})
	after, limit := e.rng.Int64N(e.changes[of.source]+2), 1+e.rng.IntN(30)
	e.compare(fmt.Sprintf("changes of %s after %d", of.source, after), func(s engine) (string, error) {
		all, err := s.ReadChanges(e.t.Context(), of.source, after, limit)
		if err != nil {
			return "", err
		}
		last, err := s.ReadLastChange(e.t.Context(), of.source)
		if err != nil {
			return "", err
		}
		edition, _, err := s.ReadEdition(e.t.Context(), of.source)
		return fmt.Sprintf("%#v, last %d, edition %d", all, last, edition), err
	})
	e.compareWindow(of.source, of.kind)
	e.compareRecord(e.drawThing(of.source, of.kind))
	if len(e.keys) > 0 {
		e.comparePage(pick(e.rng, e.keys))
	}
	if e.rng.IntN(3) > 0 {
		return
	}
	what := pick(e.rng, people)
	e.compare("find "+what, func(s engine) (string, error) {
		f, err := s.Find(e.t.Context(), "twilio", what)
		if err != nil {
			return "", err
		}
		waiting, err := s.CountWaiting(e.t.Context())
		if err != nil {
			return "", err
		}
		all, err := s.ReadErasures(e.t.Context(), 0, 5)
		return fmt.Sprintf("%v %d, waiting %#v, receipts %s", f.Kinds, f.Records(), waiting, showErasures(all...)), err
	})
}

// compareWindow asks for the records of a range of clocks, as they are now and as they were at a time.
func (e *engines) compareWindow(source, kind string) {
	e.t.Helper()
	w := query.RangeScan{Source: source, Kind: kind, Shape: pick(e.rng, []string{kind, kind, kind, "brief"}), NoClock: e.rng.IntN(4) == 0,
		NotFinal: e.rng.IntN(2) == 0, Limit: e.rng.IntN(3) * 7}
	if !w.NoClock && e.rng.IntN(2) == 0 {
		w.From, w.To = e.drawSpan()
	}
	if e.rng.IntN(4) == 0 {
		w.Parent = e.drawThing(source, kind).id
	}
	e.compare(fmt.Sprintf("rows of %+v", w), func(s engine) (string, error) {
		var b strings.Builder
		rows, err := s.ReadRows(e.t.Context(), w)
		if fmt.Fprintf(&b, "%#v", rows); err != nil || len(rows) == 0 || len(rows) < w.Limit {
			return b.String(), err
		}
		next := w
		next.Below.Clock, next.Below.Record = rows[len(rows)/2].Clock, rows[len(rows)/2].Record
		rows, err = s.ReadRows(e.t.Context(), next)
		fmt.Fprintf(&b, "%#v", rows)
		return b.String(), err
	})
	when := e.drawMoment()
	e.compare(fmt.Sprintf("records of %+v at %v", w, when), func(s engine) (string, error) {
		var b strings.Builder
		err := s.ScanRecordsAt(e.t.Context(), w, when, func(r *understudy.Record, clock int64) bool {
			fmt.Fprintf(&b, "%s clock %d\n", showRecord(r), clock)
			return true
		})
		return b.String(), err
	})
}

// drawMoment returns a time since the beginning, or the zero time, which is now.
func (e *engines) drawMoment() time.Time {
	if e.rng.IntN(4) == 0 {
		return time.Time{}
	}
	begun := storetest.Epoch.Unix()
	return time.Unix(begun+e.rng.Int64N(e.now.Load()-begun+1), 0).UTC()
}

// compareRecord asks for all of one record: as it is, as it was, where it stands, and its history.
func (e *engines) compareRecord(x *thing) {
	e.t.Helper()
	what, when := fmt.Sprintf("%s/%s %q", x.source, x.kind, x.id), e.drawMoment()
	for _, shape := range append([]string{x.kind}, e.shapes...) {
		e.compare("record "+what+" as "+shape, func(s engine) (string, error) {
			r, err := s.Record(e.t.Context(), x.source, x.kind, shape, x.id)
			return showRecord(r), err
		})
		e.compare(fmt.Sprint("record ", what, " as ", shape, " at ", when), func(s engine) (string, error) {
			r, err := s.RecordAt(e.t.Context(), x.source, x.kind, shape, x.id, when)
			return showRecord(r), err
		})
	}
	e.compare("place of "+what, func(s engine) (string, error) {
		n, err := s.FindPlace(e.t.Context(), x.source, x.kind, x.id)
		return fmt.Sprint(n), err
	})
	limit := e.rng.IntN(3) * 2
	e.compare("history of "+what, func(s engine) (string, error) {
		all, err := s.ReadHistory(e.t.Context(), x.source, x.kind, x.id, limit)
		var b strings.Builder
		for _, v := range all {
			body := v.Body
			v.Body = nil
			fmt.Fprintf(&b, "%#v %q\n", v, body)
		}
		return b.String(), err
	})
}

func (e *engines) comparePage(key understudy.Key) {
	e.t.Helper()
	e.compare("page "+key.String(), func(s engine) (string, error) {
		p, err := s.ReadPage(e.t.Context(), key)
		return showPage(p), err
	})
}
