// This file finds which records are parents of a record, from the id fields and list paths of the spec.

package access

import (
	"slices"
	"strings"

	"understudy/spec"
)

// ancestorsOf returns the fields of a kind that name a parent record. They are the id fields that link to another
// kind, the parent field, the fields that link to a kind in a list's path, the fields that may link to any kind,
// and the root. The source's own account is the parent of every record and is left out.
func ancestorsOf(s *spec.Spec, k *spec.Kind) (all []ancestor) {
	paths := parentKinds(s, k)
	for _, f := range k.Fields {
		if f.Link == spec.AnyKind {
			all = append(all, ancestor{field: f.Name})
			continue
		}
		p := s.Kind(f.Link)
		if p != nil && p != k && f.RootPath() != "" {
			all = append(all, ancestor{field: f.Name, kind: p, root: true})
			// A list path can name a parent that no id field names: the path of an issue's comments names the issue.
			for _, o := range paths {
				if o != p && o.Root != "" && !slices.ContainsFunc(k.Fields, func(f *spec.Field) bool { return f.Link == o.Name }) {
					all = append(all, ancestor{field: f.Name, kind: o, root: true, byPathOnly: true})
				}
			}
			continue
		}
		if p == nil || p == k || len(p.ID) != 1 {
			continue
		}
		if f.Name == k.Parent || slices.Contains(k.ID, f.Name) || slices.Contains(paths, p) {
			all = append(all, ancestor{field: f.Name, kind: p})
		}
	}
	return all
}

// parentKinds returns the kinds whose instance path is the beginning of one of the kind's list paths.
func parentKinds(s *spec.Spec, k *spec.Kind) (all []*spec.Kind) {
	for _, l := range k.Lists {
		for _, p := range listParents(s, l) {
			if p != k && !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// listParents returns the kinds whose instance path is the beginning of the path of one list.
func listParents(s *spec.Spec, l *spec.List) (all []*spec.Kind) {
	for _, p := range s.Kinds {
		for _, in := range p.Instances {
			one := len(p.ID) == 1 || p.Name == s.Roots.Kind && len(in.ID) == len(p.ID)
			if one && !isOwnAccount(s, in) && in.Template().IsPrefixOf(l.Template()) {
				all = append(all, p)
				break
			}
		}
	}
	return all
}

// isOwnAccount reports whether the id in an instance path is that of the account with which the source sends its
// requests. The source fills this id into its paths itself.
func isOwnAccount(s *spec.Spec, in *spec.Instance) bool {
	want := in.Template().Segments()
	at := slices.IndexFunc(want, func(seg spec.Segment) bool { return len(in.ID) == 1 && seg.Name == in.ID[0] })
	if at < 0 {
		return false
	}
	// The path of the account begins like a list path with a variable that the source fills, for example
	// /Accounts/{Sid}.json and /Accounts/{AccountSid}/Calls.json.
	for _, k := range s.Kinds {
		for _, l := range k.Lists {
			have := l.Template().Segments()
			if len(have) > at && slices.Equal(have[:at], want[:at]) && have[at].Head == want[at].Head && s.Vars[have[at].Name] == "user" {
				return true
			}
		}
	}
	return false
}

// pathRecord is a record that a path names, with the row rule for its kind.
type pathRecord struct {
	f      *rowFilter
	target *spec.Target
}

// parentRecords returns the records above a path whose kinds have a row rule, the outermost first. It also works for
// paths that the spec does not name. The source's own account, whose id is user, is left out.
func (r *grants) parentRecords(s *spec.Spec, t *spec.Target, user string) (all []pathRecord) {
	have := strings.Split(t.Key.Path(), "/")[1:]
	for _, k := range s.Kinds {
		f := r.rows[k.Name]
		if f == nil {
			continue
		}
		for _, in := range k.Instances {
			path, ok := in.Template().FillFromPath(have)
			if !ok || len(have) <= len(in.Template().Segments()) {
				continue
			}
			up, err := s.Resolve(t.Key.Source, path, "")
			if err != nil || up.Instance != in || up.ID == "" && in.Address == "" || isOwnAccount(s, in) && up.ID == user {
				continue
			}
			all = append(all, pathRecord{f, up})
			break
		}
	}
	slices.SortStableFunc(all, func(a, b pathRecord) int { return len(a.target.Key.URI) - len(b.target.Key.URI) })
	return all
}
