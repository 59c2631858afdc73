// Credential: how requests authenticate to upstream, and how the credential is kept out
// of answers.

package upstream

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"understudy"
	"understudy/spec/auth"
)

// credential authenticates requests to upstream. It is safe for concurrent use.
type credential struct {
	schemes  []auth.Scheme // in which requests carry it
	replaced atomic.Int64  // how often

	mu     sync.RWMutex
	user   string
	secret understudy.Secret
	traces [][]byte // the forms in which it must not come back in a body
}

func (c *credential) set(user string, secret understudy.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.user, c.secret, c.traces = user, secret, nil
	if distinct(secret.Reveal()) {
		c.traces = append(c.traces, []byte(secret.Reveal()))
	}
	for _, s := range c.schemes {
		if wire := s.Wire(user, secret.Reveal()); !secret.Empty() && len(wire) >= 8 && wire != secret.Reveal() {
			c.traces = append(c.traces, []byte(wire))
		}
	}
}

func (c *credential) get() (user string, secret understudy.Secret) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.user, c.secret
}

// needles are the forms of the credential that must not come back in a body.
func (c *credential) needles() [][]byte {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.traces
}

// sign adds the credential to a request.
func (c *credential) sign(req *http.Request) {
	user, secret := c.get()
	for _, s := range c.schemes {
		s.Sign(req, user, secret.Reveal())
	}
}

// clean is err, unless its text holds the credential.
func (c *credential) clean(err error) error {
	_, secret := c.get()
	text := err.Error()
	if len(secret.Reveal()) >= 4 {
		text = strings.ReplaceAll(text, secret.Reveal(), "[redacted]")
	}
	text = string(takeOut([]byte(text), c.needles()))
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}
