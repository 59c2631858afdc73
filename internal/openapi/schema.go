// Schema: what a document says of one value.

package openapi

import (
	"slices"
	"strconv"
)

// Schema is what a document says of a value. References are followed when they are asked
// for, so that schemas may contain themselves. The zero Schema says nothing.
type Schema struct {
	d *Document
	v *Value
}

// Property is a member of an object.
type Property struct {
	Name   string
	Schema Schema
	Others []Schema // of Members: those that other variants of the object give it
}

// Bounds of how many schemas one is put together, and of how deep they are nested.
const (
	maxParts  = 64
	maxNested = 16
)

// parts returns the schemas that all hold: the schema itself, those of allOf, of anyOf and oneOf the
// first that is not null, and the one that it refers to, behind what stands beside the reference.
func (s Schema) parts() []*Value {
	if s.d == nil {
		return nil
	}
	if all, ok := s.d.tree.parts[s.v]; ok {
		return all
	}
	var all []*Value
	var add func(v *Value, depth int)
	add = func(v *Value, depth int) {
		if v == nil || depth > maxNested || len(all) == maxParts || slices.Contains(all, v) {
			return
		}
		if ref := v.Get("$ref"); ref != nil && ref.Kind == String {
			defer add(s.d.lookUp(ref.Text), depth+1)
			if len(v.Keys) == 1 {
				return
			}
		}
		all = append(all, v)
		if list := v.Get("allOf"); list != nil {
			for _, one := range list.Items {
				add(one, depth+1)
			}
		}
		for _, key := range []string{"anyOf", "oneOf"} {
			list := v.Get(key)
			if list == nil {
				continue
			}
			for _, one := range list.Items {
				if r := s.d.resolve(one); r != nil && r.Of("type") != "null" {
					add(one, depth+1)
					break
				}
			}
		}
	}
	add(s.v, 0)
	s.d.tree.parts[s.v] = all
	return all
}

// get is the first value that a part has under a key.
func (s Schema) get(key string) *Value {
	for _, part := range s.parts() {
		if v := part.Get(key); v != nil {
			return v
		}
	}
	return nil
}

func (s Schema) text(key string) string {
	if v := s.get(key); v != nil && v.Kind != Array && v.Kind != Object {
		return v.Text
	}
	return ""
}

// Known reports whether the document says anything of the value.
func (s Schema) Known() bool { return len(s.parts()) > 0 }

// Type is string, integer, number, boolean, array or object; "" when nothing says it.
func (s Schema) Type() string {
	if t := s.get("type"); t != nil {
		if t.Kind == String {
			return t.Text
		}
		for _, one := range t.Items {
			if one.Text != "null" {
				return one.Text
			}
		}
	}
	switch {
	case s.get("properties") != nil:
		return "object"
	case s.get("items") != nil:
		return "array"
	case len(s.Enum()) > 0:
		return "string"
	}
	return ""
}

// Name returns what the first reference that the schema is made of names: customer of
// #/components/schemas/customer; "" when it stands in the document in place.
func (s Schema) Name() string {
	ref := s.Ref()
	if ref == "" {
		return ""
	}
	return nameOf(ref)
}

// Ref returns the first reference that the schema is made of; "" when it has none.
func (s Schema) Ref() string {
	for v, hops := s.v, 0; v != nil && hops < maxHops; hops++ {
		if ref := v.Of("$ref"); ref != "" {
			return ref
		}
		one := v.Get("allOf")
		if one == nil || len(one.Items) != 1 {
			return ""
		}
		v = one.Items[0]
	}
	return ""
}

// Properties are the members of an object, in the document's order.
func (s Schema) Properties() []Property {
	var all []Property
	seen := map[string]bool{}
	parts := s.parts()
	for _, part := range parts {
		part.Get("properties").Each(func(name string, v *Value) {
			if !seen[name] {
				seen[name] = true
				all = append(all, Property{Name: name, Schema: s.member(parts, name)})
			}
		})
	}
	return all
}

// Variants returns the schemas that a value may have, each with what it says itself: those of anyOf and oneOf, of then
// and else, and those that a discriminator leads to, with their allOf. left bounds how many are looked at.
func (s Schema) Variants(left *int) (all []Schema) {
	if s.d == nil {
		return nil
	}
	had := *left
	if known := s.d.tree.variants[s.v]; known.cost > 0 && known.cost < had {
		*left -= known.cost
		return known.all
	}
	seen := map[*Value]bool{}
	for queue := []*Value{s.v}; len(queue) > 0 && *left > 0; queue = queue[1:] {
		*left--
		parts := Schema{s.d, queue[0]}.parts()
		for i, part := range parts {
			if seen[part] {
				continue
			}
			seen[part] = true
			all = append(all, Schema{s.d, part})
			for _, key := range []string{"anyOf", "oneOf"} {
				if list := part.Get(key); list != nil {
					queue = append(queue, list.Items...)
				}
			}
			queue = append(queue, part.Get("then"), part.Get("else"))
			queue = append(queue, s.d.subtypes(part, parts[:i])...)
		}
	}
	if *left > 0 {
		s.d.tree.variants[s.v] = variants{all, had - *left}
	}
	return all
}

