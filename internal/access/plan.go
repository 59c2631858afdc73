// Plan: one role's rules for one kind, ready to rewrite bodies with.

package access

import (
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
)

// node is one place in a body: a field, or the body itself.
type node struct {
	level Level
	open  bool             // something here or inside is shown
	named map[string]*node // the fields the spec names inside; nil: none
}

// inside is the node of a member by its raw name; nil when the spec names none.
func (n *node) inside(name []byte) *node {
	if child, ok := n.named[string(name)]; ok {
		return child
	}
	for _, c := range name {
		if c == '\\' {
			return n.named[jsonspan.Name(name)]
		}
	}
	return nil
}

// reach is the node of a dotted name, made if need be; show opens it and the
// objects it lies in.
func (n *node) reach(dotted string, show bool) *node {
	for {
		n.open = n.open || show
		if dotted == "" {
			return n
		}
		var name string
		name, dotted, _ = strings.Cut(dotted, ".")
		if n.named == nil {
			n.named = map[string]*node{}
		}
		if n.named[name] == nil {
			n.named[name] = &node{}
		}
		n = n.named[name]
	}
}

// put sets the level of a field by its dotted name.
func (n *node) put(dotted string, level Level) { n.reach(dotted, level > Hide).level = level }

// at is the node of a dotted name, nil when the spec names none.
func (n *node) at(dotted string) *node {
	for n != nil && dotted != "" {
		var name string
		name, dotted, _ = strings.Cut(dotted, ".")
		n = n.named[name]
	}
	return n
}

// plan is one role's rules for one kind.
type plan struct {
	spec   *understudy.Spec
	kind   *understudy.Kind // nil: a path the spec does not name
	record *node
	list   *node    // a list's body, records and envelope
	keys   []string // where the kind's lists keep their records; "" = the body is the array
	whole  bool     // every field the spec names is seen
}

// nothing shows the keys of a body, and no value.
func nothing(s *understudy.Spec) *plan {
	body := &node{open: true, named: map[string]*node{}}
	return &plan{spec: s, record: body, list: body}
}

func newPlan(s *understudy.Spec, k *understudy.Kind, r rules) *plan {
	p := &plan{spec: s, kind: k, record: &node{named: map[string]*node{}}, whole: true}
	for _, f := range k.Fields {
		level := r.field(k, f.Name)
		p.record.put(f.Name, level)
		p.whole = p.whole && (level == See || f.Class == understudy.ClassSecret)
	}
	if !p.record.open {
		return p
	}
	p.list = &node{open: true, named: map[string]*node{}}
	for _, f := range s.Paging.Envelope {
		p.list.put(f.Name, p.envelope(f, r))
	}
	for _, l := range k.Lists {
		p.keys = append(p.keys, l.Key)
		p.addRows(l.Key)
	}
	return p
}

// addRows puts the records where a list keeps them.
func (p *plan) addRows(key string) {
	if key == "" {
		return
	}
	outer, name := p.list, key
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		outer, name = p.list.reach(key[:i], true), key[i+1:]
	}
	if outer.named == nil {
		outer.named = map[string]*node{}
	}
	outer.named[name] = p.record
}

// envelope is the level of a field beside the records. Those the spec names
// are shown with the kind, but links hold tokens made of ids: they go with the
// ids. Filters that links echo are refused before anything is asked.
func (p *plan) envelope(f *understudy.Field, r rules) Level {
	if f.Class == understudy.ClassSecret {
		return Hide
	}
	level := See
	if l, ok := r[f.Class]; ok && f.Class != "" {
		level = l
	}
	if f.Type != understudy.TypeText {
		return level
	}
	for _, id := range p.kind.ID {
		if n := p.record.at(id); n == nil || n.level < See {
			return Hide
		}
	}
	return level
}

// sees reports whether anything of the kind is shown.
func (p *plan) sees() bool { return p != nil && p.record.open }
