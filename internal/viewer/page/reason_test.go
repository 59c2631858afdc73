// Reason: upstream's error codes are shown with their meaning and upstream's page about
// them.

package page_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

// An error code has its meaning and a way to upstream's page, in lists and on
// records; anything that is no code leads nowhere.
func TestCodes(t *testing.T) {
	h := viewertest.Open(t)
	page := h.Page("/twilio/alerts", viewertest.All)
	m := regexp.MustCompile(`<a href="https://www\.twilio\.com/docs/api/errors/(\d+)" rel="noopener noreferrer external">\d+</a> <span ` +
		`class="note">([^<]+)</span>`).FindStringSubmatch(page)
	if m == nil || html.UnescapeString(m[2]) != h.Spec.Errors.Meanings[m[1]] {
		t.Fatalf("no code with its meaning: %q", m)
	}
	id := h.FirstID("/twilio/alerts", `NO[0-9a-f]{32}`)
	if record := h.Page("/twilio/alerts/"+id, viewertest.All); !regexp.MustCompile(`<b>Error \d+\.</b> [A-Z]`).MatchString(record) {
		t.Error("an alert does not say what its code means")
	}
	s := h.Viewer.Visitor.ByName["twilio"]
	for text, want := range map[string]string{"30003": "https://www.twilio.com/docs/api/errors/30003", "": "", "12a": "", "../x": "",
		"1234567890123": ""} {
		if got := s.CodeDocs(text); got != want {
			t.Errorf("%q leads to %q", text, got)
		}
	}
}

func TestErrorCodesWithTheirMeaning(t *testing.T) {
	const docs = `href="https://www.twilio.com/docs/api/errors/`
	h := viewertest.Open(t)
	for _, test := range []struct {
		name     string
		who      viewertest.Browser
		page     *understudy.Page
		err      error
		has, not []string
	}{
		{"a refusal", viewertest.All, viewertest.Refusal(400, `{"code":21211,"message":"The 'To' number +15550001111 is wrong","status":400}`),
			nil,
			[]string{"21211", "Invalid “to” phone number", docs + `21211"`, "15550001111"}, nil},
		{"a refusal, masked", viewertest.Support, viewertest.Refusal(400, `{"code":21211,"message":"The number +15550001111 is wrong"}`), nil,
			[]string{"21211", docs + `21211"`}, []string{"15550001111"}},
		{"a code the spec does not explain", viewertest.All, viewertest.Refusal(400, `{"code":99999,"message":"?"}`), nil,
			[]string{"99999", docs + `99999"`}, []string{"Meaning"}},
		{"no code", viewertest.All, viewertest.Refusal(400, `{"message":"?"}`), nil, []string{"refused this (400)"}, []string{docs,
			"Error code"}},
		{"not computed yet", viewertest.All, viewertest.Refusal(202, `{}`), nil, []string{"Twilio is still computing this",
			"Try again in a moment"},
			[]string{"refused this", "It says"}},
		{"an outage", viewertest.All, nil, &understudy.UpstreamError{Why: understudy.FailServer, Status: 503,
			Page: viewertest.Refusal(503, `{"code":20503,"message":"down"}`)}, []string{"20503", "Service unavailable", docs + `20503"`}, nil},
		{"an outage without a body", viewertest.All, nil, &understudy.UpstreamError{Why: understudy.FailDown}, []string{"not answering"},
			[]string{docs}},
	} {
		h.Mirror.Lock()
		h.Mirror.Change = func(a request.Request, r *request.Response) (*request.Response, error) {
			if test.err != nil {
				return nil, fmt.Errorf("mirror: %w", test.err)
			}
			r.Page = test.page
			return r, nil
		}
		h.Mirror.Unlock()
		_, body, _ := h.Get("/twilio/calls", test.who)
		body = strings.NewReplacer("&#34;", "”", "&quot;", "”").Replace(body)
		for _, want := range test.has {
			if want = strings.NewReplacer("“", "”").Replace(want); !strings.Contains(body, want) {
				t.Errorf("%s: does not say %q:\n%s", test.name, want, body)
			}
		}
		for _, not := range test.not {
			if strings.Contains(body, not) {
				t.Errorf("%s: says %q", test.name, not)
			}
		}
	}
}

// What a page does with the answer to a write, it does with ReasonOf and RefusedWrite.
func TestRefusedWritesHaveTheirReason(t *testing.T) {
	h := viewertest.Open(t)
	ask := func(token string, run page.Handler) string {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(viewertest.Account, token)
		w := httptest.NewRecorder()
		h.Viewer.Visitor.Exchange(w, r, func(q *page.Exchange) error {
			q.Source = q.V.ByName["twilio"]
			return run(q)
		})
		return w.Body.String()
	}
	said := viewertest.Refusal(400, `{"code":21610,"message":"+15550001111 has unsubscribed","status":400}`)
	for token, shown := range map[string]bool{"alltoken": true, "supporttoken": false} {
		body := ask(token, func(q *page.Exchange) error {
			err := q.Rights.CheckWrite(q.Source, said)
			if why := q.Rights.ReasonOf(q.Source, fmt.Errorf("write: %w", err)); why.String() != "error 21610, Recipient has unsubscribed" {
				t.Errorf("the reason is %q", why)
			}
			return err
		})
		checktest.Contains(t, body, "21610", "%s: body", token)
		checktest.Contains(t, body, "Recipient has unsubscribed", "%s: body", token)
		checktest.Equal(t, strings.Contains(body, "15550001111"), shown, `%s: strings.Contains(body, "15550001111")`,
			token)
	}
	ask("alltoken", func(q *page.Exchange) error {
		if err := q.Rights.CheckWrite(q.Source, viewertest.Refusal(201, `{"code":1}`)); err != nil {
			t.Errorf("a write that was done: %v", err)
		}
		if why := q.Rights.ReasonOf(q.Source, errors.Join(context.DeadlineExceeded)); why != nil {
			t.Errorf("an error of no code has the reason %v", why)
		}
		return nil
	})
}
