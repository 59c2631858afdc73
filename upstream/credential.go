// This file authenticates requests to the upstream, and keeps the credential out of answers.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/kit/lockwatch"
	"understudy/spec/auth"
	"understudy/upstream/throttle"
	"understudy/upstream/tokens"
)

// Tokens exchanges a secret for the token that is sent instead of the secret. tokens.Issuer implements it.
type Tokens interface {
	// Issue returns a token, and when it expires or the zero time if that is unknown.
	Issue(ctx context.Context, secret understudy.Secret) (token understudy.Secret, ends time.Time, err error)
}

// credential authenticates requests to upstream. It has one secret, or several whose limits add up. It is safe
// for concurrent use.
type credential struct {
	schemes  []auth.Scheme // how requests carry the credential
	tokens   Tokens        // exchanges secrets for tokens, or nil if requests carry the secrets themselves
	now      func() time.Time
	log      *slog.Logger
	lifetime context.Context // a context that ends when the client is closed

	mu      lockwatch.Mutex
	user    string
	members []*member
	next    int      // the index of the member to use next
	traces  [][]byte // the encoded forms of the secrets, which must not appear in a body
}

// member is one secret of a credential. The credential's lock guards it.
type member struct {
	secret    understudy.Secret
	token     understudy.Secret // the token that is sent; empty before the first token was requested
	issuedAt  time.Time
	expiresAt time.Time     // when the token expires; zero if unknown
	renewing  chan struct{} // closed when the running token request ends, or nil if no token request is running
	err       error         // the error of the last token request, or nil
	blocked   time.Time     // until when other members are preferred, because a limit is reached or the secret was refused
	quotas    map[string]*quota
}

// quota is what the upstream has reported about one of its limits for a secret.
type quota struct {
	blocked    time.Time // until when other members are preferred, because nothing remains of the limit
	left       throttle.Allowance
	validUntil time.Time // when the field left becomes invalid
}

// quota returns the quota of a limit and creates it if needed.
func (m *member) quota(of string) *quota {
	q := m.quotas[of]
	if q == nil {
		if m.quotas == nil {
			m.quotas = map[string]*quota{}
		}
		q = &quota{}
		m.quotas[of] = q
	}
	return q
}

// blockEnd returns the time until which other members are preferred for requests that count for a limit.
func (m *member) blockEnd(of string) time.Time {
	if q := m.quota(of); q.blocked.After(m.blocked) {
		return q.blocked
	}
	return m.blocked
}

// signature is the credential of one request.
type signature struct {
	c     *credential
	of    *member
	user  string
	token understudy.Secret
}

// Times that decide when a token is replaced.
const (
	tokenRenewTime  = 5 * time.Minute  // how long before its end a token is replaced, or a tenth of its lifetime if that is less
	tokenMinLeft    = 5 * time.Second  // how long before its end a token is no longer used
	maxTokenWait    = 30 * time.Second // the maximum wait for one token request
	tokenRetryPause = time.Second      // the pause after a failed token request
	minRevokedAge   = 10 * time.Second // if a token is refused at a lower age than this, it does not count as revoked
	refusedPause    = 5 * time.Minute  // how long other secrets are preferred to a secret that was refused
)

// set replaces the user and the secrets; an empty user keeps the former user. The tokens of the former secrets, and
// what the upstream reported about their limits, are forgotten.
func (c *credential) set(user string, secrets []understudy.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if user != "" {
		c.user = user
	}
	var members []*member
	for _, secret := range secrets {
		members = append(members, &member{secret: secret})
	}
	c.members, c.next = members, 0
	c.computeForms()
}

// computeForms computes the forms of the credential that must not appear in a body. The caller holds the lock.
func (c *credential) computeForms() {
	c.traces = nil
	for _, m := range c.members {
		for _, secret := range []understudy.Secret{m.secret, m.token} {
			if secret.IsEmpty() {
				continue
			}
			if isDistinct(secret.Reveal()) {
				c.traces = append(c.traces, []byte(secret.Reveal()))
			}
			for _, s := range c.schemes {
				if wire := s.WireForm(c.user, secret.Reveal()); len(wire) >= 8 && wire != secret.Reveal() {
					c.traces = append(c.traces, []byte(wire))
				}
			}
		}
	}
}

