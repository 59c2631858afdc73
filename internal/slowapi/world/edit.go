// Edits: late changes to single records, such as a price put right, of which no list tells.
package world

import (
	"fmt"
	"maps"
	"slices"
)

// Edit is what happens to one record, named by its place in the order of
// creation (0 is the oldest) or by its SID.
type Edit struct {
	Index   *int64  `json:"index"`
	SID     string  `json:"sid"`
	Delete  bool    `json:"delete"`
	Restore bool    `json:"restore"` // a deleted record is there again, in its old place
	Price   *string `json:"price"`
	Status  *string `json:"status"` // of one that is in a final state
	Body    *string `json:"body"`   // of a message
}

// The names of what an edit sets; no form has fields of such names.
const (
	EditedPrice  = "=price"
	editedStatus = "=status"
)

// EntryOf is the entry for an edit. The caller holds mu.
func (w *World) EntryOf(kind string, account int, e *Edit) (out Entry, sid string, err error) {
	k := w.KindNamed(kind)
	s := w.Of(k, account)
	if k == nil || s == nil {
		return out, "", fmt.Errorf("there is no kind %q in account %d", kind, account)
	}
	index, ok := w.indexOf(s, e)
	if !ok {
		return out, "", fmt.Errorf("there is no such record of %q: index %d, sid %q", kind, valueOf(e.Index), e.SID)
	}
	out = Entry{Op: "edit", Kind: kind, Account: account, Index: index, Fields: map[string]string{}}
	switch {
	case e.Delete && e.Restore:
		return out, "", fmt.Errorf("a record cannot be deleted and restored at once")
	case e.Delete:
		out.Op, out.Fields = "delete", nil
	case e.Restore:
		out.Op, out.Fields = "restore", nil
	}
	if e.Price != nil {
		out.Fields[EditedPrice] = *e.Price
	}
	if e.Status != nil {
		out.Fields[editedStatus] = *e.Status
	}
	if e.Body != nil && k.Edits.Body != nil && s.Exists(index) {
		for name, value := range k.Edits.Body(w, s, index, *e.Body) {
			out.Fields[name] = value
		}
	}
	return out, w.SID(s, index), nil
}

func (w *World) indexOf(s *Sequence, e *Edit) (int64, bool) {
	if e.SID != "" {
		return w.Find(s, e.SID)
	}
	return valueOf(e.Index), e.Index != nil && *e.Index >= 0 && *e.Index < s.Count()
}

func valueOf(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// checkEdit tells whether an edit can become true. The caller holds mu.
func (w *World) checkEdit(e Entry) error {
	s := w.Of(w.KindNamed(e.Kind), e.Account)
	if s == nil || e.Index < 0 || e.Index >= s.Count() {
		return fmt.Errorf("slowapi: %s: no record %d of %q in account %d", e.Op, e.Index, e.Kind, e.Account)
	}
	if e.Op == "restore" {
		if !s.Deleted(e.Index) {
			return fmt.Errorf("slowapi: restore: record %d of %q was not deleted", e.Index, e.Kind)
		}
		return nil
	}
	if !s.Exists(e.Index) {
		return fmt.Errorf("slowapi: edit: record %d of %q was deleted", e.Index, e.Kind)
	}
	if s.Kind.Edits.Finals == nil {
		return fmt.Errorf("slowapi: edit: only calls and messages can be changed so")
	}
	status, set := e.Fields[editedStatus]
	if !set {
		return nil
	}
	p := s.Progress(e.Index)
	if !p.done() || !slices.Contains(s.Kind.Edits.Finals, status) {
		return fmt.Errorf("slowapi: edit: record %d of %q is %s; a record in a final state can become one of %v", e.Index, e.Kind, p.Status(),
			s.Kind.Edits.Finals)
	}
	return nil
}

// applyEdit changes a record, or brings a deleted one back. The caller holds mu
// for writing.
func (w *World) applyEdit(e Entry) {
	s, at := w.Of(w.KindNamed(e.Kind), e.Account), e.At.Unix()
	if e.Op == "restore" {
		s.Gone = without(s.Gone, e.Index)
		return
	}
	m := s.markFor(e.Index)
	fields := maps.Clone(e.Fields)
	if status, set := fields[editedStatus]; set {
		p := s.Progress(e.Index)
		m.plan = slices.Clone(p.Plan)
		for i, before := range p.Plan {
			if before == p.Status() {
				m.plan[i] = status
			}
		}
		delete(fields, editedStatus)
	}
	s.set(e.Index, fields, at)
}
