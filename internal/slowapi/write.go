// Writes: creating, updating and deleting records.
package slowapi

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"understudy/internal/slowapi/format"
)

// create makes a record from a form and answers 201 with it.
func (s *Server) create(t target, form url.Values) (format.Answer, error) {
	w := s.world
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.RLock()
	fields, refused := t.seq.kind.create(w, t.seq, form)
	w.mu.RUnlock()
	if refused != nil {
		return refused.Answer(), nil
	}
	maps.Copy(fields, t.route.preset)
	_, err := s.commit(entry{Op: "create", Kind: t.seq.kind.name, Account: t.seq.account, Fields: fields})
	if err != nil {
		return s.unwritten(err), nil
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	one := t.seq.kind.blank()
	one.Load(w, t.seq, t.seq.count()-1)
	t.dress(one)
	if m, ok := one.(maker); ok {
		m.Made()
	}
	status := http.StatusCreated
	if t.seq.kind.made != 0 {
		status = t.seq.kind.made
	}
	return format.Answer{Status: status, Body: one.Append(nil, w)}, nil
}

// update changes a record and answers 200 with it.
func (s *Server) update(t target, form url.Values) (format.Answer, error) {
	w := s.world
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.RLock()
	if !t.seq.exists(t.index) {
		w.mu.RUnlock()
		return format.NotFound(t.path).Answer(), nil
	}
	fields, cut, refused := t.seq.kind.update(w, t.seq, t.index, form)
	if refused == nil && s.quirks.on(unfinishedRefused) && len(cut) == 0 {
		refused = refuseUnfinished(t)
	}
	w.mu.RUnlock()
	if refused != nil {
		return refused.Answer(), nil
	}
	_, err := s.commit(entry{Op: "update", Kind: t.seq.kind.name, Account: t.seq.account, Index: t.index, Fields: fields, Cut: cut})
	if err != nil {
		return s.unwritten(err), nil
	}
	return s.instance(t), nil
}

// remove deletes a record and answers 204.
func (s *Server) remove(t target) (format.Answer, error) {
	w := s.world
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.RLock()
	there := t.seq.exists(t.index)
	var refused *format.Refusal
	if there && s.quirks.on(unfinishedRefused) {
		refused = refuseUnfinished(t)
	}
	if there && refused == nil && t.seq.kind.keeps != nil {
		refused = t.seq.kind.keeps(w, t.seq, t.index)
	}
	w.mu.RUnlock()
	if !there {
		return format.NotFound(t.path).Answer(), nil
	}
	if refused != nil {
		return refused.Answer(), nil
	}
	_, err := s.commit(entry{Op: "delete", Kind: t.seq.kind.name, Account: t.seq.account, Index: t.index})
	if err != nil {
		return s.unwritten(err), nil
	}
	return format.Answer{Status: http.StatusNoContent}, nil
}

// refuseUnfinished refuses to touch a message that is still on its way, or to
// delete a call that is; a quirk, since it is in the way of most tests.
func refuseUnfinished(t target) *format.Refusal {
	k := t.seq.kind
	if k.life == nil {
		return nil
	}
	if p := progressOf(t.seq, t.index, k.life(t.seq, t.index)); p.status() == p.plan[p.final()] {
		return nil
	}
	return format.Refuse(http.StatusConflict, 20009, "Resource not complete")
}

// commit keeps an entry in the journal and then makes it true. The caller holds
// w.writing.
func (s *Server) commit(e entry) (moved int, err error) {
	w := s.world
	w.mu.RLock()
	if now := w.now(); e.At.Before(now) {
		e.At = now
	}
	e.Wall = w.real()
	err = w.check(e)
	w.mu.RUnlock()
	if err != nil {
		return 0, err
	}
	if err := s.journal.append(e); err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.apply(e)
}

// unwritten answers a write that could not be kept.
func (s *Server) unwritten(err error) format.Answer {
	s.log.Error("slowapi: write refused", "err", err)
	if errors.Is(err, errFull) {
		return format.Invalid("This world has no room for more records of this kind").Answer()
	}
	return format.RefusalFor(http.StatusInternalServerError).Answer()
}

// member shows a member, or takes it out of its queue: POST sends the call on
// to other instructions, which no record shows, and answers with the member as
// it was.
func (s *Server) member(r *http.Request, t target, form url.Values) (format.Answer, error) {
	was := s.instance(t)
	if r.Method != http.MethodPost || was.Status != http.StatusOK {
		return was, nil
	}
	if form.Get("Url") == "" {
		return format.Invalid("Missing required parameter Url in the post body").Answer(), nil
	}
	if gone, err := s.remove(t); err != nil || gone.Status != http.StatusNoContent {
		return gone, err
	}
	return was, nil
}
