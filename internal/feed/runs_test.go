package feed

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
)

// copyOf returns a store as it is now: a backup.
func copyOf(t *table) *table {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := newTable()
	for source, rows := range t.rows {
		c.rows[source] = slices.Clone(rows)
	}
	maps.Copy(c.notes, t.notes)
	return c
}

func TestAPlaceOfAStoreThatWasPutBackIsRefused(t *testing.T) {
	t.Parallel()
	tab := some() // 8 changes
	before := open(t, tab, Options{})
	backup := copyOf(tab)
	kept := map[string]string{"all": before.page(t, "all", "").Next, "support": before.page(t, "support", "").Next}
	before.make(came("calls", "CA9"), came("calls", "CA10"))
	before.heard(t)
	lost := map[string]string{"all": before.page(t, "all", "").Next, "support": before.page(t, "support", "").Next}
	later := open(t, tab, Options{}) // a start that the backup does not have
	of := map[string]string{"all": later.page(t, "all", "after=0&limit=1").Next, "support": later.page(t, "support", "after=0&limit=1").Next}

	after := open(t, backup, Options{})
	after.make(came("calls", "other"), came("calls", "another"), came("calls", "third"))
	after.heard(t)
	for _, role := range []string{"all", "support"} {
		if got := lines(after.page(t, role, "after="+kept[role]).Changes); len(got) != 3 {
			t.Errorf("%s goes on from a place of the backup with %q", role, got)
		}
		for name, cursor := range map[string]string{"told since": lost[role], "of a start since": of[role]} {
			resp, body := after.get(t, role, "/-/feed.json?after="+cursor)
			if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "restored to an earlier state") {
				t.Errorf("%s, a place %s: %d %s", role, name, resp.StatusCode, body)
			}
		}
	}
	if got := lines(after.page(t, "all", "after=8").Changes); len(got) != 3 {
		t.Errorf("a number alone: %q", got)
	}
}

func TestPlacesOfRunsThatAreNoLongerKept(t *testing.T) {
	t.Parallel()
	tab := newTable()
	var all runs
	for i := range int64(maxRuns + 10) {
		var err error
		all, err = openRuns(context.Background(), tab, 1, map[string]int64{"twilio": 10 * i}, Alone, slog.New(slog.DiscardHandler))
		if err != nil || len(all) > maxRuns {
			t.Fatal(len(all), err)
		}
	}
	first := all[0]
	for _, c := range []struct {
		n, run int64
		told   bool
	}{
		{first.Heads["twilio"], first.ID - 1, true}, {first.Heads["twilio"] + 1, first.ID - 1, false},
		{first.Heads["twilio"] + 10, first.ID, true}, {first.Heads["twilio"] + 11, first.ID, false},
		{1e9, all.currentID(), true}, {1, all.currentID() + 1, false},
	} {
		if got := all.isKnown("twilio", c.n, c.run); got != c.told {
			t.Errorf("change %d of run %d: %v, want %v", c.n, c.run, got, c.told)
		}
	}
}

// Processes that serve one database accept each other's cursors, also those that start together.
func TestProcessesOfOneDatabaseShareARun(t *testing.T) {
	tab, log := newTable(), slog.New(slog.DiscardHandler)
	open := func(began, head int64, sharing Sharing) runs {
		all, err := openRuns(t.Context(), tab, began, map[string]int64{"twilio": head}, sharing, log)
		checktest.MustNoError(t, err, "open at %d", began)
		return all
	}
	first := open(1_000_000, 10, Shared)
	together := open(1_000_500, 10, Shared)
	checktest.Equal(t, together.currentID(), first.currentID(), "run of a process that started with the first")
	later := open(5_000_000, 70, Joined)
	checktest.Equal(t, later.currentID(), first.currentID(), "run of a process that joined later")
	checktest.True(t, later.isKnown("twilio", 90, first.currentID()), "a cursor of the first process is refused at the one that joined")
	checktest.True(t, open(1_001_000, 11, Shared).currentID() != first.currentID(), "a run is shared although there are changes since")
	checktest.True(t, open(9_000_000, 11, Shared).currentID() > 1_001_000, "an old run is shared")
	checktest.True(t, open(9_000_001, 11, Alone).currentID() == 9_000_001, "a process that is alone joins a run")
}
