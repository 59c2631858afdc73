// Kept: under which shape records are kept that do not tell whose they are.

package spec

// ForeignShape ends the shape of records that do not tell whose they are and were
// seen under a path that names somebody else than the source's user. So what is
// kept in a list's own shape lies under the user.
const ForeignShape = "@elsewhere"

// UnscopedVar is the variable in the paths of a kind's lists that the source's user
// fills in and that no field of its records shows; "" when there is none.
func (k *Kind) UnscopedVar() string { return k.unscopedVar }

// findUnscopedVar finds it. Where another variable follows, the record that one
// names tells.
func (s *Spec) findUnscopedVar(k *Kind) {
	for _, l := range k.Lists {
		vars := l.template.Vars()
		if len(vars) == 0 {
			continue
		}
		name := vars[len(vars)-1]
		field, shown := s.Shown[name]
		if _, own := s.Vars[name]; own && shown && k.fields[field] == nil && len(k.ID) > 0 {
			k.unscopedVar = name
			return
		}
	}
}
