// Parent: which record a list lies under, read off the spec's paths.

package plan

import (
	"slices"

	"understudy/spec"
)

// Parent is the kind of record a path lies under, and how that record's id
// fills the path's variables. The zero value is none.
type Parent struct {
	Kind *Kind
	Vars map[string]int // variable -> part of the kind's id
}

// Fill gives the variables of the path from the parts of a parent's id.
func (p Parent) Fill(parts []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		i, ok := p.Vars[name]
		if !ok || i >= len(parts) {
			return "", false
		}
		return parts[i], true
	}
}

// Id joins a parent's id from the path's variables; "" when one is missing.
func (p Parent) Id(value func(string) (string, bool)) string {
	if p.Kind == nil {
		return ""
	}
	parts := make([]string, len(p.Kind.Spec.ID))
	for name, i := range p.Vars {
		parts[i], _ = value(name)
	}
	if slices.Contains(parts, "") {
		return ""
	}
	return p.Kind.Spec.IDOf(parts)
}

// ParentOf finds the kind one of whose instance paths begins the same way as
// this path, names the same things in the same places, and accounts for every
// variable in needs. The longest such path wins.
//
//	/Accounts/{AccountSid}/Calls/{Sid}.json                instance of calls
//	/Accounts/{AccountSid}/Calls/{CallSid}/Recordings.json its recordings
func (s *Source) ParentOf(path spec.Template, needs []string) Parent {
	var best Parent
	longest := 0
	have := path.Segments()
	for _, k := range s.Kinds {
		for _, in := range k.Spec.Instances {
			want := in.Template().Segments()
			vars, ok := under(have, want, in)
			if !ok || len(want) <= longest || slices.ContainsFunc(needs, func(n string) bool { _, ok := vars[n]; return !ok }) {
				continue
			}
			best, longest = Parent{k, vars}, len(want)
		}
	}
	return best
}

// under matches the beginning of a path with an instance's.
func under(have, want []spec.Segment, in *spec.Instance) (vars map[string]int, ok bool) {
	if len(have) <= len(want) {
		return nil, false
	}
	vars = map[string]int{}
	for i, seg := range want {
		name, named := segmentVar(seg)
		own, ours := segmentVar(have[i])
		part := slices.Index(in.ID, name)
		switch {
		case named && ours && part >= 0:
			vars[own] = part
		case named != ours, !named && seg != have[i], named && name != own:
			return nil, false
		}
	}
	return vars, true
}

// segmentVar is the variable of a path segment, an extension after it left out.
func segmentVar(s spec.Segment) (name string, ok bool) {
	return s.Name, s.Opens() && (s.Tail == "" || s.Tail[0] == '.')
}
