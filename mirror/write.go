// Write: a change passed on once, and what it makes invalid.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"understudy"
)

// touchTime bounds telling the store what a write touched. It runs to its end
// even when the caller has gone.
const touchTime = 10 * time.Second

// Write passes a write on, once. Before it returns, nothing the write may have
// touched is answered from the mirror any more and no fetch begun before may
// fill: the lists of its kind in every filter and, for an instance path, the
// record. The body of a 200 or 201 is saved as a version, and the next read of the
// record waits for upstream all the same; a 204 to a DELETE removes the record.
//
// A definite refusal (a 4xx other than 404, 408, 409 and 410) and a write that
// was never sent change nothing upstream and invalidate nothing; everything
// else does, an unknown outcome included.
//
// Errors: those of Upstream.Write, and ErrClosed.
func (m *Mirror) Write(ctx context.Context, w understudy.Write) (*understudy.Answer, error) {
	if m.closed.Load() {
		return nil, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	if w.Target == nil || m.sources[w.Target.Key.Source] == nil {
		return nil, fmt.Errorf("mirror: %w: no such source", understudy.ErrInvalid)
	}
	s := m.sources[w.Target.Key.Source]
	k := s.of(w.Target)
	if k == nil {
		return nil, fmt.Errorf("mirror: %w: kind %s is not of source %s", understudy.ErrInvalid, w.Target.Kind.Name, s.Name)
	}
	s.counts.writes.Add(1)
	p, err := s.Upstream.Write(ctx, w)
	if untouched(p, err) {
		if err != nil {
			return nil, fmt.Errorf("mirror: write %s: %w", w.Target.Key, err)
		}
		return written(p), nil
	}
	a := written(p)
	k.wrote.note(m.now(), w.Target.ID)
	generation := k.generation.Add(1) // first: from here on no fetch begun before may fill
	if k.name != "" {
		a.Stored, a.Detail, a.Store = m.invalidate(ctx, k, w, p, generation)
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: write %s: %w", w.Target.Key, err)
	}
	return a, nil
}

func written(p *understudy.Page) *understudy.Answer {
	a := &understudy.Answer{Page: p, How: understudy.Cold, Fwd: "method"}
	if p != nil {
		a.Upstream = p.Took
	}
	return a
}

// untouched reports whether a write surely changed nothing.
func untouched(p *understudy.Page, err error) bool {
	if err != nil {
		var nothingSent *understudy.UpstreamError
		return errors.As(err, &nothingSent) && !errors.Is(err, understudy.ErrUnknownOutcome)
	}
	switch p.Status {
	case 404, 408, 409, 410:
		return false
	}
	return p.Status >= 400 && p.Status < 500
}

// invalidate tells hot tier and store, then saves what the answer shows.
func (m *Mirror) invalidate(ctx context.Context, k *kind, w understudy.Write, p *understudy.Page, generation int64) (stored bool, detail string, took time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), touchTime)
	defer cancel()
	begin := m.now()
	m.touched(k, w.Target.ID)
	m.wrote(k, w)
	for _, p := range k.source.polls() {
		if p.kind == k {
			p.nudge()
		}
	}
	stored, err := m.touch(ctx, k, w, p, generation)
	if err != nil {
		k.source.counts.notStored.Add(1)
		detail = "not stored: " + lastWords(err)
	}
	return stored, detail, m.now().Sub(begin)
}

// touched drops the record's instances from the hot tier. Its lists are
// outdated by their generation.
func (m *Mirror) touched(k *kind, id string) {
	k.changes.Add(1)
	if id == "" {
		return
	}
	ident := m.hot.ident(id)
	var gone []*entry
	m.hot.each(k, func(e *entry) {
		if e.ident == ident {
			gone = append(gone, e)
		}
	})
	m.hot.dropAll(gone)
}

// touch tells the store, with the kind locked: first the version the answer
// shows, then that the record and its kind's lists are to be asked for again.
// An answer to a write is not what a read would say (a new record's dates may
// still be missing), so it is a version and no answer. What the store does not
// take in is owed: until then the mirror itself knows that the record is
// invalid.
func (m *Mirror) touch(ctx context.Context, k *kind, w understudy.Write, p *understudy.Page, generation int64) (stored bool, err error) {
	v := version(k, w, p, generation)
	id := w.Target.ID
	if id == "" && v != nil {
		id = v.Rows[0].ID
	}
	if err := k.lock(ctx); err != nil {
		k.owes(id, generation)
		return false, err
	}
	defer k.unlock()
	if v != nil {
		stored, err = m.keep(ctx, k, v)
	}
	k.owes(id, generation)
	if owed := m.repay(ctx, k); owed != nil {
		return stored, m.saving.failed(m, owed)
	}
	m.touched(k, id) // whoever read the version meanwhile
	if err == nil {
		m.saving.works(m)
	}
	return stored, err
}

// keep saves the version a write's answer shows.
func (m *Mirror) keep(ctx context.Context, k *kind, v *understudy.Page) (stored bool, err error) {
	saved, err := m.save(ctx, k, v)
	if errors.Is(err, understudy.ErrOutdated) {
		return false, nil // by a later write
	}
	if err != nil {
		return false, err
	}
	m.supersede(k, v.Shape, saved.Changes, understudy.Key{})
	m.landed(saved.Page, saved.Changes, understudy.Waiting)
	return true, nil
}

// repay tells the store of every write it has not been told of; the caller has
// the kind's lock. Afterwards the store's generation is not below the mirror's,
// or a page kept under the mirror's would look too new after a restart.
func (m *Mirror) repay(ctx context.Context, k *kind) error {
	owed, generation := k.debts()
	for id, of := range owed {
		n, err := m.store.Touch(ctx, understudy.Touch{Source: k.source.Name, Kind: k.name, ID: id})
		if err != nil {
			return err
		}
		k.told(id, of, n)
	}
	for len(owed) > 0 && k.known.Load() < generation {
		n, err := m.store.Touch(ctx, understudy.Touch{Source: k.source.Name, Kind: k.name})
		if err != nil {
			return err
		}
		k.told("", generation, n)
	}
	return nil
}

// version is what a write's answer shows of a record, as a page without a key;
// nil when it shows nothing.
func version(k *kind, w understudy.Write, p *understudy.Page, generation int64) *understudy.Page {
	if p == nil || p.NotStored != "" {
		return nil
	}
	v := *p
	v.Key, v.Next, v.Generation = understudy.Key{Source: k.source.Name}, understudy.Key{}, generation
	switch {
	case p.Status == 204 && w.Method == "DELETE" && w.Target.ID != "":
		v.Kind, v.Shape, v.ID, v.Rows = k.name, w.Target.KeptAs(k.source.User), w.Target.ID, nil
		return &v
	case (p.Status == 200 || p.Status == 201) && len(p.Rows) > 0:
		return &v
	}
	return nil
}
