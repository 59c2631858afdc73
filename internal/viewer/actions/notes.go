// Notes that people write about a record, and the mark that somebody has handled the record.

package actions

import (
	"errors"
	"fmt"
	"strconv"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/viewer/page"
	"understudy/spec"
)

// The values of the form field do.
const (
	doAdd     = "add"
	doRemove  = "remove"
	doHandled = "handled"
	doOpen    = "open" // the value that removes the mark that the record is handled
)

// Notes are the notes on a record, and the forms that change them.
type Notes struct {
	Path    string
	Notes   []note
	Handled *handled
	Full    bool // whether the record has the maximum number of notes
	Most    int  // the maximum length of a note in bytes
}

type note struct {
	Note understudy.Note
	When page.When
	Own  bool // whether the caller may remove the note
}

// Excerpt returns the beginning of the note's text.
func (n note) Excerpt() string { return understudy.Clip(n.Note.Text) }

type handled struct {
	By   string
	When page.When
}

// NotesOn returns the notes on a record, or nil if the caller may not see notes.
func NotesOn(q *page.Exchange, t *spec.Target, row access.Row) *Notes {
	if t.ID == "" || row.ID != t.ID || !q.Rights.CanSeeNotes(q.Source, q.Clock.AsOf) {
		return nil
	}
	out := &Notes{Path: address(q.Kind, access.PermitNote, t.ID), Most: understudy.MaxNote}
	a := q.V.Options.Annotations.Annotation(q.Source.Name, q.Kind.Spec.Name, t.ID)
	if a == nil {
		return out
	}
	for _, n := range a.Notes {
		out.Notes = append(out.Notes, note{n, q.Clock.FormatMoment(n.At, true), canRemove(q, n)})
	}
	if a.Handled != nil {
		out.Handled = &handled{a.Handled.By, q.Clock.FormatMoment(a.Handled.At, true)}
	}
	out.Full = len(a.Notes) >= understudy.MaxNotes
	return out
}

// canRemove reports whether the caller may remove a note: its author and callers with the role all may.
func canRemove(q *page.Exchange, n understudy.Note) bool {
	return n.By == q.Rights.Caller.Name || q.Rights.Caller.Role() == understudy.RoleAll
}

// handleNoteForm handles the forms for notes and marks on a record's page.
func handleNoteForm(q *page.Exchange) error {
	t, err := noteTarget(q, q.R.PathValue("id"))
	if err != nil {
		return err
	}
	if err := q.R.ParseForm(); err != nil {
		return errInvalidForm
	}
	do, form := q.V.Options.Annotations, q.R.PostForm
	source, kind, id := q.Source.Name, q.Kind.Spec.Name, t.ID
	var work func() error
	what, said := "", ""
	switch form.Get("do") {
	case doAdd:
		what, said = "write a note", "The note was added."
		n := understudy.Note{Text: form.Get("text"), By: q.Rights.Caller.Name, At: q.Clock.Start}
		work = func() error { return do.AddNote(q.Ctx, source, kind, id, n) }
	case doRemove:
		what, said = "remove a note", "The note was removed."
		number, err := readNoteNumber(q, t, form.Get("number"))
		if err != nil {
			return err
		}
		work = func() error { return do.RemoveNote(q.Ctx, source, kind, id, number) }
	case doHandled:
		what, said = "mark as handled", "The record is marked as handled."
		work = func() error {
			return do.MarkHandled(q.Ctx, source, kind, id, &understudy.Mark{By: q.Rights.Caller.Name, At: q.Clock.Start})
		}
	case doOpen:
		what, said = "remove the mark as handled", "The record is reopened."
		work = func() error { return do.MarkHandled(q.Ctx, source, kind, id, nil) }
	default:
		return page.NewUnknownWord("form", form.Get("do"), []string{doAdd, doRemove, doHandled, doOpen}, nil)
	}
	err = page.WriteAudit(q, understudy.AuditEntry{Action: understudy.ActionNote, What: what, IDs: []string{id}})
	if err == nil {
		err = work()
	}
	back := q.Source.Place(t)
	switch {
	case errors.Is(err, understudy.ErrNotFound):
		return page.NewNoSuchRecord(q.Kind)
	case errors.Is(err, understudy.ErrInvalid), errors.Is(err, understudy.ErrNotStored):
		return &page.Problem{Title: "Nothing was saved", Hint: page.Sentence(err), Href: back, Link: "Back to the " + q.Kind.Spec.Singular,
			Kind: err}
	case err != nil:
		return err
	}
	q.RedirectBack(back, said)
	return nil
}

// noteTarget returns the target of the record with an id. It returns an error if the caller may not write notes on the record.
func noteTarget(q *page.Exchange, id string) (*spec.Target, error) {
	if q.V.Options.Annotations == nil {
		return nil, errNoActions
	}
	if err := q.Rights.Gate.CheckPermission(q.Rights.Caller, q.Source.Name, access.PermitNote); err != nil {
		return nil, err
	}
	params, err := understudy.ParseQuery(q.R.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	t, err := recordTarget(q, id, params)
	if err != nil {
		return nil, err
	}
	if err := q.Rights.Gate.CheckRead(q.Rights.Caller, t); err != nil {
		return nil, err
	}
	if !q.Rights.Gate.CanFind(q.Rights.Caller, q.Source.Name, q.Kind.Spec.Name, t.ID) {
		return nil, page.NewNoSuchRecord(q.Kind)
	}
	return t, nil
}

// readNoteNumber parses the number of a note. It returns an error if the caller may not remove the note.
func readNoteNumber(q *page.Exchange, t *spec.Target, text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, page.NewBadRequest("This form is not valid", "Start again from the page of the "+q.Kind.Spec.Singular+".", nil)
	}
	if a := q.V.Options.Annotations.Annotation(q.Source.Name, q.Kind.Spec.Name, t.ID); a != nil {
		for _, n := range a.Notes {
			if n.Number == number && !canRemove(q, n) {
				return 0, fmt.Errorf("%w: only its author or the role all can remove a note", understudy.ErrForbidden)
			}
		}
	}
	return number, nil
}
