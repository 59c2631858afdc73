// Levels and roles: how much of a field is shown, and how the config writes it.

// Package access decides which data a caller may see. Every frontend reads
// through its Gate.
package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/suggest"
	"understudy/spec"
)

// Level is how much of a value is shown: nothing, one thing of it, or all. Hash, Country
// and Last4 show different things, and none of them shows more than another.
type Level uint8

// The levels. The zero value hides.
const (
	Hide    Level = iota // null in an API answer
	Hash                 // a text that stands for the value: equal values have equal texts
	Country              // a fixed mask, then the country of a number
	Last4                // a fixed mask, then the last four digits of a number that has at least 8
	See                  // as upstream sent it
)

var levelNames = []string{"hide", "hash", "country", "last4", "see"}

// wanted are the levels in the words of an error.
const wanted = "want see, last4, country, hash or hide"

// play means the same as see, for fields of type media.
const play = "play"

// String is the word the config uses.
func (l Level) String() string { return levelNames[l] }

// Roles is the policy as the config writes it: role -> source -> subject ("*",
// a class, a kind, or kind.field) -> the name of a level.
type Roles map[string]map[string]map[string]string

// Everything is the subject that covers every field the spec names.
const Everything = "*"

var classes = []string{spec.ClassPhone, spec.ClassBody, spec.ClassPrice, spec.ClassURL, spec.ClassName, spec.ClassSecret}

// rules are the checked subjects of one role under one source.
type rules map[string]Level

// readRules checks one role's rules for one source; where begins its errors
// ("roles.support.twilio").
func readRules(where string, s *spec.Spec, subjects map[string]string) (rules, error) {
	r := make(rules, len(subjects))
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		word := subjects[subject]
		if word == play && isMedia(s, subject) {
			word = See.String()
		}
		i := slices.Index(levelNames, word)
		switch {
		case word == play:
			return nil, fmt.Errorf("access: %s: %q: play is for fields of type media alone; %s", where, understudy.Clip(subject), wanted)
		case i < 0:
			return nil, fmt.Errorf("access: %s: %q: unknown level %q, %s%s", where, subject, understudy.Clip(word), wanted,
				suggest.Hint(understudy.Clip(word), levelNames))
		}
		if err := checkSubject(s, subject); err != nil {
			return nil, fmt.Errorf("access: %s: %w", where, err)
		}
		if subject == spec.ClassSecret && i != 0 {
			return nil, fmt.Errorf("access: %s: secrets are shown to nobody; want secret: hide, or nothing", where)
		}
		r[subject] = Level(i)
	}
	return r, nil
}

// isMedia reports whether a subject names a field of type media.
func isMedia(s *spec.Spec, subject string) bool {
	kind, field, _ := strings.Cut(subject, ".")
	k := s.Kind(kind)
	return k != nil && k.Field(field) != nil && k.Field(field).Type == spec.TypeMedia
}

func checkSubject(s *spec.Spec, subject string) error {
	if subject == Everything || slices.Contains(classes, subject) || s.Kind(subject) != nil {
		return nil
	}
	kind, field, dotted := strings.Cut(subject, ".")
	k := s.Kind(kind)
	if !dotted || k == nil {
		known := append([]string{Everything}, classes...)
		for _, k := range s.Kinds {
			known = append(known, k.Name)
		}
		return fmt.Errorf("unknown subject %q, want \"*\", a class, a kind or kind.field of %s%s", understudy.Clip(subject), s.Name,
			suggest.Hint(understudy.Clip(kind), known))
	}
	f := k.Field(field)
	if f == nil {
		known := make([]string, len(k.Fields))
		for i, f := range k.Fields {
			known[i] = kind + "." + f.Name
		}
		return fmt.Errorf("unknown field %q of %s%s", understudy.Clip(field), kind, suggest.Hint(understudy.Clip(subject), known))
	}
	return nil
}

// ancestors yields a dotted name and each object it lies in, innermost first.
func ancestors(name string, yield func(string) bool) {
	for yield(name) {
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return
		}
		name = name[:i]
	}
}

