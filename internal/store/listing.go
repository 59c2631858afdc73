// This file lists records for erasing in the transaction of the save that found the reason. Package erase does
// the erasing.

package store

import (
	"strings"

	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/erase"
	"understudy/internal/store/records"
)

var (
	insertErasing = &db.Statement{Head: "INSERT INTO erasing (erasure, source, kind, record, cause, bound, fields, at) " +
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?)"}
)

func (s *saving) listGone(record int64) error {
	s.outcome.erasing = true
	return s.c.Execute(insertErasing, 0, int64(0), s.counters.source, s.kind.Number, record, int64(erase.CauseDeleted), int64(0), "", s.at)
}

// listLate handles an observation that is older than the stored one. If its record was deleted or redacted since,
// listLate lists the record for erasing, because this save has stored its old body again.
func (s *saving) listLate(g *observation, body []byte) error {
	if g.stored.number == 0 || g.isNew {
		return nil
	}
	if !g.stored.isPresent() {
		return s.listGone(g.stored.number)
	}
	if !g.stored.hasRow || g.stored.state&records.Forgotten != 0 || !erase.IsRedactable(s.kind.Spec) {
		return nil
	}
	e, err := s.db.opener.Open(s.c).ReadEntry(g.stored.version)
	if err != nil {
		return err
	}
	return s.listRedacted(g.stored.number, e.Body)
}

// listRedacted lists a record for erasing if the body just seen has a redacted field. That is a field that the
// upstream empties to take back its content. Whether there is anything to erase is decided later.
func (s *saving) listRedacted(record int64, body []byte) error {
	fields := erase.EmptiedFields(s.kind.Spec, body)
	if len(fields) == 0 {
		return nil
	}
	s.outcome.erasing = true
	bound := (s.counters.block + 1) * codec.PerBlock
	return s.c.Execute(insertErasing, 0, int64(0), s.counters.source, s.kind.Number, record, int64(erase.CauseRedacted), bound,
		strings.Join(fields, "\n"), s.at)
}
