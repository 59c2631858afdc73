// Fidelity: how often a list made from records is what upstream says.

package mirror

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Notes keep small named values. ErrNotFound: there is none of that name.
type Notes interface {
	Note(ctx context.Context, name string) ([]byte, error)
	SetNote(ctx context.Context, name string, value []byte) error
}

// agreement is what the samples of one list said.
type agreement struct {
	Equal     int64      `json:"equal"` // in a row, up to now
	All       int64      `json:"all"`
	Differing int64      `json:"differing,omitempty"`
	Last      difference `json:"last,omitzero"`
	Spec      string     `json:"spec,omitempty"` // as it was then (printOf)
}

// difference is one sample that was not equal. It names fields, parameters and
// ids, never a value.
type difference struct {
	Field string    `json:"field"`
	Where string    `json:"where,omitempty"`
	At    time.Time `json:"at"`
}

// Fields that are none: what else may differ.
const (
	differsStatus     = "(status)"     // one is a refusal
	differsMembership = "(membership)" // a record is in one and not in the other
	differsOrder      = "(order)"
	differsForm       = "(form)" // white space, the order of members
)

// Fidelity is how one list of a source is answered and how well records tell
// what upstream says.
type Fidelity struct {
	Kind, Path, Title string
	Set               Answers // as the settings say
	First             Answers // who is asked first now: AnswersUpstream or AnswersRecords

	Equal     int64 // samples in a row without a difference, up to now; with Enough records are asked first
	All       int64 // samples
	Differing int64 // of these
	// Of the last that differed: the field, or what else in parentheses; where
	// it stood; when. Field "": none ever has.
	Field, Where string
	At           time.Time
}

// Fidelity is how the lists of a source are answered, in the order of its spec;
// those of a kind that has no records are left out.
func (m *Mirror) Fidelity(source string) []Fidelity {
	s := m.sources[source]
	if s == nil {
		return nil
	}
	var out []Fidelity
	for _, k := range s.Spec.Kinds {
		for _, list := range k.Lists {
			if l := s.lists[list]; l != nil {
				out = append(out, l.fidelity())
			}
		}
	}
	return out
}

func (l *listMode) fidelity() Fidelity {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := Fidelity{
		Kind: l.kind.name, Path: l.list.Path, Title: l.list.Title, First: AnswersUpstream,
		Equal: l.agreement.Equal, All: l.agreement.All, Differing: l.agreement.Differing,
		Field: l.agreement.Last.Field, Where: l.agreement.Last.Where, At: l.agreement.Last.At,
	}
	f.Set, _ = l.set.Load().(Answers)
	if l.recordsFirst() {
		f.First = AnswersRecords
	}
	return f
}

// count takes a sample in; a zero difference is none. That a refusal is the same
// says nothing of records (shows): it does not count among those in a row. It
// reports whether the list turned.
func (l *listMode) count(d difference, shows bool) (turned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirty = true
	l.agreement.All++
	if d.Field == "" && !shows {
		return false
	}
	if d.Field == "" {
		l.agreement.Equal++
		return l.agreement.Equal >= Enough && !l.agreed.Swap(true)
	}
	l.agreement.Equal, l.agreement.Last = 0, d
	l.agreement.Differing++
	return l.agreed.Swap(false)
}

// compare finds what differs between what upstream said and what records tell;
// zero when nothing does. gone are the records that upstream does not show.
func compare(said, told *understudy.Page, key string) (d difference, gone []string) {
	switch {
	case said.Status != told.Status:
		return difference{Field: differsStatus, Where: strconv.Itoa(said.Status) + ", not " + strconv.Itoa(told.Status)}, nil
	case bytes.Equal(said.Body, told.Body):
		return difference{}, nil
	case said.Status != 200:
		return difference{Field: changed(said.Body, told.Body, ""), Where: "the refusal"}, nil
	}
	if d, gone = members(said.Rows, told.Rows); d.Field != "" {
		return d, gone
	}
	for i := range said.Rows {
		a, b := said.Rows[i], told.Rows[i]
		one, other := said.Body[a.Start:a.End], told.Body[b.Start:b.End]
		if !bytes.Equal(one, other) {
			return difference{Field: changed(one, other, ""), Where: "row " + strconv.Itoa(i) + ", " + a.ID}, nil
		}
	}
	return difference{Field: changed(said.Body, told.Body, key), Where: "around the rows"}, nil
}

