// Credential: how requests authenticate to upstream, and how the credential is kept out
// of answers.

package upstream

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"understudy"
)

// credential authenticates requests to upstream. It is safe for concurrent use.
type credential struct {
	style    string       // of the spec's auth: basic, bearer or ""
	replaced atomic.Int64 // how often

	mu     sync.RWMutex
	user   string
	secret understudy.Secret
	traces [][]byte // the forms in which it must not come back in a body
}

func (c *credential) set(user string, secret understudy.Secret) {
	wire := base64.RawStdEncoding.EncodeToString([]byte(user + ":" + secret.Reveal()))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.user, c.secret, c.traces = user, secret, nil
	if distinct(secret.Reveal()) {
		c.traces = append(c.traces, []byte(secret.Reveal()))
	}
	if !secret.Empty() && c.style == "basic" && len(wire) >= 8 {
		c.traces = append(c.traces, []byte(wire))
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
	switch user, secret := c.get(); c.style {
	case "basic":
		req.SetBasicAuth(user, secret.Reveal())
	case "bearer":
		req.Header.Set("Authorization", "Bearer "+secret.Reveal())
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
