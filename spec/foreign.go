// Foreign: the shape of records that do not say whose they are.

package spec

// ForeignShape ends the shape of records that do not say whose they are and were seen
// under a path of another user. So the records in a list's own shape are the source's
// user's.
const ForeignShape = "@elsewhere"

// UnscopedVar is the variable in the paths of a kind's lists that the source's user
// fills in and no field of the records shows; "" without one.
func (k *Kind) UnscopedVar() string { return k.unscopedVar }

// findUnscopedVar finds it. When another variable follows, its record says whose it is.
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
