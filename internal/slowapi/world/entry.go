// Entries: the changes of the simulated world, and how they are applied.
package world

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Entry is one change of the simulated world, and a line of the journal. At is the time of the simulated world at the
// change, and Wall is the real time. After a restart, a running clock continues from both.
type Entry struct {
	Op           string            `json:"op"` // the type of the change: advance, pass, create, update, delete, edit or restore
	At           time.Time         `json:"at"`
	Wall         time.Time         `json:"wall"`
	Kind         string            `json:"kind,omitempty"`
	Account      int               `json:"account,omitempty"`
	Index        int64             `json:"index,omitempty"`
	Fields       map[string]string `json:"fields,omitempty"` // the values that a write or edit sets
	NextStatuses []string          `json:"cut,omitempty"`    // the statuses that the record will have next, in place of those planned before
	Created      map[string]int    `json:"new,omitempty"`    // the number of records to create, by the name of the kind
}

// Apply applies an entry. moved is the number of records whose status has changed. The caller holds Mu for writing.
func (w *World) Apply(e Entry) (moved int, err error) {
	do, err := w.Plan(e)
	if err != nil {
		return 0, err
	}
	return do(), nil
}

// Plan checks an entry and returns the function do that applies it. Entries of a journal are checked too, because the
// file may be damaged. The caller must hold Writing until do has returned, and Mu for writing while do runs.
func (w *World) Plan(e Entry) (do func() (moved int), err error) {
	if e.At.Before(w.clock) {
		return nil, fmt.Errorf("slowapi: %s at %s lies before what happened last", e.Op, e.At.Format(time.RFC3339))
	}
	plan := map[string]func(Entry, *Sequence) (func() int, error){
		"advance": w.planTime, "pass": w.planTime, "create": w.planCreate, "update": w.planWrite, "delete": w.planWrite, "edit": w.planEdit,
		"restore": w.planEdit,
	}[e.Op]
	if plan == nil {
		return nil, fmt.Errorf("slowapi: unknown entry %q", e.Op)
	}
	change, err := plan(e, w.Sequence(w.KindNamed(e.Kind), e.Account))
	return func() int {
		defer func() { w.clock, w.wall = e.At, e.Wall }()
		return change()
	}, err
}

// planTime plans an entry that lets time pass. "advance" moves every record that is not in a final status by one
// step, and "pass" moves those that are due. Both create the new records in the entry.
func (w *World) planTime(e Entry, _ *Sequence) (func() int, error) {
	for name, n := range e.Created {
		k := w.KindNamed(name)
		if k == nil || !k.Arrives || n < 0 {
			return nil, fmt.Errorf("slowapi: %s: cannot create %d of %q", e.Op, n, name)
		}
		if n > maxCreated-len(w.Sequence(k, 0).createdAt) {
			return nil, ErrFull
		}
	}
	at := e.At.Unix()
	return func() (moved int) {
		for _, account := range w.Sequences {
			for _, k := range w.Kinds {
				s := account[k]
				for _, i := range slices.Clone(s.unfinished) {
					if e.Op == "advance" && s.step(i, at) || e.Op == "pass" && s.runDueSteps(i, at) {
						moved++
					}
				}
			}
		}
		for _, k := range w.Kinds {
			for range e.Created[k.Name] {
				w.Sequences[0][k].addRecord(at)
			}
		}
		return moved
	}, nil
}

// addRecord adds a record. at is its creation time in Unix seconds.
func (s *Sequence) addRecord(at int64) {
	if s.Kind.Lifecycle != nil {
		s.unfinished = append(s.unfinished, s.Count())
	}
	s.createdAt = append(s.createdAt, at)
}

// step moves a record to its next status. It returns false if the record was already in its final status.
func (s *Sequence) step(i, at int64) bool {
	p := s.Progress(i)
	if p.isFinal() {
		s.unfinished = remove(s.unfinished, i)
		return false
	}
	m := s.getHistory(i)
	m.stepTimes = append(m.stepTimes, max(at, p.stepTime(p.step)))
	if p.step+1 >= p.FinalStep() {
		s.unfinished = remove(s.unfinished, i)
	}
	if at > p.Created+maxFinalDelay {
		s.late = insert(s.late, i)
	}
	return true
}

