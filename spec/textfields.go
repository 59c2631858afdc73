// This file decides which fields of a record people can search by words.

package spec

import (
	"slices"
	"time"

	"understudy"
)

// IsText reports whether a field of the kind is text for people. Ids, links, secrets, prices with their currencies,
// derived fields, times, numbers and booleans are not text; they are searched by field. Values inside a text field are
// text too. The word index and the search in bodies both use IsText, so that they find the same records.
func (k *Kind) IsText(f *Field) bool {
	switch {
	case f.DerivedFrom != "", f.Link != "", f.AbsoluteURL, f.Name == k.Parent, slices.Contains(k.ID, f.Name), f.Class == ClassSecret,
		f.Class == ClassPrice:
		return false
	}
	switch f.Type {
	case "", TypeText, TypeSelect, TypeCode, TypeMap:
		return true
	}
	return false
}

// IsTimeText reports whether a text is a date or a time as programs write them. In a field without a class,
// such a text is not searched by words.
func IsTimeText(text string) bool {
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

// HasValueIndex reports whether the store indexes a field's values. It does so for filter fields, the record's
// time, fields with few values, links, phone numbers, variables of paths, and URLs by which records are found.
func (s *Spec) HasValueIndex(k *Kind, f *Field) bool {
	switch {
	case f.Class == ClassSecret, f.Type == TypeMap, f.Type == TypeMedia:
		return false
	case f.Name == k.Clock, f.Name == k.Order, f.Link != "", f.Class == ClassPhone && f.DerivedFrom == "",
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
		if SnakeCase(name) == f.Name {
			return true
		}
	}
	return false
}

// SnakeCase returns the name of the field that belongs to a path variable: account_sid for AccountSid.
func SnakeCase(name string) string {
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

// IsInEveryPath reports whether every list path of the kind has a variable for the field, and the field is not
// the kind's parent. Such a field is an account, of which there are few.
func (k *Kind) IsInEveryPath(field string) bool {
	return len(k.Lists) > 0 && field != k.Parent && !slices.ContainsFunc(k.Lists, func(l *List) bool {
		return !slices.ContainsFunc(l.template.Vars(), func(name string) bool { return SnakeCase(name) == field })
	})
}
