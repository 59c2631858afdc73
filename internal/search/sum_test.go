// Sums, compared with sums made of every record anew.

package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/sample"
	"understudy/kit/e164"
	"understudy/spec"
)

// naive is a sum made of what an export gives: every match, read anew.
func (r *rig) naive(role string, q query.SumRequest) map[string]string {
	r.Helper()
	type group struct {
		count int
		sum   *big.Rat
	}
	all := map[string]*group{}
	_, err := r.s.Export(r.Context(), as(role), q.Search, func(h *query.SearchHit) error {
		var body map[string]any
		if err := json.Unmarshal(h.Body, &body); err != nil {
			return err
		}
		key, unit := "", ""
		for _, by := range q.By {
			key += r.naiveKey(h, body, by, q.Zone) + "|"
		}
		var value *big.Rat
		if q.Sum != query.SumCount {
			value, unit = naiveValue(r.spec.Kind(h.Kind), body, q.Sum)
		}
		key += unit
		g := all[key]
		if g == nil {
			g = &group{sum: new(big.Rat)}
			all[key] = g
		}
		if g.count++; value != nil {
			g.sum.Add(g.sum, value)
		}
		return nil
	}, func() error { return nil })
	if err != nil {
		r.Fatalf("%+v: %v", q, err)
	}
	out := map[string]string{}
	for key, g := range all {
		out[key] = fmt.Sprint(g.count, " ", g.sum.RatString())
	}
	return out
}

func (r *rig) naiveKey(h *query.SearchHit, body map[string]any, by string, zone *time.Location) string {
	text := func(name string) string {
		if v := body[name]; v != nil {
			return fmt.Sprint(v)
		}
		return ""
	}
	k := r.spec.Kind(h.Kind)
	switch by {
	case "kind":
		return h.Kind
	case "hour", "day", "week", "month":
		at := int64(0)
		for _, f := range query.TimeFields(k) {
			if at == 0 {
				at = spec.Unix(f.Type, []byte(text(f.Name)))
			}
		}
		if at == 0 {
			return ""
		}
		t := time.Unix(at, 0).In(zone)
		switch by {
		case "hour":
			return t.Format("2006-01-02T15:00Z07:00")
		case "week":
			for t.Weekday() != time.Monday {
				t = t.AddDate(0, 0, -1)
			}
		case "month":
			return t.Format("2006-01")
		}
		return t.Format(time.DateOnly)
	}
	if field, ok := strings.CutSuffix(by, ".country"); ok {
		if p := understudy.ParsePhone(text(field)); p.HasCountryCode {
			return e164.Country(p.Digits)
		}
		return ""
	}
	return text(by)
}

// naiveValue reads what is summed up; elapsed times by their spec.
func naiveValue(k *spec.Kind, body map[string]any, name string) (*big.Rat, string) {
	if e := k.ElapsedTime(name); e != nil {
		at := func(field string) int64 {
			text, _ := body[field].(string)
			return spec.Unix(k.Field(field).Type, []byte(text))
		}
		from, to := at(e.From), at(e.To)
		if from == 0 || to < from || e.When != nil && !slices.Contains(e.When.In, fmt.Sprint(body[e.When.Field])) {
			return nil, ""
		}
		return big.NewRat(to-from, 1), ""
	}
	unit := ""
	if f := k.Field(name); f.Unit != "" && body[f.Unit] != nil {
		unit = body[f.Unit].(string)
	}
	if body[name] == nil {
		return nil, unit
	}
	v, ok := new(big.Rat).SetString(fmt.Sprint(body[name]))
	if !ok {
		return nil, unit
	}
	return v, unit
}

// summed is a complete sum.
func (r *rig) summed(s *Searcher, role string, q query.SumRequest) *query.SumResult {
	r.Helper()
	q.Wait = time.Minute
	out, err := s.Sum(r.Context(), as(role), q)
	if err != nil {
		r.Fatalf("%+v as %s: %v", q, role, err)
	}
	if !out.Complete {
		r.Fatalf("%+v as %s: not complete: %q", q, role, out.Notes)
	}
	return out
}

func groupsIn(out *query.SumResult) map[string]string {
	all := map[string]string{}
	for _, row := range out.Rows {
		key := ""
		for _, k := range row.Key {
			key += k + "|"
		}
		total := new(big.Rat)
		if row.Sum != "" {
			total.SetString(row.Sum)
		}
		all[key+row.Unit] = fmt.Sprint(row.Count, " ", total.RatString())
	}
	return all
}

