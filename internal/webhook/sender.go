// Sender: one signed request to an untrusted receiver.

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
	sendTime  = 30 * time.Second // for one request, all in all
	dialTime  = 10 * time.Second
	firstByte = 20 * time.Second
	maxAnswer = 64 << 10  // bytes of an answer that are read
	maxText   = 200       // bytes of an answer that are repeated
	maxWait   = time.Hour // the longest Retry-After that is believed
)

// Options say where a Sender sends.
type Options struct {
	URL string
	// Secret signs what is sent: whsec_ and base64, or base64 alone; empty: no signature.
	Secret understudy.Secret
	// AllowPrivate permits http and addresses of private networks and of this machine.
	AllowPrivate bool
	Now          func() time.Time
}

// Sender sends to one address. Safe for concurrent use.
type Sender struct {
	url       string
	signature *standardwebhooks.Webhook // nil: none
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

// MakeSecret returns a new random secret, in the form that receivers of Standard Webhooks take.
func MakeSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// CheckSecret says what is wrong with a webhook's secret.
func CheckSecret(s understudy.Secret) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Reveal(), "whsec_"))
	if err != nil || len(key) < leastKey {
		return errSecret
	}
	return nil
}

// New checks the address and, unless it is empty, the secret.
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
			return nil, errSecret // the cause would repeat it
		}
	}
	return &Sender{url: o.URL, signature: signature, now: o.Now, client: NewClient(Guard(o.AllowPrivate), firstByte)}, nil
}

// NewClient returns a client for Post. It connects where permitted returns nil, and waits firstByte for the head of an
// answer, 0: without a bound of its own. It follows no redirects.
func NewClient(permitted func(network, address string, c syscall.RawConn) error, firstByte time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: dialTime, Control: permitted}
	return &http.Client{
		Timeout:       sendTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		// No proxy: one of the environment's would resolve the name instead of us.
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: firstByte,
			MaxResponseHeaderBytes: maxAnswer, MaxIdleConns: 2, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
			DisableCompression: true,
		},
	}
}

// Close ends the connections that wait for a next request.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// Answer is what a receiver said.
type Answer struct {
	Status int           // 0: there was no answer
	Wait   time.Duration // it asked for so long a pause, at most an hour
	// Text is the beginning of the body, in printable characters. It may be anything.
	Text string
}

// Gone reports a 410: the receiver wants no more.
func (a Answer) Gone() bool { return a.Status == http.StatusGone }

// Send sends one message, JSON under an id; nil is a 2xx. The error holds no part of the
// answer's body. Redirects are not followed: they are an error.
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

// Post sends a body by a client of NewClient; nil is a 2xx. The error holds neither the address, which may hold a
// token, nor a part of the answer's body.
func Post(ctx context.Context, client *http.Client, address string, header http.Header, body []byte) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return Answer{}, errors.New("its address cannot be asked")
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return Answer{}, err
	}
	defer resp.Body.Close()
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxText)) // what came counts
	// The rest is read so that the connection can be used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	a := Answer{Status: resp.StatusCode, Text: Printable(string(head))}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		a.Wait = min(time.Duration(min(seconds, int(maxWait/time.Second)))*time.Second, maxWait)
	}
	if resp.StatusCode/100 == 2 {
		return a, nil
	}
	return a, fmt.Errorf("answered %d", resp.StatusCode)
}

// Printable is foreign text without what cannot be printed, in one line and cut to 200
// bytes.
func Printable(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxText)], "")
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
