// This file declares the kinds of errors, and maps each to an HTTP status.

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

// The kinds of errors. Packages wrap them and add the operation and its object. Test for a kind with errors.Is.
var (
	// ErrNotFound means that nothing is stored under the requested name, id or key.
	ErrNotFound = errors.New("not found")
	// ErrInvalid means that the request itself is malformed. The text says where.
	ErrInvalid = errors.New("invalid request")
	// ErrTooLong means that the request target is too long. It is also an ErrInvalid.
	ErrTooLong = fmt.Errorf("%w: too long", ErrInvalid)
	// ErrUnauthorized means that the caller is not known.
	ErrUnauthorized = errors.New("unknown caller")
	// ErrTooMany means that one sender gave too many wrong credentials. It comes together with ErrUnauthorized.
	ErrTooMany = errors.New("too many tries")
	// ErrForbidden means that the caller's grant does not allow the request.
	ErrForbidden = errors.New("not permitted")
	// ErrMethod means that the path is known but does not accept the method.
	ErrMethod = errors.New("method not allowed")
	// ErrUnavailable means that the upstream gave no usable answer and that the store has none either.
	ErrUnavailable = errors.New("upstream unavailable")
	// ErrUnreadable means that the upstream answered, but not in valid HTTP.
	ErrUnreadable = errors.New("the answer is not valid HTTP")
	// ErrUnknownOutcome means that a write was sent and no answer was received.
	ErrUnknownOutcome = errors.New("outcome unknown")
	// ErrOutdated marks a page whose fetch began before a write to its kind, or before a newer page of the same
	// key. The page may answer the waiting request but must not be stored.
	ErrOutdated = errors.New("outdated")
	// ErrNoStoredAnswer means that nothing in the store answers the request, and that the upstream must not be
	// asked.
	ErrNoStoredAnswer = errors.New("no stored answer")
	// ErrNotMirrored means that only stored records can answer the request, and that some may be missing. The
	// text says what is missing.
	ErrNotMirrored = errors.New("not mirrored yet")
	// ErrIndexing means that an index needed for the query is still being built. The records are stored. The
	// text gives the progress.
	ErrIndexing = errors.New("the index is being built")
	// ErrDamaged means that part of the database cannot be read.
	ErrDamaged = errors.New("part of the database cannot be read; run `understudy store verify` to learn what is damaged")
	// ErrNotStored means that the answer is good but could not be saved. The text says why.
	ErrNotStored = errors.New("not stored")
	// ErrConflict means that a change contradicts what is stored.
	ErrConflict = errors.New("it contradicts what is stored")
	// ErrStoreUnavailable means that the database does not answer, is locked or has no space. A retry may succeed.
	ErrStoreUnavailable = errors.New("the database is not available")
	// ErrReplaced means that another server answers for the database, such as a standby that was promoted. It may lack the last
	// writes of the former one, so nothing in memory counts any more and the store must be opened again.
	ErrReplaced = errors.New("another server answers for the database")
	// ErrNotAudited means that the audit log cannot be written, and that the answer needs an entry there first.
	ErrNotAudited = errors.New("the audit log cannot be written")
	// ErrDatabaseAway means that the database does not answer, so that other processes on it could not learn of a write. The
	// write was not sent.
	ErrDatabaseAway = errors.New("the database does not answer; nothing was sent, try again in a moment")
	// ErrLeaseLost means that the worker no longer has the lease of a job. Results of that run are discarded
	// from then on.
	ErrLeaseLost = errors.New("the lease is lost")
	// ErrClosed means that this part of the program has been shut down.
	ErrClosed = errors.New("closed")
)

// RateError means that a credential sent more requests than it may. It comes together with ErrTooMany.
type RateError struct {
	Rate Rate
	Wait time.Duration // the time until the next request is allowed
}

// Error says when the next request is allowed.
func (e *RateError) Error() string {
	return fmt.Sprintf("this credential has sent too many requests; try again in %v", e.Wait.Round(time.Second))
}

// statuses maps error kinds to HTTP statuses. An error of several kinds gets the status of the first match.
var statuses = []struct {
	kind   error
	status int
}{
	{ErrUnknownOutcome, http.StatusGatewayTimeout},
	{ErrNotMirrored, http.StatusServiceUnavailable},
	{ErrIndexing, http.StatusServiceUnavailable},
	{ErrNoStoredAnswer, http.StatusGatewayTimeout},
	{ErrTooMany, http.StatusTooManyRequests},
	{ErrUnauthorized, http.StatusUnauthorized},
	{ErrForbidden, http.StatusForbidden},
	{ErrMethod, http.StatusMethodNotAllowed},
	{ErrNotFound, http.StatusNotFound},
	{ErrUnavailable, http.StatusServiceUnavailable},
	{ErrTooLong, http.StatusRequestURITooLong},
	{ErrInvalid, http.StatusBadRequest},
	{ErrNotAudited, http.StatusServiceUnavailable},
	{ErrDatabaseAway, http.StatusServiceUnavailable},
	{ErrConflict, http.StatusConflict},
	{ErrStoreUnavailable, http.StatusServiceUnavailable},
	{ErrClosed, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusServiceUnavailable},
	{context.Canceled, http.StatusServiceUnavailable},
}

// Status returns the HTTP status of an error: 200 for nil, and 500 for an error of no known kind. No other code
// maps an error kind to a status.
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

// OwnPathStatus returns the status of an error for Understudy's own paths, which begin with /-/. These paths
// answer 401 to wrong credentials, however many there were. Every error that is not the caller's mistake
// becomes 503.
func OwnPathStatus(err error) int {
	switch s := Status(err); {
	case s == http.StatusTooManyRequests:
		return http.StatusUnauthorized
	case s >= http.StatusInternalServerError:
		return http.StatusServiceUnavailable
	default:
		return s
	}
}

