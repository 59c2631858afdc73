// Reasons: the words that go into logs and /-/stats.

package request

import "testing"

func TestReasonWords(t *testing.T) {
	words := []string{"waiting", "refresh", "poll", "sync", "check", "prefetch"}
	if ReasonCount != len(words) {
		t.Errorf("%d reasons, want %d", ReasonCount, len(words))
	}
	for i, want := range words {
		if got := Reason(i).String(); got != want {
			t.Errorf("reason %d is %q, want %q", i, got, want)
		}
	}
}
