// Id: what may be the id of a record.

package viewer

import (
	"strings"
	"understudy"
)

// spellID is an id that was typed in any letter case as records spell it.
func (s *Source) spellID(typed string) string {
	parts := strings.Split(typed, understudy.IDSeparator)
	for i, part := range parts {
		for _, k := range s.kinds {
			if id, ok := k.SpellID(part); ok {
				parts[i] = id
				break
			}
		}
	}
	return strings.Join(parts, understudy.IDSeparator)
}

// mayName reports whether a text has the form of an id of the kind.
func (s *Source) mayName(k *Kind, text string) bool {
	parts := strings.Split(text, understudy.IDSeparator)
	switch {
	case len(k.ID) == 0 || len(parts) != len(k.ID):
		return false
	case len(parts) == 1:
		return k.HasPrefix(text) && formedID(text)
	}
	for i, name := range k.ID {
		f := k.Field(name)
		of := s.byName[f.Link]
		if of == nil || !of.HasPrefix(parts[i]) || !formedID(parts[i]) {
			return false
		}
	}
	return true
}

// formedID keeps words that happen to begin like an id from being links.
func formedID(text string) bool {
	_, ok := understudy.ParseAnyID(text)
	return ok
}
