// Writes: creating, updating and deleting records.
package slowapi

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// create makes a record from a form and answers 201 with it.
func (s *Server) create(t target, form url.Values) (answer, error) {
	w := s.world
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.RLock()
	fields, refused := t.seq.kind.create(w, t.seq, form)
	w.mu.RUnlock()
	if refused != nil {
		return refused.answer(), nil
	}
	maps.Copy(fields, t.route.preset)
	_, err := s.commit(entry{Op: "create", Kind: t.seq.kind.name, Account: t.seq.account, Fields: fields})
	if err != nil {
		return s.unwritten(err), nil
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	one := t.seq.kind.blank()
	one.load(w, t.seq, t.seq.count()-1)
	t.dress(one)
	if m, ok := one.(maker); ok {
		m.made()
	}
	status := http.StatusCreated
	if t.seq.kind.made != 0 {
		status = t.seq.kind.made
	}
	return answer{status: status, body: one.append(nil, w)}, nil
}

// update changes a record and answers 200 with it.
func (s *Server) update(t target, form url.Values) (answer, error) {
	w := s.world
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.RLock()
	if !t.seq.exists(t.index) {
		w.mu.RUnlock()
		return notFound(t.path).answer(), nil
	}
	fields, cut, refused := t.seq.kind.update(w, t.seq, t.index, form)
	if refused == nil && s.quirks.on(unfinishedRefused) && len(cut) == 0 {
		refused = w.refuseUnfinished(t)
	}
	w.mu.RUnlock()
	if refused != nil {
		return refused.answer(), nil
	}
	_, err := s.commit(entry{Op: "update", Kind: t.seq.kind.name, Account: t.seq.account, Index: t.index, Fields: fields, Cut: cut})
	if err != nil {
		return s.unwritten(err), nil
	}
	return s.instance(t), nil
}

// remove deletes a record and answers 204.
func (s *Server) remove(t target) (answer, error) {
	w := s.world
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.RLock()
	there := t.seq.exists(t.index)
	var refused *refusal
	if there && s.quirks.on(unfinishedRefused) {
		refused = w.refuseUnfinished(t)
	}
	if there && refused == nil && t.seq.kind.keeps != nil {
		refused = t.seq.kind.keeps(w, t.seq, t.index)
	}
	w.mu.RUnlock()
	if !there {
		return notFound(t.path).answer(), nil
	}
	if refused != nil {
		return refused.answer(), nil
	}
	_, err := s.commit(entry{Op: "delete", Kind: t.seq.kind.name, Account: t.seq.account, Index: t.index})
	if err != nil {
		return s.unwritten(err), nil
	}
	return answer{status: http.StatusNoContent}, nil
}

// refuseUnfinished refuses to touch a message that is still on its way, or to
// delete a call that is; a quirk, since it is in the way of most tests.
func (w *world) refuseUnfinished(t target) *refusal {
	k := t.seq.kind
	if k.life == nil {
		return nil
	}
	if p := progressOf(t.seq, t.index, k.life(t.seq, t.index)); p.status() == p.plan[p.final()] {
		return nil
	}
	return refuse(http.StatusConflict, 20009, "Resource not complete")
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
func (s *Server) unwritten(err error) answer {
	s.log.Error("slowapi: write refused", "err", err)
	if errors.Is(err, errFull) {
		return invalid("This world has no room for more records of this kind").answer()
	}
	return refusalFor(http.StatusInternalServerError).answer()
}

// createCall reads what POST to Calls asks for.
func createCall(_ *world, _ *sequence, form url.Values) (map[string]string, *refusal) {
	to, from := form.Get("To"), form.Get("From")
	switch {
	case to == "":
		return nil, refuse(http.StatusBadRequest, 21201, "No 'To' number is specified")
	case from == "":
		return nil, refuse(http.StatusBadRequest, 21213, "No 'From' number is specified")
	case !callable(to):
		return nil, refuse(http.StatusBadRequest, 21211, "Invalid 'To' Phone Number: "+to)
	case !callable(from):
		return nil, refuse(http.StatusBadRequest, 21212, "Invalid 'From' Phone Number: "+from)
	}
	return map[string]string{"To": to, "From": from}, nil
}

// callable tells whether one may call it: a number in E.164, or anything else
// that does not pretend to be one (client:, sip:, short codes).
func callable(party string) bool {
	return len(party) <= 256 && (party[0] != '+' || isNumber(party))
}

// updateCall reads what POST to a call asks for: to end it, or to go on with
// other instructions, which no row shows.
func updateCall(_ *world, s *sequence, i int64, form url.Values) (map[string]string, []string, *refusal) {
	p := progressOf(s, i, callLife(s, i))
	begun := p.reached("in-progress") != 0
	over := p.status() == p.plan[p.final()]
	switch status := form.Get("Status"); {
	case status != "" && status != "canceled" && status != "completed":
		return nil, nil, refuse(http.StatusBadRequest, 21218, "Status is not valid: "+status)
	case over:
		return nil, nil, refuse(http.StatusBadRequest, 21220, "Call is not in-progress. Cannot redirect.")
	case status == "canceled" && begun:
		return nil, nil, refuse(http.StatusBadRequest, 21220, "Call is in-progress. Cannot cancel.")
	case status == "canceled":
		return nil, []string{"canceled"}, nil
	case status == "completed":
		return nil, []string{"completed", "completed"}, nil
	}
	return nil, nil, nil
}

// createMessage reads what POST to Messages asks for.
func createMessage(_ *world, _ *sequence, form url.Values) (map[string]string, *refusal) {
	to, from, text, service := form.Get("To"), form.Get("From"), form.Get("Body"), form.Get("MessagingServiceSid")
	switch {
	case to == "":
		return nil, refuse(http.StatusBadRequest, 21604, "A 'To' phone number is required.")
	case !callable(to):
		return nil, refuse(http.StatusBadRequest, 21211, "Invalid 'To' Phone Number: "+to)
	case from != "" && !callable(from):
		return nil, refuse(http.StatusBadRequest, 21212, "Invalid 'From' Phone Number: "+from)
	case len([]rune(text)) > 1600:
		return nil, refuse(http.StatusBadRequest, 21617, "The concatenated message body exceeds the 1600 character limit")
	case service != "" && !isSID(service, "MG"):
		return nil, refuse(http.StatusBadRequest, 21701, "The Messaging Service does not exist: "+service)
	}
	fields := map[string]string{"To": to, "From": from, "Body": strings.ToValidUTF8(text, "\uFFFD")}
	if service != "" {
		fields["MessagingServiceSid"] = service
	}
	if form.Get("ScheduleType") == "fixed" && service != "" {
		fields["ScheduleType"] = "fixed"
	}
	if media := len(form["MediaUrl"]); media > maxMedia {
		return nil, refuse(http.StatusBadRequest, 21623, "Number of media files exceeds allowed limit")
	} else if media > 0 {
		fields["MediaUrl"] = strconv.Itoa(media) // how many, not where
	}
	return fields, nil
}

// updateMessage reads what POST to a message asks for: to empty its body, or
// to call it back while it has not left.
func updateMessage(w *world, s *sequence, i int64, form url.Values) (map[string]string, []string, *refusal) {
	status := form.Get("Status")
	p := progressOf(s, i, messageLife(s, i))
	switch {
	case form.Get("Body") != "":
		return nil, nil, invalid("Body may only be set to an empty string")
	case status != "" && status != "canceled":
		return nil, nil, invalid("Status is not valid: " + status)
	case status != "" && p.status() != "scheduled" && p.status() != "accepted" && p.status() != "queued":
		return nil, nil, refuse(http.StatusConflict, 30409, "Message is not in a cancelable state: "+p.status())
	}
	fields, cut := map[string]string{}, []string(nil)
	if form.Has("Body") {
		var m message
		m.load(w, s, i)
		d := m.rest
		m.failure(&d)
		m.serviceSID(w, &d)
		fields["Segments"], fields["Body"] = strconv.Itoa(m.parts(d)), ""
	}
	if status == "canceled" {
		cut = []string{"canceled"}
	}
	return fields, cut, nil
}
