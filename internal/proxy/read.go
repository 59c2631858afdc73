// This file answers GET and HEAD requests.

package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/kit/accesslog"
	"understudy/kit/header"
	"understudy/kit/lockwatch"
	"understudy/kit/lru"
	"understudy/request"
	"understudy/spec"
)

// storedAnswerer is implemented by the writer of a request for which the server has already found the response in memory
// (Options.Ready).
type storedAnswerer interface{ StoredAnswer() any }

// repeat is what all requests with the same header have in common as long as the policy stays the same.
type repeat struct {
	target parsedTarget
	client accesslog.Client // what the access log says about the client; zero if the requests can differ in that
	admit  func(*http.Request) (understudy.Caller, error)
}

func (p *Proxy) newRepeat(r *http.Request, t parsedTarget, admit func(*http.Request) (understudy.Caller, error)) *repeat {
	k := &repeat{target: t, admit: admit}
	if !p.CanIgnore("User-Agent") {
		k.client = accesslog.ClientOf(r)
	}
	return k
}

// repeatKey is the context key of a repeat.
type repeatKey struct{}

// get checks the request with the gate, gets the response from the mirror and sends it.
func (v *exchange) get() error {
	if v.target.Media != nil {
		if _, said := v.target.OwnParams.Get(understudy.OwnAsOf); said {
			return fmt.Errorf("proxy: %s: %w: contents have no history", understudy.OwnAsOf, understudy.ErrInvalid)
		}
		return v.serveMedia()
	}
	v.visibility = v.proxy.o.Gate.Visibility(v.caller, v.target)
	if err := v.visibility.CheckRead(v.target); err != nil {
		return replaceRefusal(v.target, err)
	}
	ask := request.Request{Target: v.target, AgeLimit: v.caller.Grant.MaxStale, Flow: v.caller.Flow, ResponseBuffer: &v.response}
	if w, ok := v.w.(storedAnswerer); ok {
		ask.ReadyResult = w.StoredAnswer()
	}
	v.readDirectives(&ask)
	if err := v.readAsOf(&ask); err != nil {
		return err
	}
	if err := v.readLocalQuery(&ask); err != nil {
		return err
	}
	ctx := v.r.Context()
	if wait, ok := header.Wait(v.r.Header["Prefer"]); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	if ask.ReadyResult == nil {
		waiting := v.trace.Begin("place")
		leave, err := v.proxy.waitForPlace(ctx, v.target, v.caller.Name)
		v.trace.End(waiting, 0)
		if err != nil {
			return err
		}
		defer leave()
		v.leave = leave
	}
	a, err := v.visibility.RequestPage(ctx, ask, v.proxy.o.Mirror.Answer)
	if err != nil {
		return err
	}
	view, err := v.visibility.MakeView(a.Page)
	if err != nil {
		return err
	}
	if err := v.logAction(readAction(v.target), a.Page, ""); err != nil {
		return err
	}
	v.answer(a, view)
	return nil
}

// maxListWait is how long a list request waits until it may begin (see Options.Lists).
const maxListWait = 8 * time.Second

// errManyLists is the error for a list request that has waited for maxListWait.
var errManyLists = errors.New("too many lists are being read; try again in a moment")

// waitForPlace waits until a list request may begin, if the memory for lists is limited. A request for a list in
// memory or for a record does not wait. It returns ErrUnavailable or the context's error.
func (p *Proxy) waitForPlace(ctx context.Context, t *spec.Target, credential string) (leave func(), err error) {
	if p.o.Lists == nil || t.List == nil {
		return func() {}, nil
	}
	if p.o.Ready != nil {
		if _, ok := p.o.Ready(t); ok {
			return func() {}, nil
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, maxListWait, fmt.Errorf("%w: %w", understudy.ErrUnavailable, errManyLists))
	defer cancel()
	return p.o.Lists.Wait(ctx, credential)
}

// readAction returns the audit action of a read.
func readAction(t *spec.Target) understudy.Action {
	searched := slices.ContainsFunc(t.OwnParams, isSearch)
	switch {
	case t.Instance != nil:
		return understudy.ActionRecord
	case searched, t.List != nil && slices.ContainsFunc(t.Query, func(p understudy.Param) bool { return t.List.Filter(p.Name) != nil }):
		return understudy.ActionSearch
	}
	return understudy.ActionList
}

// isSearch reports whether a parameter searches the records of a list.
func isSearch(p understudy.Param) bool {
	return p.Name == understudy.OwnText || p.Name == understudy.OwnNear
}

// logAction writes an audit entry before the caller gets a response or an action is performed. p is the page of
// the response, or nil.
func (v *exchange) logAction(a understudy.Action, p *understudy.Page, what string, values ...string) error {
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
		for _, p := range v.target.OwnParams {
			if isSearch(p) {
				e.Values = append(e.Values, p.Value)
			}
		}
	}
	return v.proxy.o.Audit.RecordAction(v.r.Context(), e)
}

