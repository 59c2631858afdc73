// What a caller is told of a record's past.

package seen_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/access/seen"
	"understudy/internal/checktest"
	"understudy/spec"
	"understudy/spec/spectest"
)

// past is what was seen of a call, newest first.
type past []understudy.Version

func (p past) ReadHistory(_ context.Context, _, _, id string, limit int) ([]understudy.Version, error) {
	switch id {
	case "CA1":
		return p[:min(limit, len(p))], nil
	case "CA2":
		return nil, understudy.ErrNotFound
	}
	return nil, errors.New("the disk is gone")
}

func at(hour int) time.Time { return time.Date(2026, 6, 1, hour, 0, 0, 0, time.UTC) }

// aCall was queued, got a price, was busy, went and came back, one hour each.
func aCall() past {
	all := past{{Body: []byte(`{"sid":"CA1","status":"queued","price":null}`)}, {Body: []byte(`{"sid":"CA1","status":"queued","price":"-1"}`)},
		{Body: []byte(`{"sid":"CA1","status":"busy","price":"-1"}`)}, {Gone: true}, {Body: []byte(`{"sid":"CA1","status":"busy","price":"-1"}`)}}
	for i := range all {
		if all[i].From = at(i); !all[i].Gone {
			all[i].Shape = "calls"
		}
		if i+1 < len(all) {
			all[i].Until = at(i + 1)
		}
	}
	slices.Reverse(all)
	return all
}

func reader(t *testing.T, role string) seen.Reader {
	t.Helper()
	g, err := access.New(map[string]*spec.Spec{"twilio": spectest.BuiltIn(t, "twilio")},
		access.Roles{"support": {"twilio": {"*": "see", "calls.price": "hide"}}})
	if err != nil {
		t.Fatal(err)
	}
	return seen.Reader{History: aCall(), Gate: g, Caller: understudy.Caller{Name: "n", Grant: &understudy.Grant{Role: role}}}
}

// A version in which a hidden field alone changed is none: it would tell when that changed.
func TestAHiddenChangeIsNoVersion(t *testing.T) {
	for role, want := range map[string]int{"support": 4, understudy.RoleAll: 5} {
		p, err := reader(t, role).Read(t.Context(), "twilio", "calls", "CA1", 10)
		checktest.MustNoError(t, err, "%s", role)
		checktest.MustEqual(t, len(p.Versions), want, "%s: len(p.Versions)", role)
		checktest.MustTrue(t, !p.More, "%s: p.More is true", role)
		if last := p.Versions[0]; !last.Back || !last.Version.From.Equal(at(4)) {
			t.Errorf("%s: the newest is %+v, which came back", role, last)
		}
		d := seen.ChangedFields(p.Versions[2].Before, p.Versions[2])
		checktest.MustEqual(t, len(d), 1, "%s: len(d)", role)
		checktest.Equal(t, d[0].Name, "status", "%s: d[0].Name", role)
		checktest.Equal(t, d[0].Before.Text, "queued", "%s: d[0].Before.Text", role)
		first := p.Versions[want-1]
		if !first.First {
			t.Errorf("%s: the oldest is %+v, which is the first", role, first)
		}
		if until := map[bool]time.Time{true: at(2), false: at(1)}[role == "support"]; !first.Version.Until.Equal(until) {
			t.Errorf("%s: the first ends at %v, want %v", role, first.Version.Until, until)
		}
		if _, gone := p.VersionAt(at(3), "calls"); !gone {
			t.Errorf("%s: it was not gone", role)
		}
		{
			v, gone := p.VersionAt(at(1), "calls")
			checktest.MustTrue(t, !gone, "%s: gone is true", role)
			checktest.MustTrue(t, v != nil, "%s: v is nil", role)
			checktest.Equal(t, v.Row.Field("status").Text, "queued", `%s: v.Row.Field("status").Text`, role)
		}
		if got := p.Shapes("brief"); !slices.Equal(got, []string{"brief", "calls"}) {
			t.Errorf("%s: shapes %q", role, got)
		}
	}
}

func TestAPartOfThePastSaysThatThereIsMore(t *testing.T) {
	r := reader(t, "support")
	for limit := 1; limit <= 4; limit++ {
		p, err := r.Read(t.Context(), "twilio", "calls", "CA1", limit)
		checktest.MustNoError(t, err, "at most %d", limit)
		checktest.MustEqual(t, len(p.Versions), limit, "at most %d: len(p.Versions)", limit)
		checktest.Equal(t, p.More, (limit < 4), "at most %d: p.More", limit)
	}
	for _, id := range []string{"", "CA2"} {
		if p, err := r.Read(t.Context(), "twilio", "calls", id, 10); err != nil || len(p.Versions) > 0 {
			t.Errorf("%q: %+v, %v; nothing was seen of it", id, p, err)
		}
	}
	if _, err := r.Read(t.Context(), "twilio", "calls", "CA3", 10); err == nil {
		t.Error("the error of the history is lost")
	}
}
