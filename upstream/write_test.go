// Write: once, and honest about what is known.

package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/upstream/throttle"
)

func write(t testing.TB, c *Client, method, uri, body string) (*understudy.Page, error) {
	return c.Write(t.Context(), request.Write{Target: target(t, c, uri), Method: method, Body: []byte(body),
		ContentType: "application/x-www-form-urlencoded"})
}

func TestWriteAnswers(t *testing.T) {
	const base = "/2010-04-01/Accounts/" + account
	const tokens, keys = base + "/Tokens.json", base + "/Keys.json"
	for _, c := range []struct {
		name, method, uri string
		reply             *http.Response
		body, id, why     string
		shape             string
		rows              int
	}{
		{"created", "POST", callsPath, reply(201, `{"sid":"CA7","status":"queued"}`), `{"sid":"CA7","status":"queued"}`, "CA7", "", "calls", 1},
		{"updated", "POST", call(7), reply(200, `{"sid":"CA7"}`), `{"sid":"CA7"}`, "CA7", "", "calls", 1},
		{"deleted", "DELETE", call(7), reply(204, ""), "", "CA7", "", "calls", 0},
		{"gone", "DELETE", call(7), reply(404, `{"code":20404}`), `{"code":20404}`, "CA7", "", "calls", 0},
		{"refused", "POST", callsPath, reply(400, `{"code":20001}`), `{"code":20001}`, "", "", "calls", 0},
		{"limited", "POST", callsPath, reply(429, `{"code":20429}`), `{"code":20429}`, "", "", "calls", 0},
		{"broken", "POST", callsPath, reply(500, `{"code":20500}`), `{"code":20500}`, "", "", "calls", 0},
		{"broken in HTML", "POST", callsPath, reply(502, `<html>`, "Content-Type", "text/html"), `<html>`, "", "not a JSON document", "calls", 0},
		{"a secret of no kind", "POST", tokens, reply(201, `{"sid":"SK1","auth_token":"xyz"}`), `{"sid":"SK1","auth_token":""}`, "", "", "", 0},
		{"a new key", "POST", keys, reply(201, `{"sid":"SK1","secret":"xyz"}`), `{"sid":"SK1","secret":""}`, "SK1", "", "keys", 1},
		{"another account's new key", "POST", "/2010-04-01/Accounts/AC2/Keys.json", reply(201, `{"sid":"SK1"}`), `{"sid":"SK1"}`, "SK1", "",
			"keys@elsewhere", 1},
		{"a new signing key", "POST", base + "/SigningKeys.json", reply(201, `{"sid":"SK1","secret":"xyz"}`), `{"sid":"SK1","secret":""}`, "SK1",
			"", "signing_keys", 1},
		{"a token", "POST", tokens, reply(201, `{"username":"u","password":"xyz","ice_servers":[{"url":"stun:a"},{"url":"turn:b",`+
			`"credential":"xyz"}]}`),
			`{"username":"u","password":"","ice_servers":[{"url":"stun:a"},{"url":"turn:b","credential":""}]}`, "", "", "", 0},
		{"a recording of a call", "POST", base + "/Calls/CA1/Recordings.json", reply(201, `{"sid":"RE1","track":"both"}`),
			`{"sid":"RE1","track":"both"}`, "RE1", "", "call_recordings", 1},
		{"a secret deep down", "POST", callsPath, reply(201, `{"sid":"CA1","account":{"auth_token":"xyz"}}`),
			`{"sid":"CA1","account":{"auth_token":""}}`, "CA1", "", "calls", 1},
		{"a secret in XML", "POST", tokens, reply(201, `<AuthToken>xyz</AuthToken>`, "Content-Type", "application/xml"), "", "",
			"contains a secret",
			"", 0},
		{"XML", "POST", tokens, reply(201, `<Sid>SK1</Sid>`, "Content-Type", "application/xml"), `<Sid>SK1</Sid>`, "",
			"not a JSON document", "", 0},
		{"another shape", "POST", callsPath, reply(200, `{"queued":5}`), `{"queued":5}`, "", "a record without sid", "calls", 0},
		{"not faithful", "POST", callsPath, reply(201, `{"sid":"\ud800"}`), `{"sid":"\ud800"}`, "", "lone surrogate", "calls", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{do: func(int, *http.Request) (*http.Response, error) { return c.reply, nil }}
			client := scripted(t, s)
			page, err := write(t, client, c.method, c.uri, "To=1")
			if err != nil {
				t.Fatal(err)
			}
			checktest.Equal(t, string(page.Body), c.body, "string(page.Body)")
			checktest.Equal(t, page.ID, c.id, "page.ID")
			checktest.Equal(t, page.Status, c.reply.StatusCode, "page.Status")
			checktest.Equal(t, page.Shape, c.shape, "page.Shape")
			checktest.MustEqual(t, len(page.Rows), c.rows, "len(page.Rows)")
			checktest.Equal(t, (page.NotStored == ""), (c.why == ""), `(page.NotStored == "")`)
			checktest.Contains(t, page.NotStored, c.why, "page.NotStored")
			checktest.True(t, page.Key.IsZero(), "key: page.Key.IsZero() is false")
			checktest.True(t, !page.List, "key: page.List is true")
			checktest.Equal(t, s.count(), 1, "key: s.count()")
		})
	}
}