// needles returns the forms of the credential that must not appear in a body.
func (c *credential) needles() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.traces
}

// choose returns the member for the next request that counts for a limit. It prefers members that are not blocked, and
// among them the member with the highest remaining quota. If all are blocked, it chooses the member whose block ends
// first. The caller holds the lock.
func (c *credential) choose(of string) *member {
	best, now := (*member)(nil), c.now()
	for i := range c.members {
		m := c.members[(c.next+i)%len(c.members)]
		if best == nil || m.isBetter(best, of, now) {
			best = m
		}
	}
	c.next++
	left := &best.quota(of).left
	left.Remaining = max(0, left.Remaining-1)
	return best
}

// isBetter reports whether a member should be used instead of another member.
func (m *member) isBetter(other *member, of string, now time.Time) bool {
	held, otherHeld := m.blockEnd(of), other.blockEnd(of)
	free, otherFree := !now.Before(held), !now.Before(otherHeld)
	switch {
	case free != otherFree:
		return free
	case !free:
		return held.Before(otherHeld)
	}
	q, otherQ := m.quota(of), other.quota(of)
	told, otherTold := now.Before(q.validUntil), now.Before(otherQ.validUntil)
	return otherTold && (!told || q.left.Remaining > otherQ.left.Remaining)
}

// take returns the credential for a request that counts for one of the upstream's limits. It waits if a token must be
// requested. The error is an *understudy.UpstreamError, or that of the context.
func (c *credential) take(ctx context.Context, of string) (signature, error) {
	c.mu.Lock()
	m := c.choose(of)
	for {
		now := c.now()
		if c.tokens == nil {
			m.token = m.secret
		} else if m.isTokenStale(now) && m.renewing == nil && !(m.err != nil && now.Before(m.issuedAt.Add(tokenRetryPause))) {
			m.renewing = make(chan struct{})
			go c.make(m)
		}
		s := signature{c: c, of: m, user: c.user, token: m.token}
		making, err, usable := m.renewing, m.err, c.tokens == nil || m.isUsable(now)
		c.mu.Unlock()
		switch {
		case usable:
			return s, nil
		case making == nil:
			return s, wrapTokenError(err)
		}
		select {
		case <-making:
		case <-ctx.Done():
			return s, ctx.Err()
		}
		c.mu.Lock()
	}
}

// isTokenStale reports whether a new token must be requested.
func (m *member) isTokenStale(now time.Time) bool {
	if m.token.IsEmpty() {
		return true
	}
	return !m.expiresAt.IsZero() && !now.Before(m.expiresAt.Add(-min(tokenRenewTime, m.expiresAt.Sub(m.issuedAt)/10)))
}

// isUsable reports whether the token may be sent.
func (m *member) isUsable(now time.Time) bool {
	return !m.token.IsEmpty() && (m.expiresAt.IsZero() || now.Before(m.expiresAt.Add(-min(tokenMinLeft, m.expiresAt.Sub(m.issuedAt)/10))))
}

// make requests a member's token for all requests that wait for the token.
func (c *credential) make(m *member) {
	ctx, cancel := context.WithTimeout(c.lifetime, maxTokenWait)
	defer cancel()
	token, ends, err := c.tokens.Issue(ctx, m.secret)
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.issuedAt, m.err = c.now(), err; err == nil {
		m.token, m.expiresAt = token, ends
		c.computeForms()
	} else {
		c.log.Warn("no token for upstream", "err", err)
	}
	close(m.renewing)
	m.renewing = nil
}

// wrapTokenError returns the failure of a request for which there is no token.
func wrapTokenError(err error) error {
	// A new error with the same text, so that it does not match other kinds of errors
	e := &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: errors.New(err.Error())}
	if errors.As(err, new(*tokens.RefusedError)) {
		e.Why, e.Status = understudy.FailCredential, http.StatusUnauthorized
	}
	return e
}

