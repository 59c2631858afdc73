// Answers: which are pages, which are failures, and what passes.

package upstream

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream/body"
	"understudy/upstream/throttle"
)

func TestFetchJudgesAnswers(t *testing.T) {
	const problem = `{"code":20404,"message":"no","status":404}`
	for _, c := range []struct {
		name   string
		uri    string
		reply  *http.Response
		why    understudy.Failure
		body   string // of the page, or of the failure's page
		kept   string // NotStored
		rows   int
		detail string // of the failure
	}{
		{name: "a list", uri: callsPath, reply: reply(200, `{"calls":[{"sid":"CA1"},{"sid":"CA2"}]}`),
			body: `{"calls":[{"sid":"CA1"},{"sid":"CA2"}]}`, rows: 2},
		{name: "an instance", uri: strings.Replace(callsPath, ".json", "/CA1.json", 1), reply: reply(200, `{"sid":"CA1"}`), body: `{"sid":"CA1"}`,
			rows: 1},
		{name: "an unknown shape", uri: callsPath, reply: reply(200, `{"call":[]}`), body: `{"call":[]}`, kept: `no records under "calls"`},
		{name: "a next link nowhere", uri: callsPath, reply: reply(200, `{"calls":[],"next_page_uri":"/x"}`),
			body: `{"calls":[],"next_page_uri":"/x"}`, kept: "does not lead to a list"},
		{name: "a secret", uri: "/2010-04-01/Accounts.json", reply: reply(200, `{"accounts":[{"sid":"AC1","auth_token":"`+token+`"}]}`),
			body: `{"accounts":[{"sid":"AC1","auth_token":""}]}`, rows: 1},
		{name: "invalid UTF-8", uri: callsPath, reply: reply(200, "{\"calls\":[{\"sid\":\"\xff\"}]}"), body: "{\"calls\":[{\"sid\":\"\xff\"}]}",
			kept: "invalid UTF-8"},
		{name: "400", uri: callsPath, reply: reply(400, problem), body: problem, kept: "status 400"},
		{name: "404", uri: callsPath, reply: reply(404, problem), body: problem},
		{name: "404 without a body", uri: callsPath, reply: reply(404, ""), body: ""},
		{name: "404 in HTML", uri: callsPath, reply: reply(404, "<html>", "Content-Type", "text/html"), body: "<html>",
			kept: "not a JSON document"},
		{name: "404 in HTML with a secret", uri: callsPath, reply: reply(404, "<AuthToken>", "Content-Type", "text/html"),
			why: understudy.FailUnusable, detail: "contains a secret"},
		{name: "404 with a secret", uri: callsPath, reply: reply(404, `{"auth_token":"x"}`), body: `{"auth_token":""}`},
		{name: "404 cut", uri: callsPath, reply: reply(404, `{"a`), why: understudy.FailUnusable, detail: "no complete JSON document"},
		{name: "410", uri: callsPath, reply: reply(410, problem), body: problem},
		{name: "409", uri: callsPath, reply: reply(409, problem), body: problem, kept: "status 409"},
		{name: "401", uri: callsPath, reply: reply(401, `{"code":20003}`), why: understudy.FailCredential},
		{name: "403", uri: callsPath, reply: reply(403, `{"code":20003}`), why: understudy.FailCredential},
		{name: "429", uri: callsPath, reply: reply(429, `{"code":20429}`), why: understudy.FailLimited, body: `{"code":20429}`,
			kept: "status 429"},
		{name: "500", uri: callsPath, reply: reply(500, `{"code":20500}`), why: understudy.FailServer, body: `{"code":20500}`,
			kept: "status 500"},
		{name: "503 with a secret", uri: callsPath, reply: reply(503, `{"auth_token":"x"}`), why: understudy.FailServer,
			body: `{"auth_token":""}`, kept: "status 503"},
		{name: "502 in HTML", uri: callsPath, reply: reply(502, "<html>"), why: understudy.FailServer},
		{name: "HTML", uri: callsPath, reply: reply(200, "<html>", "Content-Type", "text/html"), why: understudy.FailUnusable,
			detail: "text/html"},
		{name: "empty", uri: callsPath, reply: reply(200, ""), why: understudy.FailUnusable, detail: "empty"},
		{name: "204", uri: callsPath, reply: reply(204, ""), kept: "status 204"}, // D15
		{name: "204 of a record", uri: strings.Replace(callsPath, ".json", "/CA1.json", 1), reply: reply(204, ""), kept: "status 204"},
		{name: "202", uri: callsPath, reply: reply(202, `{"calls":[]}`), body: `{"calls":[]}`, kept: "status 202"}, // D9
		{name: "202 without a body", uri: strings.Replace(callsPath, ".json", "/CA1.json", 1), reply: reply(202, ""), kept: "status 202"},
		{name: "202 of a path nobody named", uri: "/2010-04-01/x", reply: reply(202, `{}`), body: `{}`, kept: "status 202"},
		{name: "cut", uri: callsPath, reply: reply(200, `{"calls":[`), why: understudy.FailUnusable, detail: "cut"},
		{name: "a redirect", uri: callsPath, reply: reply(302, "", "Location", "https://evil.example/?token=x"), why: understudy.FailUnusable,
			detail: "a redirect to evil.example is not followed"},
		{name: "304", uri: callsPath, reply: reply(304, ""), why: understudy.FailUnusable, detail: "not followed"},
		{name: "another encoding", uri: callsPath, reply: reply(200, "x", "Content-Encoding", "compress"), why: understudy.FailUnusable,
			detail: `"compress" was not requested`},
		{name: "no gzip after all", uri: callsPath, reply: reply(200, "xxxxxxxxxxxxxxxxxxxxxx", "Content-Encoding", "gzip"),
			why: understudy.FailUnusable, detail: "gzip"},
		{name: "no kind", uri: "/2010-04-01/x", reply: reply(200, `{"word":"kept","auth_token":"x"}`), body: `{"word":"kept","auth_token":""}`,
			kept: "names no kind"},
		{name: "no kind, no JSON", uri: "/2010-04-01/x", reply: reply(200, "RIFF", "Content-Type", "audio/wav"), body: "RIFF",
			kept: "not a JSON document"},
		{name: "no kind, XML with a secret", uri: "/2010-04-01/x", reply: reply(200, "<AuthToken>x</AuthToken>", "Content-Type",
			"application/xml"), why: understudy.FailUnusable, detail: "contains a secret"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{do: func(int, *http.Request) (*http.Response, error) { return c.reply, nil }}
			client := scripted(t, s)
			page, err := get(t, client, c.uri)
			if c.why != understudy.FailNone {
				e := failure(t, err)
				checktest.MustEqual(t, e.Why, c.why, "failure: e.Why; %v", err)
				checktest.MustEqual(t, e.Status, c.reply.StatusCode, "failure: e.Status; %v", err)
				checktest.MustContains(t, err.Error(), c.detail, "failure: err.Error()")
				if page = e.Page; (page != nil) != (c.kept != "") {
					t.Fatalf("the failure's page is %+v", page)
				}
				if page == nil {
					return
				}
			} else if err != nil {
				t.Fatal(err)
			}
			checktest.Equal(t, string(page.Body), c.body, "page: string(page.Body)")
			checktest.Equal(t, page.Status, c.reply.StatusCode, "page: page.Status")
			checktest.MustEqual(t, len(page.Rows), c.rows, "page: len(page.Rows)")
			checktest.Equal(t, (page.NotStored == ""), (c.kept == ""), `page: (page.NotStored == "")`)
			checktest.Contains(t, page.NotStored, c.kept, "page: page.NotStored")
			sum := sha256.Sum256(page.Body)
			if !bytes.Equal(page.Sum[:], sum[:16]) {
				t.Error("the sum is not the body's")
			}
			checktest.True(t, page.Key.URI != "", "page: page.Key.URI is empty")
			checktest.Equal(t, page.Key.Source, "twilio", "page: page.Key.Source")
			checktest.True(t, !page.At.IsZero(), "page: page.At.IsZero() is true")
			checktest.Equal(t, page.ContentType, c.reply.Header.Get("Content-Type"), "page: page.ContentType")
			if n := s.count(); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func TestPageNamesWhatWasAsked(t *testing.T) {
	c := scripted(t, &script{do: func(_ int, r *http.Request) (*http.Response, error) {
		return reply(200, `{"calls":[],"next_page_uri":"`+callsPath+`?Page=1&PageToken=PACA9"}`), nil
	}})
	page, err := c.Fetch(t.Context(), request.Fetch{Target: target(t, c, callsPath+"?To=%2b1"), Generation: 7})
	if err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, page.Kind, "calls", "page.Kind")
	checktest.Equal(t, page.Shape, "calls", "page.Shape")
	checktest.True(t, page.List, "page.List is false")
	checktest.Equal(t, page.ID, "", "page.ID")
	checktest.Equal(t, page.Generation, 7, "page.Generation")
	checktest.Equal(t, page.Key.URI, callsPath+"?To=%2B1&PageSize=50", "page.Key.URI")
	checktest.Equal(t, page.Next.URI, callsPath+"?PageSize=50&Page=1&PageToken=PACA9", "page.Next.URI")
	page, err = get(t, c, strings.Replace(callsPath, ".json", "/CA1.json", 1))
	checktest.MustNoError(t, err, "page %+v", page)
	checktest.Equal(t, page.ID, "CA1", "page.ID")
	checktest.True(t, !page.List, "page.List is true")
	checktest.Equal(t, page.NotStored, "a record without sid", "page.NotStored")
}

// The secret is in no error, log line or page, wherever upstream puts it.
func TestSecretsStay(t *testing.T) {
	log, out := loud()
	seen := bytes.Buffer{}
	for i, do := range []func(int, *http.Request) (*http.Response, error){
		func(_ int, r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("broken pipe while sending %q", r.Header)
		},
		func(_ int, r *http.Request) (*http.Response, error) {
			return reply(500, fmt.Sprintf(`{"got":%q,"auth_token":%q,"t":%q}`, r.Header.Get("Authorization"), token, token), "Retry-After", token),
				nil
		},
		func(_ int, r *http.Request) (*http.Response, error) {
			return reply(400, "you said "+r.Header.Get("Authorization")+token, "Content-Type", "text/plain"), nil
		},
		func(_ int, r *http.Request) (*http.Response, error) {
			return reply(302, "", "Location", "https://"+token+"@x.example/"+token), nil
		},
		func(_ int, r *http.Request) (*http.Response, error) { return reply(200, token), nil },
		func(_ int, r *http.Request) (*http.Response, error) {
			return reply(200, `{"calls":[{"sid":"CA1","note":"`+token+`"}]}`), nil
		},
	} {
		c := scripted(t, &script{do: do}, func(o *Options) { o.Logger = log })
		page, err := get(t, c, callsPath)
		var e *understudy.UpstreamError
		if errors.As(err, &e) && e.Page != nil {
			page = e.Page
		}
		fmt.Fprintf(&seen, "%d: %v %+v %+v\n", i, err, c.Health(), c.Stats())
		if page != nil {
			seen.Write(page.Body)
		}
	}
	seen.Write(out.Bytes())
	user := "QUMwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMTpzbG93YXBpdG9rZW4"
	for _, secret := range []string{token, user} {
		if i := bytes.Index(seen.Bytes(), []byte(secret)); i >= 0 {
			t.Errorf("a secret leaves: …%s", seen.Bytes()[max(0, i-60):i+len(secret)])
		}
	}
	if seen.Len() < 500 {
		t.Errorf("little was seen: %s", &seen)
	}
}

func TestRequestCarriesWhatItMust(t *testing.T) {
	var got *http.Request
	s := &script{do: func(_ int, r *http.Request) (*http.Response, error) {
		got = r
		return reply(200, `{}`), nil
	}}
	c := scripted(t, s)
	if _, err := get(t, c, callsPath+"?StartTime%3e=2024-01-01&To=+1%20x/é&bare&empty="); err != nil {
		t.Fatal(err)
	}
	want := "https://api.twilio.com" + callsPath + "?To=+1+x%2F%C3%A9&StartTime%3E=2024-01-01&bare&empty=&PageSize=50"
	want = strings.Replace(want, "To=+1", "To=+1", 1)
	if got.URL.String() != want {
		t.Errorf("asked %s\nwant  %s", got.URL, want)
	}
	user, secret, _ := got.BasicAuth()
	checktest.Equal(t, user, account, "user")
	checktest.Equal(t, secret, token, "secret")
	checktest.Equal(t, got.Header.Get("Accept-Encoding"), body.AcceptEncoding, `got.Header.Get("Accept-Encoding")`)
	checktest.Equal(t, got.Header.Get("User-Agent"), "understudy", `got.Header.Get("User-Agent")`)
	checktest.Equal(t, got.Method, "GET", "got.Method")
	c.SetCredential("SK1", understudy.NewSecret("other"))
	if _, err := get(t, c, callsPath); err != nil {
		t.Fatal(err)
	}
	if user, secret, _ = got.BasicAuth(); user != "SK1" || secret != "other" {
		t.Errorf("user %s, secret %s", user, secret)
	}

	shelf, err := New(Options{Source: &spec.Source{Name: "shelf", Spec: specFile(t, "shelf")}, Base: "http://127.0.0.1:1/base/",
		Secret: understudy.NewSecret("abc"), Transport: s, UserAgent: "me/1"})
	if err != nil {
		t.Fatal(err)
	}
	defer shelf.Close()
	if _, err := get(t, shelf, "/v3/main/books?x=%2F"); err != nil {
		t.Fatal(err)
	}
	checktest.Equal(t, got.URL.String(), "http://127.0.0.1:1/base/v3/main/books?x=%2F&limit=20",
		"asked: got.URL.String()")
	checktest.Equal(t, got.Header.Get("Authorization"), "Bearer abc", `asked: got.Header.Get("Authorization")`)
	checktest.Equal(t, got.Header.Get("User-Agent"), "me/1", `asked: got.Header.Get("User-Agent")`)
	links, err := New(Options{Source: &spec.Source{Name: "links", Spec: specFile(t, "links")}, Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	defer links.Close()
	if _, err := get(t, links, "/events"); err != nil || got.Header.Get("Authorization") != "" {
		t.Errorf("%v, %v", err, got.Header)
	}
	// A path that no host of the spec serves is no failure of upstream.
	if _, err := get(t, c, "/2011/x"); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("a path without a host: %v", err)
	}
	if h := c.Health(); h.State != "ok" || len(h.Recent) != 2 {
		t.Errorf("health %+v", h)
	}
}

func TestNewRefusesNonsense(t *testing.T) {
	sp := builtInSpec(t, "twilio")
	for _, o := range []Options{
		{}, {Source: &spec.Source{}},
		{Source: &spec.Source{Name: "x", Spec: sp}, Base: "ftp://x"},
		{Source: &spec.Source{Name: "x", Spec: sp}, Base: "127.0.0.1:80"},
		{Source: &spec.Source{Name: "x", Spec: sp}, Base: "http://user:pass@x"},
		{Source: &spec.Source{Name: "x", Spec: sp}, Base: "http://x?y"},
	} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "pass") {
			t.Errorf("%+v: %v", o.Base, err)
		}
	}
}

func TestRecentKeepsTheLast(t *testing.T) {
	var c throttle.Counts
	for i := range 300 {
		c.AddAnswer(time.Duration(i))
	}
	got := c.AnswerTimes()
	checktest.MustEqual(t, len(got), 120, "len(got)")
	checktest.Equal(t, got[0], 180, "got[0]")
	checktest.Equal(t, got[119], 299, "got[119]")
}

// What was sent is counted by five minutes, for a day.
func TestSpending(t *testing.T) {
	var c throttle.Counts
	unknown := func(uint64) string { return "" }
	begin := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for i := range 3 * 24 * 60 { // a request a minute, every third of a sync, every fifth fails
		now := begin.Add(time.Duration(i) * time.Minute)
		reason := request.ReasonWaiting
		if i%3 == 0 {
			reason = request.ReasonSync
		}
		if c.AddRequest(reason, 0, now); i%5 == 0 {
			c.AddFailure(now)
		}
	}
	end := begin.Add(3*24*time.Hour - time.Minute)
	all := c.Spending(end, unknown)
	var sum request.Spending
	for i, s := range all {
		if want := begin.Add(2*24*time.Hour + time.Duration(i)*request.SpendingStep); !s.From.Equal(want) || s.Requests() != 5 {
			t.Fatalf("span %d: %+v, want from %s", i, s, want)
		}
		sum.Failed += s.Failed
		sum.ByReason[request.ReasonSync] += s.ByReason[request.ReasonSync]
	}
	checktest.MustEqual(t, len(all), 288, "len(all)")
	checktest.Equal(t, sum.Failed, 288, "sum.Failed")
	checktest.Equal(t, sum.ByReason[request.ReasonSync], 480, "sum.ByReason[request.ReasonSync]")
	if later := c.Spending(end.Add(23*time.Hour+55*time.Minute), unknown); len(later) != 1 {
		t.Errorf("a day later: %d spans", len(later))
	}
	if never := new(throttle.Counts).Spending(time.Time{}, unknown); len(never) != 0 {
		t.Errorf("nothing was sent: %v", never)
	}
	new(throttle.Counts).AddRequest(request.ReasonPoll, 0, time.Time{}) // a clock that was not set
}

// Of more callers than are kept, those that spend the most stand by their names, and all
// numbers add up.
func TestSpendingByCaller(t *testing.T) {
	var c throttle.Counts
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	const big, small = 5, 200
	for i := range 100 {
		for flow := range uint64(big) {
			c.AddRequest(request.ReasonWaiting, 1+flow, now)
		}
		c.AddRequest(request.ReasonWaiting, 100+uint64(i*2%small), now)
		c.AddRequest(request.ReasonWaiting, 0, now) // of a fetch that a reader joined
		c.AddRequest(request.ReasonPoll, 1, now)
	}
	all := c.Spending(now, func(flow uint64) string {
		if flow == 0 || flow == big { // one is not known any more
			return ""
		}
		return fmt.Sprint("caller ", flow)
	})
	if len(all) != 1 || all[0].ByReason[request.ReasonWaiting] != 700 {
		t.Fatalf("%+v", all)
	}
	var sum int64
	for _, n := range all[0].ByCaller {
		sum += n
	}
	if named := len(all[0].ByCaller); sum != 700 || named > 33 {
		t.Errorf("%d requests under %d names", sum, named)
	}
	for flow := 1; flow < big; flow++ {
		if n := all[0].ByCaller[fmt.Sprint("caller ", flow)]; n < 95 {
			t.Errorf("caller %d: %d of 100", flow, n)
		}
	}
}

// What upstream shows because it was asked for what is deleted, too, is
// answered and not stored: it does not tell what there is.
func TestWidenedIsNotStored(t *testing.T) {
	const one = `{"sid":"RE1","status":"deleted"}`
	for target, kept := range map[string]bool{
		".json":                                     true,
		".json?IncludeSoftDeleted=false":            true,
		".json?IncludeSoftDeleted=TRUE":             false,
		".json?PageSize=2&Includ%65SoftDeleted=yes": false,
		"/RE1.json":                                 true,
		"/RE1.json?IncludeSoftDeleted=true":         false,
	} {
		c := scripted(t, &script{do: func(_ int, r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "/RE1") {
				return reply(200, one), nil
			}
			return reply(200, `{"recordings":[`+one+`],"next_page_uri":null}`), nil
		}})
		page, err := get(t, c, "/2010-04-01/Accounts/AC1/Recordings"+target)
		checktest.MustNoError(t, err, "%s; page %+v", target, page)
		checktest.MustEqual(t, len(page.Rows), 1, "%s: len(page.Rows)", target)
		checktest.Equal(t, (page.NotStored == ""), kept, `%s: (page.NotStored == "")`, target)
	}
}