// decision is a level and the line of the rules that decided it, for people.
type decision struct {
	level Level
	line  string
}

// least is the decision that shows less; of equals the first. Of two that show
// different things of a value nothing is shown that both show.
func least(a, b decision) decision {
	switch {
	case a.level == b.level, a.level == Hide, b.level == See:
		return a
	case b.level == Hide, a.level == See:
		return b
	}
	return decision{Hide, a.line + " and " + b.line + ", which show nothing in common"}
}

// others limits what is shown of other values than the one decided on: what is derived
// from it, tells of it, or holds it. A hash or the country of another value would tell
// more than that of this one.
func (d decision) others() decision {
	if d.level == Hash || d.level == Country {
		d.level = Hide
	}
	return d
}

// rule is the decision of a subject that the rules name.
func (r rules) rule(subject string) decision {
	return decision{r[subject], fmt.Sprintf("%q: %s", subject, r[subject])}
}

// field decides on one field of a kind. The most specific rule decides,
// and the fields it is derived from limit it. A field that no rule names is also
// limited by the fields it gives information about.
func (r rules) field(k *spec.Kind, name string) decision {
	return r.bounded(k, name, len(k.Fields))
}

// bounded is field with a maximum length for a chain of derived fields. A longer
// chain is a cycle, and the level is Hide.
func (r rules) bounded(k *spec.Kind, name string, chain int) decision {
	if chain < 0 {
		return decision{Hide, "it is derived from itself"}
	}
	v := r.own(k, name)
	limit := func(by, how string) {
		of := r.bounded(k, by, chain-1).others()
		of.line = how + " " + by + ", " + of.line
		v = least(v, of)
	}
	ancestors(name, func(outer string) bool {
		f := k.Field(outer)
		if f != nil && f.DerivedFrom != "" {
			limit(f.DerivedFrom, "derived from")
		}
		if f != nil && f.Reveals != "" && !r.names(k, name) {
			limit(f.Reveals, "tells of")
		}
		return v.level > Hide
	})
	if f := k.Field(name); f != nil && f.RootPath() != "" && v.level < See {
		v.level = Hide // it stands in no body, where it could be masked
	}
	return v
}

// names reports whether a rule names a field, or an object it lies in.
func (r rules) names(k *spec.Kind, field string) (named bool) {
	ancestors(field, func(outer string) bool {
		_, named = r[k.Name+"."+outer]
		return !named
	})
	return named
}

// own decides on a field by the rules alone. The first match counts: a rule
// for the field or for the nearest object it lies in; the stricter rule of its
// class and its kind; "*"; Hide. If a field has no class, or the rules do not
// name its class, the class of the object it lies in counts.
func (r rules) own(k *spec.Kind, name string) decision {
	v, named, class, secret := decision{}, false, "", false
	ancestors(name, func(outer string) bool {
		if f := k.Field(outer); f != nil {
			secret = secret || f.Class == spec.ClassSecret
			if _, ruled := r[class]; !ruled && f.Class != "" || class == "" {
				class = f.Class
			}
		}
		if subject := k.Name + "." + outer; !named {
			if _, named = r[subject]; named {
				v = r.rule(subject)
			}
		}
		return true
	})
	switch {
	case secret:
		return decision{Hide, "secrets are shown to nobody"}
	case k.Field(name) == nil:
		return decision{Hide, "the spec does not name it"}
	case named:
		return v
	}
	return r.general(k.Name, class)
}

// general decides on a field that no rule names. URLs may contain phone
// numbers, so a URL that no rule names is not shown more fully than a phone number.
func (r rules) general(kind, class string) decision {
	_, kindRule := r[kind]
	_, classRule := r[class]
	_, all := r[Everything]
	if class == spec.ClassURL && !classRule {
		return least(r.general(kind, ""), r.general(kind, spec.ClassPhone).others())
	}
	switch {
	case class != "" && classRule && kindRule:
		return least(r.rule(class), r.rule(kind))
	case class != "" && classRule:
		return r.rule(class)
	case kindRule:
		return r.rule(kind)
	case all:
		return r.rule(Everything)
	}
	return decision{Hide, "no line names it"}
}
