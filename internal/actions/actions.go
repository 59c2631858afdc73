// Actions: each is begun once, however often its form is sent.
//
//	 form sent   again   (a double click, a reload)
//	      |        |
//	 [flight: one of a name] -- joins, waits
//	      |
//	 the claim: a row that can be inserted once, on the disk
//	      |
//	 the work, which outlives the request
//	      |
//	 the result: in the row, for who asks later

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

// Store keeps which actions were begun; store.DB fills it.
type Store interface {
	// ClaimAction writes that an action is begun at now, unless it was before: then first is
	// false, at is when that was, and before how it ended, nil when that is not known.
	ClaimAction(ctx context.Context, name string, now time.Time) (first bool, at time.Time, before []byte, err error)
	// SettleAction writes how an action ended.
	SettleAction(ctx context.Context, name string, result []byte) error
}

// Mirror passes writes on; mirror.Mirror fills it.
type Mirror interface {
	Write(ctx context.Context, w request.Write) (*request.Response, error)
}

// Operator changes what is held here; app fills it. Errors are for people: ErrInvalid,
// ErrUnavailable.
type Operator interface {
	// Sync begins to hold every record of a kind, and to keep that up.
	Sync(ctx context.Context, source, kind string) error
	// Purge forgets a record, so that its next reader asks upstream.
	Purge(ctx context.Context, source, kind, id string) error
	// Belongs is how many records of each kind an erasure would take: of a number, or of
	// KIND/ID and what lies under it. own: it is one of the account's own numbers.
	Belongs(ctx context.Context, source, what string) (kinds map[string]int, own bool, err error)
	// Erase lists them for erasing, with those of an own number when own is set. receipt is
	// 0 when there are none.
	Erase(ctx context.Context, source, what string, own bool) (receipt int64, err error)
}

// Options are what a Runner is made of.
type Options struct {
	Store    Store
	Mirror   Mirror
	Operator Operator // nil: what is held here is not changed
	// Time bounds one action; 0: 45 s. Whether one that ends by it was done is not known.
	Time   time.Duration
	Logger *slog.Logger     // nil: discard
	Now    func() time.Time // nil: time.Now
}

// How many actions run at once, and of one person.
const (
	mostActions = 64
	mostOwn     = 16
)

// grace is how long after its time an action may still write its result.
const grace = 15 * time.Second

// Runner does actions. It is safe for concurrent use. Close ends it.
type Runner struct {
	Options Options
	ctx     context.Context
	cancel  context.CancelFunc
	places  *limiter.Limiter   // by the person's name
	flights singleflight.Group // of actions under way, by name
	mu      sync.Mutex         // held to end ctx, and to add to work before that
	work    sync.WaitGroup
}

// New makes a Runner.
func New(o Options) *Runner {
	o.Time = cmp.Or(o.Time, 45*time.Second)
	understudy.SetDefaults(&o.Logger, &o.Now)
	r := &Runner{Options: o, places: limiter.New(mostActions, mostOwn)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Close ends the actions under way and waits for them. What was sent and not answered has
// an unknown outcome.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.work.Wait()
	return nil
}

// State is how an action ended.
type State string

// The ends of an action.
const (
	Done    State = "done"
	Refused State = "refused" // by upstream: nothing was done
	NotSent State = "not sent"
	Unknown State = "unknown" // it was sent, and its answer never came
)

// Result is how an action ended. It holds no text of a record.
type Result struct {
	State  State  `json:"state"`
	Status int    `json:"status,omitempty"` // of upstream's refusal
	Code   string `json:"code,omitempty"`   // upstream's, of its refusal
	ID     string `json:"id,omitempty"`     // of the record that was made
	Why    string `json:"why,omitempty"`    // a sentence of ours: why nothing was sent
	// Words are upstream's, of its refusal. They are not kept: they may quote a record.
	Words string `json:"-"`
}

// Errors of Once, with which nothing was begun but for ErrUnderWay.
var (
	// ErrUnderWay: it is still being done; the same call says later how it ended.
	ErrUnderWay = errors.New("actions: it is still being done")
	// ErrBusy: too many are under way.
	ErrBusy = fmt.Errorf("actions: %w: too many are under way; try again in a moment", understudy.ErrUnavailable)
)

// Once does work under a name, of a person, unless that was begun before, at any time
// within a day and by any process: then it says how that ended. The work gets a
// context of its own and goes on when ctx ends. Errors: ErrUnderWay, ErrBusy, ErrNotStored,
// ErrClosed.
func (r *Runner) Once(ctx context.Context, person, name string, work func(context.Context) Result) (Result, error) {
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
		leave, err := r.places.Take(person)
		if err != nil {
			return Result{}, ErrBusy
		}
		defer leave()
		return r.fly(context.WithoutCancel(ctx), name, work)
	})
	select {
	case end := <-flight:
		return end.Val.(Result), end.Err
	case <-ctx.Done():
		return Result{}, ErrUnderWay
	}
}

// fly claims the name and does the work, or reads how it ended.
func (r *Runner) fly(ctx context.Context, name string, work func(context.Context) Result) (result Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Options.Time)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	first, at, before, err := r.Options.Store.ClaimAction(ctx, name, r.Options.Now())
	switch {
	case err != nil:
		return result, err
	case !first:
		return r.ended(at, before)
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

// ended is the result of an action that was begun before. One without a result was begun
// by another process, or its process has ended.
func (r *Runner) ended(at time.Time, before []byte) (result Result, err error) {
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

// settle writes a result. When it cannot, the outcome reads as unknown later.
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
