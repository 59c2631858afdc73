// Credential: what requests to upstream are signed with, and how it is kept out of answers.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"understudy"
	"understudy/spec/auth"
	"understudy/upstream/throttle"
	"understudy/upstream/tokens"
)

// Tokens exchanges a secret for the token that is sent in its place; tokens.Issuer does.
type Tokens interface {
	// Token returns a token and when it ends; a zero time: not known.
	Token(ctx context.Context, secret understudy.Secret) (token understudy.Secret, ends time.Time, err error)
}

// credential authenticates requests to upstream. It has one secret, or several whose limits
// add up. It is safe for concurrent use.
type credential struct {
	schemes []auth.Scheme // in which requests carry it
	tokens  Tokens        // nil: the secrets themselves are sent
	now     func() time.Time
	log     *slog.Logger
	life    context.Context // the client's

	mu      sync.RWMutex
	user    string
	members []*member
	next    int      // the member whose turn it is
	traces  [][]byte // the forms in which it must not come back in a body
}

// member is one secret; the credential's lock guards it.
type member struct {
	secret understudy.Secret
	token  understudy.Secret // what is sent; empty: none has been made
	made   time.Time
	ends   time.Time     // of the token; zero: not known
	making chan struct{} // closed when a token that is being made is there, or is not; nil: none is
	err    error         // why none was made
	held   time.Time     // until then others are used: its limit is reached, or it was refused
	quotas map[string]*quota
}

// quota is what upstream has told of one of its limits for a secret.
type quota struct {
	held  time.Time // until then others are used: nothing remains
	left  throttle.Allowance
	until time.Time // left holds
}

// quota is that of a limit.
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

// heldFor is until when others are used for a request that counts for a limit.
func (m *member) heldFor(of string) time.Time {
	if q := m.quota(of); q.held.After(m.held) {
		return q.held
	}
	return m.held
}

// signature is what one request is signed with.
type signature struct {
	c     *credential
	of    *member
	user  string
	token understudy.Secret
}

const (
	early     = 5 * time.Minute // before it ends a token is replaced, or a tenth of its life if that is less
	lastUse   = 5 * time.Second // before it ends it is not used any more
	makeTime  = 30 * time.Second
	makePause = time.Second      // after a token could not be made
	youngest  = 10 * time.Second // a token that was refused so soon is not at fault
	refusedIn = 5 * time.Minute  // until a refused secret is tried again, while others work
)

// set replaces the user ("" keeps it) and the secrets. What upstream told of them, and the
// tokens, begin anew.
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
	c.trace()
}

