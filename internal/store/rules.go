// What an observation of a record means: came, changed, went, or nothing new. Both
// stores obey these rules, which know neither SQL nor maps.

package store

import (
	"fmt"

	"understudy"
	"understudy/internal/store/order"
	"understudy/internal/store/records"
)

// currentState is what is known of a record before a page is saved.
type currentState struct {
	number  int64 // the record's number; 0: never seen
	held    bool  // in the page's shape; then:
	version int64
	hash    int64
	seen    int64 // Unix nanoseconds
	state   int64
	period  int64 // number of the one that lasts, in this shape
	since   int64 // when it began; 0: when its version's block was made

	position order.Position // where it stands, in whatever shape

	elsewhere bool  // present in another shape
	left      int64 // when it was last seen to be gone in another shape, 0: never
}

// present reports whether the record is held now, in any shape.
func (p *currentState) present() bool {
	return p.held && p.state&records.Gone == 0 || p.elsewhere
}

// decision is what to do about an observation.
type decision struct {
	late  bool                  // an older observation came after a newer one: nothing changes
	what  understudy.ChangeType // 0: no change
	write bool                  // the held row changes beyond its time
	touch bool                  // only Seen is brought up to date
	state int64
}

// judge compares an observation of a record at a time with what is known of it. What a
// write's own answer shows is never late: a fetch that ended after it may have
// read the record before it.
func judge(p *currentState, hash, at int64, final, ofWrite bool) decision {
	last := p.seen
	if !p.present() && p.left > last {
		last = p.left
	}
	if !ofWrite && observedLate(at, last) {
		return decision{late: true}
	}
	v := decision{}
	if final {
		v.state = records.Final
	}
	switch {
	case !p.present():
		v.what = understudy.Came
	case p.held && p.hash != hash:
		v.what = understudy.Changed
	}
	v.write = !p.held || p.hash != hash || p.state != v.state
	v.touch = !v.write && (!final || at-p.seen > int64(seenEvery) || at < p.seen)
	return v
}

// observedLate reports whether an answer lost a race to the held one of its key.
// Anything older means that the clock was set back, and is believed.
func observedLate(at, held int64) bool { return at < held && held-at <= int64(reorder) }

// removes reports whether a page says that a record is no more.
func removes(p *understudy.Page) bool {
	return p.Kind != "" && p.ID != "" && !p.List && (p.Status == 404 || p.Status == 410 || p.Status == 204)
}

// outdated reports whether a write to the kind came after the fetch of a page
// began. What a write's own answer shows is no fetch.
func outdated(p *understudy.Page, generation int64) bool {
	return p.Kind != "" && !p.OfWrite() && p.Generation < generation
}

// keepsPage reports whether the page itself is kept, beside its records.
func keepsPage(p *understudy.Page) bool {
	return !p.Key.Zero() && p.Status != 204
}

// recordsOf are the rows of p that are records: those with an id, in a page
// that does not say that its record is gone. The others stay in the skeleton.
func recordsOf(p *understudy.Page) []understudy.Row {
	if p.Kind == "" || removes(p) {
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

// check refuses a page that cannot be kept faithfully.
func check(p *understudy.Page) error {
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

// atOf is when a page was complete, in Unix nanoseconds.
func atOf(p *understudy.Page, now func() int64) int64 {
	if p.At.IsZero() {
		return now()
	}
	return p.At.UnixNano()
}
