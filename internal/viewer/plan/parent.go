// The parent record of a list, which follows from the paths in the spec.

package plan

import (
	"slices"

	"understudy/spec"
)

// Parent is the kind of a list's parent record. It says which variables of the list's path are parts of the parent's
// id. The zero value means that there is no parent.
type Parent struct {
	Kind *Kind
	Vars map[string]int // for each path variable, the index of the part of the parent's id that is its value
}

// Fill returns a function that returns the values of path variables. parts are the parts of the parent's id.
func (p Parent) Fill(parts []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		i, ok := p.Vars[name]
		if !ok || i >= len(parts) {
			return "", false
		}
		return parts[i], true
	}
}

// Id returns the parent's id, whose parts are the values of path variables. It returns "" if a value is missing.
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
	return p.Kind.Spec.JoinID(parts)
}

// ParentOf returns the kind with an instance path that this path begins with. The paths must have the same
// variables in the same places, and these must include all of needs. The longest such path is used.
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
			vars, ok := matchPrefix(have, want, in)
			if !ok || len(want) <= longest || slices.ContainsFunc(needs, func(n string) bool { _, ok := vars[n]; return !ok }) {
				continue
			}
			best, longest = Parent{k, vars}, len(want)
		}
	}
	return best
}

// matchPrefix reports whether a path begins with the path of a record. vars has for each variable the index of its
// part of the record's id.
func matchPrefix(have, want []spec.Segment, in *spec.Instance) (vars map[string]int, ok bool) {
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

// segmentVar returns the variable in a segment of a path. It ignores a file extension after the variable.
func segmentVar(s spec.Segment) (name string, ok bool) {
	return s.Name, s.HasLeadingVar() && (s.Tail == "" || s.Tail[0] == '.')
}