// logCreated writes an audit entry for the record that a write has created, if writes are listed.
func (v *exchange) logCreated(p *understudy.Page) {
	id := p.CreatedID()
	if id == "" || v.proxy.o.Audit == nil {
		return
	}
	e := understudy.AuditEntry{Caller: v.caller, Action: understudy.ActionSend, What: understudy.WhatCreated, Source: v.proxy.o.Source.Name,
		IDs: []string{id}, Status: p.Status, Request: v.id()}
	if v.target.Kind != nil {
		e.Kind = v.target.Kind.Name
	}
	_ = v.proxy.o.Audit.RecordAction(v.r.Context(), e) // an error is ignored, because the write cannot be undone
}

// readAsOf sets the time of understudy.as_of in a request to the mirror.
func (v *exchange) readAsOf(ask *request.Request) (err error) {
	text, said := v.target.OwnParams.Get(understudy.OwnAsOf)
	if !said {
		return nil
	}
	if len(v.target.OwnParams.Remove(func(p understudy.Param) bool { return p.Name != understudy.OwnAsOf })) > 1 {
		return refuseOwn(understudy.OwnAsOf, "write it only once")
	}
	if ask.AsOf, err = spec.ParseInstant(text); err != nil {
		return fmt.Errorf("proxy: %s: %w", understudy.OwnAsOf, err)
	}
	return nil
}

// readDirectives copies the Cache-Control directives of the request into a request to the mirror. Directives that
// force an upstream request are limited for each credential and key. Beyond that limit the request joins a running
// fetch, or the directive is ignored.
func (v *exchange) readDirectives(ask *request.Request) {
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
	if w.noCache || w.maxAge.isSet && w.maxAge.Duration == 0 {
		ask.NoCache = true
		ask.JoinOnly = !ask.OnlyIfCached && !v.proxy.freshLimits.allow(v.caller.Name, v.target.Key.URI, v.proxy.o.Now())
		return
	}
	ask.MaxAge = w.maxAge.pointer()
}

// maxAge returns the maximum age of a response that the client accepts while upstream works. It returns nil if the
// mirror's default ages apply.
func maxAge(ask *request.Request) *time.Duration {
	if ask.AgeLimit == nil || ask.MaxAge != nil && *ask.MaxAge < *ask.AgeLimit {
		return ask.MaxAge
	}
	return ask.AgeLimit
}

// freshInterval is the minimum time between two upstream requests that one credential forces for one key.
const freshInterval = time.Second

// freshLimiter limits how often one credential can force an upstream request for each key.
type freshLimiter struct {
	mu   lockwatch.Mutex
	last *lru.Cache[freshKey, time.Time]
}

// freshKey identifies the forced requests that one caller sends for one key.
type freshKey struct{ caller, uri string }

// allow reports whether a forced request is allowed now, and records it.
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

// replaceRefusal turns the refusal of a path that the spec does not name into upstream's own error. It does so for paths
// that differ from a known path only in case, slashes or ;parameters, because upstream would not find them either.
func replaceRefusal(t *spec.Target, err error) error {
	if t.NearMiss && errors.Is(err, understudy.ErrForbidden) {
		return fmt.Errorf("proxy: %w", access.ErrNoPath)
	}
	return err
}
