// OIDC: people sign in at a provider of OpenID Connect, by its code flow with PKCE
// (OpenID Connect Core 1.0, 3.1; RFC 7636; RFC 9207).

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

// Bounds of what a provider may take.
const (
	flowLasts    = 10 * time.Minute // from the button to the way back
	providerTime = 10 * time.Second // for an answer of the provider
	maxProvider  = 1 << 20          // bytes of one
)

// flowCookie holds what only the browser that began a flow may bring back.
const flowCookie = "__Host-understudy-flow"

// Rule gives a role to a group or to a domain of mail addresses.
type Rule struct{ Of, Role string }

// Provider is one of OpenID Connect. It is read at the first use and is never changed
// after that. Safe for concurrent use.
type Provider struct {
	Issuer, Client string
	Secret         understudy.Secret
	Groups         string                 // the claim with the groups; "": none
	Roles          []Rule                 // of groups; the first that fits counts
	Domains        []Rule                 // of verified mail addresses, after all groups
	Callback       func() string          // the address the provider sends browsers back to
	Cookies        *Cookies               // they hold what a browser brings back
	Taken          func(name string) bool // no person may have that name

	known atomic.Pointer[oidc.Provider]
}

// ErrProvider is a provider that does not answer as it should.
var ErrProvider = errors.New("the provider does not answer as it should")

// flow is what a browser brings back.
type flow struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Back     string `json:"b"`
}

// identity is who signed in, as the provider says.
type identity struct {
	name   string
	groups []string
	domain string // of a verified mail address
}

// Host is where the provider is.
func (p *Provider) Host() string {
	u, err := url.Parse(p.Issuer)
	if err != nil {
		return p.Issuer
	}
	return u.Host
}

// Begin sends a browser to the provider; the way back leads to back. Errors: ErrProvider.
func (p *Provider) Begin(w http.ResponseWriter, r *http.Request, back string) error {
	ctx, cancel := providerContext(r.Context())
	defer cancel()
	config, err := p.config(ctx)
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
		value, _ = json.Marshal(f) // it is shorter
	}
	p.Cookies.Set(w, flowCookie, value, flowLasts)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, config.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), http.StatusSeeOther)
	return nil
}

// finish reads what a browser brought back from the provider, and asks the provider
// who it is. Errors: ErrUnauthorized: what it brought does not fit together;
// ErrForbidden: the name is nobody's; ErrProvider.
func (p *Provider) finish(w http.ResponseWriter, r *http.Request) (who identity, back string, err error) {
	var f flow
	value, ok := p.Cookies.Take(w, r, flowCookie)
	q := r.URL.Query()
	switch {
	case !ok || json.Unmarshal(value, &f) != nil:
		return who, "", refused("this browser did not begin to sign in here, or too long ago; begin again")
	case subtle.ConstantTimeCompare([]byte(f.State), []byte(q.Get("state"))) != 1:
		return who, "", refused("the answer belongs to another sign-in; begin again")
	case q.Get("iss") != "" && q.Get("iss") != p.Issuer:
		return who, "", refused("the answer comes from another provider")
	case q.Get("error") != "":
		return who, "", refused("the provider says " + understudy.Clip(q.Get("error")+" "+q.Get("error_description")))
	case q.Get("code") == "":
		return who, "", refused("the answer has no code")
	}
	ctx, cancel := providerContext(r.Context())
	defer cancel()
	config, err := p.config(ctx)
	if err != nil {
		return who, "", err
	}
	token, err := config.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return who, "", failed("exchange the code", err)
	}
	claims, err := p.claims(ctx, token, f.Nonce)
	if err != nil {
		return who, "", err
	}
	who, err = p.identify(claims)
	return who, f.Back, err
}

// claims are what the id token says and, beside it, what the provider says of the user.
func (p *Provider) claims(ctx context.Context, token *oauth2.Token, nonce string) (map[string]json.RawMessage, error) {
	raw, _ := token.Extra("id_token").(string)
	known := p.known.Load()
	id, err := known.Verifier(&oidc.Config{ClientID: p.Client}).Verify(ctx, raw)
	if err != nil {
		return nil, failed("check the id token", err)
	}
	claims := map[string]json.RawMessage{}
	if err := id.Claims(&claims); err != nil {
		return nil, failed("read the id token", err)
	}
	switch {
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(nonce)) != 1:
		return nil, refused("the id token is that of another sign-in")
	case (len(id.Audience) > 1 || claims["azp"] != nil) && text(claims["azp"]) != p.Client: // Core, 3.1.3.7
		return nil, refused("the id token is for another client")
	case known.UserInfoEndpoint() == "":
		return claims, nil
	}
	info, err := known.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return nil, failed("ask for the user", err)
	}
	if info.Subject != id.Subject { // Core, 5.3.2
		return nil, refused("the provider says two users")
	}
	more := map[string]json.RawMessage{}
	if err := info.Claims(&more); err != nil {
		return nil, failed("read the user", err)
	}
	// One of the two says that its own address is verified, not that of the other.
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

