// This file stores and restores the caller on whose behalf work continues without a request.

package callers

import "understudy"

// Owner returns a caller that IdentifyPerson returned, in the form that is stored with work.
func (b *Book) Owner(c understudy.Caller) understudy.Owner {
	if c.Source == "" && b.signedIn != nil {
		return b.signedIn.Owner(c)
	}
	return understudy.Owner{Name: c.Name, Source: c.Source, Role: c.Role(), LastSeen: b.now()}
}

// Resolve returns the current caller for a stored owner: the caller on this machine, the person of that name, or
// the credential of that name and source. ok is false if the caller no longer exists or has no rights any more.
func (b *Book) Resolve(o understudy.Owner) (now understudy.Caller, ok bool) {
	switch {
	case o.Source == "" && b.signedIn != nil:
		now, ok = b.signedIn.Resolve(o)
	case o.Source == "":
		now, ok = b.machine.local, o.Name == b.machine.local.Name && !b.machine.behind
	default:
		for _, e := range b.people {
			if e.caller.Name == o.Name && e.caller.Source == o.Source {
				now, ok = e.caller, true
				break
			}
		}
	}
	return now, ok && now.Role() != "" && now.Grant.IsActive(b.now())
}
