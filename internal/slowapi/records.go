// Handlers for Twilio's records, which list, show, create, update and delete them.
package slowapi

import (
	"cmp"
	"errors"
	"maps"
	"net/http"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// noAnswer means that the client has closed the connection, so nothing is sent.
var noAnswer = format.Answer{}

// listRecords answers with a page of a list.
func (t *twilio) listRecords(x *world.Request) format.Answer {
	ctx := x.Incoming.Ctx
	x.World.Mu.RLock()
	p, refused := x.ReadPosition()
	if r := x.ReadFilters(); r != nil {
		refused = r
	}
	x.World.Mu.RUnlock()
	if refused != nil {
		return *refused
	}
	some, err := x.CollectPage(ctx, p)
	if err != nil {
		return noAnswer
	}
	if len(some) == 0 {
		return x.List(p, nil, 0, "", "")
	}
	next := ""
	after, err := x.CollectDown(ctx, some[len(some)-1]-1, 0, 1)
	if err != nil {
		return noAnswer
	}
	if len(after) > 0 {
		next = "PA" + x.RecordSID(some[len(some)-1])
	}
	rows := x.AppendRows(make([]byte, 0, 2200*len(some)), some)
	return x.List(p, rows, len(some), next, "PB"+x.RecordSID(some[0]))
}

// showRecord answers with a single record.
func (t *twilio) showRecord(x *world.Request) format.Answer {
	w := x.World
	w.Mu.RLock()
	defer w.Mu.RUnlock()
	if !x.IsVisible(x.Index) {
		return x.NewNotFound()
	}
	return format.Answer{Status: http.StatusOK, Body: w.Show(nil, x.Sequence, x.Index, x.Variant("whole_"), x.Incoming.BaseURL)}
}

// withWriteLock returns a handler that calls do while it holds the lock Writing of the simulated world. No other
// request can then change the world, so do may read it without holding Mu.
func withWriteLock(do handler) handler {
	return func(t *twilio, x *world.Request) format.Answer {
		x.World.Writing.Lock()
		defer x.World.Writing.Unlock()
		return do(t, x)
	}
}

// create creates a record from a form and answers with the record. The status is 201 unless the kind has another.
func (t *twilio) create(x *world.Request) format.Answer {
	fields, refused := x.Sequence.Kind.Writes.Create(x.World, x.Sequence, x.Incoming.Form)
	if refused == nil {
		maps.Copy(fields, x.Preset)
		refused = t.writeEntry(x, world.Entry{Op: "create", Fields: fields})
	}
	if refused != nil {
		return *refused
	}
	row := x.World.Show(nil, x.Sequence, x.Sequence.Count()-1, x.Variant("new_"), x.Incoming.BaseURL)
	return format.Answer{Status: cmp.Or(x.Sequence.Kind.Writes.CreateStatus, http.StatusCreated), Body: row}
}

// update changes a record and answers 200 with the record.
func (t *twilio) update(x *world.Request) format.Answer {
	if !x.Sequence.HasRecord(x.Index) {
		return x.NewNotFound()
	}
	fields, cut, refused := x.Sequence.Kind.Writes.Update(x.World, x.Sequence, x.Index, x.Incoming.Form)
	if refused == nil && len(cut) == 0 {
		refused = t.refuseUnfinished(x)
	}
	if refused == nil {
		refused = t.writeEntry(x, world.Entry{Op: "update", Index: x.Index, Fields: fields, NextStatuses: cut})
	}
	if refused != nil {
		return *refused
	}
	return t.showRecord(x)
}

// remove deletes a record and answers 204.
func (t *twilio) remove(x *world.Request) format.Answer {
	if !x.Sequence.HasRecord(x.Index) {
		return x.NewNotFound()
	}
	refused := t.refuseUnfinished(x)
	if refused == nil && x.Sequence.Kind.Writes.RefuseDelete != nil {
		refused = x.Sequence.Kind.Writes.RefuseDelete(x.World, x.Sequence, x.Index)
	}
	if refused == nil {
		refused = t.writeEntry(x, world.Entry{Op: "delete", Index: x.Index})
	}
	if refused != nil {
		return *refused
	}
	return format.Answer{Status: http.StatusNoContent}
}

// refuseUnfinished returns an error response if a record is not in a final status. It does so only with the quirk
// unfinished-refused, because most tests want to change such records.
func (t *twilio) refuseUnfinished(x *world.Request) *format.Answer {
	if x.Sequence.Kind.Lifecycle == nil || !t.quirks[world.UnfinishedRefused] {
		return nil
	}
	if p := x.Sequence.Progress(x.Index); p.Status() == p.Plan[p.FinalStep()] {
		return nil
	}
	return format.Refuse(http.StatusConflict, 20009, "Resource not complete")
}

// writeEntry applies a change to the record that the request names. If that fails, it returns an error response.
func (t *twilio) writeEntry(x *world.Request, e world.Entry) *format.Answer {
	e.Kind, e.Account = x.Sequence.Kind.Name, x.Sequence.Account
	_, err := t.applyEntry(e)
	if err == nil {
		return nil
	}
	t.log.Error("slowapi: write refused", "err", err)
	if errors.Is(err, world.ErrFull) {
		return format.NewInvalid("This world has no room for more records of this kind")
	}
	return format.RefusalFor(http.StatusInternalServerError)
}

// applyEntry appends a change to the journal and then applies it. moved is the number of records whose status has
// changed. The caller holds Writing.
func (t *twilio) applyEntry(e world.Entry) (moved int, err error) {
	w := t.world
	if now := w.Now(); e.At.Before(now) {
		e.At = now
	}
	e.Wall = w.RealTime()
	do, err := w.Plan(e)
	if err == nil {
		err = t.journal.Append(e)
	}
	if err != nil {
		return 0, err
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return do(), nil
}

// dequeue removes a member from its queue and answers with the member as it was before. At Twilio the waiting call
// would continue at the given Url, which no record shows.
func (t *twilio) dequeue(x *world.Request) format.Answer {
	was := t.showRecord(x)
	if was.Status != http.StatusOK {
		return was
	}
	if x.Incoming.Form.Get("Url") == "" {
		return *format.NewInvalid("Missing required parameter Url in the post body")
	}
	if gone := t.remove(x); gone.Status != http.StatusNoContent {
		return gone
	}
	return was
}
