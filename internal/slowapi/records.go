// Records: pages of them, single ones, and how they are created, changed and deleted.
package slowapi

import (
	"cmp"
	"errors"
	"maps"
	"net/http"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// noAnswer stands for the answer to a client that left.
var noAnswer = format.Answer{}

// page builds a list's answer.
func (t *twilio) page(x *world.Request) format.Answer {
	ctx := x.In.Ctx
	x.W.Mu.RLock()
	found, r := world.NewSearch(x.W, x.S, x.Narrow, x.Filters, x.Quirks, x.Q)
	var p world.Place
	if r == nil {
		p, r = found.ReadPlace(x.Q)
	}
	x.W.Mu.RUnlock()
	if r != nil {
		return *r
	}
	some, err := found.Indexes(ctx, p)
	if err != nil {
		return noAnswer
	}
	if len(some) == 0 {
		return x.List(p, nil, 0, "", "")
	}
	next := ""
	after, err := found.Down(ctx, some[len(some)-1]-1, 0, 1)
	if err != nil {
		return noAnswer
	}
	if len(after) > 0 {
		next = "PA" + found.Sid(some[len(some)-1])
	}
	rows := found.Rows(make([]byte, 0, 2200*len(some)), some, x.Shape, x.In.Here)
	return x.List(p, rows, len(some), next, "PB"+found.Sid(some[0]))
}

// instance shows one record.
func (t *twilio) instance(x *world.Request) format.Answer {
	w := x.W
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	if !x.Shows() {
		return x.NotFound()
	}
	return format.Answer{Status: http.StatusOK, Body: w.Show(nil, x.S, x.Index, x.Shape, x.In.Here)}
}

// create makes a record from a form and answers 201 with it.
func (t *twilio) create(x *world.Request) format.Answer {
	w := x.W
	w.Writing.Lock()
	defer w.Writing.Unlock()
	w.Mu.RLock()
	fields, refused := x.S.Kind.Create(w, x.S, x.In.Form)
	w.Mu.RUnlock()
	if refused != nil {
		return *refused
	}
	maps.Copy(fields, x.Preset)
	_, err := t.commit(world.Entry{Op: "create", Kind: x.S.Kind.Name, Account: x.S.Account, Fields: fields})
	if err != nil {
		return t.unwritten(err)
	}
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	fresh := x.S.Kind.Fresh
	status, shape := cmp.Or(fresh.Status, http.StatusCreated), cmp.Or(fresh.Shape, x.Shape)
	return format.Answer{Status: status, Body: w.Show(nil, x.S, x.S.Count()-1, shape, x.In.Here)}
}

// update changes a record and answers 200 with it.
func (t *twilio) update(x *world.Request) format.Answer {
	w := x.W
	w.Writing.Lock()
	defer w.Writing.Unlock()
	w.Mu.RLock()
	if !x.S.Exists(x.Index) {
		w.Mu.RUnlock()
		return x.NotFound()
	}
	fields, cut, refused := x.S.Kind.Update(w, x.S, x.Index, x.In.Form)
	if refused == nil && t.quirks[world.UnfinishedRefused] && len(cut) == 0 {
		refused = refuseUnfinished(x)
	}
	w.Mu.RUnlock()
	if refused != nil {
		return *refused
	}
	_, err := t.commit(world.Entry{Op: "update", Kind: x.S.Kind.Name, Account: x.S.Account, Index: x.Index, Fields: fields, Cut: cut})
	if err != nil {
		return t.unwritten(err)
	}
	return t.instance(x)
}

// remove deletes a record and answers 204.
func (t *twilio) remove(x *world.Request) format.Answer {
	w := x.W
	w.Writing.Lock()
	defer w.Writing.Unlock()
	w.Mu.RLock()
	there := x.S.Exists(x.Index)
	var refused *format.Answer
	if there && t.quirks[world.UnfinishedRefused] {
		refused = refuseUnfinished(x)
	}
	if there && refused == nil && x.S.Kind.Keeps != nil {
		refused = x.S.Kind.Keeps(w, x.S, x.Index)
	}
	w.Mu.RUnlock()
	if !there {
		return x.NotFound()
	}
	if refused != nil {
		return *refused
	}
	_, err := t.commit(world.Entry{Op: "delete", Kind: x.S.Kind.Name, Account: x.S.Account, Index: x.Index})
	if err != nil {
		return t.unwritten(err)
	}
	return format.Answer{Status: http.StatusNoContent}
}

// refuseUnfinished refuses to touch a message that is still on its way, or to
// delete a call that is; a quirk, since it is in the way of most tests.
func refuseUnfinished(x *world.Request) *format.Answer {
	if x.S.Kind.Life == nil {
		return nil
	}
	if p := x.S.Progress(x.Index); p.Status() == p.Plan[p.Final()] {
		return nil
	}
	return format.Refuse(http.StatusConflict, 20009, "Resource not complete")
}

// commit keeps an entry in the journal and then makes it true. The caller holds
// w.writing.
func (t *twilio) commit(e world.Entry) (moved int, err error) {
	w := t.world
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
	if err := t.journal.Append(e); err != nil {
		return 0, err
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.Apply(e)
}

// unwritten answers a write that could not be kept.
func (t *twilio) unwritten(err error) format.Answer {
	t.log.Error("slowapi: write refused", "err", err)
	if errors.Is(err, world.ErrFull) {
		return *format.Invalid("This world has no room for more records of this kind")
	}
	return *format.RefusalFor(http.StatusInternalServerError)
}

// dequeue takes a member out of its queue: it sends the call on to other
// instructions, which no record shows, and answers with the member as it was.
func (t *twilio) dequeue(x *world.Request) format.Answer {
	was := t.instance(x)
	if was.Status != http.StatusOK {
		return was
	}
	if x.In.Form.Get("Url") == "" {
		return *format.Invalid("Missing required parameter Url in the post body")
	}
	if gone := t.remove(x); gone.Status != http.StatusNoContent {
		return gone
	}
	return was
}
