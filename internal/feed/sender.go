// Sender: one signed request to an untrusted receiver.

package feed

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"understudy"
	"understudy/internal/access"
	"understudy/spec"
)

const (
	sendTime  = 30 * time.Second // for one request, all in all
	dialTime  = 10 * time.Second
	firstByte = 20 * time.Second
	maxAnswer = 64 << 10  // bytes of an answer that are read
	maxWait   = time.Hour // the longest Retry-After that is believed
)

// sender sends to one webhook.
type sender struct {
	url       string
	signature *standardwebhooks.Webhook
	client    *http.Client
	now       func() time.Time
}

// CheckURL says what is wrong with a webhook's address, as far as it can be told
// without resolving it.
func CheckURL(address string, private bool) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("url: want https://host/path")
	case u.User != nil || u.Fragment != "":
		return errors.New("url: it must hold no credentials and no fragment")
	case u.Scheme != "https" && !private:
		return errors.New("url: only https, unless allow_private is set")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		if why := forbidden(a, private); why != "" {
			return fmt.Errorf("url: the address is %s", why)
		}
	}
	return nil
}

// leastKey is the shortest key that signs, in bytes; the specification asks for
// it.
const leastKey = 24

// errSecret says no part of the secret.
var errSecret = fmt.Errorf("secret: want whsec_ and base64 of at least %d random bytes", leastKey)

// CheckSecret says what is wrong with a webhook's secret.
func CheckSecret(s understudy.Secret) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Reveal(), "whsec_"))
	if err != nil || len(key) < leastKey {
		return errSecret
	}
	return nil
}

// CheckHook says what is wrong with a webhook's address, or with the kinds and fields
// it wants: one that is unknown or hidden from its role would never come.
func CheckHook(h Hook, gate *access.Gate, sp *spec.Spec) error {
	if err := CheckURL(h.URL, h.AllowPrivate); err != nil {
		return err
	}
	if err := gate.Known(h.Role); err != nil {
		return err
	}
	q := query{source: h.Source, kinds: h.Kinds, fields: h.Fields}
	return q.allowed(gate, understudy.Caller{Name: h.Name, Grant: &understudy.Grant{Role: h.Role}}, sp)
}

// newSender checks the address and the secret.
func newSender(h Hook, now func() time.Time) (*sender, error) {
	if err := CheckURL(h.URL, h.AllowPrivate); err != nil {
		return nil, err
	}
	if err := CheckSecret(h.Secret); err != nil {
		return nil, err
	}
	signature, err := standardwebhooks.NewWebhook(h.Secret.Reveal())
	if err != nil {
		return nil, errSecret // the cause would repeat it
	}
	dialer := &net.Dialer{Timeout: dialTime, Control: guard(h.AllowPrivate)}
	return &sender{url: h.URL, signature: signature, now: now, client: &http.Client{
		Timeout:       sendTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		// No proxy: one of the environment's would resolve the name instead of us.
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: firstByte,
			MaxResponseHeaderBytes: maxAnswer, MaxIdleConns: 2, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			DisableCompression: true,
		},
	}}, nil
}

func (s *sender) close() { s.client.CloseIdleConnections() }

// outcome is what an answer other than success says.
type outcome struct {
	gone bool          // 410: nothing is wanted any more
	wait time.Duration // the receiver asked for it
}

// send sends one message; nil is a 2xx. The error holds no part of the answer's body,
// which may be anything.
func (s *sender) send(ctx context.Context, id string, body []byte) (outcome, error) {
	now := s.now()
	signature, err := s.signature.Sign(id, now, body)
	if err != nil {
		return outcome{}, fmt.Errorf("sign: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return outcome{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "understudy-webhook")
	req.Header.Set(standardwebhooks.HeaderWebhookID, id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	resp, err := s.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // the address may hold a token
		}
		return outcome{}, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // so that the connection can be used again
	if resp.StatusCode/100 == 2 {
		return outcome{}, nil
	}
	o := outcome{gone: resp.StatusCode == http.StatusGone}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		o.wait = min(time.Duration(min(seconds, int(maxWait/time.Second)))*time.Second, maxWait)
	}
	return o, fmt.Errorf("answered %d", resp.StatusCode)
}
