// Answers whose records are not kept are stored whole, for an outage alone.

package mirror

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

// toldApart makes the world answer as the client of upstream does: it says why records are not kept.
func (s *stage) toldApart() {
	s.page = func(f request.Fetch) *understudy.Page {
		if f.Target.DropReason() == "" {
			return nil
		}
		p := instance(f.Target, http.StatusOK, s.calls[0])
		if f.Target.List != nil {
			p = s.list(f.Target)
		}
		p.NotStored = f.Target.DropReason()
		return p
	}
}

// restart runs another mirror on the same store.
func (s *stage) restart(t *testing.T) {
	s.stop()
	s.start(t, Options{Sources: []Source{{Source: &spec.Source{Name: "twilio", Spec: s.spec, User: account}, Upstream: s.world}},
		Store: s.memory})
}

// TestAnAnswerWithoutRecordsIsForAnOutage asks with a parameter that the spec does not name. After a
// restart upstream is asked again, and the stored answer goes out when it fails.
func TestAnAnswerWithoutRecordsIsForAnOutage(t *testing.T) {
	t.Parallel()
	const why = "not stored: the spec does not name the parameter Expand"
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 5)
		s.script(s.toldApart)
		target := s.target(t, "Calls.json", "Expand=all")
		want(t, s.get(t, target), request.Cold, why)
		if _, err := s.memory.Record(t.Context(), "twilio", "calls", "calls", sid(1)); !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("a record of the answer is kept: %v", err)
		}
		s.restart(t)
		want(t, s.get(t, target), request.Cold, why)
		time.Sleep(time.Minute)
		s.restart(t)
		s.script(func() { s.fail = func(int, request.Fetch) error { return down(http.StatusServiceUnavailable) } })
		a := s.get(t, target)
		want(t, a, request.Stale, "stale: upstream 503")
		if a.Age < time.Minute {
			t.Errorf("the answer's age is %v, want a minute", a.Age)
		}
		if len(a.Page.Rows) != 3 || a.Page.Rows[0].ID != sid(5) {
			t.Errorf("the answer names the records %+v, want three for the audit log", a.Page.Rows)
		}
		if a.Page.Next.URI == "" {
			t.Error("the answer does not lead to the next page any more")
		}
	})
}

// TestARecordThatWentIsInNoAnswerForAnOutage deletes a record upstream that only answers show which are
// stored whole.
func TestARecordThatWentIsInNoAnswerForAnOutage(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, 5)
			s.script(s.toldApart)
			shows := s.target(t, "Calls.json", "Expand=all")
			s.get(t, shows)
			s.script(func() {
				s.page = func(f request.Fetch) *understudy.Page { return page(f.Target, http.StatusNotFound, "") }
			})
			if a := s.get(t, s.call(t, sid(5))); a.Page.Status != http.StatusNotFound {
				t.Fatalf("status %d, want 404", a.Page.Status)
			}
			if again {
				s.restart(t)
			}
			s.script(func() { s.fail = func(int, request.Fetch) error { return down(http.StatusServiceUnavailable) } })
			if a, err := s.Answer(t.Context(), request.Request{Target: shows}); err == nil {
				t.Errorf("after a restart %v: the record is in an answer: %s", again, a.Page.Body)
			}
		})
	}
}

// TestAWriteDuringAFetchLeavesNothingForAnOutage writes while the answer is on its way.
func TestAWriteDuringAFetchLeavesNothingForAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 2)
		s.script(func() {
			s.toldApart()
			s.write = func(w request.Write) (*understudy.Page, error) { return page(w.Target, http.StatusAccepted, ""), nil }
		})
		target := s.target(t, "Calls/"+sid(2)+".json", "Expand=all")
		go func() { _, _ = s.Answer(t.Context(), request.Request{Target: target}) }()
		time.Sleep(time.Second / 2)
		if _, err := s.post(t, http.MethodPost, s.call(t, sid(2))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := s.memory.ReadPage(t.Context(), target.Key); !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("an answer from before the write is stored: %v", err)
		}
	})
}
