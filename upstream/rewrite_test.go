// Rewriting: which URLs become ours, and that nothing else changes.

package upstream

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

const ourURL = "http://127.0.0.1:4115"

// TestNextLinksLeadHome: whatever host the link to the next page names, in whatever spelling
// a client takes for a host, ours leads to us. Other URLs stay.
func TestNextLinksLeadHome(t *testing.T) {
	o := newOrigins(&spec.Source{Spec: builtInSpec(t, "twilio"), PublicURL: ourURL}, "http://slow.example:4116/twilio/")
	for _, c := range []struct{ link, want string }{
		{"https://evil.example/a?b=1#c", ourURL + "/a?b=1#c"},
		{"http://evil.example:81", ourURL + "/"},
		{"http://evil.example?a=1", ourURL + "/?a=1"},
		{"//evil.example/a", ourURL + "/a"},
		{`\\\\evil.example\\a`, ourURL + "/a"},
		{`/\\evil.example/a`, ourURL + "/a"},
		{`ht\ntps:\t//evil.example/a`, ourURL + "/a"},
		{`https:\/\/evil.example\/a`, ourURL + "/a"},
		{" https://evil.example/a", ourURL + "/a"},
		{"https://api.twilio.com@evil.example/a", ourURL + "/a"},
		{"ftp://169.254.169.254/a", ourURL + "/a"},
		{"https://evil.example/a//b", ourURL + "/a//b"},
		{"https://api.twilio.com/a", ourURL + "/a"},
		{ourURL + "/a", ourURL + "/a"},
		{"/a//b", "/a//b"},
		{"/a?to=https://evil.example/", "/a?to=https://evil.example/"},
		{"a", "a"},
		{"", ""},
	} {
		body := []byte(`{"meta":{"next":"` + c.link + `"},"next":"https://evil.example/a"}`)
		got, _ := redaction{next: []fieldPath{"meta.next"}, origins: o}.clean(body, document1(t, body))
		if want := `{"meta":{"next":"` + c.want + `"},"next":"https://evil.example/a"}`; string(got) != want {
			t.Errorf("%s became %s", c.link, got)
		}
	}
}

func TestOrigins(t *testing.T) {
	o := newOrigins(&spec.Source{Spec: builtInSpec(t, "twilio"), PublicURL: ourURL}, "http://slow.example:4116/twilio/")
	for _, c := range []struct{ raw, want string }{
		{`https://api.twilio.com/2010-04-01/x?y=1#z`, ourURL + `/2010-04-01/x?y=1#z`},
		{`https:\/\/api.twilio.com\/2010-04-01\/x`, ourURL + `\/2010-04-01\/x`},
		{`\u0068ttps:\u002f\u002Fmonitor.twilio.com/v1`, ourURL + `/v1`},
		{`https://monitor.twilio.com\u002fv1`, ourURL + `\u002fv1`},
		{`https://api.twilio.com`, ourURL},
		{`HTTPS://API.Twilio.Com/a`, ourURL + `/a`},
		{`https://api.twilio.com:443/a`, ourURL + `/a`},
		{`http://slow.example:4116/twilio/2010-04-01/x`, ourURL + `/2010-04-01/x`},
		{`http://slow.example:4116/twilio`, ourURL},
		{`http://slow.example:4116/Twilio/x`, ""},
		{`http://slow.example:4116/twiliox`, ""},
		{`http://slow.example:4116/x`, ""},
		{`http://api.twilio.com/a`, ourURL + `/a`},
		{`http:\/\/API.twilio.com:80\/a`, ourURL + `\/a`},
		{`http://api.twilio.com:443/a`, ourURL + `/a`},
		{`https://slow.example:4116/twilio/x`, ourURL + `/x`},
		{`https://slow.example/twilio/x`, ourURL + `/x`},
		{`https://slow.example:443/twilio`, ourURL},
		{`http://slow.example/twilio/x`, ""},
		{`http://api.twilio.com:8080/a`, ""},
		{`http://api.twilio.com.evil.example/a`, ""},
		{`http://api.twilio.com@evil.example/a`, ""},
		{`http://user@api.twilio.com/a`, ""},
		{`ftp://api.twilio.com/a`, ""},
		{`https://api.twilio.com:4430/a`, ""},
		{`https://api.twilio.com:80/a`, ""},
		{`https://api.twilio.com.evil.example/a`, ""},
		{`https://api.twilio.com@evil.example/a`, ""},
		{`https://user@api.twilio.com/a`, ""},
		{`https://api.twilio.com\\a`, ""},
		{`https://api.twilio.com\n/a`, ""},
		{`https://api.twilio.com\u012f/a`, ""},
		{`https://api.twilio.com\u00af/a`, ""},
		{`https://www.twilio.com/docs`, ""},
		{` https://api.twilio.com/a`, ""},
		{`see https://api.twilio.com/a`, ""},
		{`//api.twilio.com/a`, ""},
		{`/2010-04-01/x`, ""},
		{`h`, ""},
		{``, ""},
	} {
		body := []byte(`{"url":"` + c.raw + `"}`)
		got, _ := redaction{absolute: []fieldPath{"url"}, origins: o}.clean(body, document1(t, body))
		if c.want == "" {
			c.want = c.raw
		}
		if string(got) != `{"url":"`+c.want+`"}` {
			t.Errorf("%s became %s", c.raw, got)
		}
	}
}