// packageNames lists the package prefixes that PlainText removes from error texts.
var packageNames = []string{
	"access", "accesslog", "actions", "agents", "audit", "backup", "callers", "certificate", "columns", "connect", "credentials",
	"dispatch", "feed", "fleet", "folder", "follow", "forecast", "frame", "http2lane", "httprange", "jobs", "jsonhttp", "jsonspan", "limiter",
	"manual", "migrations", "mirror", "pidfile", "profile", "postgres", "proxy", "push", "query", "search", "seen", "semaphore", "signin",
	"spec", "store", "tables", "upstream", "viewer", "wal", "walk", "watch", "webhook", "wires",
	"xmldoc",
}

// PlainText returns an error's text for people, without leading package names and error kinds. Over HTTP the
// status already tells the kind.
func PlainText(err error) string {
	text := err.Error()
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		var whole, plain []string
		for _, one := range joined.Unwrap() {
			whole, plain = append(whole, one.Error()), append(plain, PlainText(one))
		}
		if strings.Join(whole, "\n") == text { // true only for an error made by errors.Join
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

// StripPrefixes returns an error of the same kinds whose text is PlainText(err). Use it where the error is
// wrapped again in a name that people know, such as a setting.
func StripPrefixes(err error) error { return plainError{err} }

type plainError struct{ error }

// Error returns the text for people.
func (e plainError) Error() string { return PlainText(e.error) }

// Unwrap returns the error with its full text.
func (e plainError) Unwrap() error { return e.error }

// Failure is the way in which an upstream request failed.
type Failure uint8

// The ways in which a fetch fails.
const (
	FailNone        Failure = iota
	FailUnreachable         // no connection or no readable answer: refused, reset or timed out
	FailUnusable            // an answer with status 2xx that is not a complete document: HTML, truncated, empty or of wrong length
	FailServer              // an answer with status 5xx
	FailLimited             // an answer with status 429, or another answer that the spec defines as a rate limit
	FailCredential          // an answer with status 401 or one that the spec defines so: the upstream refused Understudy's own credential
	FailDown                // the request was not sent, because the upstream is down and the next probe is not due yet
	FailBusy                // the request was not sent, because too many requests already wait for this source
)

var failureWords = [...]string{FailNone: "none", FailUnreachable: "unreachable", FailUnusable: "unusable answer",
	FailServer: "server error", FailLimited: "rate limited", FailCredential: "credential refused", FailDown: "down", FailBusy: "busy"}

// String returns the word that logs and Cache-Status details use.
func (f Failure) String() string { return failureWords[f] }

// UpstreamError is a fetch that returned no page to store. It wraps ErrUnavailable. Its text never contains the
// upstream secret.
type UpstreamError struct {
	Why        Failure
	Status     int           // the HTTP status of the upstream's answer, or 0 if there was no answer
	RetryAfter time.Duration // the delay before a retry that the upstream asked for, or 0 if it asked for none
	LimitName  string        // the name of a partial limit of the upstream that is reached while most requests still pass, or ""
	Page       *Page         // an answer with status 429 or 5xx, which is forwarded if nothing is stored; otherwise nil
	Err        error         // the cause of the failure; may be nil
}

// Error says in one line what happened.
func (e *UpstreamError) Error() string {
	s := "upstream " + e.failureText()
	if e.Status != 0 {
		s = fmt.Sprintf("%s (status %d)", s, e.Status)
	}
	if e.LimitName != "" {
		s += ", its limit " + e.LimitName + " is used up"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns ErrUnavailable and the cause, if there is one.
func (e *UpstreamError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnavailable}
	}
	return []error{ErrUnavailable, e.Err}
}

// ShortText returns the short form for a Cache-Status detail, such as "upstream 503" or "upstream unreachable".
func (e *UpstreamError) ShortText() string {
	if e.Why == FailBusy {
		return "too many requests wait for upstream"
	}
	if e.Status != 0 && e.Why != FailUnusable {
		return fmt.Sprintf("upstream %d", e.Status)
	}
	return "upstream " + e.failureText()
}

// failureText returns the words for the failure. An answer that is unreadable or too large has words of its own,
// although Failure has no values for these cases.
func (e *UpstreamError) failureText() string {
	switch {
	case errors.Is(e.Err, ErrUnreadable):
		return "answer unreadable"
	case errors.As(e.Err, new(*SizeError)):
		return "answer too large"
	}
	return e.Why.String()
}

// SizeError means that an upstream answer is larger than a setting allows.
type SizeError struct {
	Setting string // the full name of the setting
	Limit   int64  // the value of the setting, in bytes
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

// NotComposedError combines two reasons for a failed request. Err says why the upstream did not answer the request. Why
// says why the answer could not be composed from stored records.
type NotComposedError struct{ Err, Why error }

// Error returns both reasons, first that of the upstream.
func (e *NotComposedError) Error() string { return e.Err.Error() + "; " + e.Why.Error() }

// Unwrap returns only Err, so that the kind of Why does not decide the status.
func (e *NotComposedError) Unwrap() error { return e.Err }

// ExplainNoStoredAnswer says, for people, why the store cannot answer a request that the upstream did not
// answer. If a size setting kept the upstream's answer out, the text names that setting.
func ExplainNoStoredAnswer(err error) string {
	const text = "no stored answer fits this request"
	var not *NotComposedError
	if size, ok := errors.AsType[*SizeError](err); ok {
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
	return "stored data could not be read in time"
}
