// Two processes on one database that deliver to one webhook.

package feed

import (
	"context"
	"slices"
	"testing"

	"understudy/internal/checktest"
)

func TestProcessesDeliverOnce(t *testing.T) {
	t.Parallel()
	to, tab := receive(t), some()
	a, _ := hooked(t, tab, Hook{URL: to.server.URL, Role: "all"})
	b, _ := hooked(t, tab, Hook{URL: to.server.URL, Role: "all"})
	a.from(t, 4)
	for _, f := range []*Feed{a, b, a, b} {
		checktest.MustNoError(t, f.Deliver(t.Context(), task{"crm"}), "deliver")
		tab.put("twilio", came("calls", "CA7"))
	}
	got := to.all()
	checktest.MustEqual(t, len(got), 4, "messages")
	for i, m := range got {
		checktest.Equal(t, len(m.changes), []int{4, 1, 1, 1}[i], "changes in message %d", i)
	}
	for i, f := range []*Feed{a, b} {
		checktest.Equal(t, f.stat(t).After, 11, "position that process %d knows", i)
		checktest.Equal(t, f.stat(t).Delivered, 7, "delivered changes that process %d knows of", i)
		one := f.hooks.get("crm")
		checktest.Equal(t, one.progress.scanned, 11, "change up to which process %d needs no job", i)
		checktest.Equal(t, one.progress.due, false, "whether process %d adds a job", i)
	}
	checktest.MustNoError(t, b.Pause(t.Context(), "crm", "Ann"), "pause")
	checktest.Equal(t, a.stat(t).Why, "paused by hand by Ann", "why the other process does not deliver")
}

// TestPausedProcessDoesNotMoveThePosition: a process is paused while it sends, and another takes over.
func TestPausedProcessDoesNotMoveThePosition(t *testing.T) {
	t.Parallel()
	to, other, tab := receive(t), receive(t), some()
	a, _ := hooked(t, tab, Hook{URL: to.server.URL, Role: "all"})
	a.from(t, 4)
	to.mu.Lock() // the receiver does not answer yet
	done := make(chan error)
	go func() { done <- a.Deliver(context.WithoutCancel(t.Context()), task{"crm"}) }()
	for until := int64(0); until == 0; until = a.hooks.get("crm").progress.load().BatchEnd {
	}
	b, _ := hooked(t, tab, Hook{URL: other.server.URL, Role: "all"})
	tab.put("twilio", came("calls", "CA7"))
	checktest.MustNoError(t, b.Deliver(t.Context(), task{"crm"}), "deliver")
	to.mu.Unlock()
	checktest.NoError(t, <-done, "delivery of the paused process")
	first, second := to.all(), other.all()
	checktest.MustEqual(t, len(first), 1, "messages of the paused process")
	checktest.MustEqual(t, len(second), 2, "messages of the other process")
	checktest.Equal(t, second[0].id, first[0].id, "id of the message that both sent")
	checktest.True(t, slices.Equal(second[0].changes, first[0].changes), "the message that both sent has %v and %v", first[0], second[0])
	checktest.Equal(t, b.stat(t).After, 9, "position")
	checktest.Equal(t, b.stat(t).Delivered, 5, "delivered changes")
}