func TestLocal(t *testing.T) {
	source := &spec.Source{Spec: builtInSpec(t, "twilio"), PublicURL: "https://cache.example/stand-in"}
	o := newOrigins(source, "http://slow.example/twilio")
	for link, want := range map[string]string{
		"https://cache.example/stand-in/v1/Alerts?Page=1": "/v1/Alerts?Page=1",
		"http://slow.example/twilio/v1/Alerts":            "/v1/Alerts",
		"http://slow.example:80/twilio/v1/Alerts":         "/v1/Alerts",
		"https://Monitor.twilio.com/v1/Alerts":            "/v1/Alerts",
		"http://monitor.twilio.com/v1/Alerts":             "/v1/Alerts",
		"https://slow.example/twilio/v1/Alerts":           "/v1/Alerts",
		"https://slow.example:8443/twilio/v1/Alerts":      "https://slow.example:8443/twilio/v1/Alerts",
		"https://cache.example/stand-inner/v1":            "https://cache.example/stand-inner/v1",
		"https://elsewhere.example/v1/Alerts":             "https://elsewhere.example/v1/Alerts",
		"/v1/Alerts":                                      "/v1/Alerts",
		"":                                                "",
	} {
		if got := o.localPath(link); got != want {
			t.Errorf("%q: %q, want %q", link, got, want)
		}
	}
	source.PublicURL = ""
	if got := newOrigins(source, "").localPath("/v1"); got != "/v1" {
		t.Errorf("without a public URL: %q", got)
	}
}

