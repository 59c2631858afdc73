// This file turns an error into an error response in upstream's format.

package proxy

import (
	"context"
	"errors"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/kit/jsonhttp"
	"understudy/request"
)

// retryAfter is the Retry-After of a response with status 503 if upstream sent none.
const retryAfter = 2 * time.Second

// mirrorAfter is the Retry-After for records that are not mirrored yet.
const mirrorAfter = 30 * time.Second

// statusClientLeft is the logged status of a request whose caller left before the response (as nginx does).
const statusClientLeft = 499

// fail sends an error response. It sends it even if the context has ended, because the end may come from our own
// shutdown and not from the caller.
func (v *exchange) fail(err error) {
	if v.r.Context().Err() != nil {
		defer func() { v.line.Status = statusClientLeft }()
	}
	var upstream *understudy.UpstreamError
	if errors.As(err, &upstream) && upstream.Page != nil && v.sendUpstreamError(upstream) {
		return
	}
	v.decideClose()
	v.restrictContent()
	setSourceRate(v)
	f, own := v.ownFailure(err)
	if !own {
		f.Status = understudy.Status(err)
		f.Word, f.Message = errorWords[f.Status], message(err)
	}
	f.Path, _, _ = strings.Cut(v.r.RequestURI, "?")
	if f.Status == http.StatusInternalServerError {
		v.proxy.o.Logger.Error("request failed", "id", v.id(), "method", v.r.Method, "err", err)
	}
	body, contentType := access.Error(v.proxy.o.Source.Spec, f)
	h := v.w.Header()
	h["Cache-Control"] = cachePrivate
	h["Vary"] = v.proxy.fields.vary
	h["Content-Type"] = []string{contentType}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	h["X-Request-Id"] = []string{v.id()}
	jsonhttp.SignError(h, f.Status, f.Message) // this header is the same for hidden and for missing records
	switch f.Status {
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = v.proxy.fields.challenge
	case http.StatusMethodNotAllowed:
		h["Allow"] = []string{v.allowedMethods()}
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		wait := retryAfter
		if upstream != nil && upstream.RetryAfter > 0 {
			wait = upstream.RetryAfter
		}
		if over := (*understudy.RateError)(nil); errors.As(err, &over) {
			wait = over.Wait
			setRate(v, over.Rate, v.proxy.o.Now())
		}
		if errors.Is(err, understudy.ErrNotMirrored) || errors.Is(err, understudy.ErrIndexing) {
			wait = mirrorAfter
		}
		h["Retry-After"] = []string{wholeSeconds(wait)}
	}
	v.send(f.Status, body)
}

// sendUpstreamError sends the body of an upstream error if no copy of the record is stored. It reports whether it
// sent the body. It does not send a body with fields that the role may not see.
func (v *exchange) sendUpstreamError(e *understudy.UpstreamError) bool {
	view, err := v.proxy.o.Gate.MakeView(v.caller, e.Page)
	if err != nil {
		return false
	}
	a := &request.Response{Page: e.Page, Outcome: request.Cold, Detail: e.ShortText(), UpstreamTime: e.Page.Took}
	if v.r.Method != http.MethodGet && v.r.Method != http.MethodHead {
		a.ForwardReason = fwdMethod
	}
	if e.RetryAfter > 0 {
		v.w.Header()["Retry-After"] = []string{wholeSeconds(e.RetryAfter)}
	}
	v.answer(a, view)
	return true
}

// errorWords are the spec's names of errors, by status.
var errorWords = map[int]string{
	http.StatusBadRequest:          access.Invalid,
	http.StatusRequestURITooLong:   access.Invalid,
	http.StatusUnauthorized:        access.Unauthorized,
	http.StatusForbidden:           access.Forbidden,
	http.StatusNotFound:            access.NotFound,
	http.StatusMethodNotAllowed:    access.Method,
	http.StatusTooManyRequests:     access.Limited,
	http.StatusConflict:            access.Server,
	http.StatusInternalServerError: access.Server,
	http.StatusServiceUnavailable:  access.Server,
	http.StatusGatewayTimeout:      access.Server,
}

// ownFailure returns the error response for an error that the proxy itself produced. own is false for any other error.
func (v *exchange) ownFailure(err error) (f access.Failure, own bool) {
	var tooLarge *http.MaxBytesError
	var body bodyError
	switch {
	case errors.Is(err, understudy.ErrUnknownOutcome): // an unknown outcome counts more than the error that it wraps
		return f, false
	case errors.As(err, &tooLarge):
		v.proxy.o.TooLarge()
		f.Word, f.Status = access.Invalid, http.StatusRequestEntityTooLarge
		f.Message = "the body is larger than " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes"
	case errors.As(err, &body) && errors.Is(body.error, os.ErrDeadlineExceeded):
		f.Word, f.Status, f.Message = access.Invalid, http.StatusRequestTimeout, "the body did not arrive in time"
	case errors.As(err, &body):
		f.Word, f.Status, f.Message = access.Invalid, http.StatusBadRequest, "the body could not be read"
	case errors.As(err, &limitedError{}):
		v.proxy.o.Limited()
		f.Word, f.Status = access.Limited, http.StatusTooManyRequests
		f.Message = "too many writes are running; this one was not sent"
	case errors.As(err, &expectationError{}):
		f.Word, f.Status = access.Invalid, http.StatusExpectationFailed
		f.Message = "only Expect: 100-continue is supported"
	case errors.As(err, &longError{}):
		f.Word, f.Status, f.Message = access.Server, http.StatusInsufficientStorage, err.Error()
	default:
		return f, false
	}
	return f, true
}