func TestWriteSendsWhatIsGiven(t *testing.T) {
	c := scripted(t, &script{do: func(_ int, r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		checktest.Equal(t, r.Method, "POST", "r.Method; body %q", body)
		checktest.Equal(t, string(body), "To=%2B1&Body=x", "string(body)")
		checktest.Equal(t, r.Header.Get("Content-Type"), "application/x-www-form-urlencoded",
			`r.Header.Get("Content-Type"); body %q`, body)
		checktest.Equal(t, r.ContentLength, 14, "r.ContentLength; body %q", body)
		return reply(201, `{"sid":"CA1"}`), nil
	}})
	if _, err := write(t, c, "POST", callsPath, "To=%2B1&Body=x"); err != nil {
		t.Fatal(err)
	}
}

func TestWriteFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		do      func(int, *http.Request) (*http.Response, error)
		unknown bool
		why     understudy.Failure
		text    string
	}{
		{"nothing was sent", refused, false, understudy.FailUnreachable, "refused"},
		{"the connection broke", func(int, *http.Request) (*http.Response, error) { return nil, io.EOF }, true, 0, "EOF"},
		{"silence", slow(time.Hour, well), true, 0, "within"},
		{"the answer was cut", func(int, *http.Request) (*http.Response, error) { return reply(201, `{"sid`), nil }, true, 0, "status 201"},
		{"a redirect", func(int, *http.Request) (*http.Response, error) {
			return reply(303, "", "Location", "https://x.example/y"), nil
		}, true, 0, "x.example"},
		{"our credential", func(int, *http.Request) (*http.Response, error) { return reply(401, `{}`), nil }, false, understudy.FailCredential,
			"401"},
		{"our credential, forbidden", func(int, *http.Request) (*http.Response, error) { return reply(403, `{}`), nil }, false,
			understudy.FailCredential, "403"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{do: c.do}
				client := scripted(t, s)
				page, err := write(t, client, "POST", callsPath, "To=1")
				checktest.MustTrue(t, page == nil, "page is %v; %v", page, err)
				checktest.MustTrue(t, err != nil, "err is nil; page %v", page)
				checktest.MustEqual(t, errors.Is(err, understudy.ErrUnknownOutcome), c.unknown,
					"errors.Is(err, understudy.ErrUnknownOutcome); page %v", page)
				checktest.MustTrue(t, contains(err, c.text), "contains(err, c.text) is false; page %v", page)
				if e := (*understudy.UpstreamError)(nil); !c.unknown && (!errors.As(err, &e) || e.Why != c.why) {
					t.Errorf("%v", err)
				}
				if s.count() != 1 {
					t.Errorf("%d requests", s.count())
				}
			})
		})
	}
}

// A write is not undone when its caller leaves.
func TestWriteWhoseCallerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := scripted(t, &script{do: slow(time.Minute, well)})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Write(ctx, request.Write{Target: target(t, c, callsPath), Method: "POST"})
		if !errors.Is(err, understudy.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = c.Write(cancelled, request.Write{Target: target(t, c, callsPath), Method: "POST"})
		if errors.Is(err, understudy.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
			t.Errorf("left before: %v", err)
		}
	})
}

