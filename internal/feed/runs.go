// This file stores when the feed was started. These starts show whether a cursor is still valid after the store was
// restored from a backup.

package feed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"understudy"
)

// Sharing says whether several processes serve the feed of one database.
type Sharing int

// The sorts of sharing.
const (
	Alone  Sharing = iota // no other process can serve it
	Shared                // others can
	Joined                // others do already
)

// runsKey is the key under which the KV store has the runs.
const runsKey = "feed/runs"

// maxRuns is the maximum number of runs that are stored.
const maxRuns = 64

// run is the time from one start of the feed to the next.
type run struct {
	ID    int64            `json:"id"`    // the start of the run in Unix milliseconds; greater than the ID of the previous run
	Heads map[string]int64 `json:"heads"` // the number of each source's last change at the start
}

// runs are the runs of a store, the oldest first. A store that was restored from a backup uses the numbers of lost
// changes again. A cursor of a lost change is detected: the restored store either lacks the cursor's run, or the
// next run starts below the cursor's number.
type runs []run

// joinTime is how long after the start of a run another process may still take part in it, if nothing has changed since.
// Processes that start together do not know of each other yet. No backup is restored within this time.
const joinTime = 10_000 // milliseconds

// openRuns reads the runs of a store and adds a new run. A process that joins others on the same database takes part in
// their run, so that all accept each other's cursors. If the run cannot be saved, openRuns logs a warning, and the cursors
// of this run are refused after the next start.
func openRuns(
	ctx context.Context, s understudy.KV, began int64, heads map[string]int64, shared Sharing, log *slog.Logger,
) (all runs, err error) {
	err = s.Change(ctx, runsKey, func(old []byte) ([]byte, error) {
		all = nil
		if err := json.Unmarshal(old, &all); old != nil && err != nil {
			return nil, err
		}
		if last := len(all) - 1; last >= 0 {
			if shared == Joined || shared == Shared && began-all[last].ID < joinTime && maps.Equal(all[last].Heads, heads) {
				return old, nil
			}
			began = max(began, all[last].ID+1)
		}
		all = append(all[max(0, len(all)+1-maxRuns):], run{ID: began, Heads: heads})
		return json.Marshal(all)
	})
	if len(all) == 0 {
		return nil, fmt.Errorf("feed: cursors: %w", err)
	}
	if err != nil {
		log.Warn("feed: the start of the server could not be saved; cursors from this run become invalid at the next start", "err", err)
	}
	return all, nil
}

func (r runs) currentID() int64 { return r[len(r)-1].ID }

// isKnown reports whether a number from a cursor of the given run still names the same change. Runs that are no
// longer stored had lower numbers than the oldest stored run.
func (r runs) isKnown(source string, n, id int64) bool {
	next, found := slices.BinarySearchFunc(r, id, func(one run, id int64) int { return cmp.Compare(one.ID, id) })
	if found {
		next++
	} else if next > 0 {
		return false
	}
	if next == len(r) {
		return true
	}
	end, known := r[next].Heads[source]
	return !known || n <= end
}

// appendNumber appends the cursor for a role that may count changes: a number and its run.
func appendNumber(dst []byte, n, run int64) []byte {
	dst = append(strconv.AppendInt(dst, n, 10), '.')
	return strconv.AppendInt(dst, run, 36)
}

// readNumber parses the text that appendNumber wrote. It also accepts a number without a run; run is then 0.
func readNumber(cursor string) (n, run int64, ok bool) {
	number, id, hasRun := strings.Cut(cursor, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 {
		return 0, 0, false
	}
	if !hasRun {
		return n, 0, strconv.FormatInt(n, 10) == cursor
	}
	run, err = strconv.ParseInt(id, 36, 64)
	return n, run, err == nil && string(appendNumber(nil, n, run)) == cursor
}