// sumCases are sums of every sort.
func sumCases(t testing.TB) []query.SumRequest {
	t.Helper()
	zone, err := time.LoadLocation("Australia/Adelaide") // half an hour off, with summer time
	if err != nil {
		t.Skip("no time zones here")
	}
	var all []query.SumRequest
	for _, one := range []struct {
		q, kind, sum string
		by           string
	}{
		{"", "messages", "price", "day"}, {"", "messages", "price", "status"}, {"", "messages", "count", "to.country direction"},
		{"", "messages", "delivery", "day"}, {"", "messages", "wait", "month"}, {"", "calls", "price", "week status"},
		{"", "calls", "duration", "hour"}, {"status:failed,undelivered", "messages", "count", "error_code"},
		{"price<-0.01 -status:failed", "messages", "price", "from"}, {"has:error_code OR no:price", "messages", "count", "status day"},
		{"your", "messages", "price", "day"}, {"body:* -code", "messages", "count", "day direction"},
		{"date:2026-05..2026-06", "", "count", "kind"}, {"", "", "count", "day kind"}, {"", "", "count", ""}, {"", "calls", "price", ""},
		{"duration>60 direction:inbound", "calls", "duration", "to"}, {"number:+15550100000", "", "count", "kind day"},
		{"", "recordings", "price", "day"}, {"xyzzy", "messages", "price", "day"},
	} {
		q := query.SumRequest{Search: query.SearchRequest{Text: one.q}, Sum: one.sum, By: strings.Fields(one.by), Zone: zone}
		if one.kind != "" {
			q.Search.Kinds = []string{one.kind}
		}
		all = append(all, q)
	}
	return all
}

// Sums are those of every record read anew: after records came, changed and went, for every
// sort of sum, from columns and from records.
func TestSumsAreThoseOfEveryRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	rng := rand.New(rand.NewPCG(sample.Seed(t), 2))
	rounds := sample.Count(2, 60)
	for round := range rounds {
		for _, q := range sumCases(t) {
			want := r.naive("open", q)
			if q.By != nil && slices.Contains(q.By, "day") && q.Search.Kinds == nil { // kinds without a date are left out
				continue
			}
			if got := groupsIn(r.summed(r.s, "open", q)); !maps.Equal(got, want) {
				t.Errorf("round %d: %s of %q by %q:\n got %v\nwant %v", round, q.Sum, q.Search.Text, q.By, got, want)
			}
		}
		r.changeSome(rng)
	}
}

// changeSome changes messages as upstream does, takes some away and brings new ones.
func (r *rig) changeSome(rng *rand.Rand) {
	r.Helper()
	var bodies []map[string]any
	_, err := r.s.Export(r.Context(), as("all"), query.SearchRequest{Kinds: []string{"messages"}}, func(h *query.SearchHit) error {
		var body map[string]any
		if rng.IntN(8) == 0 {
			if err := json.Unmarshal(h.Body, &body); err != nil {
				return err
			}
			bodies = append(bodies, body)
		}
		return nil
	}, func() error { return nil })
	if err != nil {
		r.Fatal(err)
	}
	for i, body := range bodies {
		id := body["sid"].(string)
		switch rng.IntN(5) {
		case 0:
			body["status"] = []string{"delivered", "failed", "undelivered"}[rng.IntN(3)]
		case 1:
			body["price"] = []any{nil, "-0.00750", "-12.123456789", "99999.5", "-1e-3"}[rng.IntN(5)]
			body["price_unit"] = []any{"USD", "EUR", "USD"}[rng.IntN(3)]
		case 2:
			body["body"] = "your code is " + fmt.Sprint(i)
			body["to"] = []string{"+447700900123", "+15550100000", "short"}[rng.IntN(3)]
		case 3:
			if _, _, err := r.store.ForgetRecord(r.Context(), "twilio", "messages", id); err != nil {
				r.Fatal(err)
			}
			continue
		case 4:
			body["sid"] = fmt.Sprintf("SM%032x", rng.Uint64())
			body["date_sent"] = epoch.Add(-time.Duration(rng.IntN(1000)) * time.Hour).Format(time.RFC1123Z)
		}
		r.saveMessage(body)
	}
}

func (r *rig) saveMessage(body map[string]any) {
	r.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		r.Fatal(err)
	}
	r.later += time.Second
	id := body["sid"].(string)
	p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/m/" + id}, Kind: "messages", Shape: "messages", ID: id, Status: 200,
		Body: raw, At: epoch.Add(r.later), Rows: []understudy.Row{{ID: id, Clock: query.UnixIn(r.spec.Kind("messages"), "date_sent", raw),
			End: len(raw)}}}
	if _, err := r.store.Save(r.Context(), p); err != nil {
		r.Fatal(err)
	}
}

