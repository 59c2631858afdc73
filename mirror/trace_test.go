package mirror

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
)

// TestFetchAndRefreshBelongToTheRequestThatCausedThem asks for a page that is cold, and again when it is stale.
func TestFetchAndRefreshBelongToTheRequestThatCausedThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, 3)
		var causes []string
		s.world.fetch = func(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
			s.world.mu.Lock()
			defer s.world.mu.Unlock()
			id := "none"
			if cause := request.TraceOf(ctx); cause != nil {
				id = cause.ID
			}
			causes = append(causes, f.Reason.String()+" for "+id)
			p := s.world.answer(f)
			p.At, p.Took, p.Generation = s.world.now(), time.Second, f.Generation
			return p, nil
		}
		target := s.target(t, "Calls.json", "PageSize=2")
		ask := func(id string, outcome request.Outcome) (stages string) {
			trace := &request.Trace{ID: id, Now: time.Now}
			a, err := s.Answer(request.WithTrace(t.Context(), trace), request.Request{Target: target})
			checktest.MustNoError(t, err, "Answer")
			checktest.Equal(t, a.Outcome, outcome, "%s: a.Outcome", id)
			synctest.Wait()
			for _, stage := range trace.Stages() {
				stages += stage.Name + " "
			}
			return stages
		}
		checktest.Equal(t, ask("one", request.Cold), "find save flight ", "the stages of a cold answer")
		time.Sleep(s.env.ages().Newest + time.Second)
		checktest.Equal(t, ask("two", request.Stale), "find save ", "the stages of a stale answer and its refresh")
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		got := strings.Join(causes, ", ")
		checktest.True(t, strings.HasPrefix(got, "waiting for one"), "the fetches: %s", got)
		checktest.True(t, strings.Contains(got, "refresh for two"), "the fetches: %s", got)
		checktest.True(t, !strings.Contains(got, "prefetch for one"), "the fetches: %s", got)
	})
}
