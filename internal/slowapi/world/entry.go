// Entries: everything that happens to the world, and how it becomes true.
package world

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Entry is one thing that happened. At is the world's time then, Wall the real one, so that a running clock can catch up.
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

// Apply makes an entry true, and returns how many records moved on in their lives. The caller holds Mu for writing.
func (w *World) Apply(e Entry) (moved int, err error) {
	do, err := w.Plan(e)
	if err != nil {
		return 0, err
	}
	return do(), nil
}

// Plan returns what makes an entry true, or why it cannot become true. Entries come from a file, so Plan checks all of
// them. The caller holds Writing until do has run, and Mu for writing while do runs.
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
	change, err := plan(e, w.Of(w.KindNamed(e.Kind), e.Account))
	return func() int {
		defer func() { w.clock, w.wall = e.At, e.Wall }()
		return change()
	}, err
}

// planTime moves records on, all by one step for an advance and those that are due for time that passed. It creates new ones.
func (w *World) planTime(e Entry, _ *Sequence) (func() int, error) {
	for name, n := range e.New {
		k := w.KindNamed(name)
		if k == nil || !k.Arrives || n < 0 {
			return nil, fmt.Errorf("slowapi: %s: cannot create %d of %q", e.Op, n, name)
		}
		if n > maxBorn-len(w.Of(k, 0).born) {
			return nil, ErrFull
		}
	}
	at := e.At.Unix()
	return func() (moved int) {
		for _, account := range w.Below {
			for _, k := range w.Kinds {
				s := account[k]
				for _, i := range slices.Clone(s.live) {
					if e.Op == "advance" && s.step(i, at) || e.Op == "pass" && s.catchUp(i, at) {
						moved++
					}
				}
			}
		}
		for _, k := range w.Kinds {
			for range e.New[k.Name] {
				w.Below[0][k].bear(at)
			}
		}
		return moved
	}, nil
}

// bear adds a record.
func (s *Sequence) bear(at int64) {
	if s.Kind.Life != nil {
		s.live = append(s.live, s.Count())
	}
	s.born = append(s.born, at)
}

// step moves one record on by one step.
func (s *Sequence) step(i, at int64) bool {
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
func (s *Sequence) catchUp(i, now int64) (moved bool) {
	for {
		p := s.Progress(i)
		if p.done() || p.due() > now {
			return moved
		}
		moved = s.step(i, p.due())
	}
}

// planCreate adds a record that a write made.
func (w *World) planCreate(e Entry, s *Sequence) (func() int, error) {
	switch {
	case s == nil:
		return nil, fmt.Errorf("slowapi: create: no list of %q in account %d", e.Kind, e.Account)
	case s.Kind.Writes.Create == nil:
		return nil, fmt.Errorf("slowapi: create: nothing can be added to %q", e.Kind)
	case len(s.born) >= maxBorn, s == w.Top && s.Count() >= MaxAccounts:
		return nil, ErrFull
	}
	return func() int {
		if s == w.Top {
			w.Below = append(w.Below, w.emptyAccount(len(w.Below)))
		}
		s.Marks[s.Count()] = &mark{Form: e.Fields, written: true}
		s.bear(e.At.Unix())
		return 0
	}, nil
}

// planWrite changes or deletes a record.
func (w *World) planWrite(e Entry, s *Sequence) (func() int, error) {
	if s == nil || !s.Exists(e.Index) {
		return nil, fmt.Errorf("slowapi: %s: no record %d of %q in account %d", e.Op, e.Index, e.Kind, e.Account)
	}
	if len(e.Cut) > 0 && (s.Kind.Life == nil || len(e.Cut) > 2) {
		return nil, fmt.Errorf("slowapi: update: a record of %q cannot go to %q", e.Kind, e.Cut)
	}
	var p Progress
	if len(e.Cut) > 0 {
		if p = s.Progress(e.Index); p.done() {
			return nil, fmt.Errorf("slowapi: update: record %d of %q is in a final state", e.Index, e.Kind)
		}
	}
	at := e.At.Unix()
	if e.Op == "delete" {
		return func() int {
			if s.Kind.Writes.Buries {
				s.markFor(e.Index).Touched = at
			}
			s.Gone, s.live, s.late = insert(s.Gone, e.Index), without(s.live, e.Index), without(s.late, e.Index)
			return 0
		}, nil
	}
	return func() int {
		if len(e.Cut) > 0 {
			s.markFor(e.Index).plan = append(slices.Clone(p.Plan[:p.step+1]), e.Cut...) // what was reached stays
			s.step(e.Index, at)
		}
		s.set(e.Index, e.Fields, at)
		return 0
	}, nil
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
