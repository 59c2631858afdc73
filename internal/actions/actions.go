// Actions: each action runs once, however often its form is sent.
//
//	form sent   again   (a double click, a reload)
//	     |        |
//	[flight: one for each name] -- joins, waits
//	     |
//	the claim: a row that can be inserted only once, on the disk
//	     |
//	the work, which outlives the request
//	     |
//	the result: in the row, for later requests

// Package actions does what people ask for, once.
package actions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"understudy"
	"understudy/kit/limiter"
	"understudy/request"
)

// Store remembers which actions were begun; store.DB implements it.
type Store interface {
	// ClaimAction records that an action is begun at now, unless it was begun before. Then first is false, at
	// is the time of the earlier begin, and before is its result, or nil if it is unknown.
	ClaimAction(ctx context.Context, name string, now time.Time) (first bool, at time.Time, before []byte, err error)
	// SettleAction records the result of an action.
	SettleAction(ctx context.Context, name string, result []byte) error
}

// Mirror passes writes on to the upstream; mirror.Mirror implements it.
type Mirror interface {
	Write(ctx context.Context, w request.Write) (*request.Response, error)
}

// Operator changes what is stored here; package app implements it. Its errors are for people: ErrInvalid and
// ErrUnavailable.
type Operator interface {
	// Sync begins to store every record of a kind and keeps the kind complete.
	Sync(ctx context.Context, source, kind string) error
	// Purge removes a record from the store, so that its next reader asks the upstream.
	Purge(ctx context.Context, source, kind, id string) error
	// CountErasable returns how many records of each kind an erasure would remove: those of a number, or
	// KIND/ID and the records under it. own says that the number belongs to the account itself.
	CountErasable(ctx context.Context, source, what string) (kinds map[string]int, own bool, err error)
	// Erase lists these records for erasing; those of an own number only if own is true. receipt is 0 if there are none.
	Erase(ctx context.Context, source, what string, own bool) (receipt int64, err error)
}

// Options are the options of a Runner.
type Options struct {
	Store    Store
	Mirror   Mirror
	Operator Operator // nil if nothing stored here can be changed
	// Time is the longest time of an action; 0: 45 s. If an action reaches it, its outcome is unknown.
	Time   time.Duration
	Logger *slog.Logger     // nil means no log
	Now    func() time.Time // nil means time.Now
}

// The maximum number of concurrent actions, in total and for one person.
const (
	maxActions   = 64
	maxPerPerson = 16
)

// grace is how long after its time an action may still store its result.
const grace = 15 * time.Second

// Runner runs actions. It is safe for concurrent use. Close ends it.
type Runner struct {
	Options Options
	ctx     context.Context
	cancel  context.CancelFunc
	slots   *limiter.Limiter   // running actions by the person's name
	flights singleflight.Group // actions in progress, by name
	mu      sync.Mutex         // held to end ctx, and to add to work before ctx has ended
	work    sync.WaitGroup
}

// New returns a Runner.
func New(o Options) *Runner {
	o.Time = cmp.Or(o.Time, 45*time.Second)
	understudy.SetDefaults(&o.Logger, &o.Now)
	r := &Runner{Options: o, slots: limiter.New(maxActions, maxPerPerson)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Close ends the actions in progress and waits for them. If an action was sent and has no response yet, its
// outcome is unknown.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.work.Wait()
	return nil
}

// State is how an action ended.
type State string

// The final states of an action.
const (
	Done    State = "done"
	Refused State = "refused" // refused by the upstream: nothing was changed
	NotSent State = "not sent"
	Unknown State = "unknown" // sent, but no response was received
)

// Result is the result of an action. It contains no text of a record.
type Result struct {
	State  State  `json:"state"`
	Status int    `json:"status,omitempty"` // the status of the upstream's refusal
	Code   string `json:"code,omitempty"`   // the error code in the upstream's refusal
	ID     string `json:"id,omitempty"`     // the id of the created record
	Why    string `json:"why,omitempty"`    // a sentence of this server that says why nothing was sent
	// Words is the upstream's text of a refusal. It is not stored, because it may quote a record.
	Words string `json:"-"`
}

// Errors of RunOnce. Except with ErrUnderWay, nothing was begun.
var (
	// ErrUnderWay means that the action is still running. The same call later returns its result.
	ErrUnderWay = errors.New("actions: it is still being done")
	// ErrBusy means that too many actions are running.
	ErrBusy = fmt.Errorf("actions: %w: too many are under way; try again in a moment", understudy.ErrUnavailable)
)

// RunOnce runs work under a name of a person, unless work of this name was begun before, within a day and in
// any process. In that case it returns the earlier result. The work gets its own context and goes on when ctx
// ends. Errors: ErrUnderWay, ErrBusy, ErrNotStored, ErrClosed.
func (r *Runner) RunOnce(ctx context.Context, person, name string, work func(context.Context) Result) (Result, error) {
	name = person + "\x00" + name
	flight := r.flights.DoChan(name, func() (any, error) {
		r.mu.Lock()
		if r.ctx.Err() != nil {
			r.mu.Unlock()
			return Result{}, fmt.Errorf("actions: %w", understudy.ErrClosed)
		}
		r.work.Add(1)
		r.mu.Unlock()
		defer r.work.Done()
		leave, err := r.slots.Take(person)
		if err != nil {
			return Result{}, ErrBusy
		}
		defer leave()
		return r.claimAndRun(context.WithoutCancel(ctx), name, work)
	})
	select {
	case end := <-flight:
		return end.Val.(Result), end.Err
	case <-ctx.Done():
		return Result{}, ErrUnderWay
	}
}

// claimAndRun claims the name and runs the work, or returns the result of the earlier run.
func (r *Runner) claimAndRun(ctx context.Context, name string, work func(context.Context) Result) (result Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Options.Time)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	first, at, before, err := r.Options.Store.ClaimAction(ctx, name, r.Options.Now())
	switch {
	case err != nil:
		return result, err
	case !first:
		return r.readResult(at, before)
	}
	result = Result{State: Unknown}
	defer func() {
		if p := recover(); p != nil {
			r.Options.Logger.Error("actions: panic", "panic", p)
		}
		r.settle(name, result)
	}()
	result = work(ctx)
	return result, nil
}

// readResult returns the result of an action that was begun before. If it has no result, another process is
// running it, or its process has ended.
func (r *Runner) readResult(at time.Time, before []byte) (result Result, err error) {
	switch {
	case before != nil:
		if err = json.Unmarshal(before, &result); err != nil {
			err = fmt.Errorf("actions: a result: %w", err)
		}
		return result, err
	case r.Options.Now().Sub(at) < r.Options.Time+grace:
		return result, ErrUnderWay
	}
	return Result{State: Unknown}, nil
}

// settle stores a result. If that fails, the outcome later counts as unknown.
func (r *Runner) settle(name string, result Result) {
	text, err := json.Marshal(result)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		err = r.Options.Store.SettleAction(ctx, name, text)
	}
	if err != nil {
		r.Options.Logger.Error("actions: a result is not written; its outcome will read as unknown", "err", err)
	}
}
