// This file contains the settings of how people sign in to the viewer.

package config

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"understudy/internal/signin"
	"understudy/kit/header"
	"understudy/kit/suggest"
)

// The values of the setting viewer.sign_in.
const (
	signInNone   = "none"
	signInUsers  = "users"
	signInHeader = "header"
	signInOIDC   = "oidc"
)

// checkSignIn returns an error if the settings of the sign-in contradict each other.
func (c *Settings) checkSignIn() error {
	v, ways := &c.Viewer, []string{signInNone, signInUsers, signInHeader, signInOIDC}
	switch {
	case v.SignIn != "" && !slices.Contains(ways, v.SignIn):
		return fmt.Errorf("sign_in: %q is not known; write %s%s", v.SignIn, strings.Join(ways, ", "), suggest.Hint(v.SignIn, ways))
	case v.SignIn == signInNone && v.IsBehindProxy():
		return fmt.Errorf("sign_in: none is for people on this machine, and viewer.public_url says that a proxy is in front; write header " +
			"for a proxy that identifies people, or users")
	case v.SignIn != "" && v.SignIn != signInNone && v.Role != "":
		return fmt.Errorf("role: has no effect while people sign in (viewer.sign_in: %s); remove one of the two", v.SignIn)
	case v.SignIn != signInUsers && v.Users != findSetting("viewer.users").fallback:
		return fmt.Errorf("users: has no effect; write viewer.sign_in: users")
	case v.SignIn != signInHeader && !reflect.ValueOf(v.Header).IsZero():
		return fmt.Errorf("header: has no effect; write viewer.sign_in: header")
	case v.SignIn != signInOIDC && !reflect.ValueOf(v.OIDC).IsZero():
		return fmt.Errorf("oidc: has no effect; write viewer.sign_in: oidc")
	case v.SignIn == signInHeader:
		return v.Header.check()
	case v.SignIn == signInOIDC:
		return c.checkOIDC()
	}
	return nil
}

// checkOIDC checks those settings of OpenID Connect for which no response of the provider is needed.
func (c *Settings) checkOIDC() error {
	o := &c.Viewer.OIDC
	u, err := url.Parse(o.Issuer)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopbackURL(o.Issuer)) || u.RawQuery != "":
		return fmt.Errorf("oidc.issuer: %q: write the https address of the provider, as it writes it itself", o.Issuer)
	case o.Client == "":
		return fmt.Errorf("oidc.client: empty; write the client id that the provider gave")
	case o.Secret == "":
		return fmt.Errorf("oidc.secret: empty; write file:PATH or cmd:COMMAND")
	case len(o.Roles)+len(o.Domains) == 0:
		return fmt.Errorf("oidc: nobody has access; write roles by group, or domains")
	}
	for _, r := range slices.Concat(o.Roles, o.Domains) {
		if err := c.checkRole(r.Role); err != nil {
			return fmt.Errorf("oidc: %s: %w", r.Of, err)
		}
	}
	for _, r := range o.Domains {
		if r.Of != strings.ToLower(r.Of) || strings.ContainsAny(r.Of, "@ /") {
			return fmt.Errorf("oidc.domains: %q: write a domain in small letters, such as example.com", r.Of)
		}
	}
	return nil
}

