// Composetest: every list of an API, walked, and random requests for them.

// Package composetest draws list requests of every sort an API's spec allows,
// and many it does not, for tests that compare what is answered from records
// with what upstream answers.
package composetest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Ask is a GET of upstream's: a path with its query, and what it answers.
type Ask func(target string) (status int, body []byte, err error)

// World is what walks of every list without filters found, as a mirror would
// hold it. It is used by one goroutine.
type World struct {
	// Landed, when it is set, is told each page that a walk reads, as it is
	// saved; its time is not set.
	Saved func(*understudy.Page) error
	// Size is the page size of walks; 0: the largest there is.
	Size int

	src  *spec.Source
	ask  Ask
	most int

	lists []*list
	kinds map[string]*held // by name
}

// list is one path that lists records.
type list struct {
	path string
	kind *spec.Kind
	list *spec.List
	rows []*understudy.Record
}

// held is what is known of one kind.
type held struct {
	kind  *spec.Kind
	order []string // ids, the newest first, those that are gone too
	now   map[string]map[string]*understudy.Record
	was   map[string]*understudy.Record // as each was last seen
}

// New walks every list of the source's API: those of the user's account and of
// the accounts below it, and those under at most so many records of each
// parent (0: all of them).
func New(src *spec.Source, parents int, ask Ask) (*World, error) {
	w := Empty(src, parents, ask)
	return w, w.Walk()
}

// Empty is as New, before any walk.
func Empty(src *spec.Source, parents int, ask Ask) *World {
	w := &World{src: src, ask: ask, most: parents, kinds: map[string]*held{}}
	for _, k := range src.Spec.Kinds {
		w.kinds[k.Name] = &held{kind: k, was: map[string]*understudy.Record{}}
	}
	return w
}

// Walk walks, and again, as after changes. Records that are no longer shown are
// gone, but those that went with a parent that ended: no answer says so of each.
func (w *World) Walk() error {
	w.lists = nil
	for _, h := range w.kinds {
		if !h.kind.Retention.WithParent || h.now == nil {
			h.now = map[string]map[string]*understudy.Record{}
		}
	}
	var later []*spec.Kind
	for _, k := range w.src.Spec.Kinds {
		if len(k.ID) == 0 || k.Name == "" {
			continue
		}
		if err := w.walkKind(k, false); err != nil {
			return err
		}
		later = append(later, k)
	}
	for _, k := range later { // under records, once those are known
		w.leave(k)
		if err := w.walkKind(k, true); err != nil {
			return err
		}
	}
	return nil
}

// leave takes out what lies under a record that has not ended: what is still
// there of it the walk finds again.
func (w *World) leave(k *spec.Kind) {
	if !k.Retention.WithParent {
		return
	}
	h := w.kinds[k.Name]
	for id, shapes := range h.now {
		for _, rec := range shapes {
			if parent := w.Held(k.Field(k.Parent).Link, Text(rec.Body, k.Parent)); parent == nil || !parent.Final {
				delete(h.now, id)
			}
		}
	}
}

func (w *World) walkKind(k *spec.Kind, under bool) error {
	for _, l := range k.Lists {
		if w.src.Spec.PagingOf(l).Template == "" {
			continue
		}
		for _, path := range w.paths(l, under) {
			if err := w.walk(&list{path: path, kind: k, list: l}); err != nil {
				return err
			}
		}
	}
	return nil
}

// paths are the concrete paths of a list.
func (w *World) paths(l *spec.List, under bool) []string {
	vars := len(l.Template().Vars())
	switch {
	case under != (vars > 1):
		return nil
	case vars == 0:
		return []string{l.Path}
	}
	var out []string
	for _, account := range w.accounts() {
		if vars == 1 {
			out = append(out, fill(l.Template(), account))
			continue
		}
		for _, id := range w.Parents(l) {
			if rec := w.Held(w.parent(l).Name, id); rec != nil && strings.Contains(string(rec.Body), account) {
				out = append(out, fill(l.Template(), account, id))
			}
		}
	}
	return out
}

// accounts are the user's account and those below it.
func (w *World) accounts() []string {
	out := []string{w.src.User}
	for _, h := range w.kinds {
		if len(h.kind.Lists) > 0 && len(h.kind.Lists[0].Template().Vars()) == 0 && slices.Contains(h.order, w.src.User) {
			for _, id := range h.order {
				if id != w.src.User && h.now[id] != nil {
					out = append(out, id)
				}
			}
		}
	}
	return out
}

// near reports whether a record lies under the same account as a list.
func (w *World) near(l *list, rec *understudy.Record) bool {
	for _, account := range w.accounts() {
		if strings.Contains(l.path, account) {
			return strings.Contains(string(rec.Body), account)
		}
	}
	return true
}

// beside reports whether a record was seen in one order with those of a list:
// what is only listed under other records was not, unless they are the same.
func (w *World) beside(l *list, rec *understudy.Record) bool {
	return l.kind.Parent == "" || strings.Contains(l.path, Text(rec.Body, l.kind.Parent))
}

// fill puts values in place of the variables, in order.
func fill(t spec.Template, values ...string) string {
	path, _ := t.Fill(func(string) (string, bool) {
		value := values[0]
		values = values[1:]
		return value, true
	})
	return path
}

// parent is the kind under whose records a list lies.
func (w *World) parent(l *spec.List) *spec.Kind {
	vars := l.Template().Vars()
	field := w.src.Spec.VarFields[vars[len(vars)-1]]
	for _, k := range w.src.Spec.Kinds {
		if f := k.Field(field); f != nil && f.Link != "" {
			return w.src.Spec.Kind(f.Link)
		}
	}
	return nil
}

