// This file prepares the levels of one role for one kind as a plan, by which response bodies are rewritten.

package access

import (
	"slices"
	"strings"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// node is one place in a JSON body: a field, or the body itself.
type node struct {
	level Level            // the level at which this value is shown
	phone bool             // whether this value is a phone number
	open  bool             // whether this value or a value inside it is shown
	named map[string]*node // the fields inside this value that the spec names; nil if there are none
}

// member returns the node of an object member by its raw JSON name, or nil if the spec does not name it. A name
// with dots means the field on that path.
func (n *node) member(name []byte) *node {
	if child, ok := n.named[string(name)]; ok {
		return child
	}
	for _, c := range name {
		if c == '\\' || c == '.' {
			return n.find(jsonspan.Name(name))
		}
	}
	return nil
}

// makeNode returns the node of a dotted name and creates it if needed. If show is set, it marks the node and
// its outer nodes as open.
func (n *node) makeNode(dotted string, show bool) *node {
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

// setLevel sets the level of a field by its dotted name.
func (n *node) setLevel(dotted string, level Level) { n.makeNode(dotted, level > Hide).level = level }

// find returns the node of a dotted name, or nil if the spec does not name it.
func (n *node) find(dotted string) *node {
	for n != nil && dotted != "" {
		var name string
		name, dotted, _ = strings.Cut(dotted, ".")
		n = n.named[name]
	}
	return n
}

// plan is how much of each field of a kind a role sees.
type plan struct {
	spec        *spec.Spec
	kind        *spec.Kind // the kind of the path; nil if the spec does not name the path
	record      *node
	outsideBody map[string]Level // the levels of fields that are not in the body: media fields and the root
	// listBodies are the nodes of list bodies, with their records and envelope, by paging.
	listBodies   map[*spec.Paging]*node
	recordBodies map[string]*node        // the nodes of bodies that contain one record, by the JSON key of that record
	listKeys     []string                // the JSON keys of the records in list bodies; "" if the body is the array of records
	seesAll      bool                    // whether every field that the spec names is shown
	seesFinal    bool                    // whether the fields that make a record final are fully shown
	hashes       bool                    // whether any field is shown as a hash
	hash         *Hasher                 // computes the hashes of fields
	isShown      func(field string) bool // reports whether a field is shown at least masked
}

// newPlan computes the level of every field of a kind, and of the envelopes of its lists.
func newPlan(s *spec.Spec, k *spec.Kind, r rules) *plan {
	p := &plan{
		spec: s, kind: k, record: &node{named: map[string]*node{}}, seesAll: true,
		outsideBody: map[string]Level{}, listBodies: map[*spec.Paging]*node{}, recordBodies: map[string]*node{},
	}
	for _, f := range k.Fields {
		level := r.fieldDecision(k, f.Name).level
		if f.Type == spec.TypeMedia || f.RootPath() != "" {
			p.outsideBody[f.Name] = level
			continue
		}
		p.record.setLevel(f.Name, level)
		p.hashes = p.hashes || level == Hash
		p.record.find(f.Name).phone = f.Class == spec.ClassPhone
		p.seesAll = p.seesAll && (level == See || f.Class == spec.ClassSecret)
	}
	p.isShown = p.record.isNameVisible
	p.seesFinal = !slices.ContainsFunc(k.Final, func(s spec.State) bool {
		return slices.ContainsFunc(append([]string{s.Field}, s.Set...), func(field string) bool {
			return field != "" && p.level(field) < See
		})
	})
	if !p.record.open {
		return p
	}
	for _, l := range k.Lists {
		paging := s.PagingOf(l)
		if p.listBodies[paging] == nil {
			p.listBodies[paging] = p.body(paging, r)
		}
		p.listKeys = append(p.listKeys, l.Key)
		p.addRows(p.listBodies[paging], l.Key)
	}
	for _, in := range k.Instances {
		if in.Key != "" && p.recordBodies[in.Key] == nil {
			p.recordBodies[in.Key] = p.body(&s.Paging, r)
			p.addRows(p.recordBodies[in.Key], in.Key)
		}
	}
	return p
}

// body returns a new node for a body with the fields of an envelope.
func (p *plan) body(paging *spec.Paging, r rules) *node {
	body := &node{open: true, named: map[string]*node{}}
	for _, f := range paging.Envelope {
		body.setLevel(f.Name, p.envelopeLevel(f, r))
	}
	return body
}

// addRows adds the node of the records to the node of a list body, under a JSON key.
func (p *plan) addRows(body *node, key string) {
	if key == "" {
		return
	}
	outer, name := body, key
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		outer, name = body.makeNode(key[:i], true), key[i+1:]
	}
	if outer.named == nil {
		outer.named = map[string]*node{}
	}
	outer.named[name] = p.record
}

// envelopeLevel returns the level of a field of a list's envelope, beside the records. A field that the spec names
// is shown if the kind is shown. Links contain page tokens made of ids, so links are shown only if the ids are
// shown. A link repeats the filters of the request, but forbidden filters were refused before.
func (p *plan) envelopeLevel(f *spec.Field, r rules) Level {
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

// level returns how much of a field is shown.
func (p *plan) level(field string) Level {
	if level, ok := p.outsideBody[field]; ok {
		return level
	}
	if n := p.record.find(field); n != nil && field != "" {
		return n.level
	}
	return Hide
}

// paging returns how the list of a page is divided into pages, or nil if the page is no list. If the kind's
// lists differ, the path of the page decides.
func (p *plan) paging(page *understudy.Page) *spec.Paging {
	if !page.List || p.kind == nil {
		return nil
	}
	if len(p.listBodies) > 1 {
		t, err := p.spec.ResolveKey(page.Key)
		if err != nil || t.List == nil {
			return nil
		}
		return p.spec.PagingOf(t.List)
	}
	for paging := range p.listBodies {
		return paging
	}
	return nil
}

// isVisible reports whether anything of the kind is shown.
func (p *plan) isVisible() bool { return p != nil && p.record.open }

// isFullyVisible reports whether every field that the spec names is shown.
func (p *plan) isFullyVisible() bool {
	for _, level := range p.outsideBody {
		if level < See {
			return false
		}
	}
	return p.isVisible() && p.seesAll
}