// message returns the text of an error for the caller, or "" for the usual text of its status. It tests the kinds
// of errors in the same order as understudy.Status.
func message(err error) string {
	var upstream *understudy.UpstreamError
	var over *understudy.RateError
	switch {
	case errors.Is(err, understudy.ErrUnknownOutcome):
		return "outcome unknown: the write was sent, but no answer arrived; check the result before you send it again"
	case errors.Is(err, understudy.ErrNotMirrored):
		return withReason(err, understudy.ErrNotMirrored)
	case errors.Is(err, understudy.ErrIndexing):
		return withReason(err, understudy.ErrIndexing)
	case errors.Is(err, understudy.ErrNoStoredAnswer):
		return "only-if-cached: no stored answer fits this request; upstream was not asked"
	case errors.As(err, &over):
		return over.Error()
	case errors.Is(err, errManyBatches):
		return errManyBatches.Error()
	case errors.Is(err, errManyLists):
		return errManyLists.Error()
	case errors.Is(err, understudy.ErrTooMany):
		return "too many wrong credentials; wait a second"
	case errors.Is(err, access.ErrNoPath), errors.Is(err, understudy.ErrInvalid) && errors.Is(err, understudy.ErrNotFound):
		return textAfter(access.ErrNoPath, understudy.ErrNotFound) // the text of ErrNoPath follows the kind ErrNotFound
	}
	switch understudy.Status(err) {
	case http.StatusInternalServerError:
		if errors.Is(err, understudy.ErrDamaged) {
			return understudy.ErrDamaged.Error()
		}
		return ""
	case http.StatusUnauthorized:
		return "Understudy does not know this credential; use one from its settings"
	case http.StatusMethodNotAllowed:
		return "Understudy does not accept this method here; the header Allow lists those it accepts"
	case http.StatusForbidden:
		return textAfter(err, understudy.ErrForbidden)
	case http.StatusBadRequest:
		return textAfter(err, understudy.ErrInvalid)
	case http.StatusRequestURITooLong:
		return textAfter(err, understudy.ErrTooLong)
	case http.StatusServiceUnavailable:
	default:
		return ""
	}
	unsent := unsentError{}
	switch isUpstream := errors.As(err, &upstream); {
	case errors.Is(err, understudy.ErrDatabaseAway):
		return understudy.ErrDatabaseAway.Error()
	case errors.Is(err, understudy.ErrStoreUnavailable):
		return "the database of Understudy is not available; try again"
	case errors.Is(err, understudy.ErrNotAudited):
		return "the audit log can't be written, and nothing is answered without it; the server's log has the reason"
	case errors.As(err, &unsent) && isUpstream && upstream.Status != 0:
		return upstream.ShortText() + "; nothing was changed there"
	case errors.As(err, &unsent) && isUpstream:
		return upstream.ShortText() + "; nothing was sent"
	case errors.As(err, &unsent):
		return "upstream unavailable; nothing was sent"
	case isUpstream:
		return upstream.ShortText() + "; " + understudy.ExplainNoStoredAnswer(err)
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer from upstream in time; " + understudy.ExplainNoStoredAnswer(err)
	}
	return "upstream unavailable; " + understudy.ExplainNoStoredAnswer(err)
}

// textAfter returns the text that follows the text of kind in an error. The text before it contains names of our packages.
func textAfter(err, kind error) string {
	_, text, ok := strings.Cut(err.Error(), kind.Error()+": ")
	if !ok {
		return kind.Error()
	}
	return text
}

// withReason returns the text of a kind of error and of the reason that follows it.
func withReason(err, kind error) string {
	text := kind.Error()
	if why := textAfter(err, kind); why != text {
		text += ": " + why
	}
	return text
}

// allowedMethods returns the methods that this caller may use for the target.
func (v *exchange) allowedMethods() string {
	list := "GET, HEAD"
	if v.target == nil {
		var err error
		if v.target, err = v.findTarget(nil); err != nil {
			return list
		}
	}
	for _, m := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if v.proxy.o.Gate.CheckWrite(v.caller, v.target, m) == nil {
			list += ", " + m
		}
	}
	return list
}

// wholeSeconds returns a duration in seconds, rounded up, at least 1.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatFloat(max(1, math.Ceil(d.Seconds())), 'f', 0, 64)
}