// Writes are not tried while the source is down or held, and say that nothing
// was sent; their own failures count towards it.
func TestWriteWhileDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: refused}
		c := scripted(t, s)
		for i := range throttle.DownAfter {
			if _, err := write(t, c, "DELETE", call(i), ""); failure(t, err).Why != understudy.FailUnreachable {
				t.Fatal(err)
			}
		}
		n := s.count()
		_, err := write(t, c, "POST", callsPath, "")
		e := failure(t, err)
		checktest.Equal(t, e.Why, understudy.FailDown, "e.Why; %v", err)
		checktest.Equal(t, s.count(), n, "s.count(); %v", err)
		checktest.True(t, !errors.Is(err, understudy.ErrUnknownOutcome),
			"errors.Is(err, understudy.ErrUnknownOutcome) is true")
		time.Sleep(time.Second)
		s.do = func(int, *http.Request) (*http.Response, error) { return reply(201, `{"sid":"CA1"}`), nil }
		if _, err := write(t, c, "POST", callsPath, ""); err != nil || c.Health().State != "ok" {
			t.Errorf("as the probe: %v %+v", err, c.Health())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &script{do: func(int, *http.Request) (*http.Response, error) {
			return reply(429, `{}`, "Retry-After", "5"), nil
		}}
		c := scripted(t, s)
		if page, err := write(t, c, "POST", callsPath, ""); err != nil || page.Status != 429 {
			t.Fatal(err)
		}
		if _, err := write(t, c, "POST", callsPath, ""); failure(t, err).RetryAfter != 5*time.Second || s.count() != 1 {
			t.Error(err)
		}
		if st := c.Stats(); st.Requests != 1 || st.Errors != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// The secret a write answers with is nowhere but upstream.
func TestWriteSecretsStay(t *testing.T) {
	spec := builtInSpec(t, "twilio")
	for _, body := range []string{
		`{"sid":"AC1","auth_token":"9f8e7d6c5b"}`, `[{"a":{"auth_token":{"x":"9f8e7d6c5b"}}}]`, `{"auth\u005ftoken":"9f8e7d6c5b"`,
		`<AuthToken>9f8e7d6c5b</AuthToken>`, "\ufeff{\"auth_token\":\"9f8e7d6c5b\"}", "auth_token=9f8e7d6c5b",
	} {
		for _, ct := range []string{"application/json", "application/xml", "text/plain", ""} {
			for _, status := range []int{200, 201, 400, 500, 303, 401} {
				c := scripted(t, &script{do: func(int, *http.Request) (*http.Response, error) {
					return reply(status, body, "Content-Type", ct), nil
				}}, func(o *Options) { o.Source.Spec = spec })
				page, err := write(t, c, "POST", "/2010-04-01/Accounts.json", "")
				out := fmt.Sprintf("%v %+v", err, c.Health())
				if page != nil {
					out += string(page.Body)
				}
				if strings.Contains(out, "9f8e7d6c5b") {
					t.Errorf("%d %s %s: %s", status, ct, body, out)
				}
			}
		}
	}
}

// What the spec names goes upstream: with a write the caller's own fields, with every request
// what the API demands.
func TestHeadersOfTheSpec(t *testing.T) {
	var all []http.Header
	s := &script{do: func(_ int, r *http.Request) (*http.Response, error) {
		all = append(all, r.Header.Clone())
		return reply(200, `{"sid":"CA7"}`), nil
	}}
	client := scripted(t, s, func(o *Options) {
		var err error
		if o.Source.Spec, err = ReadBuiltIn("twilio"); err != nil { // its own: it is changed
			t.Fatal(err)
		}
		o.Source.Spec.Headers.Send = map[string]string{"X-Api-Version": "3", "Accept": "application/vnd.x+json"}
	})
	_, err := client.Write(t.Context(), request.Write{Target: target(t, client, callsPath), Method: "POST",
		Header: http.Header{"Idempotency-Key": {"k1"}}})
	if err == nil {
		_, err = client.Fetch(t.Context(), request.Fetch{Target: target(t, client, call(7))})
	}
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %d requests", err, len(all))
	}
	for i, key := range []string{"k1", ""} {
		h := all[i]
		checktest.Equal(t, h.Get("Idempotency-Key"), key, `request %d: h.Get("Idempotency-Key")`, i)
		checktest.Equal(t, h.Get("X-Api-Version"), "3", `request %d: h.Get("X-Api-Version")`, i)
		checktest.Equal(t, h.Get("Accept"), "application/vnd.x+json", `request %d: h.Get("Accept")`, i)
	}
}
