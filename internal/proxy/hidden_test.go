// Hidden: callers bound by row rules learn nothing of other records, not even that they
// exist.

package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access/accesstest"
	"understudy/internal/checktest"
	"understudy/internal/proxy"
	"understudy/internal/sample"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
)

// asRole names a caller by its role.
type asRole struct{ role string }

func (asRole) Rate(understudy.Caller) (understudy.Rate, bool) { return understudy.Rate{}, false }

func (a asRole) Identify(*http.Request, string) (understudy.Caller, error) {
	var allow []understudy.Allow
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		for n := 3; n < 9; n++ {
			allow = append(allow, understudy.Allow{Method: method, Path: "/2010-04-01" + strings.Repeat("/*", n)})
		}
	}
	return understudy.Caller{Name: a.role, Source: "twilio", Grant: &understudy.Grant{Role: a.role, Allow: allow}}, nil
}

// hiddenWorld is a proxy over a world of marked records.
func hiddenWorld(t *testing.T, role string, held bool) (*accesstest.World, http.Handler) {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	w := &accesstest.World{
		Source: &spec.Source{Name: "twilio", Spec: sp, User: account}, Now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), Held: held,
	}
	gate, err := w.Gate(accesstest.Rules())
	check(t, err)
	p, err := proxy.New(proxy.Options{Source: w.Source, Mirror: w, Media: w, Gate: gate, Callers: asRole{role},
		Now: func() time.Time { return w.Now }})
	check(t, err)
	return w, p
}

// said is an answer less what differs from request to request.
func said(h http.Handler, method, target string, headers ...string) (status int, head http.Header, body string) {
	r := httptest.NewRequest(method, target, strings.NewReader(""))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	head = rec.Header().Clone()
	head.Del("X-Request-Id")
	return rec.Code, head, rec.Body.String()
}

// Whatever is asked, no mark of a hidden record comes back, and for one that
// is hidden and one that never was the answers are the same to the byte.
func TestHiddenRecordsAreNotThere(t *testing.T) {
	asks := [][]string{nil, {"Cache-Control", "no-cache"}, {"Cache-Control", "only-if-cached"}, {"Cache-Control", "max-age=0"},
		{"If-None-Match", "*"}, {"Prefer", "wait=1"}, {"Range", "bytes=0-3"}}
	for role := range accesstest.Rules() {
		for _, held := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, held %v", role, held), func(t *testing.T) {
				w, face := hiddenWorld(t, role, held)
				value := func(f *spec.Filter) string { return accesstest.Mark }
				hidden := proxy.AllTargets(w.Source, w.Hidden, value)
				never := proxy.AllTargets(w.Source, w.Never, value)
				run := sample.OneIn(t, 24)
				for i, target := range hidden {
					for _, query := range []string{"", "understudy.as_of=2026-05-31"} {
						for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
							for _, headers := range asks {
								if (method != "GET" || query != "" || role != "age") && headers != nil {
									continue
								}
								if !run() {
									continue
								}
								a, b := with(target, query), with(never[i], query)
								status, head, body := said(face, method, a, headers...)
								if m := accesstest.Marked(fmt.Sprint(head, body), asked(w, w.Hidden)...); m != "" {
									t.Fatalf("%s %s %v tells: %s", method, a, headers, m)
								}
								if a == b {
									continue // it names no record
								}
								statusB, headB, bodyB := said(face, method, b, headers...)
								checktest.MustEqual(t, status, statusB, "%s %s %v: status; body %s", method, a,
									headers, body)
								checktest.MustEqual(t, fmt.Sprint(head), fmt.Sprint(headB),
									"%s %s %v: fmt.Sprint(head); body %s", method, a, headers, body)
								checktest.MustEqual(t,
									strings.ReplaceAll(body, strings.Repeat("9", 32), strings.Repeat("0", 32)),
									bodyB,
									`%s %s %v: strings.ReplaceAll(body, strings.Repeat("9", 32), strings.Re…`,
									method, a, headers)
							}
						}
					}
				}
				for _, s := range w.Sent { // countries are no records
					if !strings.Contains(s.Target.Key.URI, "AvailablePhoneNumbers") && strings.Contains(s.Target.Key.URI, strings.Repeat("9", 32)) {
						t.Errorf("a write to a hidden record was sent: %s %s", s.Method, s.Target.Key.URI)
					}
				}
			})
		}
	}
}

