// Tokens: how a lasting secret is exchanged for a token that ends soon.

// Package tokens obtains the tokens that some APIs want in place of a secret: by OAuth 2.0
// client credentials or a refresh token (RFC 6749), or as a GitHub App.
package tokens

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"understudy"
)

// The ways to a token.
const (
	ClientCredentials = "client_credentials" // the secret is the client's
	RefreshToken      = "refresh_token"      // the secret is the first refresh token
	AppInstallation   = "app_installation"   // the secret is the app's private key, PEM
)

// Kinds are the ways to a token.
var Kinds = []string{ClientCredentials, RefreshToken, AppInstallation}

// Options say where tokens come from.
type Options struct {
	Kind   string
	Source string // its name, for errors and for what is kept
	URL    string // where tokens are asked for
	Client string // the client's id, or that of the app
	Secret understudy.Secret
	Scope  string        // "" = what the client may do anyway
	KV     understudy.KV // keeps refresh tokens that replace the first; required for these

	Transport http.RoundTripper // nil: one of our own, without a proxy
	Now       func() time.Time  // nil: time.Now
}

// Issuer exchanges secrets for tokens. It is safe for concurrent use.
type Issuer struct {
	o    Options
	http *http.Client
	mu   sync.Mutex // of refresh tokens, which may be used once
}

const (
	timeout    = 30 * time.Second // for one exchange
	maxAnswer  = 64 << 10         // bytes
	shortToken = 1                // bytes of a token, at least
)

// New makes an issuer. Errors say which option is wrong.
func New(o Options) (*Issuer, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "":
		return nil, fmt.Errorf("url: want http(s)://host/path, without user")
	case o.Client == "":
		return nil, errors.New("client: want the id of the client or the app")
	case o.Kind == RefreshToken && o.KV == nil:
		return nil, errors.New("nothing keeps refresh tokens")
	case o.Kind != ClientCredentials && o.Kind != RefreshToken && o.Kind != AppInstallation:
		return nil, fmt.Errorf("kind %q: want one of %s", o.Kind, strings.Join(Kinds, ", "))
	}
	understudy.SetDefaults(nil, &o.Now)
	if o.Transport == nil {
		o.Transport = &http.Transport{ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, MaxIdleConns: 2,
			TLSHandshakeTimeout: 10 * time.Second}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Issuer{o: o, http: &http.Client{Transport: o.Transport, CheckRedirect: stay, Timeout: timeout}}, nil
}

// RefusedError says that the secret itself was refused; another exchange would be, too.
type RefusedError struct {
	Status int
	Code   string // of the answer (RFC 6749, 5.2), as invalid_grant; "" without one
}

// Error says what was answered.
func (e *RefusedError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("no token: status %d", e.Status)
	}
	return fmt.Sprintf("no token: status %d, %s", e.Status, e.Code)
}

// Token exchanges a secret for a token and says when that ends; a zero time means that it is
// not known. The error is a *RefusedError, or one that may pass. Its text has no secret.
func (s *Issuer) Token(ctx context.Context, secret understudy.Secret) (understudy.Secret, time.Time, error) {
	switch s.o.Kind {
	case AppInstallation:
		return s.installation(ctx, secret)
	case RefreshToken:
		return s.refresh(ctx, secret)
	}
	form := url.Values{"grant_type": {ClientCredentials}}
	a, err := s.grant(ctx, form, secret)
	return a.token(), a.ends, err
}

// answer is a token as OAuth servers and GitHub write it.
type answer struct {
	Access  string      `json:"access_token"`
	Plain   string      `json:"token"`
	Refresh string      `json:"refresh_token"`
	Seconds json.Number `json:"expires_in"`
	At      time.Time   `json:"expires_at"`
	Error   string      `json:"error"`

	ends time.Time
}

func (a *answer) token() understudy.Secret { return understudy.NewSecret(a.Access + a.Plain) }

// grant asks the token endpoint. The client names itself by HTTP Basic (RFC 6749, 2.3.1), or
// by its id alone where it has no secret.
func (s *Issuer) grant(ctx context.Context, form url.Values, client understudy.Secret) (answer, error) {
	if s.o.Scope != "" {
		form.Set("scope", s.o.Scope)
	}
	if client.IsEmpty() {
		form.Set("client_id", s.o.Client)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, errors.New("no token: the request cannot be made")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if !client.IsEmpty() {
		req.SetBasicAuth(url.QueryEscape(s.o.Client), url.QueryEscape(client.Reveal()))
	}
	return s.ask(req)
}

// ask sends a request for a token and reads the answer.
func (s *Issuer) ask(req *http.Request) (a answer, err error) {
	req.Header.Set("Accept", "application/json")
	sent := s.o.Now()
	resp, err := s.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return answer{}, fmt.Errorf("no token: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return answer{}, fmt.Errorf("no token: %w", err)
	}
	bad := json.Unmarshal(body, &a)
	switch status := resp.StatusCode; {
	case status == http.StatusTooManyRequests || status >= 500 || status < 200 || status >= 300 && status < 400:
		return answer{}, fmt.Errorf("no token: status %d", status)
	case status >= 400:
		return answer{}, &RefusedError{Status: status, Code: codeOf(a.Error)}
	case bad != nil || len(a.Access)+len(a.Plain) < shortToken || strings.ContainsFunc(a.Access+a.Plain, unprintable):
		return answer{}, fmt.Errorf("no token: status %d without one", status)
	}
	if a.ends = a.At; a.ends.IsZero() {
		if n, err := a.Seconds.Float64(); err == nil && n > 0 && n < 1e9 {
			a.ends = sent.Add(time.Duration(n) * time.Second)
		}
	}
	return a, nil
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// codeOf is an error code that can be shown: a word.
func codeOf(text string) string {
	if len(text) > 60 || strings.ContainsFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return ""
	}
	return text
}