// runDueSteps moves a record through all statuses that are due. It reports whether there were any.
func (s *Sequence) runDueSteps(i, now int64) (moved bool) {
	for {
		p := s.Progress(i)
		if p.isFinal() || p.nextStepTime() > now {
			return moved
		}
		moved = s.step(i, p.nextStepTime())
	}
}

// planCreate plans the creation of a record by a write.
func (w *World) planCreate(e Entry, s *Sequence) (func() int, error) {
	switch {
	case s == nil:
		return nil, fmt.Errorf("slowapi: create: no list of %q in account %d", e.Kind, e.Account)
	case s.Kind.Writes.Create == nil:
		return nil, fmt.Errorf("slowapi: create: nothing can be added to %q", e.Kind)
	case len(s.createdAt) >= maxCreated, s == w.AccountSequence && s.Count() >= MaxAccounts:
		return nil, ErrFull
	}
	return func() int {
		if s == w.AccountSequence {
			w.Sequences = append(w.Sequences, w.emptyAccount(len(w.Sequences)))
		}
		s.History[s.Count()] = &history{Fields: e.Fields, createdByWrite: true}
		s.addRecord(e.At.Unix())
		return 0
	}, nil
}

// planWrite plans the update or the deletion of a record.
func (w *World) planWrite(e Entry, s *Sequence) (func() int, error) {
	if s == nil || !s.HasRecord(e.Index) {
		return nil, fmt.Errorf("slowapi: %s: no record %d of %q in account %d", e.Op, e.Index, e.Kind, e.Account)
	}
	if len(e.NextStatuses) > 0 && (s.Kind.Lifecycle == nil || len(e.NextStatuses) > 2) {
		return nil, fmt.Errorf("slowapi: update: a record of %q cannot go to %q", e.Kind, e.NextStatuses)
	}
	var p Progress
	if len(e.NextStatuses) > 0 {
		if p = s.Progress(e.Index); p.isFinal() {
			return nil, fmt.Errorf("slowapi: update: record %d of %q is in a final state", e.Index, e.Kind)
		}
	}
	at := e.At.Unix()
	if e.Op == "delete" {
		return func() int {
			if s.Kind.Writes.ShowsDeleted {
				s.getHistory(e.Index).LastWrite = at
			}
			s.DeletedIndexes, s.unfinished, s.late = insert(s.DeletedIndexes, e.Index), remove(s.unfinished, e.Index), remove(s.late, e.Index)
			return 0
		}, nil
	}
	return func() int {
		if len(e.NextStatuses) > 0 {
			// the statuses that the record has already had stay
			s.getHistory(e.Index).plan = append(slices.Clone(p.Plan[:p.step+1]), e.NextStatuses...)
			s.step(e.Index, at)
		}
		s.set(e.Index, e.Fields, at)
		return 0
	}, nil
}

// set stores the values that a write or an edit sets in a record.
func (s *Sequence) set(i int64, fields map[string]string, at int64) {
	m := s.getHistory(i)
	if m.Fields == nil {
		m.Fields = map[string]string{}
	}
	maps.Copy(m.Fields, fields)
	m.LastWrite = at
	if at > s.CreationTime(i)+maxFinalDelay {
		s.late = insert(s.late, i)
	}
}

// NextDue returns when the next status change of any record is due, in Unix seconds. It returns math.MaxInt64 if none
// is due. The caller holds Mu.
func (w *World) NextDue() int64 {
	due := int64(math.MaxInt64)
	for _, account := range w.Sequences {
		for _, s := range account {
			for _, i := range s.unfinished {
				p := s.Progress(i)
				due = min(due, p.nextStepTime())
			}
		}
	}
	return due
}
