// This file contains levels and roles: how much of a field is shown, and how the settings say so.

// Package access decides which data a caller may see. Every frontend reads through its Gate.
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

// Level is how much of a value is shown: nothing, one part of it, or all. Hash, Country and Last4 show
// different parts, and none of them shows more than another.
type Level uint8

// The levels. The zero value, Hide, shows nothing.
const (
	Hide    Level = iota // the value is null in a response
	Hash                 // a hash replaces the value; equal values have equal hashes
	Country              // the value is a fixed mask, then the country of a phone number
	Last4                // the value is a fixed mask, then the last four digits of a phone number with at least 8 digits
	See                  // the value is shown as upstream sent it
)

var levelNames = []string{"hide", "hash", "country", "last4", "see"}

// wantedLevels lists the level names for an error message.
const wantedLevels = "write see, last4, country, hash or hide"

// playLevel is another word for the level see, for fields of type media.
const playLevel = "play"

// String returns the word for the level in the settings.
func (l Level) String() string { return levelNames[l] }

// Roles is the policy as in the settings: role -> source -> subject ("*", a class, a kind, or kind.field) ->
// the name of a level.
type Roles map[string]map[string]map[string]string

// Everything is the subject that covers every field the spec names.
const Everything = "*"

var classes = []string{spec.ClassPhone, spec.ClassBody, spec.ClassPrice, spec.ClassURL, spec.ClassName, spec.ClassSecret}

// rules are the validated levels of one role in one source, by subject.
type rules map[string]Level