// trace notes the forms of what is sent. The lock is held.
func (c *credential) trace() {
	c.traces = nil
	for _, m := range c.members {
		for _, secret := range []understudy.Secret{m.secret, m.token} {
			if secret.IsEmpty() {
				continue
			}
			if distinct(secret.Reveal()) {
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

// needles are the forms of the credential that must not come back in a body.
func (c *credential) needles() [][]byte {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.traces
}

// choose is the member for the next request, that counts for a limit: of those that are not held, the one with the
// most left, else the one that is free first. The lock is held.
func (c *credential) choose(of string) *member {
	best, now := (*member)(nil), c.now()
	for i := range c.members {
		m := c.members[(c.next+i)%len(c.members)]
		if best == nil || m.before(best, of, now) {
			best = m
		}
	}
	c.next++
	left := &best.quota(of).left
	left.Remaining = max(0, left.Remaining-1)
	return best
}

// before reports whether a member is to be used rather than another.
func (m *member) before(other *member, of string, now time.Time) bool {
	held, otherHeld := m.heldFor(of), other.heldFor(of)
	free, otherFree := !now.Before(held), !now.Before(otherHeld)
	switch {
	case free != otherFree:
		return free
	case !free:
		return held.Before(otherHeld)
	}
	q, otherQ := m.quota(of), other.quota(of)
	told, otherTold := now.Before(q.until), now.Before(otherQ.until)
	return otherTold && (!told || q.left.Remaining > otherQ.left.Remaining)
}

// take is what a request is signed with, that counts for a limit of upstream's. It waits for a token where one has to be made. The
// error is an *understudy.UpstreamError, or the context's.
func (c *credential) take(ctx context.Context, of string) (signature, error) {
	c.mu.Lock()
	m := c.choose(of)
	for {
		now := c.now()
		if c.tokens == nil {
			m.token = m.secret
		} else if m.stale(now) && m.making == nil && !(m.err != nil && now.Before(m.made.Add(makePause))) {
			m.making = make(chan struct{})
			go c.make(m)
		}
		s := signature{c: c, of: m, user: c.user, token: m.token}
		making, err, usable := m.making, m.err, c.tokens == nil || m.usable(now)
		c.mu.Unlock()
		switch {
		case usable:
			return s, nil
		case making == nil:
			return s, noToken(err)
		}
		select {
		case <-making:
		case <-ctx.Done():
			return s, ctx.Err()
		}
		c.mu.Lock()
	}
}

// stale reports that another token has to be made.
func (m *member) stale(now time.Time) bool {
	if m.token.IsEmpty() {
		return true
	}
	return !m.ends.IsZero() && !now.Before(m.ends.Add(-min(early, m.ends.Sub(m.made)/10)))
}

// usable reports that the token may be sent.
func (m *member) usable(now time.Time) bool {
	return !m.token.IsEmpty() && (m.ends.IsZero() || now.Before(m.ends.Add(-min(lastUse, m.ends.Sub(m.made)/10))))
}

// make makes a member's token, for all who want it.
func (c *credential) make(m *member) {
	ctx, cancel := context.WithTimeout(c.life, makeTime)
	defer cancel()
	token, ends, err := c.tokens.Token(ctx, m.secret)
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.made, m.err = c.now(), err; err == nil {
		m.token, m.ends = token, ends
		c.trace()
	} else {
		c.log.Warn("no token for upstream", "err", err)
	}
	close(m.making)
	m.making = nil
}

// noToken is the failure of a request for which there is no token.
func noToken(err error) error {
	var refused *tokens.RefusedError
	e := &understudy.UpstreamError{Why: understudy.FailUnreachable, Err: errors.New(err.Error())} // of no other kind
	if errors.As(err, &refused) {
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

// again reports whether a request that failed so may be sent once more: what it was signed
// with has been replaced since, or another secret is free. Otherwise, when every secret's
// limit is reached, the failure says when the first of them is free.
func (s signature) again(failed *understudy.UpstreamError) bool {
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
		case c.tokens != nil && now.Sub(m.made) >= youngest:
			m.token = understudy.Secret{} // it was revoked before its end
			return true
		}
	}
	if !current || len(c.members) == 1 {
		return false
	}
	wait := failed.RetryAfter
	if failed.Why == understudy.FailCredential {
		wait = refusedIn
		c.log.Warn("one of the source's secrets is refused", "status", failed.Status)
	} else if wait == 0 {
		return false // too many at once; another secret may help, but nobody says so
	}
	held := &m.held
	if failed.LimitName != "" {
		held = &m.quota(failed.LimitName).held
	}
	if until := now.Add(wait); until.After(*held) {
		*held = until
	}
	for _, other := range c.members {
		until := other.heldFor(failed.LimitName)
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

// told notes what an answer says of the limit of the secret that its request was signed
// with, and returns that of all secrets together. Of those that have not been told the limit
// is taken to be the same, and whole.
func (s signature) told(a throttle.Allowance) throttle.Allowance {
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
	q := s.of.quota(a.Of)
	q.left, q.until = a, now.Add(max(a.Reset, time.Second))
	if a.Remaining == 0 && a.Reset > 0 {
		q.held = now.Add(min(a.Reset, maxRetryAfter))
	}
	sum := throttle.Allowance{Of: a.Of, Reset: a.Reset, Named: a.Named}
	for _, m := range c.members {
		left, reset := throttle.Allowance{Limit: a.Limit, Remaining: max(a.Limit, a.Remaining)}, a.Reset
		if of := m.quota(a.Of); now.Before(of.until) {
			left, reset = of.left, of.until.Sub(now)
		}
		sum.Limit += left.Limit
		sum.Remaining += left.Remaining
		sum.Reset = max(sum.Reset, reset)
	}
	return sum
}

// clean is err, unless its text holds the credential.
func (c *credential) clean(err error) error {
	text := err.Error()
	c.mu.RLock()
	for _, m := range c.members {
		for _, secret := range []understudy.Secret{m.secret, m.token} {
			if len(secret.Reveal()) >= 4 {
				text = strings.ReplaceAll(text, secret.Reveal(), fmt.Sprint(secret))
			}
		}
	}
	c.mu.RUnlock()
	text = string(takeOut([]byte(text), c.needles()))
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// without is the header of an answer less the fields that hold the credential.
func (c *credential) without(h http.Header) http.Header {
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
