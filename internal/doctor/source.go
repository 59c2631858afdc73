// This file asks the upstream of each source once, and says what the answer proves.

package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/spec"
	"understudy/upstream"
	"understudy/upstream/tokens"
)

func (e *examination) checkSources(ctx context.Context) {
	for _, src := range e.o.Sources {
		e.run(ctx, func(ctx context.Context) {
			state, isRefresh := e.running.Sources[src.Name].State, e.o.Settings.Sources[src.Name].Token.Kind == tokens.RefreshToken
			if isRefresh || state == "limited" { // a question would use up the refresh token, or break the wait that the upstream asked for
				e.judge("upstream", src.Name, "not asked, because it has a refresh token; for the server it is "+cmp.Or(state, "unknown"),
					problem{state == "limited", Warning, "not asked, because the server waits for its limit", "a lower sources." + src.Name + ".rate"})
			} else if err := e.ask(ctx, src); err != nil {
				e.judge("upstream", src.Name, "", problem{true, Fault, "it cannot be asked: " + print(err), "understudy check"})
			}
		})
	}
}

// observed is what the connection of a request has shown.
type observed struct {
	lookup atomic.Pointer[httptrace.DNSDoneInfo] // nil for an address
	tls    atomic.Pointer[tls.ConnectionState]   // nil without TLS
	sent   atomic.Pointer[time.Time]             // when the header could be sent
	first  atomic.Pointer[time.Time]             // when the answer began; nil if it did not
}

// trace returns a context whose requests are observed.
func (e *examination) trace(ctx context.Context) (context.Context, *observed) {
	o := &observed{}
	note := func(at *atomic.Pointer[time.Time]) func() { return func() { now := e.o.Now(); at.Store(&now) } }
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSDone: func(i httptrace.DNSDoneInfo) { o.lookup.Store(&i) }, GotFirstResponseByte: note(&o.first),
		GotConn: func(httptrace.GotConnInfo) { note(&o.sent)() },
		TLSHandshakeDone: func(s tls.ConnectionState, err error) {
			if err == nil {
				o.tls.Store(&s)
			}
		}}), o
}

// ask sends one request to the upstream of a source, and judges the answer.
func (e *examination) ask(ctx context.Context, src *spec.Source) error {
	s := e.o.Settings.Sources[src.Name]
	var o upstream.Options
	if src.Spec.Auth.Style == "none" {
		o = s.ClientOptions(e.o.Settings, src, nil)
	} else {
		secrets, err := s.ReadSecrets(ctx, src.Spec, e.o.Secrets)
		if err != nil {
			return err
		}
		issuer, err := s.NewIssuer(ctx, src, e.o.Secrets, nil)
		if err != nil {
			return err
		}
		if o = s.ClientOptions(e.o.Settings, src, secrets); issuer != nil {
			o.Tokens = issuer
		}
	}
	client, err := upstream.New(o)
	if err != nil {
		return err
	}
	ctx, seen := e.trace(ctx)
	status, header, left, failed, err := client.Check(ctx)
	if err = errors.Join(err, client.Close()); err != nil {
		return err
	}
	base := cmp.Or(s.Upstream, src.Spec.Hosts[0].URL)
	if e.judgeConnection(src.Name, base, seen, failed) {
		e.judgeAnswer(src.Name, base, status, header, failed)
	}
	if limited := failed != nil && failed.Why == understudy.FailLimited; left != nil || limited {
		text := fmt.Sprint(failed)
		if left != nil {
			text = fmt.Sprintf("%d of %d requests are left for %v", left.Remaining, left.Limit, left.Reset)
		}
		e.judge("rate", src.Name, text, problem{limited || left.Remaining*fewLeft < left.Limit, Warning, text,
			"a lower sources." + src.Name + ".rate, or another secret in its pool"})
	}
	return nil
}

const (
	endsSoon = 14 * 24 * time.Hour    // how long before its end a certificate should be replaced
	fewLeft  = 10                     // few requests are left if they are less than this part of the limit
	longWait = 500 * time.Millisecond // no server needs this long to answer the header of a request, nor to get a lock
	curlWait = time.Second            // how long curl waits for 100 Continue
)