// readRules validates the levels of one role in one source. Its errors begin with the text where ("roles.support.twilio").
func readRules(where string, s *spec.Spec, subjects map[string]string) (rules, error) {
	r := make(rules, len(subjects))
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		word := subjects[subject]
		if word == playLevel && isMedia(s, subject) {
			word = See.String()
		}
		i := slices.Index(levelNames, word)
		switch {
		case word == playLevel:
			return nil, fmt.Errorf("access: %s: %q: play is only for fields of type media; %s", where, understudy.Clip(subject), wantedLevels)
		case i < 0:
			return nil, fmt.Errorf("access: %s: %q: the level %q is not known; %s%s", where, subject, understudy.Clip(word), wantedLevels,
				suggest.Hint(understudy.Clip(word), levelNames))
		}
		if err := checkSubject(s, subject); err != nil {
			return nil, fmt.Errorf("access: %s: %w", where, err)
		}
		if subject == spec.ClassSecret && i != 0 {
			return nil, fmt.Errorf("access: %s: secrets are shown to nobody; write secret: hide, or remove the line", where)
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

// checkSubject returns nil if a subject exists, else an error that names the most similar subject.
func checkSubject(s *spec.Spec, subject string) error {
	if subject == Everything || slices.Contains(classes, subject) || s.Kind(subject) != nil {
		return nil
	}
	kind, field, dotted := strings.Cut(subject, ".")
	k := s.Kind(kind)
	if !dotted || k == nil {
		known := slices.Concat([]string{Everything}, classes, s.KindNames())
		return fmt.Errorf("the subject %q is not known; write \"*\", a class, a kind or kind.field of %s%s", understudy.Clip(subject), s.Name,
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

// visitOuter calls yield with a dotted name and with each object that contains it, innermost first, until yield
// returns false.
func visitOuter(name string, yield func(string) bool) {
	for yield(name) {
		i := strings.LastIndexByte(name, '.')
		if i < 0 {
			return
		}
		name = name[:i]
	}
}

// decision is a level, and the settings line that decided the level.
type decision struct {
	level Level
	line  string
}

// stricter returns the decision that shows less, or a if both show the same. If both show different parts of a
// value, the result is Hide.
func stricter(a, b decision) decision {
	switch {
	case a.level == b.level, a.level == Hide, b.level == See:
		return a
	case b.level == Hide, a.level == See:
		return b
	}
	return decision{Hide, a.line + " and " + b.line + ", which show nothing in common"}
}

// limitOthers returns the level for values that are derived from the decided value, reveal it, or contain it. A
// hash or a country of such a value would reveal more than the hash or the country of the decided value.
func (d decision) limitOthers() decision {
	if d.level == Hash || d.level == Country {
		d.level = Hide
	}
	return d
}

// ruleDecision returns the decision of a subject that the rules name.
func (r rules) ruleDecision(subject string) decision {
	return decision{r[subject], fmt.Sprintf("%q: %s", subject, r[subject])}
}

// fieldDecision returns the level of a field of a kind. The most specific rule decides, and the fields from which the
// field is derived limit it. A field that no rule names is also limited by the fields about which it gives information.
func (r rules) fieldDecision(k *spec.Kind, name string) decision {
	return r.boundedDecision(k, name, len(k.Fields))
}

// boundedDecision is fieldDecision with a maximum length for a chain of derived fields. A longer chain is a
// cycle, and the level is Hide.
func (r rules) boundedDecision(k *spec.Kind, name string, chain int) decision {
	if chain < 0 {
		return decision{Hide, "it is derived from itself"}
	}
	v := r.ownDecision(k, name)
	limit := func(by, how string) {
		of := r.boundedDecision(k, by, chain-1).limitOthers()
		of.line = how + " " + by + ", " + of.line
		v = stricter(v, of)
	}
	visitOuter(name, func(outer string) bool {
		f := k.Field(outer)
		if f != nil && f.DerivedFrom != "" {
			limit(f.DerivedFrom, "derived from")
		}
		if f != nil && f.Reveals != "" && !r.hasRuleFor(k, name) {
			limit(f.Reveals, "tells of")
		}
		return v.level > Hide
	})
	if f := k.Field(name); f != nil && f.RootPath() != "" && v.level < See {
		v.level = Hide // a root is computed from other fields and is in no body, so it cannot be shown in part
	}
	return v
}

// hasRuleFor reports whether a rule names a field, or an object that contains it.
func (r rules) hasRuleFor(k *spec.Kind, field string) (named bool) {
	visitOuter(field, func(outer string) bool {
		_, named = r[k.Name+"."+outer]
		return !named
	})
	return named
}

// ownDecision decides about a field by the rules alone. The first match counts. A rule for the field comes first, then
// a rule for the nearest object that contains it, then the stricter rule of its class and its kind, then "*", then
// Hide. If a field has no class, or the rules do not name its class, the class of the object that contains it counts.
func (r rules) ownDecision(k *spec.Kind, name string) decision {
	v, named, class, secret := decision{}, false, "", false
	visitOuter(name, func(outer string) bool {
		if f := k.Field(outer); f != nil {
			secret = secret || f.Class == spec.ClassSecret
			if _, ruled := r[class]; !ruled && f.Class != "" || class == "" {
				class = f.Class
			}
		}
		if subject := k.Name + "." + outer; !named {
			if _, named = r[subject]; named {
				v = r.ruleDecision(subject)
			}
		}
		return true
	})
	switch {
	case secret:
		return decision{Hide, "nobody can see secrets"}
	case k.Field(name) == nil:
		return decision{Hide, "the spec does not name it"}
	case named:
		return v
	}
	return r.generalDecision(k.Name, class)
}

// generalDecision decides about a field that no rule names. URLs may contain phone numbers, so a URL that no
// rule names is not shown more fully than a phone number.
func (r rules) generalDecision(kind, class string) decision {
	_, kindRule := r[kind]
	_, classRule := r[class]
	_, all := r[Everything]
	if class == spec.ClassURL && !classRule {
		return stricter(r.generalDecision(kind, ""), r.generalDecision(kind, spec.ClassPhone).limitOthers())
	}
	switch {
	case class != "" && classRule && kindRule:
		return stricter(r.ruleDecision(class), r.ruleDecision(kind))
	case class != "" && classRule:
		return r.ruleDecision(class)
	case kindRule:
		return r.ruleDecision(kind)
	case all:
		return r.ruleDecision(Everything)
	}
	return decision{Hide, "no setting names it"}
}
