// Runs: which changes a cursor may name, also after a store was put back to an earlier state.

package feed

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"understudy"
)

// runsKey is the value that holds the runs.
const runsKey = "feed/runs"

// maxRuns bounds the runs that are kept.
const maxRuns = 64

// run is a feed from its start to the next one's.
type run struct {
	ID    int64            `json:"id"`    // when it began, in milliseconds; each is above the one before
	Heads map[string]int64 `json:"heads"` // the last change of each source at its start
}

// runs are those of a store, the oldest first. A store that was put back to an earlier state gives
// numbers again that it gave before, to other changes: it lacks the run that told the old ones, or
// the run after that begins below them.
type runs []run

// openRuns reads the runs of a store and adds one. What cannot be written is logged: the cursors of
// this run are refused after the next start.
func openRuns(ctx context.Context, s understudy.KV, began int64, heads map[string]int64, log *slog.Logger) (all runs, err error) {
	if err := understudy.ReadJSON(ctx, s, runsKey, &all); err != nil {
		return nil, fmt.Errorf("feed: cursors: %w", err)
	}
	if last := len(all) - 1; last >= 0 {
		began = max(began, all[last].ID+1)
	}
	all = append(all[max(0, len(all)+1-maxRuns):], run{ID: began, Heads: heads})
	if err := understudy.WriteJSON(ctx, s, runsKey, all); err != nil {
		log.Warn("feed: the start cannot be noted; cursors of this run are refused after the next one", "err", err)
	}
	return all, nil
}

// now returns the run under way.
func (r runs) now() int64 { return r[len(r)-1].ID }

// isKnown reports whether a number of a source, told in a run, names the same change here. The
// numbers of runs that are no longer kept lie below the oldest one that is.
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

// appendNumber writes a number and its run, for a role that may count changes.
func appendNumber(dst []byte, n, run int64) []byte {
	dst = append(strconv.AppendInt(dst, n, 10), '.')
	return strconv.AppendInt(dst, run, 36)
}

// readNumber reads what appendNumber wrote. A number alone has no run.
func readNumber(cursor string) (n, run int64, ok bool) {
	number, id, told := strings.Cut(cursor, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 {
		return 0, 0, false
	}
	if !told {
		return n, 0, strconv.FormatInt(n, 10) == cursor
	}
	run, err = strconv.ParseInt(id, 36, 64)
	return n, run, err == nil && string(appendNumber(nil, n, run)) == cursor
}