// A page of Monitor: its links and its records' URLs are ours, the rest is as
// it came, and rows, sum and next page are of what is kept.
func TestAbsoluteURLsInPages(t *testing.T) {
	const theirs = `{ "alerts":[{"sid":"NO1","url":"BASE\/v1\/Alerts\/NO1","request_url":"BASE/v1/x","x":{"url":"BASE/deep"}},` +
		`{"sid":"NO2","date_created":"2024-01-01T00:00:00Z","url":"BASE/v1/Alerts/NO2","alert_text":"BASE/a"}],` +
		`"meta":{"url":"BASE/v1/Alerts?PageSize=2&Page=0","next_page_url":"BASE/v1/Alerts?PageSize=2&Page=1&PageToken=PANO2",` +
		`"previous_page_url":null,"key":"alerts","first_page_url":"BASE"},` +
		`"url":"BASE/top"}`
	const ours = `{ "alerts":[{"sid":"NO1","url":"OURS\/v1\/Alerts\/NO1","request_url":"BASE/v1/x","x":{"url":"BASE/deep"}},` +
		`{"sid":"NO2","date_created":"2024-01-01T00:00:00Z","url":"OURS/v1/Alerts/NO2","alert_text":"BASE/a"}],` +
		`"meta":{"url":"OURS/v1/Alerts?PageSize=2&Page=0","next_page_url":"OURS/v1/Alerts?PageSize=2&Page=1&PageToken=PANO2",` +
		`"previous_page_url":null,"key":"alerts","first_page_url":"OURS"},` +
		`"url":"BASE/top"}`
	for _, c := range []struct{ base, public, prefix string }{
		{"https://monitor.twilio.com", ourURL, ""},
		{"http://monitor.twilio.com", ourURL, ""},
		{"http://monitor.twilio.com:80", "https://cache.example/stand-in", ""},
		{"http://10.0.0.1:4116", ourURL, ""},
		{"http://slow.example/twilio", "https://cache.example/stand-in", ""},
		{"http://10.0.0.1:4116", "", ""},
		{"http://10.0.0.1:4116", ourURL, "\ufeff"},
	} {
		s := &script{do: func(_ int, r *http.Request) (*http.Response, error) {
			if r.Host != r.URL.Host || strings.Contains(r.Host, "4115") {
				t.Errorf("asked with Host %q at %s", r.Host, r.URL)
			}
			return reply(200, c.prefix+strings.ReplaceAll(theirs, "BASE", c.base)), nil
		}}
		client := scripted(t, s, func(o *Options) {
			o.Source.PublicURL = c.public
			if !strings.Contains(c.base, "twilio.com") {
				o.Base = c.base
			}
		})
		page, err := get(t, client, "/v1/Alerts?PageSize=2")
		if err != nil {
			t.Fatal(err)
		}
		want := ours
		if c.public == "" {
			want = theirs
		}
		want = strings.NewReplacer("BASE", c.base, "OURS", c.public).Replace(want)
		if string(page.Body) != want {
			t.Errorf("%+v: body\n%s, want\n%s", c, page.Body, want)
		}
		if sum := sha256.Sum256(page.Body); string(page.Sum[:]) != string(sum[:16]) {
			t.Error("the sum is of another body")
		}
		if marked := page.Charset == "utf-8-sig"; marked != (c.prefix != "") {
			t.Errorf("%q: charset %q", c.prefix, page.Charset)
		}
		checktest.MustEqual(t, page.NotStored, "", "%+v: page.NotStored", c)
		checktest.MustEqual(t, page.Next.URI, "/v1/Alerts?PageSize=2&Page=1&PageToken=PANO2", "%+v: page.Next.URI",
			c)
		checktest.MustEqual(t, len(page.Rows), 2, "%+v: len(page.Rows)", c)
		for i, id := range []string{"NO1", "NO2"} {
			var row struct{ Sid, URL string }
			r := page.Rows[i]
			{
				err := json.Unmarshal(page.Body[r.Start:r.End], &row)
				checktest.MustNoError(t, err, "row %d", i)
				checktest.Equal(t, row.Sid, id, "row %d: row.Sid", i)
				checktest.Equal(t, r.ID, id, "row %d: r.ID", i)
				checktest.True(t, strings.HasSuffix(row.URL, "/v1/Alerts/"+id), "row %d: row.URL is %q", i, row.URL)
			}
		}
	}
}

// An instance, a write's answer and a list without records have theirs; an
// error's body and a field of another kind stay as they are.
func TestAbsoluteURLsElsewhere(t *testing.T) {
	const base, theirs = "/2010-04-01/Accounts/" + account, "https://api.twilio.com/2010-04-01/x"
	for _, c := range []struct {
		method, uri string
		status      int
		body, want  string
	}{
		{"GET", "/v1/Events/AE1", 200, `{"sid":"AE1","links":{"actor":"THEIRS","other":"THEIRS"},"url":"THEIRS"}`,
			`{"sid":"AE1","links":{"actor":"OURS","other":"THEIRS"},"url":"OURS"}`},
		{"GET", base + "/Recordings/RE1.json", 200, `{"sid":"RE1","media_url":"THEIRS","uri":"THEIRS"}`,
			`{"sid":"RE1","media_url":"OURS","uri":"THEIRS"}`},
		{"GET", base + "/Recordings.json", 200, `{"recordings":[{"sid":"RE1","media_url":"THEIRS"}]}`,
			`{"recordings":[{"sid":"RE1","media_url":"OURS"}]}`},
		{"GET", base + "/Recordings.json", 200, `{"recordings":[],"media_url":"THEIRS"}`, `{"recordings":[],"media_url":"THEIRS"}`},
		{"POST", base + "/Calls/CA1/Recordings.json", 201, `{"sid":"RE1","media_url":"THEIRS"}`, `{"sid":"RE1","media_url":"OURS"}`},
		{"POST", base + "/Recordings/RE1.json", 400, `{"media_url":"THEIRS"}`, `{"media_url":"THEIRS"}`},
		{"GET", base + "/Recordings/RE1.json", 404, `{"media_url":"THEIRS"}`, `{"media_url":"THEIRS"}`},
		{"GET", base + "/Calls/CA1.json", 200, `{"sid":"CA1","media_url":"THEIRS"}`, `{"sid":"CA1","media_url":"THEIRS"}`},
		{"GET", base + "/Unknown.json", 200, `{"media_url":"THEIRS"}`, `{"media_url":"THEIRS"}`},
	} {
		client := scripted(t, &script{do: func(int, *http.Request) (*http.Response, error) {
			return reply(c.status, strings.ReplaceAll(c.body, "THEIRS", theirs)), nil
		}}, func(o *Options) { o.Source.PublicURL = ourURL + "/" })
		page, err := get(t, client, c.uri)
		if c.method != "GET" {
			page, err = write(t, client, c.method, c.uri, "")
		}
		want := strings.NewReplacer("THEIRS", theirs, "OURS", ourURL+"/2010-04-01/x").Replace(c.want)
		if err != nil || string(page.Body) != want {
			t.Errorf("%s %s: %v\n%s, want\n%s", c.method, c.uri, err, page.Body, want)
		}
	}
}

