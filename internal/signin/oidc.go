// This file lets people sign in at a provider of OpenID Connect, by its code flow with PKCE (OpenID Connect Core
// 1.0, 3.1; RFC 7636; RFC 9207).

package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"understudy"
)

// The limits of a provider's responses.
const (
	flowLifetime    = 10 * time.Minute // how long a person may take from the sign-in button to the return from the provider
	providerTimeout = 10 * time.Second // the maximum time for a response of the provider
	maxProvider     = 1 << 20          // the maximum size of a response of the provider, in bytes
)

// flowCookie is the name of the cookie with the state of a flow, so that only the browser that began the flow
// can finish it.
const flowCookie = "__Host-understudy-flow"

// Rule gives a role to a group or to a domain of mail addresses.
type Rule struct{ Of, Role string }

// Provider is a provider of OpenID Connect. Its metadata is read at the first use and does not change after
// that. It is safe for concurrent use.
type Provider struct {
	Issuer, Client string
	Secret         understudy.Secret
	Groups         string                 // the claim with the groups, or ""
	Roles          []Rule                 // the roles of groups; the first match counts
	Domains        []Rule                 // the roles of verified mail addresses, used if no group matches
	Callback       func() string          // returns the URL to which the provider redirects browsers
	Cookies        *Cookies               // stores the state of a flow in the browser
	Taken          func(name string) bool // reports whether no person may have that name

	known atomic.Pointer[oidc.Provider]
}

// ErrProvider means that the provider gave no response or an invalid one.
var ErrProvider = errors.New("the sign-in provider gave no valid answer")

// flow is the state of a sign-in at the provider, which the browser stores.
type flow struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Back     string `json:"b"`
}

// identity is the person who signed in, according to the provider.
type identity struct {
	name   string
	groups []string
	domain string // the domain of the person's verified mail address
}

// Host returns the host of the provider.
func (p *Provider) Host() string {
	u, err := url.Parse(p.Issuer)
	if err != nil {
		return p.Issuer
	}
	return u.Host
}

// Begin redirects a browser to the provider. After the sign-in the browser continues at the path back. Errors: ErrProvider.
func (p *Provider) Begin(w http.ResponseWriter, r *http.Request, back string) error {
	ctx, cancel := providerContext(r.Context())
	defer cancel()
	config, err := p.readConfig(ctx)
	if err != nil {
		return err
	}
	f := flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Back: back}
	value, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if len(value) > maxCookie {
		f.Back = "/"
		value, _ = json.Marshal(f) // without the path back the value fits into a cookie
	}
	p.Cookies.Set(w, flowCookie, value, flowLifetime)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, config.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), http.StatusSeeOther)
	return nil
}

// finish checks the parameters with which a browser returns from the provider, and asks the provider for the
// identity. Errors: ErrUnauthorized if the parameters do not belong to the flow; ErrForbidden if the name is not
// allowed; ErrProvider.
func (p *Provider) finish(w http.ResponseWriter, r *http.Request) (who identity, back string, err error) {
	var f flow
	value, ok := p.Cookies.Take(w, r, flowCookie)
	q := r.URL.Query()
	switch {
	case !ok || json.Unmarshal(value, &f) != nil:
		return who, "", newRefusal("this sign-in did not start in this browser, or it took too long; start again")
	case subtle.ConstantTimeCompare([]byte(f.State), []byte(q.Get("state"))) != 1:
		return who, "", newRefusal("this answer belongs to another sign-in; start again")
	case q.Get("iss") != "" && q.Get("iss") != p.Issuer:
		return who, "", newRefusal("this answer comes from another provider; start again")
	case q.Get("error") != "":
		return who, "", newRefusal("the provider refused: " + understudy.Clip(q.Get("error")+" "+q.Get("error_description")))
	case q.Get("code") == "":
		return who, "", newRefusal("the provider's answer has no code; start again")
	}
	ctx, cancel := providerContext(r.Context())
	defer cancel()
	config, err := p.readConfig(ctx)
	if err != nil {
		return who, "", err
	}
	token, err := config.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return who, "", newProviderError("exchange the code", err)
	}
	claims, err := p.readClaims(ctx, token, f.Nonce)
	if err != nil {
		return who, "", err
	}
	who, err = p.identify(claims)
	return who, f.Back, err
}

// readClaims returns the claims of the id token, and those claims of the provider's user info that the id token lacks.
func (p *Provider) readClaims(ctx context.Context, token *oauth2.Token, nonce string) (map[string]json.RawMessage, error) {
	raw, _ := token.Extra("id_token").(string)
	known := p.known.Load()
	id, err := known.Verifier(&oidc.Config{ClientID: p.Client}).Verify(ctx, raw)
	if err != nil {
		return nil, newProviderError("check the id token", err)
	}
	claims := map[string]json.RawMessage{}
	if err := id.Claims(&claims); err != nil {
		return nil, newProviderError("read the id token", err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1:
		return nil, newRefusal("the id token belongs to another sign-in; start again")
	// the check required by OpenID Connect Core, 3.1.3.7
	case (len(id.Audience) > 1 || claims["azp"] != nil) && text(claims["azp"]) != p.Client:
		return nil, newRefusal("the id token was issued for another client; check viewer.oidc.client")
	case known.UserInfoEndpoint() == "":
		return claims, nil
	}
	info, err := known.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, newProviderError("request the user info", err)
	}
	if info.Subject != id.Subject { // the check required by OpenID Connect Core, 5.3.2
		return nil, newRefusal("the id token and the user info name different users")
	}
	more := map[string]json.RawMessage{}
	if err := info.Claims(&more); err != nil {
		return nil, newProviderError("read the user info", err)
	}
	// The id token and the user info each confirm only their own mail address.
	if claims["email"] == nil {
		delete(claims, "email_verified")
	} else if !strings.EqualFold(text(claims["email"]), text(more["email"])) {
		delete(more, "email_verified")
	}
	for name, value := range more {
		if _, signed := claims[name]; !signed {
			claims[name] = value
		}
	}
	return claims, nil
}

