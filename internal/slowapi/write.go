// Writes: creating, updating and deleting records.
package slowapi

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// create makes a record from a form and answers 201 with it.
func (s *Server) create(_ *http.Request, t target, form url.Values) (format.Answer, error) {
	w := s.world
	w.Writing.Lock()
	defer w.Writing.Unlock()
	w.Mu.RLock()
	fields, refused := t.seq.Kind.Create(w, t.seq, form)
	w.Mu.RUnlock()
	if refused != nil {
		return refused.Answer(), nil
	}
	maps.Copy(fields, t.route.preset)
	_, err := s.commit(world.Entry{Op: "create", Kind: t.seq.Kind.Name, Account: t.seq.Account, Fields: fields})
	if err != nil {
		return s.unwritten(err), nil
	}
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	fresh := t.seq.Kind.Fresh
	status, shape := cmp.Or(fresh.Status, http.StatusCreated), cmp.Or(fresh.Shape, t.route.shown())
	return format.Answer{Status: status, Body: w.Show(nil, t.seq, t.seq.Count()-1, shape, t.here)}, nil
}

// update changes a record and answers 200 with it.
func (s *Server) update(r *http.Request, t target, form url.Values) (format.Answer, error) {
	w := s.world
	w.Writing.Lock()
	defer w.Writing.Unlock()
	w.Mu.RLock()
	if !t.seq.Exists(t.index) {
		w.Mu.RUnlock()
		return format.NotFound(t.path).Answer(), nil
	}
	fields, cut, refused := t.seq.Kind.Update(w, t.seq, t.index, form)
	if refused == nil && s.quirks.On(world.UnfinishedRefused) && len(cut) == 0 {
		refused = refuseUnfinished(t)
	}
	w.Mu.RUnlock()
	if refused != nil {
		return refused.Answer(), nil
	}
	_, err := s.commit(world.Entry{Op: "update", Kind: t.seq.Kind.Name, Account: t.seq.Account, Index: t.index, Fields: fields, Cut: cut})
	if err != nil {
		return s.unwritten(err), nil
	}
	return s.instance(r, t, form)
}

// remove deletes a record and answers 204.
func (s *Server) remove(_ *http.Request, t target, _ url.Values) (format.Answer, error) {
	w := s.world
	w.Writing.Lock()
	defer w.Writing.Unlock()
	w.Mu.RLock()
	there := t.seq.Exists(t.index)
	var refused *format.Refusal
	if there && s.quirks.On(world.UnfinishedRefused) {
		refused = refuseUnfinished(t)
	}
	if there && refused == nil && t.seq.Kind.Keeps != nil {
		refused = t.seq.Kind.Keeps(w, t.seq, t.index)
	}
	w.Mu.RUnlock()
	if !there {
		return format.NotFound(t.path).Answer(), nil
	}
	if refused != nil {
		return refused.Answer(), nil
	}
	_, err := s.commit(world.Entry{Op: "delete", Kind: t.seq.Kind.Name, Account: t.seq.Account, Index: t.index})
	if err != nil {
		return s.unwritten(err), nil
	}
	return format.Answer{Status: http.StatusNoContent}, nil
}

// refuseUnfinished refuses to touch a message that is still on its way, or to
// delete a call that is; a quirk, since it is in the way of most tests.
func refuseUnfinished(t target) *format.Refusal {
	k := t.seq.Kind
	if k.Life == nil {
		return nil
	}
	if p := world.ProgressOf(t.seq, t.index, k.Life(t.seq, t.index)); p.Status() == p.Plan[p.Final()] {
		return nil
	}
	return format.Refuse(http.StatusConflict, 20009, "Resource not complete")
}

// commit keeps an entry in the journal and then makes it true. The caller holds
// w.writing.
func (s *Server) commit(e world.Entry) (moved int, err error) {
	w := s.world
	w.Mu.RLock()
	if now := w.Now(); e.At.Before(now) {
		e.At = now
	}
	e.Wall = w.Real()
	err = w.Check(e)
	w.Mu.RUnlock()
	if err != nil {
		return 0, err
	}
	if err := s.journal.Append(e); err != nil {
		return 0, err
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.Apply(e)
}

// unwritten answers a write that could not be kept.
func (s *Server) unwritten(err error) format.Answer {
	s.log.Error("slowapi: write refused", "err", err)
	if errors.Is(err, world.ErrFull) {
		return format.Invalid("This world has no room for more records of this kind").Answer()
	}
	return format.RefusalFor(http.StatusInternalServerError).Answer()
}

// dequeue takes a member out of its queue: it sends the call on to other
// instructions, which no record shows, and answers with the member as it was.
func (s *Server) dequeue(r *http.Request, t target, form url.Values) (format.Answer, error) {
	was, err := s.instance(r, t, form)
	if err != nil || was.Status != http.StatusOK {
		return was, err
	}
	if form.Get("Url") == "" {
		return format.Invalid("Missing required parameter Url in the post body").Answer(), nil
	}
	if gone, err := s.remove(r, t, form); err != nil || gone.Status != http.StatusNoContent {
		return gone, err
	}
	return was, nil
}
