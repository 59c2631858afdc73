// This file forwards writes: POST, PUT, PATCH and DELETE.

package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

// maxWriteTime is the maximum duration of a write after its body was read.
const maxWriteTime = 45 * time.Second

// write forwards a write once. It reads the body only if the caller may send the request and the number of writes
// permits it, so that a refused request transfers no body. A client that waits for permission (Expect:
// 100-continue) sends its body only then.
func (v *exchange) write() error {
	method := v.r.Method
	if v.queries && v.proxy.o.Source.Spec.IsPassThrough(v.target.Key.Path()) {
		method = http.MethodGet // a GraphQL query on a path that everybody may read
	}
	if err := v.proxy.o.Gate.CheckWrite(v.caller, v.target, method); err != nil {
		return replaceRefusal(v.target, err)
	}
	if err := v.proxy.o.Gate.CheckFind(v.r.Context(), v.caller, v.target, v.proxy.o.Mirror.Answer); err != nil {
		return err
	}
	if v.r.ContentLength > v.proxy.o.MaxBody {
		return &http.MaxBytesError{Limit: v.proxy.o.MaxBody}
	}
	a, err := v.forwardWrite()
	if err != nil {
		return err
	}
	passed := *a
	passed.Outcome, passed.ForwardReason = request.Cold, fwdMethod
	if v.queries {
		passed.Detail = "only GraphQL queries that the spec names are stored"
	}
	if !v.proxy.o.Gate.CanSeePage(v.caller, v.proxy.o.Source.Name, a.Page.Kind, a.Page) {
		return v.sendUnseen(&passed, nil)
	}
	view, err := v.proxy.o.Gate.MakeView(v.caller, a.Page)
	if err != nil {
		return v.sendUnseen(&passed, err)
	}
	v.answer(&passed, view)
	return nil
}

// forwardWrite waits for a place among the writes in progress, reads the body and forwards the write through the mirror.
func (v *exchange) forwardWrite() (*request.Response, error) {
	leave, err := v.proxy.writes.Take(v.caller.Name)
	if err != nil {
		return nil, limitedError{}
	}
	defer leave()
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, v.proxy.o.MaxBody))
	if err != nil {
		return nil, bodyError{err}
	}
	v.read = true
	target, err := v.writeTarget(body)
	if err != nil {
		return nil, err
	}
	action := understudy.ActionSend
	switch {
	case v.queries:
		action = understudy.ActionSearch
	case v.r.Method == http.MethodDelete:
		action = understudy.ActionDelete
	}
	if err := v.logAction(action, nil, v.r.Method, numbersIn(body)...); err != nil {
		return nil, err
	}
	ctx, done := writeContext(v.r.Context(), maxWriteTime)
	defer done()
	a, err := v.proxy.o.Mirror.Write(ctx, request.Write{
		Target: target, Method: v.r.Method, Body: body, ContentType: v.r.Header.Get("Content-Type"),
		Header: v.proxy.o.Source.Spec.Headers.FilterWriteHeader(v.r.Header), Flow: v.caller.Flow, ReadOnly: v.queries,
	})
	switch {
	case err != nil && v.queries: // a failed GraphQL query has changed nothing, so its outcome needs no care
		return nil, err
	case err != nil:
		return nil, unsentError{err}
	case action == understudy.ActionSend && v.target.ID == "":
		v.logCreated(a.Page)
	}
	return a, nil
}

// numbersIn returns the values of a form that are phone numbers.
func numbersIn(body []byte) (all []string) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil // the body is not a form
	}
	for _, values := range form {
		for _, value := range values {
			if understudy.ParsePhone(value).HasCountryCode {
				all = append(all, value)
			}
		}
	}
	return all
}

// writeTarget returns the target with the parameters in the order in which the caller sent them, without
// Understudy's own. The target of a read has sorted parameters and an explicit page size, for its cache key.
func (v *exchange) writeTarget(body []byte) (*spec.Target, error) {
	_, raw, _ := strings.Cut(v.r.RequestURI, "?")
	q, err := understudy.ParseQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	q = q.Remove(func(p understudy.Param) bool { return strings.HasPrefix(p.Name, understudy.OwnPrefix) })
	target := *v.target
	if target.Kind == nil {
		for _, changed := range v.proxy.o.Source.Spec.ChangedTargets(target.Key, body) {
			target.Kind = changed.Kind
			break
		}
	}
	header := target.Key.Header()
	target.Key.URI = target.Key.Path()
	if len(q) > 0 {
		target.Key.URI += "?" + q.String()
	}
	target.Key = target.Key.WithHeader(header)
	return &target, nil
}

// sendUnseen answers a write that was performed but whose response the role may not see. A refusal would look
// as if nothing had been done.
func (v *exchange) sendUnseen(a *request.Response, why error) error {
	if a.Page.Status >= http.StatusMultipleChoices {
		return why
	}
	v.setOriginFields(a)
	v.send(a.Page.Status, nil)
	return nil
}

// writeContext returns the context of a write. While the write waits for an upstream connection, the context ends
// when the caller leaves, because nothing was sent. After that it ends only at its time limit, so that the outcome
// is known and stored even if the caller has left. httptrace reports the connection. A mirror without HTTP never
// reports a connection, so its writes end when their callers leave.
func writeContext(caller context.Context, limit time.Duration) (context.Context, func()) {
	const left, sent = 1, 2
	var phase atomic.Int32
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), limit)
	stop := context.AfterFunc(caller, func() {
		if phase.CompareAndSwap(0, left) {
			cancel()
		}
	})
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { phase.CompareAndSwap(0, sent) },
	})
	return ctx, func() { stop(); cancel() }
}

// Writes returns how many writes are in progress.
func (p *Proxy) Writes() int { return p.writes.Load().InUse }

// limitedError is the error for a write that was not sent because too many writes are in progress.
type limitedError struct{}

func (limitedError) Error() string { return "proxy: too many writes are running" }

// unsentError is the error of a write that was not sent, or whose credential upstream refused. If it wraps
// ErrUnknownOutcome, it means an unknown outcome instead.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// bodyError is the error for a request body that could not be read.
type bodyError struct{ error }

func (e bodyError) Error() string { return "proxy: body: " + e.error.Error() }

func (e bodyError) Unwrap() error { return e.error }