func with(target, query string) string {
	switch {
	case query == "":
		return target
	case strings.Contains(target, "?"):
		return target + "&" + query
	}
	return target + "?" + query
}

// asked are the ids an answer may repeat, because the request named them.
func asked(w *accesstest.World, id func(string) string) (all []string) {
	for _, k := range w.Source.Spec.Kinds {
		if len(k.ID) > 0 {
			all = append(all, strings.Split(id(k.Name), spec.IDSeparator)...)
		}
	}
	return append(all, url.QueryEscape(accesstest.Mark)+"=")
}

// What a role may find it gets, byte for byte, with all that lies under it.
func TestFoundRecordsAreThere(t *testing.T) {
	for role, kinds := range map[string][]string{
		"age":    {"calls", "messages", "recordings", "participants", "media", "alerts", "incoming_phone_numbers"},
		"number": {"calls", "messages", "media", "incoming_phone_numbers"},
		"given":  {"calls"}, "sub": {"calls", "messages", "conferences", "alerts"}, "prefix": {"calls", "participants"},
		"both": {"messages", "media"},
	} {
		t.Run(role, func(t *testing.T) {
			w, face := hiddenWorld(t, role, true)
			for _, target := range proxy.AllTargets(w.Source, w.Shown, func(*spec.Filter) string { return "plain" }) {
				tg, err := w.Source.Spec.Resolve("twilio", path(target), query(target))
				if err != nil || tg.Kind == nil || len(tg.Kind.ID) == 0 || len(tg.Query) > 1 || strings.Contains(target, "NobodyKnows") {
					continue
				}
				status, _, body := said(face, "GET", target)
				for _, kind := range kinds {
					if tg.Kind.Name != kind {
						continue
					}
					want := string(w.Body(kind, w.Shown(kind)))
					if tg.Media != nil {
						want = "content"
					}
					if status != 200 || !strings.Contains(body, want) {
						t.Errorf("%s: %d %.300s", target, status, body)
					}
				}
			}
		})
	}
}

func path(target string) string  { p, _, _ := strings.Cut(target, "?"); return p }
func query(target string) string { _, q, _ := strings.Cut(target, "?"); return q }

// A list comes from records alone: a mirror that answers with upstream's page
// all the same is not believed.
func TestNeverAPageWithRowsCutOut(t *testing.T) {
	w, _ := hiddenWorld(t, "age", true)
	gate, err := w.Gate(accesstest.Rules())
	check(t, err)
	for name, m := range map[string]proxy.Mirror{"upstream's page": deaf{w}, "a page that says it is composed": liar{w}} {
		face, err := proxy.New(proxy.Options{Source: w.Source, Mirror: m, Gate: gate, Callers: asRole{"age"},
			Now: func() time.Time { return w.Now }})
		check(t, err)
		status, head, body := said(face, "GET", root+"/Calls.json")
		checktest.Equal(t, status, 503, "%s: status; body %s", name, body)
		checktest.Contains(t, body,
			`"message":"not mirrored yet: not all calls are stored here yet, and the role can see only some of them"`,
			"%s: body", name)
		checktest.Equal(t, head.Get("Retry-After"), "30", `%s: head.Get("Retry-After"); body %s`, name, body)
		checktest.Equal(t, accesstest.Marked(body), "", "%s: accesstest.Marked(body)", name)
	}
}

// deaf answers without the directives.
type deaf struct{ *accesstest.World }

func (d deaf) Answer(ctx context.Context, a request.Request) (*request.Response, error) {
	a.Local = nil
	return d.World.Answer(ctx, a)
}

// liar calls it composed.
type liar struct{ *accesstest.World }

