// Tests of what the folder of a demo remembers.

package main

import (
	"testing"
	"time"

	"understudy/internal/checktest"
)

// A folder remembers its world; flags may repeat it, not change it.
func TestAFolderKeepsItsWorld(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	first, err := worldFlags{Records: 100}.settle(dir, now)
	checktest.MustNoError(t, err, "first =")
	checktest.MustEqual(t, first.Seed, 1, "first =: first.Seed")
	checktest.MustEqual(t, first.Records, 100, "first =: first.Records")
	checktest.MustTrue(t, first.Epoch.Equal(now), "first =: first.Epoch.Equal(now) is false")
	for name, c := range map[string]struct {
		flags worldFlags
		ok    bool
	}{
		"nothing said":  {worldFlags{}, true},
		"the same":      {worldFlags{Records: 100, Seed: 1, Epoch: "2026-06-01T12:00:00Z"}, true},
		"other records": {worldFlags{Records: 101}, false},
		"other seed":    {worldFlags{Seed: 2}, false},
		"other epoch":   {worldFlags{Epoch: "2026-06-01T12:00:01Z"}, false},
	} {
		w, err := c.flags.settle(dir, now.Add(time.Hour))
		if (err == nil) != c.ok || c.ok && w != first {
			t.Errorf("%s: %v, %v", name, w, err)
		}
	}
}
