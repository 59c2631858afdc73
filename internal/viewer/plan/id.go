// Ids of records: which texts have the form of an id, and how ids are spelled.

package plan

import (
	"strings"

	"understudy"
	"understudy/spec"
)

// SpellID returns an id with the letter case that it has in records, whatever letter case was typed.
func (s *Source) SpellID(typed string) string {
	parts := strings.Split(typed, spec.IDSeparator)
	for i, part := range parts {
		for _, k := range s.Kinds {
			if id, ok := k.Spec.NormalizeID(part); ok {
				parts[i] = id
				break
			}
		}
	}
	return strings.Join(parts, spec.IDSeparator)
}

// CanName reports whether a text has the form of an id of the kind.
func (s *Source) CanName(k *Kind, text string) bool {
	parts := strings.Split(text, spec.IDSeparator)
	switch {
	case len(k.Spec.ID) == 0 || len(parts) != len(k.Spec.ID):
		return false
	case len(parts) == 1:
		return k.Spec.HasIDPrefix(text) && IsFormedID(text)
	}
	for i, name := range k.Spec.ID {
		f := k.Spec.Field(name)
		of := s.ByName[f.Link]
		if of == nil || !of.Spec.HasIDPrefix(parts[i]) || !IsFormedID(parts[i]) {
			return false
		}
	}
	return true
}

// IsFormedID reports whether a text has the complete form of an id. A prefix alone is not enough, because other words
// may begin with it.
func IsFormedID(text string) bool {
	_, ok := understudy.ParseAnyID(text)
	return ok
}