// Parents are the records under which a list template may lie.
func (w *World) Parents(l *spec.List) []string {
	k := w.parent(l)
	if k == nil {
		return nil
	}
	out := w.Present(k.Name)
	if w.most > 0 && len(out) > w.most {
		some := make([]string, w.most)
		for i := range some {
			some[i] = out[i*len(out)/w.most]
		}
		out = some
	}
	return out
}

// walk reads a list to its end.
func (w *World) walk(l *list) error {
	paging := w.src.Spec.PagingOf(l.list)
	h := w.kinds[l.kind.Name]
	var ids []string
	size := paging.Max
	if w.Size > 0 {
		size = w.Size
	}
	for next := fmt.Sprintf("%s?%s=%d", l.path, paging.Size, size); next != ""; {
		status, body, err := w.ask(next)
		if err != nil || status != 200 {
			return fmt.Errorf("composetest: %s: status %d, %w", next, status, err)
		}
		doc, err := jsonspan.Parse(body)
		if err != nil {
			return fmt.Errorf("composetest: %s: %w", next, err)
		}
		page, err := w.page(l, next, body)
		if err != nil {
			return err
		}
		rows, _ := jsonspan.Find(body, doc, l.list.Key)
		jsonspan.VisitElements(body, rows, func(v jsonspan.Value) bool {
			rec := &understudy.Record{Source: w.src.Name, Kind: l.kind.Name, Shape: page.Shape, Body: v.Bytes(body)}
			parts := make([]string, len(l.kind.ID))
			for i, name := range l.kind.ID {
				parts[i] = Text(rec.Body, name)
			}
			rec.ID, rec.Final = l.kind.JoinID(parts), final(l.kind, rec.Body)
			if h.now[rec.ID] == nil {
				h.now[rec.ID] = map[string]*understudy.Record{}
			}
			h.now[rec.ID][rec.Shape], h.was[rec.ID] = rec, rec
			l.rows, ids = append(l.rows, rec), append(ids, rec.ID)
			page.Rows = append(page.Rows, understudy.Row{ID: rec.ID, Start: v.Start, End: v.End, Clock: clock(l.kind, rec.Body),
				Parent: Text(rec.Body, l.kind.Parent), Final: rec.Final})
			return true
		})
		if w.Saved != nil {
			if err := w.Saved(page); err != nil {
				return err
			}
		}
		next = Text(body, paging.Next)
		if _, rest, absolute := strings.Cut(next, "://"); absolute && !strings.HasPrefix(next, "/") {
			next = rest[strings.IndexByte(rest, '/'):]
		}
	}
	h.merge(ids)
	w.lists = append(w.lists, l)
	return nil
}

// page is an answer without its rows.
func (w *World) page(l *list, target string, body []byte) (*understudy.Page, error) {
	t, err := w.src.Spec.ResolveLink(w.src.Name, target)
	if err != nil {
		return nil, err
	}
	return &understudy.Page{Key: t.Key, Kind: l.kind.Name, Shape: t.StorageShape(w.src.User), List: true, Status: 200,
		ContentType: "application/json", Body: body, Sum: half(body)}, nil
}

func half(body []byte) [16]byte {
	sum := sha256.Sum256(body)
	return [16]byte(sum[:16])
}

func clock(k *spec.Kind, body []byte) int64 {
	if f := k.Field(k.Clock); f != nil {
		return spec.Unix(f.Type, []byte(Text(body, k.Clock)))
	}
	return 0
}

// merge puts what was not known before into the order, each before what followed
// it. Between what is gone it is the time that decides.
func (h *held) merge(seen []string) {
	at := make(map[string]int, len(h.order))
	for i, id := range h.order {
		at[id] = i
	}
	shows := make(map[string]bool, len(seen))
	for _, id := range seen {
		shows[id] = true
	}
	out := make([]string, 0, len(h.order)+len(seen))
	rest := h.order // what was known, its last ones not yet taken over
	for _, id := range slices.Backward(seen) {
		if i, known := at[id]; known {
			for len(rest) > i {
				out, rest = append(out, rest[len(rest)-1]), rest[:len(rest)-1]
			}
			continue
		}
		for len(rest) > 0 && !shows[rest[len(rest)-1]] && h.time(rest[len(rest)-1]) <= h.time(id) {
			out, rest = append(out, rest[len(rest)-1]), rest[:len(rest)-1]
		}
		out = append(out, id)
	}
	for len(rest) > 0 {
		out, rest = append(out, rest[len(rest)-1]), rest[:len(rest)-1]
	}
	slices.Reverse(out)
	h.order = out
}

// time is when a record was made, as far as it tells.
func (h *held) time(id string) int64 {
	name := h.kind.Order
	if name == "" {
		name = h.kind.Clock
	}
	if f := h.kind.Field(name); f != nil {
		return spec.Unix(f.Type, []byte(Text(h.was[id].Body, name)))
	}
	return 0
}

func final(k *spec.Kind, body []byte) bool {
	return slices.ContainsFunc(k.Final, func(s spec.State) bool {
		if value := Text(body, s.Field); s.Field != "" && (len(s.In) > 0 && !slices.Contains(s.In, value) || value == "") {
			return false
		}
		return !slices.ContainsFunc(s.Set, func(name string) bool { return Text(body, name) == "" })
	})
}

// Text is a field of a body as text; null and absent are the empty one.
func Text(body []byte, name string) string {
	if name == "" {
		return ""
	}
	v, ok := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, name)
	if !ok || v.Kind == jsonspan.Null {
		return ""
	}
	return jsonspan.Text(body, v)
}
