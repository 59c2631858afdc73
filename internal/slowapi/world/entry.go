// Entries: everything that happens to the world, and how it becomes true.
package world

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Entry is one thing that happened. At is the world's time then, Wall the real
// one, so that a running clock can catch up after a pause.
type Entry struct {
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

// Check tells whether an entry can become true. A journal is a file and files
// come from anywhere, so nothing is taken for granted. The caller holds mu.
func (w *World) Check(e Entry) error {
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

func (w *World) checkNew(e Entry) error {
	for name, n := range e.New {
		k := w.KindNamed(name)
		if k == nil || !k.Arrives || n < 0 {
			return fmt.Errorf("slowapi: %s: cannot create %d of %q", e.Op, n, name)
		}
		if n > maxBorn-len(w.Of(k, 0).born) {
			return ErrFull
		}
	}
	return nil
}

func (w *World) checkCreate(e Entry) error {
	s := w.Of(w.KindNamed(e.Kind), e.Account)
	switch {
	case s == nil:
		return fmt.Errorf("slowapi: create: no list of %q in account %d", e.Kind, e.Account)
	case s.Kind.Create == nil:
		return fmt.Errorf("slowapi: create: nothing can be added to %q", e.Kind)
	case len(s.born) >= maxBorn, s == w.Top && s.Count() >= MaxAccounts:
		return ErrFull
	}
	return nil
}

func (w *World) checkWrite(e Entry) error {
	s := w.Of(w.KindNamed(e.Kind), e.Account)
	if s == nil || !s.Exists(e.Index) {
		return fmt.Errorf("slowapi: %s: no record %d of %q in account %d", e.Op, e.Index, e.Kind, e.Account)
	}
	if len(e.Cut) == 0 {
		return nil
	}
	if s.Kind.Life == nil || len(e.Cut) > 2 {
		return fmt.Errorf("slowapi: update: a record of %q cannot go to %q", e.Kind, e.Cut)
	}
	if p := s.Progress(e.Index); p.done() {
		return fmt.Errorf("slowapi: update: record %d of %q is in a final state", e.Index, e.Kind)
	}
	return nil
}

// Apply makes an entry true, and tells how many records moved on in their
// lives. The caller holds mu for writing.
func (w *World) Apply(e Entry) (moved int, err error) {
	if err := w.Check(e); err != nil {
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
func (w *World) applyTime(e Entry) (moved int) {
	at := e.At.Unix()
	for _, account := range w.Below {
		for _, k := range w.Kinds {
			s := account[k]
			for _, i := range slices.Clone(s.live) {
				if e.Op == "advance" && w.step(s, i, at) || e.Op == "pass" && w.catchUp(s, i, at) {
					moved++
				}
			}
		}
	}
	for _, k := range w.Kinds {
		s := w.Below[0][k]
		for range e.New[k.Name] {
			if k.Life != nil {
				s.live = append(s.live, s.Count())
			}
			s.born = append(s.born, at)
		}
	}
	return moved
}

// step moves one record on by one step.
func (w *World) step(s *Sequence, i, at int64) bool {
	p := s.Progress(i)
	if p.done() {
		s.live = without(s.live, i)
		return false
	}
	m := s.markFor(i)
	m.when = append(m.when, max(at, p.at(p.step)))
	if p.step+1 >= p.Final() {
		s.live = without(s.live, i)
	}
	if at > p.Created+slack {
		s.late = insert(s.late, i)
	}
	return true
}

// catchUp moves one record through every step that is due by now.
func (w *World) catchUp(s *Sequence, i, now int64) (moved bool) {
	for {
		p := s.Progress(i)
		if p.done() || p.due() > now {
			return moved
		}
		moved = w.step(s, i, p.due())
	}
}

// applyCreate adds a record that a write made.
func (w *World) applyCreate(e Entry) {
	s := w.Of(w.KindNamed(e.Kind), e.Account)
	if s == w.Top {
		w.Below = append(w.Below, w.emptyAccount(len(w.Below)))
	}
	i := s.Count()
	s.born = append(s.born, e.At.Unix())
	s.Marks[i] = &mark{Form: e.Fields, written: true}
	if s.Kind.Life != nil {
		s.live = append(s.live, i)
	}
}

// applyWrite changes or deletes a record.
func (w *World) applyWrite(e Entry) {
	s := w.Of(w.KindNamed(e.Kind), e.Account)
	if e.Op == "delete" {
		if s.Kind.Buries {
			s.markFor(e.Index).Touched = e.At.Unix()
		}
		s.Gone = insert(s.Gone, e.Index)
		s.live = without(s.live, e.Index)
		s.late = without(s.late, e.Index)
		return
	}
	m, at := s.markFor(e.Index), e.At.Unix()
	if len(e.Cut) > 0 {
		p := s.Progress(e.Index)
		m.plan = p.cut(e.Cut...)
		w.step(s, e.Index, at)
	}
	s.set(e.Index, e.Fields, at)
}

// set notes what a write or an edit set in a record.
func (s *Sequence) set(i int64, fields map[string]string, at int64) {
	m := s.markFor(i)
	if m.Form == nil {
		m.Form = map[string]string{}
	}
	maps.Copy(m.Form, fields)
	m.Touched = at
	if at > s.Created(i)+slack {
		s.late = insert(s.late, i)
	}
}

// NextDue is when the next record moves on by itself, in Unix seconds. The
// caller holds mu.
func (w *World) NextDue() int64 {
	due := int64(math.MaxInt64)
	for _, account := range w.Below {
		for _, s := range account {
			for _, i := range s.live {
				p := s.Progress(i)
				due = min(due, p.due())
			}
		}
	}
	return due
}
