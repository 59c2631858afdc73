// Forget: a page or a record goes from memory and store, and nothing under way
// brings it back. What was erased or has gone upstream goes from memory, too. What
// upstream forgets by itself is not deleted.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/mirror/cache"
	"understudy/request"
	"understudy/spec"
)

// Forgetter is what a store can do besides, if pages and records are to be
// forgotten.
type Forgetter interface {
	// ForgetPage forgets the page of a key; the records it shows stay.
	ForgetPage(context.Context, understudy.Key) (held bool, err error)
	// ForgetRecord forgets a record in every shape and the pages that show it.
	ForgetRecord(ctx context.Context, source, kind, id string) (pages, versions int, err error)
}

// Forgotten is what was held and is no more.
type Forgotten struct {
	Pages    int // answers, those that say that a record is not there included
	Versions int // bodies of the record
}

// Forget forgets the page of a key. Of an instance the record goes too, or the
// next answer would be composed from it; of an instance or a content, every
// content of the record. A fetch that began before is answered
// to its waiters and not kept; the next reader has one of its own. Errors:
// ErrInvalid for a source or kind it does not have, the store's.
func (m *Mirror) Forget(ctx context.Context, t *spec.Target) (Forgotten, error) {
	s := m.env.sources[t.Key.Source]
	if s == nil || s.of(t) == nil {
		return Forgotten{}, fmt.Errorf("mirror: forget %s: %w: no such source or kind", t.Key, understudy.ErrInvalid)
	}
	k, remembered := s.of(t), m.entries.hot.Find(t.Key) != nil
	if s.config.Spec.Generic() {
		m.shared.Invalidate(ctx, t.Key) // a fetch that began before, and what stands under other keys
	}
	found, err := m.invalidator.forget(ctx, k, func(store Forgetter) (found Forgotten, err error) {
		held, err := store.ForgetPage(ctx, t.Key)
		if held || remembered {
			found.Pages = 1
		}
		if err == nil && t.Instance != nil && t.ID != "" {
			var pages int
			pages, found.Versions, err = store.ForgetRecord(ctx, s.config.Name, k.name, t.ID)
			found.Pages += pages
		}
		return found, err
	}, func(e *cache.Entry) bool {
		return e.Hash == m.entries.hot.Hash(t.Key) || t.Instance != nil && t.ID != ""
	})
	if t.Instance != nil || t.Media != nil {
		m.entries.recordWent(k, t.ID)
	}
	if err != nil {
		return found, fmt.Errorf("mirror: forget %s: %w", t.Key, err)
	}
	return found, nil
}

// ForgetRecord forgets a record: its bodies in every shape, the pages that show
// it or say that it is gone, its contents. Otherwise it is as Forget.
func (m *Mirror) ForgetRecord(ctx context.Context, source, kind, id string) (Forgotten, error) {
	s := m.env.sources[source]
	if s == nil || s.kinds[kind] == nil || kind == "" {
		return Forgotten{}, fmt.Errorf("mirror: forget %s %s %s: %w: no such source or kind", source, kind, id, understudy.ErrInvalid)
	}
	found, err := m.invalidator.forget(ctx, s.kinds[kind], func(store Forgetter) (found Forgotten, err error) {
		found.Pages, found.Versions, err = store.ForgetRecord(ctx, source, kind, id)
		return found, err
	}, func(*cache.Entry) bool { return true }) // those that show others come back from the store
	m.entries.recordWent(s.kinds[kind], id)
	if err != nil {
		return found, fmt.Errorf("mirror: forget %s %s %s: %w", source, kind, id, err)
	}
	return found, nil
}

// forget tells the store, with the kind locked, and then drops what memory
// holds. The order matters: first nothing under way may fill any more; last
// goes what a reader took from the store before it forgot.
func (iv *invalidator) forget(
	ctx context.Context, k *kind, tell func(Forgetter) (Forgotten, error), concerned func(*cache.Entry) bool,
) (Forgotten, error) {
	store, ok := iv.env.store.(Forgetter)
	if !ok {
		return Forgotten{}, errors.New("the store cannot forget")
	}
	k.writes.Purge()
	if err := k.lock(ctx); err != nil {
		return Forgotten{}, err
	}
	defer k.unlock()
	found, err := tell(store)
	k.writes.AddChange()
	var gone []*cache.Entry
	iv.entries.hot.Each(k.pages, func(e *cache.Entry) {
		if concerned(e) {
			gone = append(gone, e)
		}
	})
	iv.entries.hot.DropAll(gone)
	iv.flights.warm(k)
	for _, p := range k.source.polls() {
		if p.kind == k && iv.entries.hot.Find(p.list.Target.Key) == nil {
			p.list.Forget()
			p.list.Nudge()
		}
	}
	return found, err
}

// warm lets keys of a kind be fetched again at once, though the last fetch of
// them failed.
func (fs *flights) warm(k *kind) {
	fs.Lock()
	defer fs.Unlock()
	for key := range fs.cooling {
		if key.Source == k.source.config.Name {
			delete(fs.cooling, key)
		}
	}
}

