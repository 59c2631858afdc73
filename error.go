// The few kinds of error, and the HTTP status of each.

package understudy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The error kinds. Packages wrap them with the operation and its object. Test them with
// errors.Is.
var (
	// ErrNotFound: nothing is held under that name.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the request itself is malformed; the text says where.
	ErrInvalid = errors.New("invalid request")
	// ErrTooLong: the request's target is longer than one may be. It is an ErrInvalid.
	ErrTooLong = fmt.Errorf("%w: too long", ErrInvalid)
	// ErrUnauthorized: the caller is not known.
	ErrUnauthorized = errors.New("unknown caller")
	// ErrTooMany: one sender gave too many wrong credentials; it comes with
	// ErrUnauthorized.
	ErrTooMany = errors.New("too many tries")
	// ErrForbidden: the caller's grant does not cover this.
	ErrForbidden = errors.New("not permitted")
	// ErrMethod: the path is known, the method is not.
	ErrMethod = errors.New("method not allowed")
	// ErrUnavailable: upstream gave no usable answer and nothing is held.
	ErrUnavailable = errors.New("upstream unavailable")
	// ErrUnreadable: upstream was reached, and its answer is not what HTTP allows.
	ErrUnreadable = errors.New("no valid HTTP")
	// ErrUnknownOutcome: a write was sent and its answer never came.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrOutdated: a page whose fetch began before a write to its kind, or
	// before a newer page of the same key; it may be answered once, never kept.
	ErrOutdated = errors.New("outdated")
	// ErrNotHeld: nothing held answers the request, and upstream must not be asked.
	ErrNotHeld = errors.New("not held")
	// ErrNotMirrored: the answer can only be made from records, and not all of them are
	// known to be held. The text says what is missing.
	ErrNotMirrored = errors.New("not mirrored yet")
	// ErrIndexing: the records are there, but an index that the question needs is
	// still being built; the text says how far it is.
	ErrIndexing = errors.New("the index is being built")
	// ErrDamaged: part of the database cannot be read.
	ErrDamaged = errors.New("part of the database cannot be read; run `understudy store verify` to learn what is damaged")
	// ErrNotStored: the answer is good but could not be saved; the text says why.
	ErrNotStored = errors.New("not stored")
	// ErrNotAudited: the answer may only be given once the audit log has it, and the log
	// cannot be written.
	ErrNotAudited = errors.New("not audited")
	// ErrLost: the worker no longer has the lease of a job. Nothing more of that run is
	// kept.
	ErrLost = errors.New("the lease is lost")
	// ErrClosed: the part of the program has been shut down.
	ErrClosed = errors.New("closed")
)

// RateError: a credential sent more requests than it may. It comes with ErrTooMany.
type RateError struct {
	Rate Rate
	Wait time.Duration // until it may send the next
}

// Error says when the next request may come.
func (e *RateError) Error() string {
	return fmt.Sprintf("more requests than this credential may send; the next may come in %v", e.Wait.Round(time.Second))
}

// statuses is the map of error kinds to statuses. An error of several kinds has
// the status of the first in this order.
var statuses = []struct {
	kind   error
	status int
}{
	{ErrUnknownOutcome, http.StatusGatewayTimeout},
	{ErrNotMirrored, http.StatusServiceUnavailable},
	{ErrIndexing, http.StatusServiceUnavailable},
	{ErrNotHeld, http.StatusGatewayTimeout},
	{ErrTooMany, http.StatusTooManyRequests},
	{ErrUnauthorized, http.StatusUnauthorized},
	{ErrForbidden, http.StatusForbidden},
	{ErrMethod, http.StatusMethodNotAllowed},
	{ErrNotFound, http.StatusNotFound},
	{ErrUnavailable, http.StatusServiceUnavailable},
	{ErrTooLong, http.StatusRequestURITooLong},
	{ErrInvalid, http.StatusBadRequest},
	{ErrNotAudited, http.StatusServiceUnavailable},
	{ErrClosed, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusServiceUnavailable},
	{context.Canceled, http.StatusServiceUnavailable},
}

// Status is the HTTP status of an error: 200 of nil, 500 of an error that is of no
// kind. It is the one place where a kind becomes a status.
func Status(err error) int {
	if err == nil {
		return http.StatusOK
	}
	for _, s := range statuses {
		if errors.Is(err, s.kind) {
			return s.status
		}
	}
	return http.StatusInternalServerError
}

// OwnStatus is the status of an error at the paths of our own, under /-/. They
// answer 401 to wrong credentials however many there were, and 503 to every error
// that is no mistake of the caller.
func OwnStatus(err error) int {
	switch s := Status(err); {
	case s == http.StatusTooManyRequests:
		return http.StatusUnauthorized
	case s >= http.StatusInternalServerError:
		return http.StatusServiceUnavailable
	default:
		return s
	}
}

// packageNames are what the errors of packages begin with.
var packageNames = []string{
	"access", "accesslog", "actions", "agents", "audit", "callers", "columns", "connect", "credentials", "dispatch", "feed", "folder",
	"follow", "forecast", "httprange", "jobs", "jsonhttp", "jsonspan", "limiter", "mirror", "profile", "proxy", "query", "search", "seen",
	"semaphore", "signin", "spec", "store", "upstream", "viewer", "wal", "walk", "watch", "webhook", "xmldoc",
}

