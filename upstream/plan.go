// Plan: the fields that are read from the records of a kind, found once.

package upstream

import (
	"slices"
	"strings"

	"understudy/kit/jsonspan"
	"understudy/spec"
)

// plan says which fields of a kind's records the reader needs. It is never
// changed after newPlan.
type plan struct {
	kind    *spec.Kind
	wants   []want   // the fields, each once
	id      []int    // into wants, in the kind's order
	roots   []string // of each part of the id, where the root's name is one: its path (Field.RootPath)
	clock   int      // into wants, -1 = none
	parent  int      // into wants, -1 = none
	typ     string   // of the clock field
	final   []state  // any of them makes a record final
	secrets []secret // what to empty in pages of this kind

	absolute map[*spec.List][]fieldPath // where absolute URLs stand; nil: in an instance
	next     map[*spec.List]fieldPath   // where the link to the next page stands in the body
}

// want is a field by its dotted name, cut at the first dot.
type want struct{ head, rest string }

// state is a spec.State with its fields as indexes into wants.
type state struct {
	field int // -1 = none
	in    []string
	set   []int
}

func newPlan(s *spec.Spec, k *spec.Kind) *plan {
	p := &plan{kind: k, clock: -1, parent: -1, secrets: secretsFor(s, k), absolute: map[*spec.List][]fieldPath{nil: absoluteIn(s, k, nil)},
		next: map[*spec.List]fieldPath{}}
	for _, l := range k.Lists {
		p.absolute[l] = absoluteIn(s, k, l)
		if way := s.PagingOf(l); way.Style == "body" {
			p.next[l] = strings.Split(way.Next, ".")
		}
	}
	for _, name := range k.ID {
		path := k.Field(name).RootPath()
		if p.roots = append(p.roots, path); path != "" {
			name = k.Field(name).From
		}
		p.id = append(p.id, p.want(name))
	}
	if k.Clock != "" {
		p.clock, p.typ = p.want(k.Clock), k.Field(k.Clock).Type
	}
	if k.Parent != "" {
		p.parent = p.want(k.Parent)
	}
	for _, st := range k.Final {
		out := state{field: -1, in: st.In}
		if st.Field != "" {
			out.field = p.want(st.Field)
		}
		for _, name := range st.Set {
			out.set = append(out.set, p.want(name))
		}
		p.final = append(p.final, out)
	}
	return p
}

// want is the index of a field in wants; it is added when it is not there.
func (p *plan) want(name string) int {
	head, rest, _ := strings.Cut(name, ".")
	w := want{head, rest}
	if i := slices.Index(p.wants, w); i >= 0 {
		return i
	}
	p.wants = append(p.wants, w)
	return len(p.wants) - 1
}

// isFinal reports whether a record whose wanted values are given is final.
func (p *plan) isFinal(body []byte, values []jsonspan.Value) bool {
	return slices.ContainsFunc(p.final, func(st state) bool { return st.holds(body, values) })
}

func (st *state) holds(body []byte, values []jsonspan.Value) bool {
	for _, i := range st.set {
		if k := values[i].Kind; k == jsonspan.None || k == jsonspan.Null {
			return false
		}
	}
	if st.field < 0 {
		return true
	}
	v := values[st.field]
	if len(st.in) == 0 {
		return filled(v)
	}
	return slices.ContainsFunc(st.in, func(text string) bool { return is(body, v, text) })
}

// filled reports whether a value is there and neither null nor empty.
func filled(v jsonspan.Value) bool {
	switch v.Kind {
	case jsonspan.None, jsonspan.Null:
		return false
	case jsonspan.String:
		return v.End-v.Start > 2
	}
	return true
}

// is reports whether a value, as a person would read it, is text.
func is(body []byte, v jsonspan.Value, text string) bool {
	switch v.Kind {
	case jsonspan.String:
		return jsonspan.NameIs(body[v.Start+1:v.End-1], text)
	case jsonspan.Number, jsonspan.Bool:
		return string(v.Of(body)) == text
	}
	return false
}