// Every name that a role is offered, and that an error gives it, can be asked for: over all
// kinds at once one that hides a field from it takes the field's name away.
func TestNamesOfSumsWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	for _, role := range []string{"open", "support", "billing", "texts", "partial", "failed"} {
		for _, kinds := range [][]string{nil, {"messages"}, {"calls", "messages"}} {
			a := query.SearchRequest{Kinds: kinds}
			sums, by, err := r.s.SumNames(as(role), a)
			if err != nil {
				if !errors.Is(err, understudy.ErrForbidden) {
					t.Errorf("%s %v: %v", role, kinds, err)
				}
				continue
			}
			for _, sum := range sums {
				if err := r.s.CheckSum(as(role), query.SumRequest{Search: a, Sum: sum}); err != nil {
					t.Errorf("%s %v is offered sum=%s: %v", role, kinds, sum, err)
				}
			}
			for _, name := range by {
				q := query.SumRequest{Search: a, Sum: query.SumCount, By: []string{name}}
				if err := r.s.CheckSum(as(role), q); err != nil {
					t.Errorf("%s %v is offered by=%s: %v", role, kinds, name, err)
				}
			}
			err = r.s.CheckSum(as(role), query.SumRequest{Search: a, Sum: query.SumCount, By: []string{"fortnight"}})
			if err == nil || !strings.HasSuffix(err.Error(), "Write one of "+strings.Join(by, ", ")) {
				t.Errorf("%s %v: %v; want the names %v", role, kinds, err, by)
			}
		}
	}
	for _, c := range []struct {
		role  string
		kinds []string
		want  bool
	}{{"partial", nil, false}, {"partial", []string{"calls"}, true}, {"open", nil, true}} {
		if _, by, err := r.s.SumNames(as(c.role), query.SearchRequest{Kinds: c.kinds}); err != nil || slices.Contains(by, "status") != c.want {
			t.Errorf("%s %v is offered %v, %v; status: want %t", c.role, c.kinds, by, err, c.want)
		}
	}
}

// What a role does not fully see is in no sum, and neither is what it may not find.
func TestSumsTellNothingHidden(t *testing.T) {
	t.Parallel()
	r := newRig(t, true)
	for _, c := range []struct {
		role, kind, sum, by string
		want                error
	}{
		{"texts", "messages", "price", "day", understudy.ErrForbidden},
		{"texts", "messages", "count", "from", understudy.ErrForbidden},
		{"texts", "messages", "delivery", "", understudy.ErrForbidden},
		{"support", "messages", "count", "to", understudy.ErrForbidden},
		{"support", "messages", "count", "to.country", understudy.ErrForbidden},
		{"support", "messages", "price", "day", understudy.ErrForbidden}, // it tells the body
		{"billing", "calls", "count", "status", understudy.ErrForbidden},
		{"partial", "messages", "delivery", "", understudy.ErrForbidden}, // by its status
		{"texts", "calls", "count", "", understudy.ErrForbidden},
		{"open", "messages", "prize", "", understudy.ErrInvalid},
		{"open", "messages", "body", "", understudy.ErrInvalid},
		{"open", "messages", "count", "price", understudy.ErrInvalid},
		{"open", "messages", "count", "fortnight", understudy.ErrInvalid},
		{"open", "messages", "count", "status.country", understudy.ErrInvalid},
	} {
		q := query.SumRequest{Search: query.SearchRequest{Kinds: []string{c.kind}}, Sum: c.sum, By: strings.Fields(c.by)}
		if _, err := r.s.Sum(t.Context(), as(c.role), q); !errors.Is(err, c.want) {
			t.Errorf("%s of %s by %q as %s: %v, want %v", c.sum, c.kind, c.by, c.role, err, c.want)
		}
		if err := r.s.CheckSum(as(c.role), q); !errors.Is(err, c.want) {
			t.Errorf("check of %s by %q as %s: %v, want %v", c.sum, c.by, c.role, err, c.want)
		}
	}
	calls := query.SumRequest{Search: query.SearchRequest{Kinds: []string{"calls"}}, Sum: "duration", By: []string{"status"}}
	for round := range 3 {
		got := r.summed(r.s, "failed", calls)
		if want := r.naive("failed", calls); !maps.Equal(groupsIn(got), want) {
			t.Errorf("round %d: under a row rule:\n got %v\nwant %v", round, groupsIn(got), want)
		}
		checktest.MustTrue(t, len(got.Rows) != 0, "round %d: len(got.Rows) is 0", round)
		checktest.MustTrue(t, len(got.Rows) <= 2, "round %d: len(got.Rows) is %v, want <= 2", round, len(got.Rows))
		checktest.Equal(t, got.AsOf, 0, "round %d: got.AsOf", round)
		r.changeSome(rand.New(rand.NewPCG(uint64(round), 1)))
	}
}