// PlainText returns what an error says to people: its text without the packages and the
// kinds with which it begins. A status says the kind to those who ask over HTTP.
func PlainText(err error) string {
	text := err.Error()
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var whole, plain []string
		for _, one := range joined.Unwrap() {
			whole, plain = append(whole, one.Error()), append(plain, PlainText(one))
		}
		if strings.Join(whole, "\n") == text { // errors.Join made it
			return strings.Join(plain, "\n")
		}
	}
	kinds := []string{ErrInvalid.Error(), ErrNotFound.Error(), ErrForbidden.Error(), ErrUnauthorized.Error(), ErrTooMany.Error()}
	for {
		start, rest, ok := strings.Cut(text, ": ")
		if !ok || !slices.Contains(packageNames, start) && !slices.Contains(kinds, start) {
			return text
		}
		text = rest
	}
}

// Plain returns an error of the same kinds that says what PlainText returns: for one that is
// wrapped in a name that people know, as that of a setting.
func Plain(err error) error { return plainError{err} }

type plainError struct{ error }

// Error returns the text for people.
func (e plainError) Error() string { return PlainText(e.error) }

// Unwrap returns the error with its whole text.
func (e plainError) Unwrap() error { return e.error }

// Failure says how upstream failed.
type Failure uint8

// The ways a fetch fails.
const (
	FailNone        Failure = iota
	FailUnreachable         // refused, reset, timed out: no answer, or none that can be read
	FailUnusable            // a 2xx that is no complete document: HTML, cut, empty, wrong length
	FailServer              // 5xx
	FailLimited             // 429, or what the spec says is one
	FailCredential          // 401, or what the spec says: our own credential
	FailDown                // the source is down and no probe is due; nothing was sent
	FailBusy                // a limit of our own: too many wait already; nothing was sent
)

// String is the word logs and Cache-Status details use.
func (f Failure) String() string {
	switch f {
	case FailUnreachable:
		return "unreachable"
	case FailUnusable:
		return "unusable answer"
	case FailServer:
		return "server error"
	case FailLimited:
		return "rate limited"
	case FailCredential:
		return "credential refused"
	case FailDown:
		return "down"
	case FailBusy:
		return "busy"
	}
	return "none"
}

// UpstreamError is a fetch that brought no page to keep. It wraps
// ErrUnavailable. Its text never holds the upstream secret.
type UpstreamError struct {
	Why        Failure
	Status     int           // upstream's status, 0 when there was none
	RetryAfter time.Duration // what upstream asked for, 0 when it did not
	Of         string        // the lesser limit of upstream's that is reached, while most requests go on; "": none
	Page       *Page         // the body of a 429 or 5xx that may pass verbatim when nothing is held; else nil
	Err        error         // the cause, may be nil
}

// Error says what happened in one line.
func (e *UpstreamError) Error() string {
	s := "upstream " + e.word()
	if e.Status != 0 {
		s = fmt.Sprintf("%s (status %d)", s, e.Status)
	}
	if e.Of != "" {
		s += ", its limit of " + e.Of
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap makes errors.Is(err, ErrUnavailable) true and keeps the cause.
func (e *UpstreamError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnavailable}
	}
	return []error{ErrUnavailable, e.Err}
}

// Short is the word or two of a Cache-Status detail: "upstream 503",
// "upstream unreachable".
func (e *UpstreamError) Short() string {
	if e.Why == FailBusy {
		return "too many wait for upstream"
	}
	if e.Status != 0 && e.Why != FailUnusable {
		return fmt.Sprintf("upstream %d", e.Status)
	}
	return "upstream " + e.word()
}

// word names the failure; the breaker counts an unreadable answer as none.
func (e *UpstreamError) word() string {
	var size *SizeError
	switch {
	case errors.Is(e.Err, ErrUnreadable):
		return "answer unreadable"
	case errors.As(e.Err, &size):
		return "answer too large"
	}
	return e.Why.String()
}

// SizeError: an answer of upstream is larger than a setting allows.
type SizeError struct {
	Setting string // its whole name
	Limit   int64  // bytes
}

// Error says which setting to raise.
func (e *SizeError) Error() string {
	switch size := e.Limit; {
	case size%(1<<20) == 0:
		return fmt.Sprintf("raise %s, which is %dMiB", e.Setting, size>>20)
	case size%(1<<10) == 0:
		return fmt.Sprintf("raise %s, which is %dKiB", e.Setting, size>>10)
	default:
		return fmt.Sprintf("raise %s, which is %d bytes", e.Setting, size)
	}
}

// NotComposedError is the error of a request that upstream did not answer, and why records
// that are held make no answer to it.
type NotComposedError struct{ Err, Why error }

// Error says what happened to the request.
func (e *NotComposedError) Error() string { return e.Err.Error() + "; " + e.Why.Error() }

// Unwrap returns what happened to the request. Why does not count: it is another answer's error.
func (e *NotComposedError) Unwrap() error { return e.Err }

// WhyNothingHeldAnswers says, for people, why a request that upstream did not answer is not
// answered from what is held. Where a setting kept upstream's answer out, it names the setting.
func WhyNothingHeldAnswers(err error) string {
	const text = "what is held does not answer this request"
	var not *NotComposedError
	var size *SizeError
	if errors.As(err, &size) {
		return text + "; " + size.Error()
	}
	if !errors.As(err, &not) {
		return text
	}
	for _, kind := range []error{ErrInvalid, ErrNotMirrored} {
		if _, why, ok := strings.Cut(not.Why.Error(), kind.Error()+": "); ok && errors.Is(not.Why, kind) {
			return text + ": " + why
		}
	}
	return "what is held could not be read in time"
}
