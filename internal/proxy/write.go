// Write: POST, PUT, PATCH and DELETE of a caller that may.

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

// writeTime bounds a write from when its body is here.
const writeTime = 45 * time.Second

// write passes a write on, once. The body is read only when the caller may
// send it and there is a place for it: a refusal costs no byte of it. Who waits
// to be invited (Expect: 100-continue) is so by the first read, before upstream
// is asked.
func (v *exchange) write() error {
	method := v.r.Method
	if v.queries && v.proxy.o.Source.Spec.IsPassThrough(v.target.Key.Path()) {
		method = http.MethodGet // it is a read of a path that nobody needs a permission for
	}
	if err := v.proxy.o.Gate.CheckWrite(v.caller, v.target, method); err != nil {
		return unlessUnknown(v.target, err)
	}
	if err := v.proxy.o.Gate.CheckFind(v.r.Context(), v.caller, v.target, v.proxy.o.Mirror.Answer); err != nil {
		return err
	}
	if v.r.ContentLength > v.proxy.o.MaxBody {
		return &http.MaxBytesError{Limit: v.proxy.o.MaxBody}
	}
	a, err := v.pass()
	if err != nil {
		return err
	}
	passed := *a
	passed.Outcome, passed.ForwardReason = request.Cold, fwdMethod
	if v.queries {
		passed.Detail = "a GraphQL query of the caller's own is not stored"
	}
	if !v.proxy.o.Gate.CanSeePage(v.caller, v.proxy.o.Source.Name, a.Page.Kind, a.Page) {
		return v.unseen(&passed, nil)
	}
	view, err := v.proxy.o.Gate.MakeView(v.caller, a.Page)
	if err != nil {
		return v.unseen(&passed, err)
	}
	v.answer(&passed, view)
	return nil
}

// pass takes a place, reads the body and has the mirror pass it on.
func (v *exchange) pass() (*request.Response, error) {
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
	target, err := v.asWritten(body)
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
	if err := v.audit(action, nil, v.r.Method, numbersIn(body)...); err != nil {
		return nil, err
	}
	ctx, done := lasting(v.r.Context(), writeTime)
	defer done()
	a, err := v.proxy.o.Mirror.Write(ctx, request.Write{
		Target: target, Method: v.r.Method, Body: body, ContentType: v.r.Header.Get("Content-Type"),
		Header: v.proxy.o.Source.Spec.Headers.FilterWriteHeader(v.r.Header), Flow: v.caller.Flow, ReadOnly: v.queries,
	})
	switch {
	case err != nil && v.queries: // it is a read
		return nil, err
	case err != nil:
		return nil, unsentError{err}
	case action == understudy.ActionSend && v.target.ID == "":
		v.auditMade(a.Page)
	}
	return a, nil
}

// numbersIn are the values of a form that are phone numbers.
func numbersIn(body []byte) (all []string) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil // it is no form
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

// asWritten is the target with the parameters as the caller sent them, less our
// own: a key's order and its written-out page size are for reads.
func (v *exchange) asWritten(body []byte) (*spec.Target, error) {
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

// unseen answers a write that was done, but whose answer the role may not see:
// a refusal would read as if it had not been done.
func (v *exchange) unseen(a *request.Response, why error) error {
	if a.Page.Status >= http.StatusMultipleChoices {
		return why
	}
	v.start(a)
	v.send(a.Page.Status, nil)
	return nil
}

// lasting returns the context of a write. While the write waits for an upstream
// connection, the context ends when the caller leaves, because nothing was sent.
// After that only its time limit ends it. So the outcome is known and kept even if
// the caller has left. httptrace reports the connection. A mirror without HTTP
// never reports one, and its writes end with their callers.
func lasting(caller context.Context, limit time.Duration) (context.Context, func()) {
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

// Writes is how many writes are under way.
func (p *Proxy) Writes() int { return p.writes.Load().InUse }

// limitedError: too many writes are under way; nothing was sent.
type limitedError struct{}

func (limitedError) Error() string { return "proxy: too many writes are under way" }

// unsentError is the error of a write that was not sent, or of one whose credential upstream
// refused. ErrUnknownOutcome inside counts before it.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// bodyError is a body that could not be read.
type bodyError struct{ error }

func (e bodyError) Error() string { return "proxy: body: " + e.error.Error() }

func (e bodyError) Unwrap() error { return e.error }

// late reports a body that did not come in time.
func (e bodyError) late() bool { return errors.Is(e.error, os.ErrDeadlineExceeded) }
