// Absent: ids that never were.

package mirror

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/mirror/shadow"
	"understudy/request"
	"understudy/spec"
)

// An id that never was in a kind held whole is not there in an outage either;
// while upstream is well it is asked.
func TestAnIDThatNeverWasInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := covered(t, 7, pinned(shadow.Records))
		never := s.call(t, sid(99))
		if a := s.get(t, never); a.Outcome != request.Cold || a.Page.Status != http.StatusNotFound {
			t.Errorf("while upstream is well: %s %d", a.Outcome, a.Page.Status)
		}
		time.Sleep(20 * time.Second)
		s.script(func() { s.fail = func(int, request.Fetch) error { return down(503) } })
		never = s.call(t, sid(98))
		a := s.get(t, never)
		want(t, a, request.Composed, "composed: upstream 503")
		body := string(a.Page.Body)
		checktest.Equal(t, a.Page.Status, http.StatusNotFound, "%d, age %v: a.Page.Status; body %s", a.Page.Status,
			a.Age, body)
		checktest.Contains(t, body, "20404", "%d, age %v: body", a.Page.Status, a.Age)
		checktest.Contains(t, body, never.Key.Path(), "%d, age %v: body", a.Page.Status, a.Age)
		checktest.True(t, a.Age >= 20*time.Second, "%d, age %v: a.Age is %v; body %s", a.Page.Status, a.Age, a.Age,
			body)
		other := *never
		other.Vars = slices.Clone(never.Vars)
		for i := range other.Vars {
			other.Vars[i].Value = strings.Replace(other.Vars[i].Value, account, "AC00000000000000000000000000000002", 1)
		}
		refused := func(why string, target *spec.Target) {
			if a, err := s.Answer(t.Context(), request.Request{Target: target}); err == nil {
				t.Errorf("%s: %d", why, a.Page.Status)
			}
		}
		refused("another account", &other)
		s.script(func() {
			s.write = func(request.Write) (*understudy.Page, error) { return nil, understudy.ErrUnknownOutcome }
		})
		time.Sleep(time.Second)
		_, _ = s.post(t, http.MethodPost, s.target(t, "Calls.json", ""))
		refused("after a write of unknown outcome", never)
		c.none("the first sync has not finished")
		refused("not held whole", s.call(t, sid(97)))
	})
}
