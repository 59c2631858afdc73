// Words of reasons, changes and failures; the text of upstream errors.

package understudy

import (
	"errors"
	"testing"
)

func TestSizesAreWrittenAsInTheSettings(t *testing.T) {
	for limit, want := range map[int64]string{64 << 20: "64MiB", 128 << 10: "128KiB", 1<<20 + 1: "1048577 bytes"} {
		if got := (&SizeError{"sources.main.max_body", limit}).Error(); got != "raise sources.main.max_body, which is "+want {
			t.Error(got)
		}
	}
}

// The words that go over the wire and into logs stay what they are.
func TestWords(t *testing.T) {
	if Came.String() != "came" || Changed.String() != "changed" || Went.String() != "went" || ChangeType(9).String() != "unknown" {
		t.Error("words of changes")
	}
	seen := map[string]bool{}
	for f := FailNone; f <= FailDown; f++ {
		seen[f.String()] = true
	}
	if len(seen) != 7 {
		t.Errorf("two failures share a word: %v", seen)
	}
	e := &UpstreamError{Why: FailServer, Status: 503, Err: errors.New("boom")}
	if e.Error() != "upstream server error (status 503): boom" || e.Short() != "upstream 503" || !errors.Is(e, ErrUnavailable) ||
		!errors.Is(e, e.Err) {
		t.Errorf("%v %s", e, e.Short())
	}
	e = &UpstreamError{Why: FailUnusable, Status: 200}
	if e.Error() != "upstream unusable answer (status 200)" || e.Short() != "upstream unusable answer" || !errors.Is(e, ErrUnavailable) {
		t.Errorf("%v %s", e, e.Short())
	}
}
