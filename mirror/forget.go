// Forget: a page or a record is deleted from memory and store, and no fetch under way restores it. Records
// that were erased, or deleted upstream, are removed from memory too. A record that upstream merely stopped
// listing because of its age is not deleted.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// Forgetter is a store that can delete pages and records.
type Forgetter interface {
	// ForgetPage deletes the page of a key. It does not delete the records on the page. held is true if the page was stored.
	ForgetPage(context.Context, understudy.Key) (held bool, err error)
	// ForgetRecord deletes a record in every shape and the pages that show it.
	ForgetRecord(ctx context.Context, source, kind, id string) (pages, versions int, err error)
}

// Forgotten says how much was deleted.
type Forgotten struct {
	Pages    int // the number of deleted pages, including responses that a record does not exist
	Versions int // the number of deleted versions of the record
}

// Forget deletes the page of a target. If the target is a single record, it also deletes the record, because the next
// answer would be composed from it, and the record's audio and images. If the target is an audio or image, it deletes
// all those of the record. A running fetch is answered to those who wait for it and is not stored. Errors: ErrInvalid
// for an unknown source or kind, and those of the store.
func (m *Mirror) Forget(ctx context.Context, t *spec.Target) (Forgotten, error) {
	s := m.env.sources[t.Key.Source]
	if s == nil || s.kindOf(t) == nil {
		return Forgotten{}, fmt.Errorf("mirror: forget %s: %w: no such source or kind", t.Key, understudy.ErrInvalid)
	}
	k, remembered := s.kindOf(t), m.entries.hot.Find(t.Key) != nil
	if s.config.Spec.IsGeneric() {
		m.shared.Invalidate(ctx, t.Key) // this also ends running fetches, and deletes the other stored answers for the same address
	}
	found, err := m.invalidator.forget(ctx, k, func(store Forgetter) (found Forgotten, err error) {
		held, err := store.ForgetPage(ctx, t.Key)
		if held || remembered {
			found.Pages = 1
		}
		if err == nil && t.Instance != nil && t.ID != "" {
			var pages int
			pages, found.Versions, err = m.invalidator.forgetRecord(ctx, store, k, t.ID)
			found.Pages += pages
		}
		return found, err
	}, func(e *cache.Entry) bool {
		return e.Hash == m.entries.hot.Hash(t.Key) || t.Instance != nil && t.ID != ""
	})
	if t.Instance != nil || t.Media != nil {
		m.entries.forgetContents(k, t.ID)
	}
	if err != nil {
		return found, fmt.Errorf("mirror: forget %s: %w", t.Key, err)
	}
	return found, nil
}

// ForgetRecord deletes a record: its versions in every shape, the pages that show it or say that it does not exist,
// and its audio and images. Otherwise it works like Forget.
func (m *Mirror) ForgetRecord(ctx context.Context, source, kind, id string) (Forgotten, error) {
	s := m.env.sources[source]
	if s == nil || s.kinds[kind] == nil || kind == "" {
		return Forgotten{}, fmt.Errorf("mirror: forget %s %s %s: %w: no such source or kind", source, kind, id, understudy.ErrInvalid)
	}
	found, err := m.invalidator.forget(ctx, s.kinds[kind], func(store Forgetter) (found Forgotten, err error) {
		found.Pages, found.Versions, err = m.invalidator.forgetRecord(ctx, store, s.kinds[kind], id)
		return found, err
	}, func(*cache.Entry) bool { return true }) // pages without this record are read from the store again when they are needed
	m.entries.forgetContents(s.kinds[kind], id)
	if err != nil {
		return found, fmt.Errorf("mirror: forget %s %s %s: %w", source, kind, id, err)
	}
	return found, nil
}

