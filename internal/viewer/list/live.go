// Updates of an open list while records change.

package list

import (
	"slices"
	"strings"

	"understudy"
)

// live tells the script of an open list how to update the list when records change.
type live struct {
	Feed         string // the address of the feed of the kind's changes
	Rows         string // the address of the list, ending where the ids of changed records are added; empty if rows cannot be updated
	AnnouncesNew bool   // whether a new record belongs on this page, because it is the newest page and has no filters
	Script       string
}

// liveUpdates returns how an open list updates itself. It returns nil for an earlier moment, and for kinds without
// stored records. The feed does not say which filters a changed record matches. So a filtered list does not announce
// new records, but it still reads its own rows again.
func (lv listing) liveUpdates() *live {
	if lv.q.V.Options.Feed == "" || !lv.q.Clock.AsOf.At.IsZero() || !lv.q.Kind.HasRecords() {
		return nil
	}
	filtered := slices.ContainsFunc(lv.ask.query, func(p understudy.Param) bool { return p.Name != lv.ask.list.PagingStyle.Size })
	l := &live{
		Feed: lv.q.V.Options.Feed + "?" + understudy.Query{{Name: "source", Value: lv.q.Source.Name},
			{Name: "kind", Value: lv.q.Kind.Spec.Name}}.String(),
		AnnouncesNew: lv.ask.target.First && !filtered && lv.ask.list == lv.q.Kind.PlannedLists[0] &&
			len(lv.ask.vars) == 0 && !lv.ask.arrangement.isSearch(),
		Rows: lv.rowsAddress(), Script: lv.q.V.Files.Address["live.js"],
	}
	if l.Rows == "" && !l.AnnouncesNew {
		return nil
	}
	return l
}

// rowsAddress returns the address of this list without a position, ending in the parameter for one more condition. It
// returns "" if the list cannot be searched, or if the caller may not see the ids of records.
func (lv listing) rowsAddress() string {
	if _, ok := lv.conditions(); !ok || lv.q.V.Options.Search == nil ||
		!lv.q.Rights.Gate.CanSeeIDs(lv.q.Rights.Caller, lv.q.Source.Name, lv.q.Kind.Spec) {
		return ""
	}
	whole := *lv.ask
	whole.arrangement.cursor = ""
	at := whole.address("", lv.ask.filters(), nil)
	if strings.Contains(at, "?") {
		return at + "&" + paramNarrow + "="
	}
	return at + "?" + paramNarrow + "="
}