// judgeConnection reports whether an answer began. It says what the connection has shown.
func (e *examination) judgeConnection(of, base string, seen *observed, failed *understudy.UpstreamError) bool {
	u, _ := url.Parse(base) // the settings and specs have only valid URLs
	host := u.Hostname()
	if l := seen.lookup.Load(); l != nil {
		e.judge("dns", of, host+" is found", problem{l.Err != nil, Fault, print(l.Err),
			"sources." + of + ".upstream, or the resolver: getent hosts " + host})
	}
	if bad := (*tls.CertificateVerificationError)(nil); failed != nil && errors.As(failed, &bad) {
		e.judge("tls", of, "", problem{true, Fault, print(bad), "the certificate of " + host + ", or this machine's clock or authorities"})
	} else if s := seen.tls.Load(); s != nil {
		ends := s.PeerCertificates[0].NotAfter
		text := "its certificate ends on " + ends.UTC().Format(time.DateTime)
		e.judge("tls", of, text, problem{ends.Sub(e.o.Now()) < endsSoon, Warning, text, "a new certificate at " + host})
	}
	if seen.first.Load() == nil {
		e.judge("upstream", of, "", problem{true, Fault, fmt.Sprint(failed), "sources." + of + ".upstream, or the network: curl -I " + base})
	}
	return seen.first.Load() != nil
}

// judgeAnswer says what an answer proves about the API, the clock and the credential.
func (e *examination) judgeAnswer(of, base string, status int, h http.Header, failed *understudy.UpstreamError) {
	why := understudy.FailNone
	if failed != nil {
		why = failed.Why
	}
	e.judge("upstream", of, fmt.Sprint("it answers with status ", status),
		problem{why == understudy.FailServer || why == understudy.FailUnreachable, Fault, fmt.Sprint(failed), "the API at " + base},
		problem{why == understudy.FailUnusable, Fault, fmt.Sprint(failed), "sources." + of + ".upstream, or its spec: understudy spec try"})
	if at, err := http.ParseTime(h.Get("Date")); err == nil && h.Get("Age") == "" { // the answer of a cache has the date of its fetch
		e.compareClocks(of, at)
	}
	scopes, named := h["X-Oauth-Scopes"]
	fine := "it is accepted for one list"
	if named {
		fine = "it is accepted with the scopes " + understudy.Clip(scopes[0])
	}
	if why == understudy.FailCredential || why == understudy.FailNone && (status < 300 || status == http.StatusForbidden) {
		e.judge("credential", of, fine, problem{why == understudy.FailCredential, Fault, fmt.Sprint("it is refused: status ", status),
			"a valid secret where sources." + of + ".secret points, then understudy reload"},
			problem{status == http.StatusForbidden, Warning, "it may not read a list: status 403", "its rights at the provider"},
			problem{named && scopes[0] == "", Warning, "it has no scopes, and reads only public data", "a token with scopes, such as repo"})
	}
}

// checkExpect measures how long clients wait that send Expect: 100-continue, as curl does with a body of 1 MiB. If a proxy neither
// answers nor passes it on, they wait for a second. The server refuses the request, because its path can only be read.
func (e *examination) checkExpect(ctx context.Context) {
	addresses := []string{e.o.Settings.Viewer.PublicURL}
	for _, src := range e.o.Sources {
		listen := e.o.Settings.Sources[src.Name].Listen
		if e.o.Ask != nil && !strings.HasSuffix(listen, ":0") {
			addresses = append(addresses, cmp.Or(src.PublicURL, "http://"+listen))
		}
	}
	for _, address := range addresses {
		if address == "" {
			continue
		}
		ctx, seen := e.trace(ctx)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(address, "/")+"/-/health", strings.NewReader("{}"))
		if err == nil {
			req.Header.Set("Expect", "100-continue")
			var resp *http.Response
			if resp, err = (&http.Transport{ExpectContinueTimeout: curlWait, DisableKeepAlives: true}).RoundTrip(req); err == nil {
				err = resp.Body.Close()
			}
		}
		wait := time.Duration(0)
		if err == nil {
			wait = seen.first.Load().Sub(*seen.sent.Load()).Round(time.Millisecond)
		}
		e.judge("expect", address, "Expect: 100-continue is answered at once",
			problem{err != nil, Warning, "it cannot be reached from here: " + print(err), "public_url, if programs cannot reach it either"},
			problem{wait > longWait, Fault, fmt.Sprintf("nobody answers Expect: 100-continue, so each large request waits for %v", wait),
				"a proxy there that passes it on, or clients that send an empty Expect:"})
	}
}
