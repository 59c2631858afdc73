// Remove: a record that upstream shows no more, and that no path names.

package mirror

import (
	"context"
	"fmt"
	"net/http"

	"understudy"
)

// Remove takes a record away as a 410 of its instance would: it went, which is
// numbered as a change and told as completed. It is for kinds whose spec has no
// path of a single record; who calls it has seen that no list shows it. A
// record that is not held is no error. Errors: ErrInvalid for a kind the mirror
// does not have; ErrNotStored; the context's.
func (m *Mirror) Remove(ctx context.Context, source, kind, id string) error {
	s := m.sources[source]
	if s == nil || s.kinds[kind] == nil || kind == "" || id == "" {
		return fmt.Errorf("mirror: remove %s/%s: %w: no kind of a source", source, kind, understudy.ErrInvalid)
	}
	k := s.kinds[kind]
	m.forgetMedia(k, id)
	if err := k.lock(ctx); err != nil {
		return err
	}
	defer k.unlock()
	gone := &understudy.Page{
		Key: understudy.Key{Source: source}, Kind: kind, Shape: kind, ID: id, Status: http.StatusGone, At: m.now(),
		Generation: k.generation.Load(),
	}
	saved, err := m.save(ctx, k, gone)
	if err != nil {
		return fmt.Errorf("mirror: remove %s/%s: %w", source, kind, unkept(err))
	}
	m.news(k, saved)
	m.touched(k, id)
	return nil
}