// forget deletes from the store while the kind is locked, and then from memory. First of all it makes sure that no
// running fetch is stored any more. Memory comes last, because a reader may have loaded a page from the store just
// before it was deleted there.
func (iv *invalidator) forget(
	ctx context.Context, k *kind, tell func(Forgetter) (Forgotten, error), concerned func(*cache.Entry) bool,
) (Forgotten, error) {
	store, ok := iv.env.store.(Forgetter)
	if !ok {
		return Forgotten{}, errors.New("the store cannot delete records")
	}
	k.writes.Purge()
	if err := k.lock(ctx); err != nil {
		return Forgotten{}, err
	}
	defer k.unlock()
	found, err := tell(store)
	k.writes.AddChange()
	var gone []*cache.Entry
	iv.entries.hot.WalkGroup(k.pages, func(e *cache.Entry) {
		if concerned(e) {
			gone = append(gone, e)
		}
	})
	iv.entries.hot.DropAll(gone)
	iv.flights.Lock() // new fetches of keys whose last fetch has failed are permitted at once
	maps.DeleteFunc(iv.flights.suspended, func(key understudy.Key, _ time.Time) bool { return key.Source == k.source.config.Name })
	iv.flights.Unlock()
	for _, p := range k.source.polls() {
		if p.kind == k && iv.entries.hot.Find(p.list.Target.Key) == nil {
			p.list.Forget()
			p.list.WakeUp()
		}
	}
	return found, err
}

// forgetRecord deletes a record from the store. The store then refuses the pages that other processes are fetching. The caller
// holds the lock of the kind.
func (iv *invalidator) forgetRecord(ctx context.Context, store Forgetter, k *kind, id string) (pages, versions int, err error) {
	if iv.env.others != nil {
		generation, err := iv.env.store.Touch(ctx, request.Invalidation{Source: k.source.config.Name, Kind: k.name})
		if err != nil {
			return 0, 0, err
		}
		if k.writes.AdvanceTo(iv.env.now(), generation, 1) {
			iv.entries.dropSource(k.source)
		}
	}
	return store.ForgetRecord(ctx, k.source.config.Name, k.name, id)
}

