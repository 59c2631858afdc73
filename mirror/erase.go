// Erase: what the store has taken out of its files goes from memory, too.

package mirror

import (
	"context"
	"fmt"
	"slices"

	"understudy"
	"understudy/mirror/cache"
)

// Erased is told by whoever erases that the store has let go of records of
// these kinds of a source (none: of any kind). Everything memory holds of them
// goes, and a fetch that began before is answered to who waits for it and not
// kept. What others need comes back from the store. Errors: ErrInvalid for a
// source it does not have, the context's.
func (m *Mirror) Erased(ctx context.Context, source string, kinds []string) error {
	s := m.sources[source]
	if s == nil {
		return fmt.Errorf("mirror: erased %s: %w: no such source", source, understudy.ErrInvalid)
	}
	for name, k := range s.kinds {
		if len(kinds) > 0 && !slices.Contains(kinds, name) {
			continue
		}
		_, err := m.forget(ctx, k, func(Forgetter) (Forgotten, error) { return Forgotten{}, nil }, func(*cache.Entry) bool { return true })
		if err != nil {
			return fmt.Errorf("mirror: erased %s %s: %w", source, name, err)
		}
	}
	return nil
}

// allowed is a page as the store answered its saving. One that the store keeps
// out, because it shows what was erased or is too old, passes to its readers.
func (fl *filler) allowed(f *flight, p *understudy.Page) *understudy.Page {
	if p.NotStored == "" {
		return p
	}
	f.source.counts.notStored.Add(1)
	f.detail = notStored(p)
	return p
}
