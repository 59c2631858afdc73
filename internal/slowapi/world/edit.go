// Edits: late changes of single records that clients cannot find by a time filter, such as a corrected price.
package world

import (
	"fmt"
	"maps"
	"slices"
)

// Edit is a change of one record. SID or Index names the record. Index 0 is the oldest record.
type Edit struct {
	Index   *int64  `json:"index"`
	SID     string  `json:"sid"`
	Delete  bool    `json:"delete"`
	Restore bool    `json:"restore"` // whether a deleted record is restored under its old index
	Price   *string `json:"price"`
	Status  *string `json:"status"` // the new status of a record that is in a final status
	Body    *string `json:"body"`   // the new body of a message
}

// The names of values that only edits can set. No form has fields with these names.
const (
	EditedPrice  = "=price"
	editedStatus = "=status"
)

// NewEditEntry returns the entry for an edit, and the SID of its record. The caller holds Mu or Writing.
func (w *World) NewEditEntry(kind string, account int, e *Edit) (out Entry, sid string, err error) {
	k := w.KindNamed(kind)
	s := w.Sequence(k, account)
	if k == nil || s == nil {
		return out, "", fmt.Errorf("there is no kind %q in account %d", kind, account)
	}
	index, ok := w.indexOf(s, e)
	if !ok {
		return out, "", fmt.Errorf("there is no such record of %q: index %d, sid %q", kind, index, e.SID)
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
	if e.Body != nil && k.Edits.Body != nil && s.HasRecord(index) {
		maps.Copy(out.Fields, k.Edits.Body(w, s, index, *e.Body))
	}
	return out, w.SID(s, index), nil
}

func (w *World) indexOf(s *Sequence, e *Edit) (int64, bool) {
	if e.SID != "" {
		return w.Find(s, e.SID)
	}
	if e.Index == nil {
		return 0, false
	}
	return *e.Index, *e.Index >= 0 && *e.Index < s.Count()
}

// planEdit checks an edit or the restoration of a deleted record. It returns the function that carries it out.
func (w *World) planEdit(e Entry, s *Sequence) (func() int, error) {
	status, set := e.Fields[editedStatus]
	switch {
	case s == nil || e.Index < 0 || e.Index >= s.Count():
		return nil, fmt.Errorf("slowapi: %s: no record %d of %q in account %d", e.Op, e.Index, e.Kind, e.Account)
	case e.Op == "restore" && !s.IsDeleted(e.Index):
		return nil, fmt.Errorf("slowapi: restore: record %d of %q was not deleted", e.Index, e.Kind)
	case e.Op == "restore":
		return func() int { s.DeletedIndexes = remove(s.DeletedIndexes, e.Index); return 0 }, nil
	case !s.HasRecord(e.Index):
		return nil, fmt.Errorf("slowapi: edit: record %d of %q was deleted", e.Index, e.Kind)
	case s.Kind.Edits.Finals == nil:
		return nil, fmt.Errorf("slowapi: edit: only calls and messages can be changed so")
	}
	p := s.Progress(e.Index)
	if set && (!p.isFinal() || !slices.Contains(s.Kind.Edits.Finals, status)) {
		return nil, fmt.Errorf("slowapi: edit: record %d of %q is %s; a record in a final state can become one of %v", e.Index, e.Kind,
			p.Status(), s.Kind.Edits.Finals)
	}
	return func() int {
		fields := maps.Clone(e.Fields)
		if set {
			plan := slices.Clone(p.Plan)
			for i, old := range plan {
				if old == p.Status() {
					plan[i] = status
				}
			}
			s.getHistory(e.Index).plan = plan
			delete(fields, editedStatus)
		}
		s.set(e.Index, fields, e.At.Unix())
		return 0
	}, nil
}