// sign adds the credential to a request.
func (s signature) sign(req *http.Request) {
	for _, scheme := range s.c.schemes {
		scheme.Sign(req, s.user, s.token.Reveal())
	}
}

// canRetry reports whether a failed request may be sent once more, because its credential was replaced meanwhile or
// another secret is free. If the limits of all secrets are reached, canRetry sets the failure's RetryAfter to the time
// when the first secret is free.
func (s signature) canRetry(failed *understudy.UpstreamError) bool {
	c := s.c
	if c == nil || failed.Why != understudy.FailCredential && failed.Why != understudy.FailLimited {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now, m, current := c.now(), s.of, false
	first := time.Time{}
	for _, other := range c.members {
		current = current || other == m
	}
	if failed.Why == understudy.FailCredential {
		switch {
		case !current || !m.token.Equal(s.token.Reveal()):
			return true
		case c.tokens != nil && now.Sub(m.issuedAt) >= minRevokedAge:
			m.token = understudy.Secret{} // the token was revoked before it expired
			return true
		}
	}
	if !current || len(c.members) == 1 {
		return false
	}
	wait := failed.RetryAfter
	if failed.Why == understudy.FailCredential {
		wait = refusedPause
		c.log.Warn("one of the source's secrets is refused", "status", failed.Status)
	} else if wait == 0 {
		return false // too many requests at the same time; the upstream does not say whether another secret would help
	}
	held := &m.blocked
	if failed.LimitName != "" {
		held = &m.quota(failed.LimitName).blocked
	}
	if until := now.Add(wait); until.After(*held) {
		*held = until
	}
	for _, other := range c.members {
		until := other.blockEnd(failed.LimitName)
		if !now.Before(until) {
			return true
		}
		if first.IsZero() || until.Before(first) {
			first = until
		}
	}
	if failed.Why == understudy.FailLimited {
		failed.RetryAfter = min(failed.RetryAfter, first.Sub(now))
	}
	return false
}

// sumAllowance records what an answer reports about the limit of its request's secret. It returns the limits of all
// secrets together. A secret without an answer is assumed to have the same limit, unused.
func (s signature) sumAllowance(a throttle.Allowance) throttle.Allowance {
	c := s.c
	if c == nil {
		return a
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if len(c.members) == 1 {
		return a
	}
	q := s.of.quota(a.LimitName)
	q.left, q.validUntil = a, now.Add(max(a.Reset, time.Second))
	if a.Remaining == 0 && a.Reset > 0 {
		q.blocked = now.Add(min(a.Reset, maxRetryAfter))
	}
	sum := throttle.Allowance{LimitName: a.LimitName, Reset: a.Reset, Named: a.Named}
	for _, m := range c.members {
		left, reset := throttle.Allowance{Limit: a.Limit, Remaining: max(a.Limit, a.Remaining)}, a.Reset
		if of := m.quota(a.LimitName); now.Before(of.validUntil) {
			left, reset = of.left, of.validUntil.Sub(now)
		}
		sum.Limit += left.Limit
		sum.Remaining += left.Remaining
		sum.Reset = max(sum.Reset, reset)
	}
	return sum
}

// clean returns err, or an error with the same text in which the credential is removed.
func (c *credential) clean(err error) error {
	text := err.Error()
	c.mu.Lock()
	for _, m := range c.members {
		for _, secret := range []understudy.Secret{m.secret, m.token} {
			if len(secret.Reveal()) >= 4 {
				text = strings.ReplaceAll(text, secret.Reveal(), fmt.Sprint(secret))
			}
		}
	}
	c.mu.Unlock()
	text = string(removeNeedles([]byte(text), c.needles()))
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// stripHeader removes those fields from an answer's header that contain the credential.
func (c *credential) stripHeader(h http.Header) http.Header {
	needles := c.needles()
	for name, values := range h {
		for _, value := range values {
			if slices.ContainsFunc(needles, func(n []byte) bool { return strings.Contains(value, string(n)) }) {
				delete(h, name)
				break
			}
		}
	}
	return h
}
