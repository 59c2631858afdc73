// The Twilio API: its simulated world, its journal and its control paths.
package slowapi

import (
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/kinds"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// twilio answers requests to Twilio's API from one simulated world.
type twilio struct {
	world      *world.World
	journal    *world.Journal
	quirks     world.Quirks
	requested  requestedMedia
	cdn        *cdn
	routes     table.Routes
	isToken    func(token string) bool
	clockMoved chan struct{} // receives a value when the clock of the simulated world has been advanced
	now        func() time.Time
	log        *slog.Logger
}

// newTwilio generates the simulated world and applies the changes in its journal.
func newTwilio(o Options, isToken func(token string) bool) (*twilio, error) {
	quirks, err := world.ReadQuirks(o.Quirks)
	if err != nil {
		return nil, err
	}
	if !format.IsSID(o.Account, "AC") {
		return nil, fmt.Errorf("slowapi: account %q is not AC and 32 hexadecimal digits", o.Account)
	}
	t := &twilio{
		world: world.New(&world.World{
			Seed: o.Seed, Records: int64(o.Records), Epoch: o.Epoch, Account: o.Account, Token: o.Token, ClockRuns: o.Arrivals > 0,
			ParticipantsKept: slices.Contains(o.Quirks, world.ParticipantsKept), RealTime: o.Now, Accounts: kinds.Accounts, Kinds: kinds.All,
			Shapes: kinds.Shapes(),
		}),
		quirks: quirks, cdn: newCDN(), isToken: isToken, clockMoved: make(chan struct{}, 1), now: o.Now, log: o.Logger,
	}
	t.routes = t.paths()
	t.journal, err = world.OpenJournal(o.Journal, t.world, o.Logger)
	return t, err
}

// answer answers a request. The credentials of the main account are also valid for its subaccounts.
func (t *twilio) answer(r *http.Request, body []byte, unread int, here string) format.Answer {
	user, password, _ := r.BasicAuth()
	if known := t.isToken(password); subtle.ConstantTimeCompare([]byte(user), []byte(t.world.Account)) == 0 || !known {
		refused := format.RefusalFor(http.StatusUnauthorized)
		refused.Header = map[string]string{"WWW-Authenticate": `Basic realm="Twilio API"`}
		return *refused
	}
	form, err := url.ParseQuery(string(body))
	switch {
	case unread == http.StatusRequestEntityTooLarge:
		return *format.Refuse(unread, 20413, "The request body is longer than "+strconv.Itoa(maxForm)+" bytes")
	case unread != 0:
		return *format.Refuse(unread, 20001, "The request body could not be read")
	case err != nil:
		return *format.NewInvalid("The request body is not a form")
	}
	q := t.routes.Request(r, body, here)
	if q == nil {
		return *format.NewNotFound(r.URL.EscapedPath())
	}
	q.Form = form
	return q.Route.Handlers[anyMethod](q)
}

// The limits of one POST /-/advance.
const (
	maxAdvance = 100_000          // the maximum number of new records of each kind
	maxSeconds = 10 * 366 * 86400 // the maximum number of seconds by which the clock can be advanced, ten years
)

// advanceAnswer is the response to POST /-/advance.
type advanceAnswer struct {
	Clock   time.Time      `json:"clock"`
	Moved   int            `json:"moved"`
	Created map[string]int `json:"created"`
}

// advance handles POST /-/advance. It advances the clock, moves each record that is not in a final status to its next
// status, and then creates records.
func (t *twilio) advance(raw []byte) (any, error) {
	var in struct {
		Calls       int   `json:"calls"`
		Messages    int   `json:"messages"`
		Conferences int   `json:"conferences"`
		Alerts      int   `json:"alerts"`
		Seconds     int64 `json:"seconds"`
	}
	if err := format.DecodeStrict(raw, &in); err != nil {
		return nil, err
	}
	if in.Seconds < 0 || in.Seconds > maxSeconds {
		return nil, fmt.Errorf("seconds must be 0 to %d; the clock never goes back", maxSeconds)
	}
	w := t.world
	created := map[string]int{"calls": in.Calls, "messages": in.Messages, "conferences": in.Conferences, "alerts": in.Alerts}
	for name, n := range created {
		switch {
		case n < 0 || n > maxAdvance:
			return nil, fmt.Errorf("%s must be 0 to %d", name, maxAdvance)
		case n > 0 && (w.KindNamed(name) == nil || !w.KindNamed(name).Arrives):
			return nil, fmt.Errorf("%s are not part of this world; only 0 is possible", name)
		case n == 0:
			delete(created, name)
		}
	}
	w.Writing.Lock()
	defer w.Writing.Unlock()
	at := w.Time().Add(time.Duration(in.Seconds) * time.Second)
	moved, err := t.applyEntry(world.Entry{Op: "advance", At: at, Created: created})
	if err != nil {
		return nil, err
	}
	select {
	case t.clockMoved <- struct{}{}:
	default:
	}
	return advanceAnswer{Clock: at, Moved: moved, Created: created}, nil
}

// maxEdits is the maximum number of edits in one POST /-/edit.
const maxEdits = 10_000

// editAnswer is the response to POST /-/edit.
type editAnswer struct {
	Clock   time.Time `json:"clock"`
	Changed []string  `json:"changed"` // the SIDs of the changed records, in the order of the edits
}

// applyEdits handles POST /-/edit. It applies the edits in order, until one is not valid. The error says which edit
// that was. The edits before it stay applied.
func (t *twilio) applyEdits(raw []byte) (any, error) {
	var in struct {
		Kind    string       `json:"kind"`
		Account int          `json:"account"`
		Records []world.Edit `json:"records"`
	}
	if err := format.DecodeStrict(raw, &in); err != nil {
		return nil, err
	}
	if len(in.Records) > maxEdits {
		return nil, fmt.Errorf("at most %d records at once", maxEdits)
	}
	w := t.world
	if w.KindNamed(in.Kind) == nil {
		return nil, fmt.Errorf("there is no kind %q", in.Kind)
	}
	w.Writing.Lock()
	defer w.Writing.Unlock()
	out := editAnswer{Changed: make([]string, 0, len(in.Records))}
	for n := range in.Records {
		e, sid, err := w.NewEditEntry(in.Kind, in.Account, &in.Records[n])
		if err == nil {
			_, err = t.applyEntry(e)
		}
		if err != nil {
			return nil, fmt.Errorf("record %d of %d (those before it are changed): %w", n, len(in.Records), err)
		}
		out.Changed = append(out.Changed, sid)
	}
	out.Clock = w.Time()
	return out, nil
}