// ReadProvider returns the provider at which people sign in, or nil if there is none. Its callback is not set.
func (c *Settings) ReadProvider(ctx context.Context, secrets Secrets) (*signin.Provider, error) {
	o := &c.Viewer.OIDC
	if c.Viewer.SignIn != signInOIDC {
		return nil, nil
	}
	secret, err := secrets(ctx, o.Secret)
	if err != nil {
		return nil, fmt.Errorf("viewer.oidc.secret: %w", err)
	}
	return &signin.Provider{Issuer: o.Issuer, Client: o.Client, Secret: secret, Groups: cmp.Or(o.Groups, "groups"), Roles: o.Roles,
		Domains: o.Domains, Taken: c.isTaken}, nil
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// check returns an error if the headers or the proxy addresses are invalid.
func (h *headerConfig) check() error {
	for _, one := range []struct{ key, name string }{{"name", h.Name}, {"roles", h.Roles}} {
		if !headerName.MatchString(one.name) {
			return fmt.Errorf("header.%s: %q is not a header name, such as X-Remote-User", one.key, one.name)
		}
	}
	switch {
	case strings.EqualFold(h.Name, h.Roles):
		return fmt.Errorf("header: name and roles are the same header")
	case len(h.From) == 0:
		return fmt.Errorf("header.from: list the addresses of the proxy, such as [127.0.0.1/32]; headers from other addresses are ignored")
	}
	_, err := parseProxies(h.From)
	if err != nil {
		err = fmt.Errorf("header.from: %w", err)
	}
	return err
}

// parseProxies parses the address blocks of reverse proxies.
func parseProxies(texts []string) (all header.Proxies, err error) {
	all, err = parseBlocks(texts)
	for _, p := range all {
		if p.Bits() == 0 {
			return nil, fmt.Errorf("%s is every address; name the addresses of the proxy", p)
		}
	}
	return all, err
}

// ReverseProxies returns the reverse proxies that may state a client's address.
func ReverseProxies(c *Settings) header.Proxies {
	all, _ := parseProxies(c.Proxies) // an error is impossible, because check has parsed the addresses before
	return all
}

// HeaderSignIn returns how a reverse proxy names the person of a request, or nil if no reverse proxy does.
func (c *Settings) HeaderSignIn(now func() time.Time) *signin.Header {
	h := &c.Viewer.Header
	if c.Viewer.SignIn != signInHeader {
		return nil
	}
	from, _ := parseProxies(h.From) // an error is impossible, because check has parsed the addresses before
	return &signin.Header{Name: h.Name, Roles: h.Roles, From: from, Now: now,
		Has:   func(role string) bool { return role != "" && c.checkRole(role) == nil },
		Taken: c.isTaken,
	}
}

// isTaken reports whether a name belongs to a credential, so that no person may have it.
func (c *Settings) isTaken(name string) bool {
	return isReserved(name) || c.isCredential(name) || c.Connect != nil && name == connectName
}

func (c *Settings) isCredential(name string) bool {
	return slices.ContainsFunc(c.Credentials, func(cred *credentialConfig) bool { return cred.Name == name })
}

// UsersFile returns the path of the file of users, or "" if people do not sign in with such a file. A relative path
// is relative to folder.
func (v *viewerConfig) UsersFile(folder string) string {
	if v.SignIn != signInUsers {
		return ""
	}
	return resolvePath(folder, v.Users)
}

// ReadUsers reads the file of users. It returns nil if people do not sign in with such a file. It returns an error
// for a user with an unknown role or with the name of a credential.
func (c *Settings) ReadUsers(folder string) (*signin.Users, error) {
	path := c.Viewer.UsersFile(folder)
	if path == "" {
		return nil, nil
	}
	users, err := signin.ReadUsers(path)
	if err != nil {
		return nil, fmt.Errorf("viewer.users: %w", err)
	}
	for _, u := range users.All() {
		if err := c.CheckUser(u.Name, u.Role); err != nil {
			return nil, fmt.Errorf("viewer.users: %s: %s: %w", path, u.Name, err)
		}
	}
	return users, nil
}

// CheckUser returns an error for an unknown role, and for a name that belongs to a credential.
func (c *Settings) CheckUser(name, role string) error {
	if err := c.checkRole(role); err != nil {
		return fmt.Errorf("role: %w", err)
	}
	if c.isCredential(name) {
		return fmt.Errorf("name: a credential has the same name")
	}
	if isReserved(name) {
		return fmt.Errorf("name: %s is what people on this machine and commands are called", name)
	}
	return nil
}

// isReserved reports whether a name is reserved for callers without a credential.
func isReserved(name string) bool { return name == "loopback" || name == "run.json" }