// Erased is told by the eraser that the store has let go of records of
// these kinds of a source (none: of any kind). Everything memory holds of them
// goes, and a fetch that began before is answered to its waiters and not
// kept. What others need comes back from the store. Errors: ErrInvalid for a
// source it does not have, the context's.
func (m *Mirror) Erased(ctx context.Context, source string, kinds []string) error {
	s := m.env.sources[source]
	if s == nil {
		return fmt.Errorf("mirror: erased %s: %w: no such source", source, understudy.ErrInvalid)
	}
	for name, k := range s.kinds {
		if len(kinds) > 0 && !slices.Contains(kinds, name) {
			continue
		}
		nothing := func(Forgetter) (Forgotten, error) { return Forgotten{}, nil }
		_, err := m.invalidator.forget(ctx, k, nothing, func(*cache.Entry) bool { return true })
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
	f.origin.source.counts.notStored.Add(1)
	f.result.detail = notStored(p)
	return p
}

// Remove takes a record away as a 410 of its instance would: it went, which is
// numbered as a change and told as completed. It is for kinds whose spec has no
// path of a single record; its caller has seen that no list shows it. A
// record that is not held is no error. Errors: ErrInvalid for a kind the mirror
// does not have; ErrNotStored; the context's.
func (m *Mirror) Remove(ctx context.Context, source, kind, id string) error {
	s := m.env.sources[source]
	if s == nil || s.kinds[kind] == nil || kind == "" || id == "" {
		return fmt.Errorf("mirror: remove %s/%s: %w: no kind of a source", source, kind, understudy.ErrInvalid)
	}
	k := s.kinds[kind]
	if err := m.writer.recordDeleted(ctx, k, &understudy.Page{Kind: kind, Shape: kind, ID: id, At: m.env.now()}); err != nil {
		return fmt.Errorf("mirror: remove %s/%s: %w", source, kind, err)
	}
	return nil
}

// recordDeleted saves that the record of a page went.
func (wr *writer) recordDeleted(ctx context.Context, k *kind, p *understudy.Page) error {
	wr.entries.recordWent(k, p.ID)
	if err := k.lock(ctx); err != nil {
		return err
	}
	defer k.unlock()
	saved, err := wr.save(ctx, k, &understudy.Page{
		Key: understudy.Key{Source: k.source.config.Name}, Kind: p.Kind, Shape: p.Shape, ID: p.ID, Status: http.StatusGone, At: p.At,
		Generation: k.writes.Generation(),
	})
	if err != nil {
		return unkept(err)
	}
	wr.news(k, saved)
	wr.entries.touched(k, p.ID)
	return nil
}

// parentAge is how old the last sight of a parent may be to tell whether it has
// ended.
const parentAge = 10 * time.Second

// forgotten reports whether a record that upstream says is not there is one that
// it forgets by itself: its clock is further back than the spec says, or what it
// lies under is final. When what is known of the parent is too old to tell, the
// parent is fetched first; when that fails the record is not taken for deleted.
// A record without any time, or under nothing that is held, was deleted.
func (fl *filler) forgotten(ctx context.Context, k *kind, rec *understudy.Record) bool {
	sp := k.source.config.Spec.Kind(k.name)
	if sp.Retention.Days > 0 {
		clock := query.UnixIn(sp, sp.Clock, rec.Body)
		if clock == 0 {
			clock = query.UnixIn(sp, sp.Order, rec.Body) // never sent, never started
		}
		if clock != 0 && fl.env.now().Unix()-clock > int64(sp.Retention.Days)*24*60*60 {
			return true
		}
	}
	if !sp.Retention.WithParent {
		return false
	}
	above := k.source.config.Spec.Kind(sp.Field(sp.Parent).Link)
	id := textOf(rec.Body, sp.Parent)
	if id == "" {
		return false
	}
	parent := fl.holdings.known(ctx, k.source, above, id)
	if parent == nil || parent.Final || above.Retention.WithParent {
		return parent != nil && parent.Final
	}
	if age, sane := fl.env.ages().age(fl.env.now(), parent.Seen); sane && age < parentAge {
		return false
	}
	target, ok := k.source.instanceOf(above, id)
	if target == nil || !ok {
		return false
	}
	fill := request.Fill{Target: target, Reason: request.Refresh, RecordsOnly: true}
	if _, _, err := fl.fillOnce(ctx, &fill, k.source, k.source.kinds[above.Name]); err != nil {
		return true // unknown; the next time may tell
	}
	parent = fl.holdings.known(ctx, k.source, above, id)
	return parent != nil && parent.Final
}

// known is a record in the shape it was last seen in; nil when it is not held,
// or cannot be read.
func (hs *holdings) known(ctx context.Context, s *source, k *spec.Kind, id string) *understudy.Record {
	last, _ := hs.lookUp(ctx, s, k, id)
	return last
}

// lookUp is a record in the shape it was last seen in; nil when it is not held.
func (hs *holdings) lookUp(ctx context.Context, s *source, k *spec.Kind, id string) (last *understudy.Record, err error) {
	seen := map[string]bool{}
	look := func(shape string) {
		if seen[shape] {
			return
		}
		seen[shape] = true
		rec, bad := hs.env.store.Record(ctx, s.config.Name, k.Name, shape, id)
		switch {
		case bad != nil && !errors.Is(bad, understudy.ErrNotFound):
			err = bad
		case bad == nil && (last == nil || rec.Seen.After(last.Seen)):
			last = rec
		}
	}
	for _, in := range k.Instances {
		look(in.Shape)
	}
	for _, l := range k.Lists {
		look(l.Shape)
	}
	return last, err
}

// textOf is a field's value as text, "" when it is null or absent.
func textOf(body []byte, name string) string {
	v, ok := jsonspan.Find(body, jsonspan.Value{Kind: jsonspan.Object, End: len(body)}, name)
	if !ok || v.Kind == jsonspan.Null {
		return ""
	}
	return jsonspan.Text(body, v)
}
