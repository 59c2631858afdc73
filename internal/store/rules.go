// This file decides what an observation of a record means: the record is new, changed, deleted or unchanged.
// The rules know no SQL.

package store

import (
	"fmt"

	"understudy"
	"understudy/internal/store/order"
	"understudy/internal/store/records"
)

// currentState is the stored state of a record before a page is saved.
type currentState struct {
	number  int64 // the record's number, or 0 if it was never seen
	hasRow  bool  // the record has a row in the page's shape; the next six fields come from that row
	version int64
	hash    int64
	seen    int64 // when the record was last seen, in Unix nanoseconds
	state   int64
	period  int64 // the number of the current period of the record in this shape
	since   int64 // when the period began; 0 means when the block of the version was created

	position order.Position // the record's position in the list, equal in every shape

	inOtherShape bool  // the record is present in another shape
	lastGone     int64 // when the record was last seen as deleted in another shape, or 0
}

func (p *currentState) isPresent() bool {
	return p.hasRow && p.state&records.Gone == 0 || p.inOtherShape
}

// decision says what to do about an observation.
type decision struct {
	late   bool                  // the store has a newer observation of the record, so nothing changes
	change understudy.ChangeType // the type of the change to write, or 0 for no change
	write  bool                  // the record's row must be written
	touch  bool                  // the row stays the same except for the time Seen
	state  int64
}

// decide compares an observation at a time with the stored state of its record. The response to a write is never
// late, because a fetch that ended after the write may have read the record before it.
func decide(p *currentState, hash, at int64, final, ofWrite bool) decision {
	last := p.seen
	if !p.isPresent() && p.lastGone > last {
		last = p.lastGone
	}
	if !ofWrite && isLate(at, last) {
		return decision{late: true}
	}
	v := decision{}
	if final {
		v.state = records.Final
	}
	switch {
	case !p.isPresent():
		v.change = understudy.Appeared
	case p.hasRow && p.hash != hash:
		v.change = understudy.Changed
	}
	v.write = !p.hasRow || p.hash != hash || p.state != v.state
	v.touch = !v.write && (!final || at-p.seen > int64(minSeenInterval) || at < p.seen)
	return v
}

// isLate reports whether an observation is older than the stored one by at most five minutes, because two fetches
// raced. If it is older than that, the clock was set back, and the observation counts.
func isLate(at, held int64) bool { return at < held && held-at <= int64(maxLateness) }

func isRemoval(p *understudy.Page) bool {
	return p.Kind != "" && p.ID != "" && !p.List && (p.Status == 404 || p.Status == 410 || p.Status == 204)
}

// isOutdated reports whether a write to the kind came after the fetch of a page began. A response to a write is
// never outdated.
func isOutdated(p *understudy.Page, generation int64) bool {
	return p.Kind != "" && !p.IsWriteAnswer() && p.Generation < generation
}

// canStorePage reports whether a page is stored beside its records.
func canStorePage(p *understudy.Page) bool {
	return !p.Key.IsZero() && p.Status != 204
}

// recordRows returns the rows of p that are records: rows with an id, in a page that does not report its record
// as gone. Other rows are stored as bytes of the page.
func recordRows(p *understudy.Page) []understudy.Row {
	if p.Kind == "" || isRemoval(p) {
		return nil
	}
	for i := range p.Rows {
		if p.Rows[i].ID == "" {
			named := make([]understudy.Row, 0, len(p.Rows))
			for _, r := range p.Rows {
				if r.ID != "" {
					named = append(named, r)
				}
			}
			return named
		}
	}
	return p.Rows
}

// checkPage returns an error for a page that cannot be stored byte for byte, for example because its rows overlap.
func checkPage(p *understudy.Page) error {
	switch {
	case p.NotStored != "":
		return fmt.Errorf("%w: %s", understudy.ErrNotStored, p.NotStored)
	case p.Key.Source == "":
		return fmt.Errorf("%w: the page names no source", understudy.ErrNotStored)
	case p.Kind != "" && p.Shape == "":
		return fmt.Errorf("%w: the page names a kind and no shape", understudy.ErrNotStored)
	}
	end := 0
	for i, r := range p.Rows {
		if r.Start < end || r.End <= r.Start || r.End > len(p.Body) {
			return fmt.Errorf("%w: record %d lies at %d to %d of a body of %d bytes, after "+
				"%d", understudy.ErrNotStored, i, r.Start, r.End, len(p.Body), end)
		}
		end = r.End
	}
	return nil
}
