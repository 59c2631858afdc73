// Said: what upstream says of the age of an answer is kept where a source goes by it.

package upstream

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
)

func TestUpstreamsAgesAreKept(t *testing.T) {
	t.Parallel()
	const etag = `"1"`
	first := []string{"Etag", etag, "Cache-Control", "max-age=60, must-revalidate", "Expires", "Thu, 01 Jan 1970 00:00:00 GMT", "Age", "5",
		"Date", "Wed, 25 Nov 2026 12:00:00 GMT", "Vary", "Accept"}
	for name, one := range map[string]struct {
		asks        bool
		first, then []string
		want, after http.Header
	}{
		"not asked for": {false, first, []string{"Cache-Control", "no-store"}, nil, nil},
		"said once": {true, first, []string{"Etag", etag},
			http.Header{"Cache-Control": {"max-age=60, must-revalidate"}, "Expires": {"Thu, 01 Jan 1970 00:00:00 GMT"}, "Age": {"5"},
				"Date": {"Wed, 25 Nov 2026 12:00:00 GMT"}},
			http.Header{"Cache-Control": {"max-age=60, must-revalidate"}, "Expires": {"Thu, 01 Jan 1970 00:00:00 GMT"}}},
		"said again": {true, first, []string{"Cache-Control", "no-cache", "Age", "7"},
			http.Header{"Cache-Control": {"max-age=60, must-revalidate"}, "Expires": {"Thu, 01 Jan 1970 00:00:00 GMT"}, "Age": {"5"},
				"Date": {"Wed, 25 Nov 2026 12:00:00 GMT"}},
			http.Header{"Cache-Control": {"no-cache"}, "Expires": {"Thu, 01 Jan 1970 00:00:00 GMT"}, "Age": {"7"}}},
		"said later": {true, []string{"Etag", etag}, []string{"Cache-Control", "max-age=1"}, nil, http.Header{"Cache-Control": {"max-age=1"}}},
		"too long to keep": {true, []string{"Etag", etag, "Cache-Control", strings.Repeat("x", maxKept) + ", no-store"}, nil,
			http.Header{"Cache-Control": {"no-store"}}, http.Header{"Cache-Control": {"no-store"}}},
		"with our credential": {true, []string{"Etag", etag, "Cache-Control", "x=" + token}, nil,
			http.Header{"Cache-Control": {"no-store"}}, http.Header{"Cache-Control": {"no-store"}}},
	} {
		s := &script{do: func(n int, r *http.Request) (*http.Response, error) {
			if n == 0 {
				return reply(http.StatusOK, emptyCalls, one.first...), nil
			}
			if r.Header.Get("If-None-Match") != etag {
				t.Errorf("%s: asked with %v", name, r.Header)
			}
			return reply(http.StatusNotModified, "", one.then...), nil
		}}
		c := scripted(t, s, func(o *Options) { o.Source.UpstreamAges = one.asks })
		page, err := get(t, c, callsPath)
		checktest.MustNoError(t, err, "%s", name)
		checktest.MustTrue(t, reflect.DeepEqual(page.AgeHeader(), one.want),
			"%s: reflect.DeepEqual(page.AgeHeader(), one.want) is false", name)
		checktest.MustEqual(t, page.HeaderField("Etag"), etag, `%s: page.HeaderField("Etag")`, name)
		page, err = c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath), Stored: page})
		checktest.MustNoError(t, err, "%s", name)
		checktest.True(t, reflect.DeepEqual(page.AgeHeader(), one.after),
			"%s: reflect.DeepEqual(page.AgeHeader(), one.after) is false", name)
		checktest.Equal(t, page.HeaderField("Etag"), etag, `%s: page.HeaderField("Etag")`, name)
		checktest.Equal(t, string(page.Body), emptyCalls, "%s: string(page.Body)", name)
	}
}

// A field that the spec passes back leads here where it is an address of upstream.
func TestAFieldThatIsPassedBackLeadsHere(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"https://api.twilio.com/v1/next?a=1": ourURL + "/v1/next?a=1", "https://API.twilio.com:443/": ourURL + "/",
		"http://api.twilio.com/x": ourURL + "/x", "https://api.twilio.com": ourURL,
		"https://api.twilio.com.evil.example/x": "https://api.twilio.com.evil.example/x", "req_1": "req_1",
	} {
		s := &script{do: func(int, *http.Request) (*http.Response, error) {
			return reply(http.StatusOK, emptyCalls, "X-Next-Link", value), nil
		}}
		c := scripted(t, s, func(o *Options) {
			o.Source.PublicURL, o.Source.Spec = ourURL, builtInSpec(t, "twilio")
			back := *o.Source.Spec
			back.Headers.Back = []string{"X-Next-Link"}
			o.Source.Spec = &back
		})
		page, err := get(t, c, callsPath)
		if err != nil || page.HeaderField("X-Next-Link") != want {
			t.Errorf("%s is passed back as %q, %v, want %q", value, page.HeaderField("X-Next-Link"), err, want)
		}
	}
}

func TestPageIsAskedForAgainWhen304HasAnotherETag(t *testing.T) {
	t.Parallel()
	s := &script{do: func(n int, r *http.Request) (*http.Response, error) {
		switch {
		case n == 0:
			return reply(http.StatusOK, emptyCalls, "Etag", `"1"`), nil
		case r.Header.Get("If-None-Match") != "":
			return reply(http.StatusNotModified, "", "Etag", `"2"`), nil
		}
		return reply(http.StatusOK, emptyCalls, "Etag", `"2"`), nil
	}}
	c := scripted(t, s, func(*Options) {})
	page, err := get(t, c, callsPath)
	if err != nil {
		t.Fatal(err)
	}
	page, err = c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath), Stored: page})
	if err != nil {
		t.Fatal(err)
	}
	if tag := page.HeaderField("Etag"); tag != `"2"` {
		t.Errorf("the page has the ETag %s, want that of the new answer", tag)
	}
}

func TestFetchFailsWhenUpstreamAnswersEveryRequestWith304(t *testing.T) {
	t.Parallel()
	s := &script{do: func(n int, r *http.Request) (*http.Response, error) {
		if n == 0 {
			return reply(http.StatusOK, emptyCalls, "Etag", `"1"`), nil
		}
		if asked := r.Header.Get("If-None-Match") != ""; asked != (n == 1) {
			t.Errorf("request %d has a condition: %v", n, asked)
		}
		return reply(http.StatusNotModified, "", "Etag", `"2"`), nil
	}}
	c := scripted(t, s, func(*Options) {})
	page, err := get(t, c, callsPath)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath), Stored: page})
	var failed *understudy.UpstreamError
	if !errors.As(err, &failed) {
		t.Fatalf("the error is %v, want a failure of upstream", err)
	}
	if failed.Why != understudy.FailUnusable {
		t.Errorf("the failure is %v, want that the answer is unusable", failed.Why)
	}
}
