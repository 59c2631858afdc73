// This file finds the caller of the viewer and of /-/, where people use a browser.

package callers

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"understudy"
	"understudy/kit/accesslog"
	"understudy/spec/auth"
)

// IdentifyPerson returns the caller of the viewer or of /-/. If the request has a credential, the credential
// decides, for whichever source it is. Otherwise, if people sign in, the session decides. If people do not sign in,
// a request from this machine gets the loopback grant. If that grant names no role, the error is ErrForbidden and
// says which line to add to the config. Any other request gets ErrUnauthorized. The access log (accesslog.LineOf)
// gets the caller's name, and names a person who has signed in. A caller of the role all may view as another role (ViewAs).
//
// A request is from this machine if three conditions hold. The connection comes from a loopback address. No header says
// that a proxy passed the request on. The Host header is a loopback name or address with the port of the connection.
// Without the last condition, any web site could read data here after it points its own name at 127.0.0.1.
func (b *Book) IdentifyPerson(r *http.Request) (understudy.Caller, error) {
	c, err := b.IdentifyProgram(r)
	if err == nil && c.Role() == "" {
		return understudy.Caller{}, fmt.Errorf("callers: %w: credential %s has no role; give it one under credentials in the config",
			understudy.ErrForbidden, c.Name)
	}
	return c, err
}

// IdentifyProgram does what IdentifyPerson does, but also returns callers without a role (see Grant.Service).
func (b *Book) IdentifyProgram(r *http.Request) (understudy.Caller, error) {
	c, err := b.identifyPerson(r)
	if err != nil {
		return c, err
	}
	accesslog.LineOf(r.Context()).Caller = c.Name
	return b.applyViewAs(r, c), nil
}

// identifyPerson returns the caller with its own role, without ViewAs.
func (b *Book) identifyPerson(r *http.Request) (understudy.Caller, error) {
	switch {
	case len(r.Header["Authorization"]) > 0:
	case b.signedIn == nil:
		return b.identifyLocal(r)
	default:
		c, err := b.signedIn.Identify(r)
		if err == nil {
			accesslog.LineOf(r.Context()).Person = c.Name
			b.notifyKnown(r, c)
		}
		return c, err
	}
	return b.find(r, b.people, "", personSchemes)
}

// personSchemes are Basic and Bearer. A person may use a credential of any source. Clients that can only send a
// bearer token send USER:SECRET as the token.
var personSchemes = func() []auth.Scheme {
	all, _ := (&auth.Auth{Callers: []string{"basic", "bearer"}}).ParseAccepted() // ParseAccepted has no error for these schemes
	return all
}()

// identifyLocal returns the caller on this machine, or an error that says why the request has no caller.
func (b *Book) identifyLocal(r *http.Request) (understudy.Caller, error) {
	if b.machine.behind {
		return understudy.Caller{}, fmt.Errorf("callers: %w: no credential, and viewer.public_url says that a proxy passes requests on",
			understudy.ErrUnauthorized)
	}
	if why := remoteReason(r); why != "" {
		return understudy.Caller{}, fmt.Errorf("callers: %w: no credential, and %s", understudy.ErrUnauthorized, why)
	}
	if b.machine.local.Role() == "" {
		return understudy.Caller{}, fmt.Errorf("callers: %w: people on this machine have no role; %s", understudy.ErrForbidden, b.advice())
	}
	if !b.machine.local.Grant.IsActive(b.now()) {
		return understudy.Caller{}, fmt.Errorf("callers: %w: the role of people on this machine has expired", understudy.ErrForbidden)
	}
	b.notifyKnown(r, b.machine.local)
	return b.machine.local, nil
}

// AdmitLocal returns an error unless a request is from this machine, as for IdentifyPerson.
func AdmitLocal(r *http.Request) (c understudy.Caller, err error) {
	if why := remoteReason(r); why != "" {
		err = fmt.Errorf("callers: %w: this port is only for programs on this machine, and %s", understudy.ErrForbidden, why)
	}
	return c, err
}

// advice returns the config line that gives a role to people on this machine.
func (b *Book) advice() string {
	if b.machine.role == "" {
		return "define one under roles in the config, and add this line: viewer: {role: NAME}"
	}
	return "add this line to the config: viewer: {role: " + b.machine.role + "}"
}

// Recheck returns the current state of a caller that IdentifyPerson returned, also of another book with the same
// salt. The result is the caller with that credential, the person who signed in, or the caller on this machine. ok
// is false if the credential was removed, belongs to another caller now, or has another secret, or if no book
// returned the caller. A caller who views as another role keeps that role.
func (b *Book) Recheck(c understudy.Caller) (now understudy.Caller, ok bool) {
	now, ok = b.recheckCaller(c)
	if ok && c.Grant != nil && c.Grant.IssuedBy == understudy.IssuedByViewAs {
		if now.Role() != understudy.RoleAll {
			return understudy.Caller{}, false
		}
		return withRole(now, c.Role()), true
	}
	return now, ok
}

// recheckCaller does what Recheck does for the caller's own role, without ViewAs.
func (b *Book) recheckCaller(c understudy.Caller) (now understudy.Caller, ok bool) {
	if c.Flow == localFlow && c.Source == "" && c.Name == b.machine.local.Name {
		return b.machine.local, b.machine.local.Role() != "" && !b.machine.behind && b.signedIn == nil
	}
	if c.Source == "" && b.signedIn != nil && c.Grant.Service == "" {
		return b.signedIn.Recheck(c)
	}
	for _, e := range b.people {
		if e.caller.Flow == c.Flow && e.caller.Name == c.Name && e.caller.Source == c.Source {
			return e.caller, true
		}
	}
	return understudy.Caller{}, false
}

// proxyHeaders are headers that only a proxy sets. proxyHeaderStarts are the beginnings of the names of more such headers.
// Their values are never trusted. If a request has such a header, its peer's address says nothing about the caller.
var (
	proxyHeaders = [...]string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Fastly-Client-Ip",
		"X-Original-Host"}
	proxyHeaderStarts = [...]string{"X-Forwarded-", "Cf-"}
)

// remoteReason returns why a request is not from a person on this machine, or "" if it is from such a person.
func remoteReason(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return "the connection is not from this machine"
	}
	if !r.ProtoAtLeast(1, 1) {
		return "it was asked by HTTP/1.0, as proxies ask"
	}
	for name := range r.Header {
		starts := func(start string) bool { return strings.HasPrefix(name, start) }
		if slices.Contains(proxyHeaders[:], name) || slices.ContainsFunc(proxyHeaderStarts[:], starts) {
			return "a proxy passed the request on (" + name + ")"
		}
	}
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = strings.Trim(r.Host, "[]"), "80"
	}
	if !isLoopbackName(strings.ToLower(host)) {
		return "the Host header names no loopback address"
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, want, err := net.SplitHostPort(at.String()); err != nil || port != want {
			return "the Host header names another port"
		}
	}
	return ""
}

func isLoopbackName(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}
