// Person: the caller of the viewer and of /-/, where people use a browser.

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

// Person returns the caller of the viewer or of /-/. If the request has a
// credential, the credential decides, for whichever source it is. Without one, and
// if people sign in, the session decides. If they do not, a request from this machine
// gets the loopback grant. If that grant names no role,
// the error is ErrForbidden and says which line to add to the config. Any other
// request gets ErrUnauthorized. The access log (accesslog.Of) names the caller. A caller
// of the role all may look through another role (ViewAs).
//
// A request is from this machine if three conditions hold. The connection comes
// from a loopback address. No header says that a proxy passed the request on.
// The Host header is a loopback name or address with the port of the connection.
// Without the last condition, any web site could read here after it points its
// own name at 127.0.0.1.
func (b *Book) Person(r *http.Request) (understudy.Caller, error) {
	c, err := b.person(r)
	if err != nil {
		return c, err
	}
	accesslog.LineOf(r.Context()).Caller = c.Name
	return b.through(r, c), nil
}

func (b *Book) person(r *http.Request) (understudy.Caller, error) {
	switch {
	case len(r.Header["Authorization"]) > 0:
	case b.signed == nil:
		return b.loopback(r)
	default:
		c, err := b.signed.Caller(r)
		if err == nil {
			b.told(r, c)
		}
		return c, err
	}
	c, err := b.find(r, b.people, "", personSchemes)
	if err != nil {
		return understudy.Caller{}, err
	}
	if c.Role() == "" {
		return understudy.Caller{}, fmt.Errorf("callers: %w: credential %s has no role; give it one under credentials in the config",
			understudy.ErrForbidden, c.Name)
	}
	return c, nil
}

// personSchemes are Basic and Bearer: a person may use a credential of any source. Clients
// that can only send a bearer token send USER:SECRET as one.
var personSchemes = func() []auth.Scheme {
	all, _ := (&auth.Auth{Callers: []string{"basic", "bearer"}}).Taken() // it has no error
	return all
}()

func (b *Book) loopback(r *http.Request) (understudy.Caller, error) {
	if b.machine.behind {
		return understudy.Caller{}, fmt.Errorf("callers: %w: no credential, and viewer.public_url says that a proxy passes requests on",
			understudy.ErrUnauthorized)
	}
	if why := notLocal(r); why != "" {
		return understudy.Caller{}, fmt.Errorf("callers: %w: no credential, and %s", understudy.ErrUnauthorized, why)
	}
	if b.machine.local.Role() == "" {
		return understudy.Caller{}, fmt.Errorf("callers: %w: people on this machine have no role; %s", understudy.ErrForbidden, b.advice())
	}
	if !b.machine.local.Grant.Live(b.now()) {
		return understudy.Caller{}, fmt.Errorf("callers: %w: the role of people on this machine has expired", understudy.ErrForbidden)
	}
	b.told(r, b.machine.local)
	return b.machine.local, nil
}

// advice returns the config line that gives a role to people on this machine.
func (b *Book) advice() string {
	if b.machine.role == "" {
		return "define one under roles in the config, and add this line: viewer: {role: NAME}"
	}
	return "add this line to the config: viewer: {role: " + b.machine.role + "}"
}

// Again returns what a caller of Person is in this book, if Person of another
// book with the same salt returned it. It is the caller with that credential, the person who signed
// in, or the caller on this machine. ok is false if the credential is gone, belongs to
// another caller now, or has another secret. ok is also false if no book made
// the caller. A caller who looks through a role still does.
func (b *Book) Again(c understudy.Caller) (now understudy.Caller, ok bool) {
	now, ok = b.again(c)
	if ok && c.Grant != nil && c.Grant.By == understudy.ByViewAs {
		return stillThrough(c, now)
	}
	return now, ok
}

func (b *Book) again(c understudy.Caller) (now understudy.Caller, ok bool) {
	if c.Flow == localFlow && c.Source == "" && c.Name == b.machine.local.Name {
		return b.machine.local, b.machine.local.Role() != "" && !b.machine.behind && b.signed == nil
	}
	if c.Source == "" && b.signed != nil {
		return b.signed.Again(c)
	}
	for _, e := range b.people {
		if e.caller.Flow == c.Flow && e.caller.Name == c.Name && e.caller.Source == c.Source {
			return e.caller, true
		}
	}
	return understudy.Caller{}, false
}

// passedOn are headers that only a proxy sets; passedOnStarts are prefixes of
// more such headers. Their values are never trusted. If one is present, the
// peer's address says nothing about the caller.
var (
	passedOn = [...]string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Fastly-Client-Ip",
		"X-Original-Host"}
	passedOnStarts = [...]string{"X-Forwarded-", "Cf-"}
)

// notLocal returns why a request is not from a person on this machine; "" if it
// is.
func notLocal(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return "the connection is not from this machine"
	}
	if !r.ProtoAtLeast(1, 1) {
		return "it was asked by HTTP/1.0, as proxies ask"
	}
	for name := range r.Header {
		starts := func(start string) bool { return strings.HasPrefix(name, start) }
		if slices.Contains(passedOn[:], name) || slices.ContainsFunc(passedOnStarts[:], starts) {
			return "a proxy passed the request on (" + name + ")"
		}
	}
	host, port := splitHost(r.Host)
	if !loopbackName(host) {
		return "the Host header names no loopback address"
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, want, err := net.SplitHostPort(at.String()); err != nil || port != want {
			return "the Host header names another port"
		}
	}
	return ""
}

// splitHost is the name and port of a Host header; no port means 80.
func splitHost(hostport string) (host, port string) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.Trim(hostport, "[]"), "80"
	}
	return strings.ToLower(host), port
}

func loopbackName(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}