// A secret field of a record stays out of its pages where a member beside the rows, which is
// none, has the same name.
func TestSecretNamedLikeTheEnvelopeStays(t *testing.T) {
	sp, err := ReadSpec("bots.yaml", []byte(`name: bots
title: Bots
port: 4198
auth: {style: none}
hosts: [{url: "https://api.bots.example"}]
paging:
  style: token
  next: token
  cursor: after
  tokens: [after]
  envelope: [{name: token}]
kinds:
  - name: bots
    id: [id]
    lists:
      - {path: /bots, key: bots}
      - {path: /old, key: "", shape: old}
    instances:
      - {path: "/bots/{bot}", id: [bot], shape: one}
      - {path: "/keyed/{bot}", id: [bot], key: bot, shape: two}
    fields: [{name: id}, {name: token, class: secret}]
`))
	if err != nil {
		t.Fatal(err)
	}
	for uri, c := range map[string]struct{ body, want string }{
		"/bots":     {`{"bots":[{"id":"b","token":"hush"}],"token":"b"}`, `{"bots":[{"id":"b","token":""}],"token":"b"}`},
		"/old":      {`[{"id":"b","token":"hush"}]`, `[{"id":"b","token":""}]`},
		"/bots/b":   {`{"id":"b","token":"hush"}`, `{"id":"b","token":""}`},
		"/keyed/b":  {`{"bot":{"id":"b","token":"hush"},"token":"b"}`, `{"bot":{"id":"b","token":""},"token":"b"}`},
		"/bots?a=1": {`{"bots":{"id":"b","token":"hush"},"token":{"token":"hush"}}`, `{"bots":{"id":"b","token":""},"token":{"token":""}}`},
	} {
		s := &script{do: func(int, *http.Request) (*http.Response, error) { return reply(200, c.body), nil }}
		client := scripted(t, s, func(o *Options) { o.Source = &spec.Source{Name: "bots", Spec: sp} })
		if page, err := get(t, client, uri); err != nil || string(page.Body) != c.want {
			t.Errorf("%s: %v %s, want %s", uri, err, page.Body, c.want)
		}
	}
}
