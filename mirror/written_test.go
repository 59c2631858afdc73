// Writes of before the start: lists made from records show them.

package mirror

import (
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/mirror/shadow"
	"understudy/request"
	"understudy/spec"
)

// A server that ends after a write's answer and before the next newest page: its
// successor makes no list that the write is not in.
func TestAWriteIsRememberedOverARestart(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"at once": 0, "when a newest page came": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := covered(t, 7, pinned(shadow.Records), polls("calls"))
				time.Sleep(time.Minute)
				s.write = func(w request.Write) (*understudy.Page, error) {
					s.set(sid(8), "queued", false)
					return page(w.Target, 201, body(call{sid(8), "queued", false})), nil
				}
				s.script(func() {
					s.fail = func(int, request.Fetch) error {
						return &understudy.UpstreamError{Why: understudy.FailServer, Status: 503}
					}
				})
				if after > 0 {
					s.script(func() { s.fail = nil })
				}
				if _, err := s.Mirror.Write(t.Context(), request.Write{Target: s.newest(t), Method: "POST"}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(after)
				s.stop()
				kinds, err := s.memory.ReadKinds(t.Context(), "twilio")
				if err != nil {
					t.Fatal(err)
				}
				generations := map[string]int64{}
				for _, k := range kinds {
					generations[k.Kind] = k.Generation
				}
				s.script(func() { s.fail = nil })
				before := time.Now().Add(-time.Second)
				c.since(before, before)
				s.start(t, Options{
					Sources: []Source{{Source: &spec.Source{Name: "twilio", Spec: s.spec, User: account, Polls: []string{"calls"}}, Upstream: s.world,
						Answers: map[string]shadow.Answers{"": shadow.Records}, Generations: generations}},
					Store: s.store, Coverage: c, KV: s.memory.KV,
				})
				target := s.target(t, "Calls.json", "PageSize=2")
				if after > 0 {
					want(t, s.get(t, target), request.Composed, "composed")
					return
				}
				want(t, s.get(t, target), request.Cold, "")
				time.Sleep(time.Minute)
				c.all(time.Now())
				want(t, s.get(t, s.target(t, "Calls.json", "PageSize=4")), request.Composed, "composed")
			})
		})
	}
}
