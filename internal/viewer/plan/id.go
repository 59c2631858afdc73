// Id: what may be the id of a record.

package plan

import (
	"strings"

	"understudy"
	"understudy/spec"
)

// SpellID is an id that was typed in any letter case as records spell it.
func (s *Source) SpellID(typed string) string {
	parts := strings.Split(typed, spec.IDSeparator)
	for i, part := range parts {
		for _, k := range s.Kinds {
			if id, ok := k.Spec.SpellID(part); ok {
				parts[i] = id
				break
			}
		}
	}
	return strings.Join(parts, spec.IDSeparator)
}

// MayName reports whether a text has the form of an id of the kind.
func (s *Source) MayName(k *Kind, text string) bool {
	parts := strings.Split(text, spec.IDSeparator)
	switch {
	case len(k.Spec.ID) == 0 || len(parts) != len(k.Spec.ID):
		return false
	case len(parts) == 1:
		return k.Spec.HasPrefix(text) && FormedID(text)
	}
	for i, name := range k.Spec.ID {
		f := k.Spec.Field(name)
		of := s.ByName[f.Link]
		if of == nil || !of.Spec.HasPrefix(parts[i]) || !FormedID(parts[i]) {
			return false
		}
	}
	return true
}

// FormedID keeps words that happen to begin like an id from being links.
func FormedID(text string) bool {
	_, ok := understudy.ParseAnyID(text)
	return ok
}
