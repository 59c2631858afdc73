// Hidden: a subscriber bound by row rules gets no change of other records.

package feed

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access/accesstest"
	"understudy/internal/checktest"
	"understudy/spec"
)

func TestHiddenRecordsAreNotTold(t *testing.T) {
	w := &accesstest.World{Source: &spec.Source{Name: "twilio", Spec: sp(t), User: "AC00000000000000000000000000000001"}, Now: epoch,
		Held: true}
	for role := range accesstest.Rules() {
		if role == "none" {
			continue // it is refused
		}
		t.Run(role, func(t *testing.T) {
			gate, err := w.Gate(accesstest.Rules())
			if err != nil {
				t.Fatal(err)
			}
			r := open(t, newTable(), Options{Policy: Policy{Gate: gate}})
			stream := r.listen(t, role, "")
			for _, kind := range []string{"calls", "messages", "recordings", "conferences", "participants", "alerts"} {
				for _, id := range []string{w.Hidden(kind), w.Never(kind), w.Shown(kind)} {
					gone := understudy.Change{Kind: kind, ID: id, Type: understudy.Deleted}
					if id == w.Shown(kind) {
						gone.ID = w.Hidden(kind) // what is there did not go
					}
					r.make(came(kind, id), changed(kind, id, "status", "direction"), gone)
				}
			}
			r.heard(t)
			all := r.page(t, role, "after=0&limit=1000")
			seen := strings.Join(lines(all.Changes), "\n")
			{
				m := accesstest.Marked(seen)
				checktest.MustEqual(t, m, "", "it tells of what is hidden, gone or never was: m")
				checktest.MustLacks(t, seen, "went", "it tells of what is hidden, gone or never was: seen")
				checktest.MustLacks(t, seen, strings.Repeat("0", 32),
					"it tells of what is hidden, gone or never was: seen")
			}
			if !strings.Contains(seen, "came calls "+w.Shown("calls")) {
				t.Errorf("the call it may find is not told:\n%s", seen)
			}
			for _, m := range all.Changes {
				if _, ok := m["n"]; ok {
					t.Errorf("a number is told, which counts what is hidden: %v", m)
				}
			}
			if _, m := stream.event(t); line(m) != "came calls "+w.Shown("calls") {
				t.Errorf("the stream begins with %s", line(m))
			}
		})
	}
}

// What was told once is not told again when it can no longer be found.
func TestWhatIsHiddenByNowIsNotToldAgain(t *testing.T) {
	w := &accesstest.World{Source: &spec.Source{Name: "twilio", Spec: sp(t), User: "AC00000000000000000000000000000001"}, Now: epoch,
		Held: true}
	now := &hands{}
	now.at.Store(&epoch)
	gate, err := w.GateAt(accesstest.Rules(), now.now)
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, newTable(), Options{Policy: Policy{Gate: gate}})
	r.make(came("calls", w.Shown("calls")))
	r.heard(t)
	told := func() []string { return lines(r.page(t, "age", "after=0").Changes) }
	if got := told(); !slices.Equal(got, []string{"came calls " + w.Shown("calls")}) {
		t.Fatalf("at first: %v", got)
	}
	old := epoch.Add(40 * 24 * time.Hour)
	now.at.Store(&old)
	if got := told(); len(got) != 0 {
		t.Errorf("past its age: %v", got)
	}
}

type hands struct{ at atomic.Pointer[time.Time] }

func (c *hands) now() time.Time { return *c.at.Load() }
