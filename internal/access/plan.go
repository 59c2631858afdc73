// Plan: one role's rules for one kind, ready to rewrite bodies with.

package access

import (
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// node is one place in a body: a field, or the body itself.
type node struct {
	level Level
	phone bool             // it holds a phone number
	open  bool             // something here or inside is shown
	named map[string]*node // the fields the spec names inside; nil: none
}

// inside returns the node of a member by its raw name, nil when the spec names none. A member
// whose name has dots is the field that a path of these names means.
func (n *node) inside(name []byte) *node {
	if child, ok := n.named[string(name)]; ok {
		return child
	}
	for _, c := range name {
		if c == '\\' || c == '.' {
			return n.at(jsonspan.Name(name))
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
	spec   *spec.Spec
	kind   *spec.Kind // nil: a path the spec does not name
	record *node
	apart  map[string]Level // fields that stand in no body: those of type media, and the root
	// lists are the bodies of lists, records and envelope, by the way they are
	// cut into pages.
	lists  map[*spec.Paging]*node
	ones   map[string]*node        // the bodies with one record, by its key
	keys   []string                // where the kind's lists keep their records; "" = the body is the array
	whole  bool                    // every field the spec names is seen
	final  bool                    // what makes a record final is fully seen
	hashes bool                    // a field is shown as a hash
	hash   *Hasher                 // for what is shown as a hash
	shown  func(field string) bool // at least masked
}

// nothing shows the keys of a body, and no value.
func nothing(s *spec.Spec) *plan {
	body := &node{open: true, named: map[string]*node{}}
	return &plan{spec: s, record: body}
}

func newPlan(s *spec.Spec, k *spec.Kind, r rules) *plan {
	p := &plan{
		spec: s, kind: k, record: &node{named: map[string]*node{}}, whole: true,
		apart: map[string]Level{}, lists: map[*spec.Paging]*node{}, ones: map[string]*node{},
	}
	for _, f := range k.Fields {
		level := r.field(k, f.Name).level
		if f.Type == spec.TypeMedia || f.RootPath() != "" {
			p.apart[f.Name] = level
			continue
		}
		p.record.put(f.Name, level)
		p.hashes = p.hashes || level == Hash
		p.record.at(f.Name).phone = f.Class == spec.ClassPhone
		p.whole = p.whole && (level == See || f.Class == spec.ClassSecret)
	}
	p.shown = p.record.names
	p.final = !slices.ContainsFunc(k.Final, func(s spec.State) bool {
		return slices.ContainsFunc(append([]string{s.Field}, s.Set...), func(field string) bool {
			return field != "" && p.level(field) < See
		})
	})
	if !p.record.open {
		return p
	}
	for _, l := range k.Lists {
		paging := s.PagingOf(l)
		if p.lists[paging] == nil {
			p.lists[paging] = p.body(paging, r)
		}
		p.keys = append(p.keys, l.Key)
		p.addRows(p.lists[paging], l.Key)
	}
	for _, in := range k.Instances {
		if in.Key != "" && p.ones[in.Key] == nil {
			p.ones[in.Key] = p.body(&s.Paging, r)
			p.addRows(p.ones[in.Key], in.Key)
		}
	}
	return p
}

// body makes the node of a body that has the fields of an envelope.
func (p *plan) body(paging *spec.Paging, r rules) *node {
	body := &node{open: true, named: map[string]*node{}}
	for _, f := range paging.Envelope {
		body.put(f.Name, p.envelope(f, r))
	}
	return body
}

// addRows puts the records where an answer keeps them in its body.
func (p *plan) addRows(body *node, key string) {
	if key == "" {
		return
	}
	outer, name := body, key
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		outer, name = body.reach(key[:i], true), key[i+1:]
	}
	if outer.named == nil {
		outer.named = map[string]*node{}
	}
	outer.named[name] = p.record
}

// envelope is the level of a field beside the records. Those the spec names
// are shown with the kind, but links hold tokens made of ids: they go with the
// ids. Filters that links echo are refused before anything is asked.
func (p *plan) envelope(f *spec.Field, r rules) Level {
	if f.Class == spec.ClassSecret {
		return Hide
	}
	level := See
	if l, ok := r[f.Class]; ok && f.Class != "" {
		level = l
	}
	if f.Type != spec.TypeText {
		return level
	}
	for _, id := range p.kind.ID {
		if p.level(id) < See {
			return Hide
		}
	}
	return level
}

// level is how much of a field is shown.
func (p *plan) level(field string) Level {
	if level, ok := p.apart[field]; ok {
		return level
	}
	if n := p.record.at(field); n != nil && field != "" {
		return n.level
	}
	return Hide
}

// cut is how the list a page is of is cut into pages: the kind's one way, or,
// where its lists differ, what the page's own path says. nil: no list.
func (p *plan) cut(page *understudy.Page) *spec.Paging {
	if !page.List || p.kind == nil {
		return nil
	}
	if len(p.lists) > 1 {
		t, err := p.spec.ResolveKey(page.Key)
		if err != nil || t.List == nil {
			return nil
		}
		return p.spec.PagingOf(t.List)
	}
	for paging := range p.lists {
		return paging
	}
	return nil
}

// sees reports whether anything of the kind is shown.
func (p *plan) sees() bool { return p != nil && p.record.open }

// showsAll reports whether every field that the spec names is shown.
func (p *plan) showsAll() bool {
	for _, level := range p.apart {
		if level < See {
			return false
		}
	}
	return p.sees() && p.whole
}