func (l liar) Answer(ctx context.Context, a request.Request) (*request.Response, error) {
	answer, err := deaf(l).Answer(ctx, a)
	answer.Outcome = request.Composed
	return answer, err
}

// Another account is a record like any other: a path under one that is hidden is
// one under none.
func TestPathsUnderHiddenAccounts(t *testing.T) {
	for _, role := range []string{"age", "sub", "none"} {
		w, face := hiddenWorld(t, role, true)
		for _, at := range []string{"/Calls.json", "/Calls/" + w.Shown("calls") + ".json", "/Keys.json", "/Nothing.json"} {
			_, headA, a := said(face, "GET", "/2010-04-01/Accounts/"+w.Hidden("accounts")+at)
			_, headB, b := said(face, "GET", "/2010-04-01/Accounts/"+w.Never("accounts")+at)
			checktest.Equal(t, strings.ReplaceAll(a, w.Hidden("accounts"), w.Never("accounts")), b,
				`%s, %s: strings.ReplaceAll(a, w.Hidden("accounts"), w.Never("accounts"))`, role, at)
			checktest.Equal(t, fmt.Sprint(headA), fmt.Sprint(headB), "%s, %s: fmt.Sprint(headA)", role, at)
			checktest.Contains(t, a, `"status":40`, "%s, %s: a", role, at)
		}
	}
	w, face := hiddenWorld(t, "sub", true)
	if status, _, body := said(face, "GET", "/2010-04-01/Accounts/"+account+"/Calls.json"); status != 200 ||
		!strings.Contains(body, w.Shown("calls")) {
		t.Errorf("its own account: %d %s", status, body)
	}
}

// In an outage hidden and never-seen are one answer, too.
func TestHiddenRecordsInAnOutage(t *testing.T) {
	for _, held := range []bool{true, false} {
		w, _ := hiddenWorld(t, "age", held)
		gate, err := w.Gate(accesstest.Rules())
		check(t, err)
		face, err := proxy.New(proxy.Options{Source: w.Source, Mirror: cut{w}, Gate: gate, Callers: asRole{"age"},
			Now: func() time.Time { return w.Now }})
		check(t, err)
		for _, at := range []string{"/Calls/%s.json", "/Calls/%s/Recordings.json", "/Calls/%s/Nobody/Knows.json"} {
			for range 2 {
				a, headA, bodyA := said(face, "GET", root+fmt.Sprintf(at, w.Hidden("calls")))
				b, headB, bodyB := said(face, "GET", root+fmt.Sprintf(at, w.Never("calls")))
				checktest.Equal(t, a, b, "%s: a", at)
				checktest.True(t, !(a != 503 && a != 403), "%s: a != 503 && a != 403; a is %v", at, a)
				checktest.Equal(t, fmt.Sprint(headA), fmt.Sprint(headB), "%s: fmt.Sprint(headA)", at)
				checktest.Equal(t, bodyA, bodyB, "%s: bodyA", at)
				checktest.Equal(t, accesstest.Marked(bodyA), "", "%s: accesstest.Marked(bodyA)", at)
			}
		}
		if status, _, body := said(face, "GET", root+"/Calls/"+w.Shown("calls")+".json"); status != 200 ||
			body != string(w.Body("calls", w.Shown("calls"))) {
			t.Errorf("what it may find: %d %s", status, body)
		}
	}
}

// cut is a mirror whose upstream is down: what is held goes out stale.
type cut struct{ *accesstest.World }

func (c cut) Answer(ctx context.Context, a request.Request) (*request.Response, error) {
	answer, err := c.World.Answer(ctx, a)
	if a.Target.Kind == nil || c.Newest("", a.Target.Kind.Name, a.Target.ID) == nil {
		return nil, &understudy.UpstreamError{Why: understudy.FailServer, Status: 502, RetryAfter: 7 * time.Second,
			Page: &understudy.Page{Status: 502, Kind: "calls", Body: []byte(`{"message":"` + accesstest.Mark + `"}`)}}
	}
	answer.Outcome, answer.Detail, answer.Age = request.Stale, "stale: upstream 502", time.Hour
	return answer, err
}
