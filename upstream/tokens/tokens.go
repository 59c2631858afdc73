// Tokens: the exchange of a permanent secret for a token that expires.

// Package tokens requests the tokens that some APIs want instead of a secret: by OAuth 2.0 client credentials
// or a refresh token (RFC 6749), or as a GitHub App.
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
	"time"

	"understudy"

	"understudy/kit/lockwatch"
)

// The ways to get a token.
const (
	ClientCredentials = "client_credentials" // the secret is the client secret
	RefreshToken      = "refresh_token"      // the secret is the first refresh token
	AppInstallation   = "app_installation"   // the secret is the app's private key in PEM
)

// Kinds are all ways to get a token.
var Kinds = []string{ClientCredentials, RefreshToken, AppInstallation}

// Options are the settings of an Issuer.
type Options struct {
	Kind   string
	Source string // the name of the source, used in errors and in the names of stored tokens
	URL    string // the URL of the token endpoint
	Client string // the id of the client or of the app
	Secret understudy.Secret
	Scope  string        // the requested scope; "" means the client's default scope
	KV     understudy.KV // stores changed refresh tokens; required for RefreshToken

	Transport http.RoundTripper // the transport for requests; nil means the issuer's own transport, which uses no proxy
	Now       func() time.Time  // the clock; nil means time.Now
}

// Issuer exchanges secrets for tokens. It is safe for concurrent use.
type Issuer struct {
	o    Options
	http *http.Client
	mu   lockwatch.Mutex // ensures that refresh tokens are used one after the other, because each may be valid only once

	vaults map[string]*vault // by the first refresh token
}

const (
	exchangeTimeout = 30 * time.Second // the time limit of one exchange
	maxAnswer       = 64 << 10         // the maximum size of an answer in bytes
	minToken        = 1                // the minimum length of a token in bytes
)

// New creates an issuer. Its errors say which option is wrong.
func New(o Options) (*Issuer, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Fragment != "":
		return nil, fmt.Errorf("url is not a plain URL; write https://HOST/PATH, without user")
	case o.Client == "":
		return nil, errors.New("client is missing; write the id of the client or the app")
	case o.Kind == RefreshToken && o.KV == nil:
		return nil, errors.New("there is no store for refresh tokens")
	case o.Kind != ClientCredentials && o.Kind != RefreshToken && o.Kind != AppInstallation:
		return nil, fmt.Errorf("kind %q is not known; write one of %s", o.Kind, strings.Join(Kinds, ", "))
	}
	understudy.SetDefaults(nil, &o.Now)
	if o.Transport == nil {
		o.Transport = &http.Transport{ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute, MaxIdleConns: 2,
			TLSHandshakeTimeout: 10 * time.Second}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client := &http.Client{Transport: o.Transport, CheckRedirect: stay, Timeout: exchangeTimeout}
	return &Issuer{o: o, vaults: map[string]*vault{}, http: client}, nil
}

// RefusedError says that the endpoint refused the secret, so that a retry would fail too.
type RefusedError struct {
	Status int
	Code   string // the error code in the answer (RFC 6749, 5.2) such as invalid_grant, or ""
}

// Error returns the status and the code of the answer.
func (e *RefusedError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("no token: status %d", e.Status)
	}
	return fmt.Sprintf("no token: status %d, %s", e.Status, e.Code)
}

// Issue exchanges a secret for a token. It also returns when the token expires, or a zero time if that is
// unknown. The error is a *RefusedError, or a temporary one. Its text contains no secret.
func (s *Issuer) Issue(ctx context.Context, secret understudy.Secret) (understudy.Secret, time.Time, error) {
	switch s.o.Kind {
	case AppInstallation:
		return s.requestInstallation(ctx, secret)
	case RefreshToken:
		return s.refresh(ctx, secret)
	}
	form := url.Values{"grant_type": {ClientCredentials}}
	a, err := s.grant(ctx, form, secret)
	return a.token(), a.ends, err
}

// answer is a token response of an OAuth server or GitHub.
type answer struct {
	Access  string      `json:"access_token"`
	Plain   string      `json:"token"`
	Refresh string      `json:"refresh_token"`
	Seconds json.Number `json:"expires_in"`
	At      time.Time   `json:"expires_at"`
	Error   string      `json:"error"`

	ends time.Time
}

// token returns the token in the answer.
func (a *answer) token() understudy.Secret { return understudy.NewSecret(a.Access + a.Plain) }

// grant requests a token from the token endpoint. The client authenticates with HTTP Basic (RFC 6749, 2.3.1),
// or sends only its id if it has no secret.
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
		if u, ok := errors.AsType[*url.Error](err); ok {
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
	case bad != nil || len(a.Access)+len(a.Plain) < minToken || strings.ContainsFunc(a.Access+a.Plain, isUnprintable):
		return answer{}, fmt.Errorf("no token: status %d, but the answer has no token", status)
	}
	if a.ends = a.At; a.ends.IsZero() {
		if n, err := a.Seconds.Float64(); err == nil && n > 0 && n < 1e9 {
			a.ends = sent.Add(time.Duration(n) * time.Second)
		}
	}
	return a, nil
}

func isUnprintable(r rune) bool { return r <= ' ' || r > '~' }

// codeOf returns an error code if it is a short word, which is safe to show, else "".
func codeOf(text string) string {
	if len(text) > 60 || strings.ContainsFunc(text, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') }) {
		return ""
	}
	return text
}
