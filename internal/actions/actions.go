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

// Package actions runs the actions that people request, each only once.
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

	"understudy/kit/lockwatch"
)

// Store remembers which actions have begun; store.DB implements it.
type Store interface {
	// ClaimAction records that an action begins at the time now, unless it has begun before. If it has begun before,
	// first is false, at is the time when it began, and before is its result, or nil if the result is unknown.
	ClaimAction(ctx context.Context, name string, now time.Time) (first bool, at time.Time, before []byte, err error)
	// SettleAction records the result of an action.
	SettleAction(ctx context.Context, name string, result []byte) error
}

// Mirror passes writes on to the upstream; mirror.Mirror implements it.
type Mirror interface {
	Write(ctx context.Context, w request.Write) (*request.Response, error)
}

// Operator changes data that is stored here; package app implements it. Its errors are for people: ErrInvalid and
// ErrUnavailable.
type Operator interface {
	// Sync begins to store every record of a kind and keeps the kind complete.
	Sync(ctx context.Context, source, kind string) error
	// Purge removes a record from the store, so that the next read fetches it from upstream.
	Purge(ctx context.Context, source, kind, id string) error
	// CountErasable returns how many records of each kind an erasure would remove. what is a phone number, or
	// KIND/ID for a record and the records under it. own is true if the number belongs to the account itself.
	CountErasable(ctx context.Context, source, what string) (kinds map[string]int, own bool, err error)
	// Erase schedules the records that CountErasable counts for erasure. It includes the records of an own number
	// only if own is true. receipt is 0 if there are no records.
	Erase(ctx context.Context, source, what string, own bool) (receipt int64, err error)
}

// Options are the options of a Runner.
type Options struct {
	Store    Store
	Mirror   Mirror
	Operator Operator // changes stored data; nil if nothing stored here can be changed
	// Time is the maximum duration of an action; 0 means 45 s. If an action reaches it, its outcome is unknown.
	Time   time.Duration
	Logger *slog.Logger     // receives log messages; nil means no log
	Now    func() time.Time // the clock; nil means time.Now
}

// The maximum number of concurrent actions, in total and for one person.
const (
	maxActions   = 64
	maxPerPerson = 16
)

// grace is how long an action may still store its result after its time limit.
const grace = 15 * time.Second

// Runner runs actions. It is safe for concurrent use. Close ends it.
type Runner struct {
	Options Options
	ctx     context.Context
	cancel  context.CancelFunc
	slots   *limiter.Limiter   // limits the running actions of each person
	flights singleflight.Group // the actions in progress, by name
	mu      lockwatch.Mutex    // held while ctx is ended, and while work is added before ctx has ended
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

// The states in which an action can end.
const (
	Done    State = "done"
	Refused State = "refused" // the upstream refused the action, so nothing was changed
	NotSent State = "not sent"
	Unknown State = "unknown" // the action was sent, but no response was received
)

// Result is the result of an action. It contains no text of a record.
type Result struct {
	State  State  `json:"state"`
	Status int    `json:"status,omitempty"` // the status of the upstream's refusal
	Code   string `json:"code,omitempty"`   // the error code in the upstream's refusal
	ID     string `json:"id,omitempty"`     // the id of the created record
	Why    string `json:"why,omitempty"`    // a sentence for people which says why nothing was sent
	// Words is the text of the upstream's refusal. It is not stored, because it may quote a record.
	Words string `json:"-"`
}

// Errors of RunOnce. Unless the error is ErrUnderWay, the action has not begun.
var (
	// ErrUnderWay means that the action is still running. The same call later returns its result.
	ErrUnderWay = errors.New("actions: it is still being done")
	// ErrBusy means that too many actions are running.
	ErrBusy = fmt.Errorf("actions: %w: too many are under way; try again in a moment", understudy.ErrUnavailable)
)

// RunOnce runs work under a name that a person's form contains. If work under this name has begun before, within a
// day and in any process, RunOnce returns the result of that work instead. The work gets its own context and
// continues when ctx ends. Errors: ErrUnderWay, ErrBusy, ErrNotStored, ErrClosed.
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

// readResult returns the result of an action that has begun before. If it has no result, another process is running
// it, or that process has ended.
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

// settle stores the result of an action. If storing fails, the outcome later counts as unknown.
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
