// Explain: what a role sees of a kind, and by which line of the settings.

package access

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"understudy"
	"understudy/kit/suggest"
	"understudy/spec"
)

// Shown is how much a role sees of a field, and why.
type Shown struct {
	Field string
	Class string // of the spec; "": none
	Level Level
	Line  string // the line of the role that decided, or why none did
	Media bool   // an audio or an image: what is seen is played
}

// String is the level as the settings write it.
func (s Shown) String() string {
	if s.Media && s.Level == See {
		return play
	}
	return s.Level.String()
}

// Roles are the names of the roles there are, the built-in one first.
func (g *Gate) Roles() []string {
	return append([]string{understudy.RoleAll}, slices.Sorted(maps.Keys(g.roles))...)
}

// Explain says what a role sees of each field of a kind, in the spec's order. The error
// names the nearest role, source or kind that there is.
func (g *Gate) Explain(role, source, kind string) ([]Shown, error) {
	sp := g.specs[source]
	if sp == nil {
		return nil, fmt.Errorf("access: no source %q", clip(source))
	}
	k := sp.Kind(kind)
	if k == nil {
		var known []string
		for _, k := range sp.Kinds {
			known = append(known, k.Name)
		}
		return nil, fmt.Errorf("access: %s has no kind %q%s", source, clip(kind), suggest.Hint(clip(kind), known))
	}
	if err := g.Known(role); err != nil {
		return nil, err
	}
	of := func(f *spec.Field) decision {
		if f.Class == spec.ClassSecret {
			return decision{Hide, "secrets are shown to nobody"}
		}
		return decision{See, "the role all sees everything"}
	}
	if role != understudy.RoleAll {
		r, err := readRules("roles."+role+"."+source, sp, g.stated.Roles[role][source])
		if err != nil {
			return nil, err
		}
		of = func(f *spec.Field) decision { return r.field(k, f.Name) }
	}
	var all []Shown
	for _, f := range k.Fields {
		v := of(f)
		s := Shown{Field: f.Name, Class: f.Class, Level: v.level, Line: v.line, Media: f.Type == spec.TypeMedia}
		if s.Media && strings.HasPrefix(s.Line, strconv.Quote(k.Name+"."+f.Name)) {
			s.Line = strings.Replace(s.Line, ": "+See.String(), ": "+play, 1)
		}
		all = append(all, s)
	}
	return all, nil
}
