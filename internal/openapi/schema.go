// This file reads schemas, which describe the values in a document.

package openapi

import (
	"slices"
	"strconv"
)

// Schema describes a JSON value. Methods follow references only when needed, so that a schema may contain itself.
// The zero Schema describes nothing.
type Schema struct {
	d *Document
	v *Value
}

// Property is a member of an object.
type Property struct {
	Name   string
	Schema Schema
	Others []Schema // the schemas of the member in other variants of the object; set only by Members
}

// Limits for Schema.parts: the number of parts, and the depth of their nesting.
const (
	maxParts  = 64
	maxNested = 16
)

// parts returns the schemas that together describe the value: the schema itself, those of allOf, and the first of
// anyOf and of oneOf that is not null. The target of a $ref comes after the keywords beside the $ref.
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
				if r := s.d.resolve(one); r != nil && r.TextOf("type") != "null" {
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

// get returns the value under a key in the first part that has the key, or nil.
func (s Schema) get(key string) *Value {
	for _, part := range s.parts() {
		if v := part.Get(key); v != nil {
			return v
		}
	}
	return nil
}

// text returns the text of the scalar under a key, or "" if there is none.
func (s Schema) text(key string) string {
	if v := s.get(key); v != nil && v.Kind != Array && v.Kind != Object {
		return v.Text
	}
	return ""
}

// IsKnown reports whether the document describes the value.
func (s Schema) IsKnown() bool { return len(s.parts()) > 0 }

// Type returns string, integer, number, boolean, array or object, or "" if the type is unknown.
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

// Name returns the schema name in Ref, such as "customer" for #/components/schemas/customer.
// It returns "" if the schema is defined in place.
func (s Schema) Name() string {
	ref := s.Ref()
	if ref == "" {
		return ""
	}
	return referenceName(ref)
}

// Ref returns the $ref of the schema, or the $ref of its allOf if allOf has a single element. It returns "" if
// there is none.
func (s Schema) Ref() string {
	for v, hops := s.v, 0; v != nil && hops < maxHops; hops++ {
		if ref := v.TextOf("$ref"); ref != "" {
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

// Properties returns the members of an object, in the order of the document.
func (s Schema) Properties() []Property {
	var all []Property
	seen := map[string]bool{}
	parts := s.parts()
	for _, part := range parts {
		part.Get("properties").WalkPairs(func(name string, v *Value) {
			if !seen[name] {
				seen[name] = true
				all = append(all, Property{Name: name, Schema: s.member(parts, name)})
			}
		})
	}
	return all
}

// Variants returns all schemas that may apply to a value: its parts, and the schemas in anyOf, oneOf, then, else
// and discriminator, with their own parts. left is the number of schemas that may still be visited.
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
		s.d.tree.variants[s.v] = variantList{all, had - *left}
	}
	return all
}

// subtypes returns the schemas in the discriminator mapping of a part. If some of these schemas are among the parts
// before it, the type is already narrowed. subtypes then returns only those schemas that contain all of these parts.
func (d *Document) subtypes(part *Value, before []*Value) (all []*Value) {
	var own []*Value
	part.Get("discriminator").Get("mapping").WalkPairs(func(_ string, to *Value) {
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

// variantList is a cached result of Variants. cost is the number of schemas that were visited to compute the result.
type variantList struct {
	all  []Schema
	cost int
}

// Members returns the members of all variants of the schemas, or of the elements if a schema is an array. The members
// in Properties come first. Map values have the name "". left is the number of schemas that may still be visited.
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
			one.v.Get("properties").WalkPairs(func(name string, v *Value) { add(name, Schema{one.d, v}) })
			one.v.Get("patternProperties").WalkPairs(func(_ string, v *Value) { add("", Schema{one.d, v}) })
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

// Property returns the schema of a member, or the zero Schema if the object has no such member.
func (s Schema) Property(name string) Schema { return s.member(s.parts(), name) }

// member returns the schema of a member in parts. If several parts have the member, the first schema with
// properties counts.
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

// Items returns the schema of the elements of an array.
func (s Schema) Items() Schema {
	if v := s.get("items"); v != nil {
		return Schema{s.d, v}
	}
	return Schema{}
}

// Format returns the format of the value, such as date-time or uri.
func (s Schema) Format() string { return s.text("format") }

// Description returns the description of the schema.
func (s Schema) Description() string { return s.text("description") }

// Default returns the default value as text, or "" if there is none.
func (s Schema) Default() string { return s.text("default") }

// IsWriteOnly reports whether the value occurs only in requests, never in responses.
func (s Schema) IsWriteOnly() bool { return s.text("writeOnly") == "true" }

// IsNullable reports whether the value may be null.
func (s Schema) IsNullable() bool {
	if s.text("nullable") == "true" || s.text("x-nullable") == "true" {
		return true
	}
	if t := s.get("type"); t != nil && slices.ContainsFunc(t.Items, func(one *Value) bool { return one.Text == "null" }) {
		return true
	}
	for _, part := range s.parts() {
		for _, key := range []string{"anyOf", "oneOf"} {
			list := part.Get(key)
			if list != nil && slices.ContainsFunc(list.Items, func(one *Value) bool { return s.d.resolve(one).TextOf("type") == "null" }) {
				return true
			}
		}
	}
	return false
}

// Bounds returns the minimum and the maximum of a number, and whether the document has each of them as an integer.
func (s Schema) Bounds() (least, most int, hasLeast, hasMost bool) {
	least, err := strconv.Atoi(s.text("minimum"))
	hasLeast = err == nil
	most, err = strconv.Atoi(s.text("maximum"))
	return least, most, hasLeast, err == nil
}

// Enum returns the values that a scalar may have, from enum or const.
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

// Example returns an example of the value, or nil if the document has none.
func (s Schema) Example() *Value {
	if v := s.get("example"); v != nil {
		return v
	}
	if list := s.get("examples"); list != nil && list.Kind == Array && len(list.Items) > 0 {
		return list.Items[0]
	}
	return nil
}

// Pattern returns the regular expression for a string value, or "".
func (s Schema) Pattern() string { return s.text("pattern") }

// Refs returns the references in anyOf and oneOf of the schema.
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