// subtypes returns the schemas that the discriminator of one part of a schema leads to. The parts before it may be such
// themselves: then those alone that are made of these, since a value of one is none of the others beside it.
func (d *Document) subtypes(part *Value, before []*Value) (all []*Value) {
	var own []*Value
	part.Get("discriminator").Get("mapping").Each(func(_ string, to *Value) {
		v := d.lookUp(to.Text)
		if all = append(all, v); slices.Contains(before, v) {
			own = append(own, v)
		}
	})
	return slices.DeleteFunc(all, func(v *Value) bool {
		made := Schema{d, v}.parts()
		return slices.ContainsFunc(own, func(one *Value) bool { return !slices.Contains(made, one) })
	})
}

// variants are those of one schema, and how many were looked at for them.
type variants struct {
	all  []Schema
	cost int
}

// Members returns the members that a value with one of the schemas, or an element of it, has in any variant. Those of
// Properties come first. The values of a map are the members without a name. left bounds how many variants are looked at.
func Members(schemas []Schema, left *int) (found []Property) {
	place := map[string]int{}
	add := func(name string, one Schema) {
		i, ok := place[name]
		if !ok {
			place[name], found = len(found), append(found, Property{Name: name, Schema: one})
		} else if one.v != found[i].Schema.v {
			found[i].Others = append(found[i].Others, one)
		}
	}
	for _, s := range schemas {
		for s.Type() == "array" {
			s = s.Items()
		}
		for _, p := range s.Properties() {
			add(p.Name, p.Schema)
		}
	}
	for queue := slices.Clone(schemas); len(queue) > 0; queue = queue[1:] {
		for _, one := range queue[0].Variants(left) {
			one.v.Get("properties").Each(func(name string, v *Value) { add(name, Schema{one.d, v}) })
			one.v.Get("patternProperties").Each(func(_ string, v *Value) { add("", Schema{one.d, v}) })
			if values := one.v.Get("additionalProperties"); values != nil {
				add("", Schema{one.d, values})
			}
			if items := one.v.Get("items"); items != nil {
				queue = append(queue, Schema{one.d, items})
			}
		}
	}
	return found
}

// Property returns the member of that name; the zero Schema when there is none.
func (s Schema) Property(name string) Schema { return s.member(s.parts(), name) }

// member returns the member that one of the parts has. Where several have it, it is the first that says what is
// inside.
func (s Schema) member(parts []*Value, name string) (first Schema) {
	hasMembers := func(one Schema) bool { return one.get("properties") != nil || one.Items().get("properties") != nil }
	for _, part := range parts {
		v := part.Get("properties").Get(name)
		switch one := (Schema{s.d, v}); {
		case v == nil:
		case first.v == nil:
			first = one
		case !hasMembers(first) && hasMembers(one):
			return one
		}
	}
	return first
}

// Items is the schema of an array's elements.
func (s Schema) Items() Schema {
	if v := s.get("items"); v != nil {
		return Schema{s.d, v}
	}
	return Schema{}
}

// Format is the schema's format: date-time, uri.
func (s Schema) Format() string { return s.text("format") }

// Description is the schema's description.
func (s Schema) Description() string { return s.text("description") }

// Default is the default as text, "" when there is none.
func (s Schema) Default() string { return s.text("default") }

// WriteOnly reports whether the value is never in an answer.
func (s Schema) WriteOnly() bool { return s.text("writeOnly") == "true" }

// Nullable reports whether the value may be null.
func (s Schema) Nullable() bool {
	if s.text("nullable") == "true" || s.text("x-nullable") == "true" {
		return true
	}
	if t := s.get("type"); t != nil && slices.ContainsFunc(t.Items, func(one *Value) bool { return one.Text == "null" }) {
		return true
	}
	for _, part := range s.parts() {
		for _, key := range []string{"anyOf", "oneOf"} {
			list := part.Get(key)
			if list != nil && slices.ContainsFunc(list.Items, func(one *Value) bool { return s.d.resolve(one).Of("type") == "null" }) {
				return true
			}
		}
	}
	return false
}

// Bounds are the least and the largest number; ok says which there are.
func (s Schema) Bounds() (least, most int, hasLeast, hasMost bool) {
	least, err := strconv.Atoi(s.text("minimum"))
	hasLeast = err == nil
	most, err = strconv.Atoi(s.text("maximum"))
	return least, most, hasLeast, err == nil
}

// Enum are the values that a scalar may have.
func (s Schema) Enum() (values []string) {
	if list := s.get("enum"); list != nil {
		for _, one := range list.Items {
			if one.Kind != Null && one.Kind != Array && one.Kind != Object {
				values = append(values, one.Text)
			}
		}
	} else if only := s.text("const"); only != "" {
		values = []string{only}
	}
	return values
}

// Example is an example of the value; nil: the document has none.
func (s Schema) Example() *Value {
	if v := s.get("example"); v != nil {
		return v
	}
	if list := s.get("examples"); list != nil && list.Kind == Array && len(list.Items) > 0 {
		return list.Items[0]
	}
	return nil
}

// Pattern is the regular expression that a text matches.
func (s Schema) Pattern() string { return s.text("pattern") }

// Refs returns the references of the schemas that a value may have by anyOf or oneOf.
func (s Schema) Refs() (refs []string) {
	for _, key := range []string{"anyOf", "oneOf"} {
		list := s.d.resolve(s.v).Get(key)
		for i := 0; list != nil && i < len(list.Items); i++ {
			if ref := (Schema{s.d, list.Items[i]}).Ref(); ref != "" {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}