// identify returns the name, groups and domain of the person. The name is a verified mail address or, without such
// an address, the subject, which is unique at the provider.
func (p *Provider) identify(claims map[string]json.RawMessage) (who identity, err error) {
	mail := strings.ToLower(text(claims["email"]))
	if at := strings.LastIndexByte(mail, '@'); at > 0 && isTrue(claims["email_verified"]) {
		who.name, who.domain = mail, mail[at+1:]
	} else {
		who.name = text(claims["sub"])
	}
	if who.domain == "" && strings.Contains(who.name, "@") { // a subject that looks like a mail address may be the address of another person
		return who, fmt.Errorf("signin: %w: the provider did not confirm that the mail address of %q is verified", understudy.ErrForbidden,
			understudy.Clip(who.name))
	}
	if err := CheckName(who.name); err != nil || p.Taken(who.name) {
		return who, fmt.Errorf("signin: %w: %q is not a valid name of a person here", understudy.ErrForbidden, understudy.Clip(who.name))
	}
	if value, ok := claims[p.Groups]; ok && p.Groups != "" {
		if json.Unmarshal(value, &who.groups) != nil {
			who.groups = []string{text(value)}
		}
	}
	// A group without a role has no effect and would make the session larger.
	who.groups = slices.DeleteFunc(who.groups, func(g string) bool { return roleOf(p.Roles, g) == "" })
	return who, nil
}

// role returns the role of a session. ok is false if the session belongs to another provider or its person has no role.
func (p *Provider) role(s *Session) (role string, ok bool) {
	if s.SignInID != p.signInID() || p.Taken(s.Name) {
		return "", false
	}
	for _, rule := range p.Roles {
		if slices.Contains(s.Groups, rule.Of) {
			return rule.Role, true
		}
	}
	role = roleOf(p.Domains, s.Domain)
	return role, role != ""
}

func roleOf(rules []Rule, name string) string {
	for _, rule := range rules {
		if rule.Of == name {
			return rule.Role
		}
	}
	return ""
}

// signInID returns a text that identifies the provider and this server's client there.
func (p *Provider) signInID() string {
	sum := sha256.Sum256([]byte(p.Issuer + "\x00" + p.Client))
	return hex.EncodeToString(sum[:8])
}

// readConfig returns the configuration of this server's client. It reads the provider's metadata at the first use.
func (p *Provider) readConfig(ctx context.Context) (*oauth2.Config, error) {
	known := p.known.Load()
	if known == nil {
		var err error
		if known, err = oidc.NewProvider(ctx, p.Issuer); err != nil {
			return nil, newProviderError("read "+p.Issuer, err)
		}
		p.known.Store(known)
	}
	var can struct {
		Scopes []string `json:"scopes_supported"`
	}
	if err := known.Claims(&can); err != nil {
		return nil, newProviderError("read "+p.Issuer, err)
	}
	scopes := []string{oidc.ScopeOpenID, "email", "profile"}
	if p.Groups != "" && slices.Contains(can.Scopes, "groups") {
		scopes = append(scopes, "groups")
	}
	return &oauth2.Config{ClientID: p.Client, ClientSecret: p.Secret.Reveal(), Endpoint: known.Endpoint(), RedirectURL: p.Callback(),
		Scopes: scopes}, nil
}

// providerContext returns a context with the client and the timeout for requests to a provider.
func providerContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(oidc.ClientContext(ctx, providers), providerTimeout)
}

// providers is the HTTP client for requests to providers. It follows no redirect and limits the size of responses.
var providers = &http.Client{
	Timeout: providerTimeout, Transport: limitedTransport{},
	CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the provider redirected the request, and redirects are not followed; check viewer.oidc.issuer")
	},
}

type limitedTransport struct{}

// RoundTrip sends a request and limits the body of the response.
func (limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxProvider), resp.Body}
	}
	return resp, err
}

func newRefusal(why string) error {
	return fmt.Errorf("signin: %w: %s", understudy.ErrUnauthorized, why)
}

// newProviderError returns an ErrProvider with a cause. It leaves out the code and tokens.
func newProviderError(what string, err error) error {
	if said, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		err = fmt.Errorf("%s %s", said.Response.Status, understudy.Clip(said.ErrorCode))
	}
	return fmt.Errorf("signin: %w: %s: %w", ErrProvider, what, err)
}

// text returns a claim as text, or "" if the claim is not a text.
func text(value json.RawMessage) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// isTrue reports whether a claim is true. Some providers write the claim as a text.
func isTrue(value json.RawMessage) bool {
	return string(value) == "true" || text(value) == "true"
}
