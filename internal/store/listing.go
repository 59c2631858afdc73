// Listing for erasing: what a save learns must go is listed in the transaction of
// the save. Package erase takes it out.

package store

import (
	"strings"

	"understudy/internal/store/codec"
	"understudy/internal/store/erase"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
)

var (
	insertErasing = &sqlite.Statement{Head: "INSERT INTO erasing (erasure, source, kind, record, cause, bound, fields, at) " +
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?)"}
)

// listGone lists a record that went for erasing, in the save's transaction.
func (s *saving) listGone(record int64) error {
	s.outcome.erasing = true
	return s.c.Exec(insertErasing, 0, int64(0), s.counters.source, s.kind.Number, record, int64(erase.CauseDeleted), int64(0), "", s.at)
}

// listLate lists what an observation that lost its race has brought back: of a record
// that went, or of one that was redacted since.
func (s *saving) listLate(g *observation, body []byte) error {
	if g.was.number == 0 || g.fresh {
		return nil
	}
	if !g.was.present() {
		return s.listGone(g.was.number)
	}
	if !g.was.held || g.was.state&records.Forgotten != 0 || !erase.Redactable(s.kind.Spec) {
		return nil
	}
	e, err := s.db.opener.Open(s.c).Entry(g.was.version)
	if err != nil {
		return err
	}
	return s.listRedacted(g.was.number, e.Body)
}

// listRedacted lists a record for erasing when body, just seen of it, has a
// field that upstream empties to take back what it said. Whether there is
// anything to erase is found out later.
func (s *saving) listRedacted(record int64, body []byte) error {
	fields := erase.Emptied(s.kind.Spec, body)
	if len(fields) == 0 {
		return nil
	}
	s.outcome.erasing = true
	bound := (s.counters.block + 1) * codec.PerBlock
	return s.c.Exec(insertErasing, 0, int64(0), s.counters.source, s.kind.Number, record, int64(erase.CauseRedacted), bound,
		strings.Join(fields, "\n"), s.at)
}
