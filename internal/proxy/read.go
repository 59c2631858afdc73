// Read: GET and HEAD.

package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/kit/header"
	"understudy/kit/lru"
	"understudy/request"
	"understudy/spec"
)

// finder is the writer of a request of which the express lane has found the answer (Ready).
type finder interface{ StoredAnswer() any }

// get asks the gate, then the mirror, and answers.
func (v *exchange) get() error {
	if v.target.Media != nil {
		if _, said := v.target.OwnParams.Get(understudy.OwnAsOf); said {
			return fmt.Errorf("proxy: %s: %w: contents have no history", understudy.OwnAsOf, understudy.ErrInvalid)
		}
		return v.medium()
	}
	v.sight = v.proxy.o.Gate.Visibility(v.caller, v.target)
	if err := v.sight.CheckRead(v.target); err != nil {
		return unlessUnknown(v.target, err)
	}
	ask := request.Request{Target: v.target, AgeLimit: v.caller.Grant.MaxStale, Flow: v.caller.Flow, ResponseBuffer: &v.response}
	if w, ok := v.w.(finder); ok {
		ask.ReadyResult = w.StoredAnswer()
	}
	v.freshen(&ask)
	if err := v.asOf(&ask); err != nil {
		return err
	}
	if err := v.localQuery(&ask); err != nil {
		return err
	}
	ctx := v.r.Context()
	if wait, ok := header.Wait(v.r.Header["Prefer"]); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	if ask.ReadyResult == nil {
		leave, err := v.proxy.waitForPlace(ctx, v.target, v.caller.Name)
		if err != nil {
			return err
		}
		defer leave()
		v.leave = leave
	}
	a, err := v.sight.RequestPage(ctx, ask, v.proxy.o.Mirror.Answer)
	if err != nil {
		return err
	}
	view, err := v.sight.MakeView(a.Page)
	if err != nil {
		return err
	}
	if err := v.audit(readAction(v.target), a.Page, ""); err != nil {
		return err
	}
	v.answer(a, view)
	return nil
}

// listWait is how long a list waits until it may be made.
const listWait = 8 * time.Second

// errManyLists refuses a list when too many wait before it.
var errManyLists = errors.New("too many lists are under way; ask for this one again in a moment")