// DropErased removes from memory everything about some kinds of a source, or about all kinds if none is given. It
// must be called after records were erased from the store. A running fetch is answered to those who wait for it and
// is not stored. Other pages are read from the store again when they are needed. Errors: ErrInvalid for an unknown
// source, and the context's error.
func (m *Mirror) DropErased(ctx context.Context, source string, kinds []string) error {
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

// noteNotStored notes that the store did not accept the page of a flight, because the page shows erased records or is
// too old. The readers still get the page.
func (fl *filler) noteNotStored(f *flight, p *understudy.Page) *understudy.Page {
	if p.NotStored == "" {
		return p
	}
	f.origin.source.counts.notStored.Add(1)
	f.result.detail = storeDetail(p)
	return p
}

// Remove deletes a record, as a 410 response for it would. The deletion becomes a change with a number, and PageSaved is called
// with it. It is for kinds whose spec has no path for a single record. The caller has made sure that no list shows the record.
// It returns nil for an unknown record. Errors: ErrInvalid for an unknown kind, ErrNotStored, and the context's error.
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

// recordDeleted saves that the record on a page was deleted.
func (wr *writer) recordDeleted(ctx context.Context, k *kind, p *understudy.Page) error {
	wr.entries.forgetContents(k, p.ID)
	if err := k.lock(ctx); err != nil {
		return err
	}
	defer k.unlock()
	saved, err := wr.save(ctx, k, &understudy.Page{
		Key: understudy.Key{Source: k.source.config.Name}, Kind: p.Kind, Shape: p.Shape, ID: p.ID, Status: http.StatusGone, At: p.At,
		Generation: k.writes.Generation(),
	})
	if err != nil {
		return wrapSaveError(err)
	}
	wr.publishChanges(k, saved)
	wr.entries.dropTouched(k, p.ID)
	return nil
}

// parentAge is how recently a parent record must have been read for its state to decide whether a child has expired.
const parentAge = 10 * time.Second

// isExpired reports whether upstream has dropped a record by itself, now that upstream answers 404 for it. This is so if the
// record is older than the retention in the spec, or if its parent is final. If the parent was not read recently, isExpired
// fetches it, and if that fails, reports true. A record without a time and without a stored parent counts as deleted.
func (fl *filler) isExpired(ctx context.Context, k *kind, rec *understudy.Record) bool {
	sp := k.source.config.Spec.Kind(k.name)
	if sp.Retention.Days > 0 {
		clock := query.UnixIn(sp, sp.Clock, rec.Body)
		if clock == 0 {
			clock = query.UnixIn(sp, sp.Order, rec.Body) // the record was never sent or started, so its other time is used
		}
		if clock != 0 && fl.env.now().Unix()-clock > int64(sp.Retention.Days)*24*60*60 {
			return true
		}
	}
	if !sp.Retention.WithParent {
		return false
	}
	above := k.source.config.Spec.Kind(sp.Field(sp.Parent).Link)
	v, _ := jsonspan.Find(rec.Body, jsonspan.Value{Kind: jsonspan.Object, End: len(rec.Body)}, sp.Parent)
	id := jsonspan.Text(rec.Body, v)
	if v.Kind == jsonspan.Null || id == "" {
		return false
	}
	parent := fl.holdings.knownRecord(ctx, k.source, above, id)
	if parent == nil || parent.Final || above.Retention.WithParent {
		return parent != nil && parent.Final
	}
	if age, sane := fl.env.ages().age(fl.env.now(), parent.Seen); sane && age < parentAge {
		return false
	}
	target, ok := k.source.instanceTarget(above, id)
	if target == nil || !ok {
		return false
	}
	fill := request.Fill{Target: target, Reason: request.ReasonRefresh, RecordsOnly: true}
	if _, _, err := fl.fillOnce(ctx, &fill, k.source, k.source.kinds[above.Name]); err != nil {
		return true // it is not known whether the parent is final; a later request may decide
	}
	parent = fl.holdings.knownRecord(ctx, k.source, above, id)
	return parent != nil && parent.Final
}

// knownRecord returns a record in the shape in which it was last seen. It returns nil if the record is not stored or
// cannot be read.
func (hs *pageFinder) knownRecord(ctx context.Context, s *source, k *spec.Kind, id string) *understudy.Record {
	last, _ := hs.findRecord(ctx, s, k, id)
	return last
}

// findRecord returns a record in the shape in which it was last seen. It returns nil if the record is not stored.
func (hs *pageFinder) findRecord(ctx context.Context, s *source, k *spec.Kind, id string) (last *understudy.Record, err error) {
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

// NoteWriteElsewhere notes that other processes have written to records of a kind, which has a generation since. Without ids
// they may have written to any record. From then on nothing is answered from memory that the writes may have changed, and no
// page is stored whose fetch began before. It waits for no lock that is held during a save. A source or kind that the mirror
// does not have is ignored.
func (m *Mirror) NoteWriteElsewhere(source, kind string, generation int64, ids []string) {
	s := m.env.sources[source]
	if s == nil || s.kinds[kind] == nil || !s.kinds[kind].writes.AdvanceTo(m.env.now(), generation, 0, ids...) {
		return
	}
	if len(ids) == 0 {
		m.entries.dropSource(s)
		return
	}
	m.entries.dropTouched(s.kinds[kind], ids...)
}

// dropSource removes the pages of a source from memory, after another process has written. It is not known which record was
// written, and pages of all kinds may show records of this one.
func (es *entries) dropSource(s *source) {
	for _, of := range s.kinds {
		es.dropGroup(of)
	}
}

// NoteDeletionElsewhere notes that another process has deleted pages or records. Everything is removed from memory, and
// fetches under way are not stored.
func (m *Mirror) NoteDeletionElsewhere() {
	for _, s := range m.env.sources {
		for _, k := range s.kinds {
			k.writes.Purge()
			m.entries.dropGroup(k)
		}
	}
}

// NoteDatabaseBack notes that the database answers again, so that pages are saved again at once and polls go on.
func (m *Mirror) NoteDatabaseBack() { m.writer.saving.noteSuccess(m.env) }

// dropGroup removes the pages of a kind from memory.
func (es *entries) dropGroup(k *kind) {
	k.writes.AddChange()
	var gone []*cache.Entry
	es.hot.WalkGroup(k.pages, func(e *cache.Entry) { gone = append(gone, e) })
	es.hot.DropAll(gone)
}

// NoteChangesElsewhere marks the pages in memory as outdated that show older versions of records which other processes
// have changed. changes are of one source. Changes that this process made itself do no harm.
func (m *Mirror) NoteChangesElsewhere(changes []understudy.Change) {
	byKind := map[*kind][]understudy.Change{}
	for _, c := range changes {
		if s := m.env.sources[c.Source]; s != nil && s.kinds[c.Kind] != nil {
			byKind[s.kinds[c.Kind]] = append(byKind[s.kinds[c.Kind]], c)
		}
	}
	for k, changes := range byKind {
		m.entries.markSuperseded(k, k.name, changes, understudy.Key{})
	}
}
