// Entries: everything that happens to the world, and how it becomes true.
package slowapi

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// entry is one thing that happened. At is the world's time then, Wall the real
// one, so that a running clock can catch up after a pause.
type entry struct {
	Op      string            `json:"op"` // advance, pass, create, update, delete, edit, restore
	At      time.Time         `json:"at"`
	Wall    time.Time         `json:"wall"`
	Kind    string            `json:"kind,omitempty"`
	Account int               `json:"account,omitempty"`
	Index   int64             `json:"index,omitempty"`
	Fields  map[string]string `json:"fields,omitempty"`
	Cut     []string          `json:"cut,omitempty"`
	New     map[string]int    `json:"new,omitempty"`
}

// check tells whether an entry can become true. A journal is a file and files
// come from anywhere, so nothing is taken for granted. The caller holds mu.
func (w *world) check(e entry) error {
	if e.At.Before(w.clock) {
		return fmt.Errorf("slowapi: %s at %s lies before what happened last", e.Op, e.At.Format(time.RFC3339))
	}
	switch e.Op {
	case "advance", "pass":
		return w.checkNew(e)
	case "create":
		return w.checkCreate(e)
	case "update", "delete":
		return w.checkWrite(e)
	case "edit", "restore":
		return w.checkEdit(e)
	}
	return fmt.Errorf("slowapi: unknown entry %q", e.Op)
}

func (w *world) checkNew(e entry) error {
	for name, n := range e.New {
		k := w.kindNamed(name)
		if k == nil || !k.arrives || n < 0 {
			return fmt.Errorf("slowapi: %s: cannot create %d of %q", e.Op, n, name)
		}
		if n > maxBorn-len(w.of(k, 0).born) {
			return errFull
		}
	}
	return nil
}

func (w *world) checkCreate(e entry) error {
	s := w.of(w.kindNamed(e.Kind), e.Account)
	switch {
	case s == nil:
		return fmt.Errorf("slowapi: create: no list of %q in account %d", e.Kind, e.Account)
	case s.kind.create == nil:
		return fmt.Errorf("slowapi: create: nothing can be added to %q", e.Kind)
	case len(s.born) >= maxBorn, s == w.top && s.count() >= maxAccounts:
		return errFull
	}
	return nil
}

func (w *world) checkWrite(e entry) error {
	s := w.of(w.kindNamed(e.Kind), e.Account)
	if s == nil || !s.exists(e.Index) {
		return fmt.Errorf("slowapi: %s: no record %d of %q in account %d", e.Op, e.Index, e.Kind, e.Account)
	}
	if len(e.Cut) == 0 {
		return nil
	}
	if s.kind.life == nil || len(e.Cut) > 2 {
		return fmt.Errorf("slowapi: update: a record of %q cannot go to %q", e.Kind, e.Cut)
	}
	if p := progressOf(s, e.Index, s.kind.life(s, e.Index)); p.done() {
		return fmt.Errorf("slowapi: update: record %d of %q is in a final state", e.Index, e.Kind)
	}
	return nil
}

// apply makes an entry true, and tells how many records moved on in their
// lives. The caller holds mu for writing.
func (w *world) apply(e entry) (moved int, err error) {
	if err := w.check(e); err != nil {
		return 0, err
	}
	switch e.Op {
	case "create":
		w.applyCreate(e)
	case "update", "delete":
		w.applyWrite(e)
	case "edit", "restore":
		w.applyEdit(e)
	default:
		moved = w.applyTime(e)
	}
	w.clock, w.wall = e.At, e.Wall
	return moved, nil
}

// applyTime moves records on, all by one step for an advance and those that are
// due for time that passed, and then creates new ones.
func (w *world) applyTime(e entry) (moved int) {
	at := e.At.Unix()
	for _, account := range w.below {
		for _, k := range w.kinds {
			s := account[k]
			for _, i := range slices.Clone(s.live) {
				if e.Op == "advance" && w.step(s, i, at) || e.Op == "pass" && w.catchUp(s, i, at) {
					moved++
				}
			}
		}
	}
	for _, k := range w.kinds {
		s := w.below[0][k]
		for range e.New[k.name] {
			if k.life != nil {
				s.live = append(s.live, s.count())
			}
			s.born = append(s.born, at)
		}
	}
	return moved
}

// step moves one record on by one step.
func (w *world) step(s *sequence, i, at int64) bool {
	p := progressOf(s, i, s.kind.life(s, i))
	if p.done() {
		s.live = without(s.live, i)
		return false
	}
	m := s.markFor(i)
	m.when = append(m.when, max(at, p.at(p.step)))
	if p.step+1 >= p.final() {
		s.live = without(s.live, i)
	}
	if at > p.created+slack {
		s.late = insert(s.late, i)
	}
	return true
}

// catchUp moves one record through every step that is due by now.
func (w *world) catchUp(s *sequence, i, now int64) (moved bool) {
	for {
		p := progressOf(s, i, s.kind.life(s, i))
		if p.done() || p.due() > now {
			return moved
		}
		moved = w.step(s, i, p.due())
	}
}

// applyCreate adds a record that a write made.
func (w *world) applyCreate(e entry) {
	s := w.of(w.kindNamed(e.Kind), e.Account)
	if s == w.top {
		w.below = append(w.below, w.emptyAccount(len(w.below)))
	}
	i := s.count()
	s.born = append(s.born, e.At.Unix())
	s.marks[i] = &mark{form: e.Fields, written: true}
	if s.kind.life != nil {
		s.live = append(s.live, i)
	}
}

// applyWrite changes or deletes a record.
func (w *world) applyWrite(e entry) {
	s := w.of(w.kindNamed(e.Kind), e.Account)
	if e.Op == "delete" {
		if s.kind.buries {
			s.markFor(e.Index).touched = e.At.Unix()
		}
		s.gone = insert(s.gone, e.Index)
		s.live = without(s.live, e.Index)
		s.late = without(s.late, e.Index)
		return
	}
	m, at := s.markFor(e.Index), e.At.Unix()
	if len(e.Cut) > 0 {
		p := progressOf(s, e.Index, s.kind.life(s, e.Index))
		m.plan = p.cut(e.Cut...)
		w.step(s, e.Index, at)
	}
	if m.form == nil {
		m.form = map[string]string{}
	}
	maps.Copy(m.form, e.Fields)
	m.touched = at
	if at > s.created(e.Index)+slack {
		s.late = insert(s.late, e.Index)
	}
}

// nextDue is when the next record moves on by itself, in Unix seconds. The
// caller holds mu.
func (w *world) nextDue() int64 {
	due := int64(math.MaxInt64)
	for _, account := range w.below {
		for _, s := range account {
			for _, i := range s.live {
				p := progressOf(s, i, s.kind.life(s, i))
				due = min(due, p.due())
			}
		}
	}
	return due
}