// identify finds name, groups and domain. A person is named by a verified mail address,
// else by the subject, which the provider gives nobody else.
func (p *Provider) identify(claims map[string]json.RawMessage) (who identity, err error) {
	mail := strings.ToLower(text(claims["email"]))
	if at := strings.LastIndexByte(mail, '@'); at > 0 && isTrue(claims["email_verified"]) {
		who.name, who.domain = mail, mail[at+1:]
	} else {
		who.name = text(claims["sub"])
	}
	if who.domain == "" && strings.Contains(who.name, "@") { // it may be somebody else's address
		return who, fmt.Errorf("signin: %w: the provider does not say that the mail address of %q is verified", understudy.ErrForbidden,
			understudy.Clip(who.name))
	}
	if err := CheckName(who.name); err != nil || p.Taken(who.name) {
		return who, fmt.Errorf("signin: %w: %q is no name of a person here", understudy.ErrForbidden, understudy.Clip(who.name))
	}
	if value, ok := claims[p.Groups]; ok && p.Groups != "" {
		if json.Unmarshal(value, &who.groups) != nil {
			who.groups = []string{text(value)}
		}
	}
	// Others count for nothing and would make the session large.
	who.groups = slices.DeleteFunc(who.groups, func(g string) bool { return roleOf(p.Roles, g) == "" })
	return who, nil
}

// role is that of a session; ok is false when it is of another provider, or has none.
func (p *Provider) role(s *Session) (role string, ok bool) {
	if s.With != p.with() || p.Taken(s.Name) {
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

// with names the provider and our client of it.
func (p *Provider) with() string {
	sum := sha256.Sum256([]byte(p.Issuer + "\x00" + p.Client))
	return hex.EncodeToString(sum[:8])
}

// config is our client of the provider, which is read unless it is known.
func (p *Provider) config(ctx context.Context) (*oauth2.Config, error) {
	known := p.known.Load()
	if known == nil {
		var err error
		if known, err = oidc.NewProvider(ctx, p.Issuer); err != nil {
			return nil, failed("read "+p.Issuer, err)
		}
		p.known.Store(known)
	}
	var can struct {
		Scopes []string `json:"scopes_supported"`
	}
	if err := known.Claims(&can); err != nil {
		return nil, failed("read "+p.Issuer, err)
	}
	scopes := []string{oidc.ScopeOpenID, "email", "profile"}
	if p.Groups != "" && slices.Contains(can.Scopes, "groups") {
		scopes = append(scopes, "groups")
	}
	return &oauth2.Config{ClientID: p.Client, ClientSecret: p.Secret.Reveal(), Endpoint: known.Endpoint(), RedirectURL: p.Callback(),
		Scopes: scopes}, nil
}

// providerContext bounds what is asked of a provider.
func providerContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(oidc.ClientContext(ctx, providers), providerTime)
}

// providers is the client that asks them: it follows no redirect and reads so many bytes.
var providers = &http.Client{
	Timeout: providerTime, Transport: bounded{},
	CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("a redirect, which is not followed") },
}

type bounded struct{}

// RoundTrip bounds the body of an answer.
func (bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxProvider), resp.Body}
	}
	return resp, err
}

func refused(why string) error { return fmt.Errorf("signin: %w: %s", understudy.ErrUnauthorized, why) }

// failed is an error of the provider. The code and tokens it sent are left out.
func failed(what string, err error) error {
	var said *oauth2.RetrieveError
	if errors.As(err, &said) {
		err = fmt.Errorf("%s %s", said.Response.Status, understudy.Clip(said.ErrorCode))
	}
	return fmt.Errorf("signin: %w: %s: %w", ErrProvider, what, err)
}

// text is a claim that is one, else "".
func text(value json.RawMessage) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// isTrue reports whether a claim is true; some providers write it as a text.
func isTrue(value json.RawMessage) bool {
	return string(value) == "true" || text(value) == "true"
}
