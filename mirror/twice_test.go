// Rows that have moved from a page into the one before it stand on one page of each reader.

package mirror

import (
	"slices"
	"testing"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

// TestAReaderOfTheNewPageGetsNoRowTwice: rows go, and a reader has the page before as it is since
// then. The page after it has its own rows alone. Another reader, who goes on from that page as it
// was, gets those that have moved into it, too.
func TestAReaderOfTheNewPageGetsNoRowTwice(t *testing.T) {
	t.Parallel()
	byNumber(t, Ages{Stale: -1}, func(w *walks) {
		as := func(flow uint64) func(*spec.Target) (*understudy.Page, string, error) {
			return func(target *spec.Target) (*understudy.Page, string, error) {
				a, err := w.mirror.Answer(w.Context(), request.Request{Target: target, Flow: flow})
				if err != nil {
					return nil, "", err
				}
				return a.Page, "", nil
			}
		}
		slow := &walker{ask: as(1), next: "/things", ids: map[string]bool{}}
		w.step(slow)
		there := slices.Clone(w.rows)
		w.pass(31)
		w.remove(1, 4)
		for range 3 {
			k := &walker{ask: as(2), next: "/things", ids: map[string]bool{}}
			for k.next != "" {
				w.step(k)
			}
			if k.rows != len(w.rows) || len(k.ids) != len(w.rows) {
				w.Errorf("%d rows, %d of them once, want %d: %v", k.rows, len(k.ids), len(w.rows), k.took)
			}
			w.pass(1)
		}
		for slow.next != "" {
			w.step(slow)
		}
		for _, row := range there[4:] {
			if !slow.ids[row.ID] {
				w.Errorf("the slow reader misses %s: %v", row.ID, slow.took)
			}
		}
	})
}

// TestAReaderOfAnOlderPageGetsNoRowTwice: rows go twice within a minute, and a reader has the first page as it was
// between. Before the rows of the second page stand those alone that this reader does not have.
func TestAReaderOfAnOlderPageGetsNoRowTwice(t *testing.T) {
	t.Parallel()
	byNumber(t, Ages{Stale: -1}, func(w *walks) {
		step := func(flow uint64, uri string) *understudy.Page {
			a, err := w.mirror.Answer(w.Context(), request.Request{Target: w.target(uri), Flow: flow})
			if err != nil {
				w.Fatal(err)
			}
			return a.Page
		}
		step(1, "/things")
		w.pass(31)
		w.remove(0, 2)
		has := map[string]bool{}
		first := step(2, "/things")
		for _, row := range first.Rows {
			has[row.ID] = true
		}
		w.pass(1)
		w.remove(0, 2)
		w.pass(30)
		step(3, "/things")
		for _, row := range step(2, first.Next.URI).Rows {
			if has[row.ID] {
				w.Errorf("%s is on both pages of one reader", row.ID)
			}
			has[row.ID] = true
		}
	})
}