// waitForPlace waits until a list may be fetched, read and formed, where memory is bounded. One that is in memory
// does not wait, nor does a record. Error: ErrUnavailable or the context's.
func (p *Proxy) waitForPlace(ctx context.Context, t *spec.Target, credential string) (leave func(), err error) {
	if p.o.Lists == nil || t.List == nil {
		return func() {}, nil
	}
	if p.o.Ready != nil {
		if _, ok := p.o.Ready(t); ok {
			return func() {}, nil
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, listWait, fmt.Errorf("%w: %w", understudy.ErrUnavailable, errManyLists))
	defer cancel()
	return p.o.Lists.Wait(ctx, credential)
}

// readAction is what a read does.
func readAction(t *spec.Target) understudy.Action {
	_, searched := t.OwnParams.Get(understudy.OwnText)
	switch {
	case t.Instance != nil:
		return understudy.ActionRecord
	case searched, t.List != nil && slices.ContainsFunc(t.Query, func(p understudy.Param) bool { return t.List.Filter(p.Name) != nil }):
		return understudy.ActionSearch
	}
	return understudy.ActionList
}

// audit lists what the caller is about to be answered, or to have done; p is the page,
// nil for none.
func (v *exchange) audit(a understudy.Action, p *understudy.Page, what string, values ...string) error {
	if v.proxy.o.Audit == nil {
		return nil
	}
	e := understudy.AuditEntry{Caller: v.caller, Action: a, What: what, Source: v.proxy.o.Source.Name, Values: values}
	if v.target.Kind != nil {
		e.Kind = v.target.Kind.Name
	}
	if p != nil {
		e.Rows = len(p.Rows)
	}
	if v.proxy.o.Audit.MustList(v.caller, a) {
		e.Request = v.id()
		if v.target.ID != "" {
			e.IDs = []string{v.target.ID}
		} else if p != nil {
			for i := range p.Rows {
				e.IDs = append(e.IDs, p.Rows[i].ID)
			}
		}
		for _, q := range v.target.Query {
			if v.target.List != nil && v.target.List.Filter(q.Name) != nil {
				e.Values = append(e.Values, q.Value)
			}
		}
		if text, ok := v.target.OwnParams.Get(understudy.OwnText); ok {
			e.Values = append(e.Values, text)
		}
	}
	return v.proxy.o.Audit.RecordAction(v.r.Context(), e)
}

// auditMade lists the record that a write has made, when writes are listed.
func (v *exchange) auditMade(p *understudy.Page) {
	id := p.CreatedID()
	if id == "" || v.proxy.o.Audit == nil {
		return
	}
	e := understudy.AuditEntry{Caller: v.caller, Action: understudy.ActionSend, What: understudy.WhatCreated, Source: v.proxy.o.Source.Name,
		IDs: []string{id}, Status: p.Status, Request: v.id()}
	if v.target.Kind != nil {
		e.Kind = v.target.Kind.Name
	}
	_ = v.proxy.o.Audit.RecordAction(v.r.Context(), e) // it was done
}

// asOf takes over the time of understudy.as_of.
func (v *exchange) asOf(ask *request.Request) (err error) {
	text, said := v.target.OwnParams.Get(understudy.OwnAsOf)
	if !said {
		return nil
	}
	if len(v.target.OwnParams.Remove(func(p understudy.Param) bool { return p.Name != understudy.OwnAsOf })) > 1 {
		return ownError(understudy.OwnAsOf, "it is given twice")
	}
	if ask.AsOf, err = spec.ParseInstant(text); err != nil {
		return fmt.Errorf("proxy: %s: %w", understudy.OwnAsOf, err)
	}
	return nil
}

// freshen takes over the request's directives on the answer's age. Directives that
// cause a request upstream at once are limited for each credential and key. Past that
// limit the request joins a fetch that is under way, or the directive does not count.
func (v *exchange) freshen(ask *request.Request) {
	lines, old := v.r.Header["Cache-Control"], v.r.Header["Pragma"]
	var w directives
	switch {
	case len(lines) > 0:
		w = cacheControl(lines)
	case len(old) > 0:
		w = pragma(old)
	default:
		return
	}
	ask.OnlyIfCached = w.onlyIfCached
	ask.MinFresh, ask.MaxStale = w.minFresh.pointer(), w.maxStale.pointer()
	if w.noCache || w.maxAge.said && w.maxAge.Duration == 0 {
		ask.NoCache = true
		ask.JoinOnly = !ask.OnlyIfCached && !v.proxy.fresh.allow(v.caller.Name, v.target.Key.URI, v.proxy.o.Now())
		return
	}
	ask.MaxAge = w.maxAge.pointer()
}

// oldest is the oldest answer that a request accepts while upstream is well; nil: the
// mirror's ages count.
func oldest(ask *request.Request) *time.Duration {
	if ask.AgeLimit == nil || ask.MaxAge != nil && *ask.MaxAge < *ask.AgeLimit {
		return ask.MaxAge
	}
	return ask.AgeLimit
}

// freshInterval is how often one credential may have one key asked upstream.
const freshInterval = time.Second

// freshLimiter lets one credential force a request upstream once an interval for each
// key.
type freshLimiter struct {
	mu   sync.Mutex
	last *lru.Cache[freshKey, time.Time]
}

type freshKey struct{ caller, uri string }

func (l *freshLimiter) allow(caller, uri string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := freshKey{caller, uri}
	if last, ok := l.last.Get(key); ok && now.Sub(last) < freshInterval {
		return false
	}
	l.last.Put(key, now, 1)
	return true
}

// unlessUnknown turns the refusal of a path that the spec does not name into upstream's own
// error. It does so for paths that differ from a known one only in case, slashes or
// ;parameters: upstream would not find these either.
func unlessUnknown(t *spec.Target, err error) error {
	if t.NearMiss && errors.Is(err, understudy.ErrForbidden) {
		return fmt.Errorf("proxy: %w", access.ErrNoPath)
	}
	return err
}
