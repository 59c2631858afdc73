// This file sends one signed request to an untrusted receiver.

package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
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
	"syscall"
	"time"
	"unicode"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"understudy"
)

const (
	sendTimeout    = 30 * time.Second // the time limit of a whole request
	dialTimeout    = 10 * time.Second
	headerTimeout  = 20 * time.Second
	maxAnswerBytes = 64 << 10  // the maximum number of bytes read from an answer
	maxTextBytes   = 200       // the maximum number of bytes of an answer that appear in an error or log
	maxWait        = time.Hour // the maximum Retry-After that a sender obeys
)

// Options are the settings of a Sender.
type Options struct {
	URL string
	// Secret is the key that signs messages: base64, with or without the prefix whsec_. If it is empty, messages
	// are not signed.
	Secret understudy.Secret
	// AllowPrivate permits http, and addresses of private networks and of this machine.
	AllowPrivate bool
	Now          func() time.Time
}

// Sender sends messages to one address. It is safe for concurrent use.
type Sender struct {
	url       string
	signature *standardwebhooks.Webhook // signs messages; nil if they are not signed
	client    *http.Client
	now       func() time.Time
}

// CheckURL returns an error if a webhook's address is not permitted, as far as this is known without resolving its name.
func CheckURL(address string, private bool) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("url is not a URL; write https://HOST/PATH")
	case u.User != nil || u.Fragment != "":
		return errors.New("url: it can't contain credentials or a fragment")
	case u.Scheme != "https" && !private:
		return errors.New("url: use https, or set allow_private")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		if why := forbiddenReason(a, private); why != "" {
			return fmt.Errorf("url: the address is %s", why)
		}
	}
	return nil
}

// minKeyBytes is the minimum length of a signing key, required by the specification of Standard Webhooks.
const minKeyBytes = 24

// errSecret is the error for an invalid secret. It contains no part of the secret.
var errSecret = fmt.Errorf("secret is not in the format of Standard Webhooks; write whsec_ and the base64 of at least %d random bytes",
	minKeyBytes)

// MakeSecret returns a new random secret in the format of Standard Webhooks.
func MakeSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // rand.Read never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// CheckSecret returns an error if a secret is malformed or too short.
func CheckSecret(s understudy.Secret) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Reveal(), "whsec_"))
	if err != nil || len(key) < minKeyBytes {
		return errSecret
	}
	return nil
}

// New returns a Sender. It returns an error if the address is invalid, or if the secret is set and invalid.
func New(o Options) (*Sender, error) {
	if err := CheckURL(o.URL, o.AllowPrivate); err != nil {
		return nil, err
	}
	var signature *standardwebhooks.Webhook
	if o.Secret.Reveal() != "" {
		if err := CheckSecret(o.Secret); err != nil {
			return nil, err
		}
		var err error
		if signature, err = standardwebhooks.NewWebhook(o.Secret.Reveal()); err != nil {
			return nil, errSecret // the cause would contain the secret
		}
	}
	return &Sender{url: o.URL, signature: signature, now: o.Now, client: NewClient(Guard(o.AllowPrivate), headerTimeout)}, nil
}

// NewClient returns an HTTP client for Post. It connects to an address only if permitted returns nil for the address.
// It waits at most firstByte for the header of an answer; 0 means no separate limit. It does not follow redirects.
func NewClient(permitted func(network, address string, c syscall.RawConn) error, firstByte time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: permitted}
	return &http.Client{
		Timeout:       sendTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		// A proxy from the environment is not used: it would resolve the name, so the address could not be checked.
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: firstByte,
			MaxResponseHeaderBytes: maxAnswerBytes, MaxIdleConns: 2, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			DisableCompression: true,
		},
	}
}

// Close closes idle connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// Answer is the answer of a receiver.
type Answer struct {
	Status int           // the HTTP status of the answer; 0 if there was none
	Wait   time.Duration // the pause that the receiver requests before the next attempt, at most an hour
	// Text is the beginning of the answer's body in printable characters. It comes from the receiver and is not trusted.
	Text string
}

// IsGone reports whether the receiver answered 410 and wants no more messages.
func (a Answer) IsGone() bool { return a.Status == http.StatusGone }

// Send sends one JSON message with an id. It returns nil for a 2xx answer. Its error contains no part of the
// answer's body. A redirect is not followed but returned as an error.
func (s *Sender) Send(ctx context.Context, id string, body []byte) (Answer, error) {
	now, header := s.now(), http.Header{"Content-Type": {"application/json"}, "User-Agent": {"understudy-webhook"}}
	header.Set(standardwebhooks.HeaderWebhookID, id)
	if s.signature != nil {
		signature, err := s.signature.Sign(id, now, body)
		if err != nil {
			return Answer{}, fmt.Errorf("sign: %w", err)
		}
		header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
		header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	}
	return Post(ctx, s.client, s.url, header, body)
}

// Post sends a body with a client that NewClient returned. It returns nil for a 2xx answer. Its error contains
// neither the address, which may contain a token, nor a part of the answer's body.
func Post(ctx context.Context, client *http.Client, address string, header http.Header, body []byte) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return Answer{}, errors.New("the address is not valid")
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return Answer{}, err
	}
	defer resp.Body.Close()
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxTextBytes)) // after an error the bytes received so far are used
	// The rest of the answer is read so that the connection can be reused.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswerBytes))
	a := Answer{Status: resp.StatusCode, Text: Printable(string(head))}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		a.Wait = min(time.Duration(min(seconds, int(maxWait/time.Second)))*time.Second, maxWait)
	}
	if resp.StatusCode/100 == 2 {
		return a, nil
	}
	return a, fmt.Errorf("answered %d", resp.StatusCode)
}

// Printable returns the printable characters of an untrusted text in one line of at most 200 bytes.
func Printable(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxTextBytes)], "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, s))
}
