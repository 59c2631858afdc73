// Owner: the caller in whose name work goes on, when it does not ask itself.

package callers

import "understudy"

// Owner returns a caller of Person as it is kept beside work that goes on without it.
func (b *Book) Owner(c understudy.Caller) understudy.Owner {
	if c.Source == "" && b.signed != nil {
		return b.signed.Owner(c)
	}
	return understudy.Owner{Name: c.Name, Source: c.Source, Role: c.Role(), Seen: b.now()}
}

// Resolve returns the caller that an owner is in this book: the caller on this machine, the
// person of that name, or a credential of that name and source. ok is false if it is gone
// or may do nothing any more.
func (b *Book) Resolve(o understudy.Owner) (now understudy.Caller, ok bool) {
	switch {
	case o.Source == "" && b.signed != nil:
		now, ok = b.signed.Resolve(o)
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
	return now, ok && now.Role() != "" && now.Grant.Live(b.now())
}