// members compares which records two pages show, and in what order.
func members(said, told []understudy.Row) (d difference, gone []string) {
	shown, have := map[string]bool{}, map[string]bool{}
	for _, r := range said {
		shown[r.ID] = true
	}
	for i, r := range told {
		if have[r.ID] = true; !shown[r.ID] {
			gone = append(gone, r.ID)
			d = cmpOr(d, differsMembership, i, r.ID+" is held")
		}
	}
	for i, r := range said {
		if !have[r.ID] {
			d = cmpOr(d, differsMembership, i, r.ID+" is not held")
		}
	}
	for i := range min(len(said), len(told)) {
		if said[i].ID != told[i].ID {
			d = cmpOr(d, differsOrder, i, said[i].ID)
		}
	}
	if len(said) != len(told) {
		d = cmpOr(d, differsMembership, min(len(said), len(told)), "one ends here")
	}
	return d, gone
}

// cmpOr is the first difference found.
func cmpOr(d difference, field string, row int, what string) difference {
	return cmp.Or(d, difference{Field: field, Where: "row " + strconv.Itoa(row) + ", " + what})
}

// changed is the first field, in the order of names, in which two objects
// differ, besides one that was compared already.
func changed(a, b []byte, but string) string {
	var names []string
	err := jsonspan.Changed(a, b, func(name []byte) bool {
		if string(name) != but {
			names = append(names, string(name))
		}
		return true
	})
	if err != nil || len(names) == 0 {
		return differsForm
	}
	return slices.Min(names)
}

// noteOf is the name of a source's note.
func (s *source) noteOf() string { return "fidelity/" + s.Name }

// recallAgreement reads what earlier runs have found out.
func (m *Mirror) recallAgreement(ctx context.Context) {
	if m.notes == nil {
		return
	}
	for _, s := range m.sources {
		raw, err := m.notes.Note(ctx, s.noteOf())
		scores := map[string]agreement{}
		if err == nil {
			err = json.Unmarshal(raw, &scores)
		}
		if err != nil {
			if !errors.Is(err, understudy.ErrNotFound) {
				m.log.Warn("mirror: what was known of lists made from records cannot be read", "source", s.Name, "error", err)
			}
			continue
		}
		for list, l := range s.lists {
			if known, ok := scores[list.Path]; ok && known.Spec == printOf(s.Spec, l.list, s.Spec.Kind(l.kind.name)) {
				l.mu.Lock()
				l.agreement = known
				l.agreed.Store(known.Equal >= Enough)
				l.mu.Unlock()
			}
		}
	}
}

// keepAgreement writes what is new down.
func (m *Mirror) keepAgreement(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(m.sources)) {
		s := m.sources[name]
		scores, dirty := map[string]agreement{}, false
		for list, l := range s.lists {
			l.mu.Lock()
			dirty = dirty || l.dirty
			if l.dirty = false; l.agreement.All > 0 {
				l.agreement.Spec = printOf(s.Spec, l.list, s.Spec.Kind(l.kind.name))
				scores[list.Path] = l.agreement
			}
			l.mu.Unlock()
		}
		if !dirty || m.notes == nil {
			continue
		}
		raw, err := json.Marshal(scores)
		if err == nil {
			err = m.notes.SetNote(ctx, s.noteOf(), raw)
		}
		if err != nil {
			m.log.Warn("mirror: what is known of lists made from records cannot be kept", "source", s.Name, "error", err)
			for _, l := range s.lists {
				l.mu.Lock()
				l.dirty = l.agreement.All > 0
				l.mu.Unlock()
			}
		}
	}
}

// printOf says in a few characters all of a spec by which a list is made from
// records: what was found out by another spec is not known of this one.
func printOf(s *spec.Spec, list *spec.List, k *spec.Kind) string {
	h := fnv.New64a()
	p, e := s.PagingOf(list), &s.Errors
	fmt.Fprintf(h, "%q %q %q %v %v", list.Path, list.Key, list.Shape, list.Only, list.Rows)
	for _, f := range list.Filters {
		fmt.Fprintf(h, " %q %q %q %q %v %v %d %d", f.Name, f.Field, f.Op, f.Type, f.Whole, f.Open, f.Back, f.Longest)
	}
	fmt.Fprintf(h, " %q %q %q %q %d %d %q %d %q %q %q", p.Style, p.Next, p.Cursor, p.Size, p.Default, p.Max, p.Page, p.First, p.Tokens,
		p.Template, p.Token)
	fmt.Fprintf(h, " %q %q %v %v %v %v %v", e.ContentType, e.Template, e.Codes, e.Messages, s.Quirks, s.Shown, s.Vars)
	fmt.Fprintf(h, " %q %q %q %q %q %v", k.ID, k.Prefixes, k.Clock, k.Order, k.Parent, k.Retention)
	for _, f := range k.Fields {
		fmt.Fprintf(h, " %q %q %q", f.Name, f.Type, f.Link)
	}
	return strconv.FormatUint(h.Sum64(), 36)
}
