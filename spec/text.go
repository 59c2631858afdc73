// Text: the fields of a record that people search by words.

package spec

import (
	"slices"
	"time"

	"understudy"
)

// IsText reports whether a field of the kind is text that people read. Ids, links,
// secrets, prices with their currencies and derived fields are not, nor are times,
// numbers and truth values: searches ask for those by their field. Values inside a
// field that is text are text, too. The index of words and the search in bodies both
// use it, so that neither finds less than the other.
func (k *Kind) IsText(f *Field) bool {
	switch {
	case f.From != "", f.Link != "", f.Absolute, f.Name == k.Parent, slices.Contains(k.ID, f.Name), f.Class == ClassSecret,
		f.Class == ClassPrice:
		return false
	}
	switch f.Type {
	case "", TypeText, TypeSelect, TypeCode, TypeMap:
		return true
	}
	return false
}

// LooksLikeTime reports whether a text is a date or a time as programs write them. In a
// field without a class such a text is not searched by words.
func LooksLikeTime(text string) bool {
	if len(text) < 10 || len(text) > 40 {
		return false
	}
	if text[4] == '-' && text[7] == '-' {
		_, err := understudy.ParseTime(text[:10], time.UTC, time.DateOnly)
		return err == nil && (len(text) == 10 || text[10] == 'T' || text[10] == ' ')
	}
	if text[3] == ',' {
		_, err := understudy.ParseTime(text, time.UTC, time.RFC1123Z)
		return err == nil
	}
	return false
}

// Termed reports whether a store has an index of a field's values. It has one of the
// fields that the kind's lists filter by, its own time, fields of few values, links,
// numbers, the variables of every path, and addresses that records are found by.
func (s *Spec) Termed(k *Kind, f *Field) bool {
	switch {
	case f.Class == ClassSecret, f.Type == TypeMap, f.Type == TypeMedia:
		return false
	case f.Name == k.Clock, f.Name == k.Order, f.Link != "", f.Class == ClassPhone && f.From == "",
		f.Type == TypeSelect, f.Type == TypeBool, f.Type == TypeCode:
		return true
	}
	for _, l := range k.Lists {
		for _, filter := range l.Filters {
			if filter.Field == f.Name {
				return true
			}
		}
	}
	if slices.ContainsFunc(k.Instances, func(in *Instance) bool { return in.Address == f.Name && len(in.ID) == 0 }) {
		return true
	}
	for name := range s.Vars {
		if snake(name) == f.Name {
			return true
		}
	}
	return false
}

// snake is the field that a path variable is about: AccountSid, account_sid.
func snake(name string) string {
	var s []byte
	for i := range len(name) {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				s = append(s, '_')
			}
			c += 'a' - 'A'
		}
		s = append(s, c)
	}
	return string(s)
}

// InEveryPath reports whether a variable of every list's path of the kind is about a field that is not
// the kind's parent: an account, of which there are few.
func (k *Kind) InEveryPath(field string) bool {
	return len(k.Lists) > 0 && field != k.Parent && !slices.ContainsFunc(k.Lists, func(l *List) bool {
		return !slices.ContainsFunc(l.template.Vars(), func(name string) bool { return snake(name) == field })
	})
}