// Rewriting leaves a document a document with the same values but for the URLs
// that begin with an origin, and does nothing the second time.
func FuzzRewrite(f *testing.F) {
	for _, raw := range []string{
		`{"url":"https:\/\/api.twilio.com\/x","meta":{"url":"https://monitor.twilio.com"}}`,
		`[{"url":"HTTPS://api.twilio.com:443/"},"https://api.twilio.com/"]`,
		`{"\u0075rl":"\u0068ttps://api.twilio.com\u002f"}`,
		`{"url":["https://api.twilio.com/",{"url":"https://api.twilio.com/"}],"auth_token":{"url":"https://api.twilio.com/"}}`,
		`{"url":"http://api.twilio.com/x","meta":{"url":"http:\/\/api.twilio.com:80"}}`,
		`{"url":"https://api.twilio.com\\"}`, `{"url":"h\ud800"}`, `{"url":"\u`,
	} {
		f.Add([]byte(raw))
	}
	sp, err := ReadBuiltIn("twilio")
	if err != nil {
		f.Fatal(err)
	}
	o := newOrigins(&spec.Source{Spec: sp, PublicURL: ourURL}, "")
	s := redaction{secrets: []secret{"auth_token"}, absolute: []fieldPath{"url", "meta.url"}, origins: o}
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := jsonspan.Parse(body)
		if err != nil {
			return
		}
		out, at := s.clean(body, doc)
		again, err := jsonspan.Parse(out)
		if err != nil || again != at {
			t.Fatalf("%q became %q: %v, %v is not %v", body, out, err, at, again)
		}
		if twice, _ := s.clean(out, at); string(twice) != string(out) {
			t.Fatalf("%q became %q and then %q", body, out, twice)
		}
		var before, after any
		if json.Unmarshal(body, &before) != nil || json.Unmarshal(out, &after) != nil {
			return
		}
		same(t, "", before, after)
	})
}

// twilioOrigin is an origin of Twilio's hosts, with either scheme.
var twilioOrigin = regexp.MustCompile(`^(?i)(https://[a-z.-]+\.twilio\.com(:443)?|http://[a-z.-]+\.twilio\.com(:80|:443)?)$`)

// same fails when two values differ otherwise than scrub may make them.
func same(t *testing.T, path string, before, after any) {
	t.Helper()
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok || len(a) != len(b) {
			t.Fatalf("%s: %v became %v", path, before, after)
		}
		for name, v := range b {
			if name != "auth_token" {
				same(t, path+"."+name, v, a[name])
			}
		}
	case []any:
		a, ok := after.([]any)
		if !ok || len(a) != len(b) {
			t.Fatalf("%s: %v became %v", path, before, after)
		}
		for i, v := range b {
			same(t, path, v, a[i])
		}
	case string:
		a, _ := after.(string)
		if a == b {
			return
		}
		rest, ours := strings.CutPrefix(a, ourURL)
		theirs, ends := strings.CutSuffix(b, rest)
		checktest.MustTrue(t, ours, "%s: ours is false", path)
		checktest.MustTrue(t, !(path != ".url" && path != ".meta.url"),
			`%s: path != ".url" && path != ".meta.url"; path is %q`, path, path)
		checktest.MustTrue(t, ends, "%s: ends is false", path)
		checktest.MustTrue(t, twilioOrigin.MatchString(theirs), "%s: twilioOrigin.MatchString(theirs) is false",
			path)
	default:
		if before != after {
			t.Fatalf("%s: %v became %v", path, before, after)
		}
	}
}
