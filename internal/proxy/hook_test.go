// Callbacks: taken when signed, for nothing but the ids in them.

package proxy

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/iotest"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
	"understudy/spec/spectest"
)

// hooked is a hook and the hints it gave.
type hooked struct {
	http.Handler
	hints  []string
	secret understudy.Secret
}

func newHooked(t testing.TB, public, secret string) *hooked {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	bare := *sp
	bare.Hook = spec.Hook{}
	h := &hooked{secret: understudy.NewSecret(secret)}
	var err error
	h.Handler, err = NewHook(HookOptions{
		Sources: []*spec.Source{{Name: "twilio", Spec: sp}, {Name: "bare", Spec: &bare}}, PublicURL: public,
		Secret: func(string) understudy.Secret { return h.secret },
		Hint:   func(source, kind, id string) { h.hints = append(h.hints, source+" "+kind+" "+id) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// call calls back and gives status and body.
func (h *hooked) call(target, form, signature string, change ...func(*http.Request)) (int, string) {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if signature != "" {
		r.Header.Set("X-Twilio-Signature", signature)
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// sign signs a text as the provider's document says.
func sign(text, secret string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// TestHookOfTheSDK: the signature of twilio-go, client/request_validator_test.go,
// over another URL than ours, so only the text is compared with it.
func TestHookOfTheSDK(t *testing.T) {
	form := url.Values{"Digits": {"1234"}, "CallSid": {"CA1234567890ABCDE"}, "To": {"+18005551212"}, "Caller": {"+14158675309"},
		"From": {"+14158675309"}, "ReasonConferenceEnded": {"test"}, "Reason": {"Participant"}}
	if got := hookSignature(signedText("https://mycompany.com/myapp.php?foo=1&bar=2", form),
		understudy.NewSecret("12345")); got != "vOEb5UThFn24KEfnOFLQY2AE5FY=" {
		t.Errorf("signature %s", got)
	}
}

func TestHookTakes(t *testing.T) {
	const public, secret = "https://calls.example.com", "12345"
	for _, c := range []struct {
		name, target, form, text string
		hints                    []string
	}{
		{"a call", "/-/hook/twilio", "CallSid=CA1&CallStatus=completed", public + "/-/hook/twilioCallSidCA1CallStatuscompleted",
			[]string{"twilio calls CA1"}},
		{"a message, named twice", "/-/hook/twilio", "SmsSid=SM1&MessageSid=SM1", public + "/-/hook/twilioMessageSidSM1SmsSidSM1",
			[]string{"twilio messages SM1", "twilio messages SM1"}},
		{"a picture message", "/-/hook/twilio", "MessageSid=MM1", public + "/-/hook/twilioMessageSidMM1", []string{"twilio messages MM1"}},
		{"a recording", "/-/hook/twilio", "RecordingSid=RE1&CallSid=CA1", public + "/-/hook/twilioCallSidCA1RecordingSidRE1",
			[]string{"twilio calls CA1", "twilio recordings RE1"}},
		{"a conference", "/-/hook/twilio", "ConferenceSid=CF1", public + "/-/hook/twilioConferenceSidCF1", []string{"twilio conferences CF1"}},
		{"a query", "/-/hook/twilio?foo=1&bar=%2B2", "CallSid=CA1", public + "/-/hook/twilio?foo=1&bar=%2B2CallSidCA1",
			[]string{"twilio calls CA1"}},
		{"a port written out", "/-/hook/twilio", "CallSid=CA1", "https://calls.example.com:443/-/hook/twilioCallSidCA1",
			[]string{"twilio calls CA1"}},
		{"a repeated parameter, as in Python, Node and Ruby", "/-/hook/twilio", "CallSid=CA2&A=2&A=1&A=2&CallSid=CA1", public +
			"/-/hook/twilioA1A2CallSidCA1CallSidCA2", []string{"twilio calls CA2", "twilio calls CA1"}},
		{"encoded", "/-/hook/twilio", "To=%2B1+2&CallSid=CA1&Body=%C3%A9%26", public + "/-/hook/twilioBodyé&CallSidCA1To+1 2",
			[]string{"twilio calls CA1"}},
		{"nothing", "/-/hook/twilio", "", public + "/-/hook/twilio", nil},
		{"nothing it knows", "/-/hook/twilio", "CallSid=XX1&Other=CA1", public + "/-/hook/twilioCallSidXX1OtherCA1", nil},
		{"an id that is none", "/-/hook/twilio", "CallSid=CA", public + "/-/hook/twilioCallSidCA", nil},
		{"an id too long", "/-/hook/twilio", "CallSid=CA" + strings.Repeat("1", maxHookID), public + "/-/hook/twilioCallSidCA" +
			strings.Repeat("1", maxHookID), nil},
	} {
		h := newHooked(t, public, secret)
		status, body := h.call(c.target, c.form, sign(c.text, secret))
		checktest.Equal(t, status, http.StatusNoContent, "%s: status; body %q", c.name, body)
		checktest.Equal(t, body, "", "%s: body", c.name)
		checktest.True(t, slices.Equal(h.hints, c.hints), "%s: h.hints is %v, want %v; body %q", c.name, h.hints,
			c.hints, body)
		h.hints = nil
		for _, wrong := range []string{sign(c.text+" ", secret), sign(c.text, "12346"), "", sign(c.text, secret) + "=",
			strings.ToLower(sign(c.text, secret))} {
			{
				status, body := h.call(c.target, c.form, wrong)
				checktest.Equal(t, status, http.StatusForbidden, "%s, signed %q: status; body %q", c.name, wrong,
					body)
				checktest.Equal(t, body, "", "%s, signed %q: body", c.name, wrong)
				checktest.True(t, h.hints == nil, "%s, signed %q: h.hints is %v; body %q", c.name, wrong, h.hints,
					body)
			}
		}
	}
}

func TestHookRefuses(t *testing.T) {
	const public, secret = "http://127.0.0.1:4114", "12345"
	h := newHooked(t, public, secret)
	form := "CallSid=CA1"
	good := sign(public+"/-/hook/twilioCallSidCA1", secret)
	many := strings.Repeat("a=b&", maxHookParams)
	for _, c := range []struct {
		name, target, form, signature string
		status                        int
		change                        func(*http.Request)
	}{
		{"good", "/-/hook/twilio", form, good, 204, func(*http.Request) {}},
		{"good, by a proxy's request line", public + "/-/hook/twilio", form, good, 204, func(*http.Request) {}},
		{"good, for another Host", "/-/hook/twilio", form, good, 204, func(r *http.Request) { r.Host = "evil.example.com" }},
		{"no such source", "/-/hook/none", form, good, 404, func(*http.Request) {}},
		{"a source without a hook", "/-/hook/bare", form, good, 404, func(*http.Request) {}},
		{"more of a path", "/-/hook/twilio/", form, good, 404, func(*http.Request) {}},
		{"another query", "/-/hook/twilio?a=b", form, good, 403, func(*http.Request) {}},
		{"another parameter", "/-/hook/twilio", form + "&a=b", good, 403, func(*http.Request) {}},
		{"the same parameter again", "/-/hook/twilio", form + "&CallSid=CA2", good, 403, func(*http.Request) {}},
		{"two signatures", "/-/hook/twilio", form, good, 403, func(r *http.Request) { r.Header.Add("X-Twilio-Signature", good) }},
		{"a GET", "/-/hook/twilio", "", good, 405, func(r *http.Request) { r.Method = http.MethodGet }},
		{"no form", "/-/hook/twilio", `{}`, good, 415, func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }},
		{"no type", "/-/hook/twilio", form, good, 415, func(r *http.Request) { r.Header.Del("Content-Type") }},
		{"too large", "/-/hook/twilio", "a=" + strings.Repeat("b", maxHookBody), good, 413, func(r *http.Request) {
			r.Body = io.NopCloser(iotest.ErrReader(errors.New("it was invited"))) // reading makes net/http answer 100 (Continue)
		}},
		{"too large, of unknown length", "/-/hook/twilio", "a=" + strings.Repeat("b", maxHookBody), good, 413,
			func(r *http.Request) { r.ContentLength = -1 }},
		{"too many parameters", "/-/hook/twilio", many, sign(public+"/-/hook/twilio"+"ab", secret), 403, func(*http.Request) {}},
		{"a form that cannot be read", "/-/hook/twilio", "a=%zz", good, 403, func(*http.Request) {}},
	} {
		h.hints = nil
		status, body := h.call(c.target, c.form, c.signature, c.change)
		checktest.Equal(t, status, c.status, "%s: status; body %q", c.name, body)
		checktest.Equal(t, body, "", "%s: body", c.name)
		checktest.Equal(t, (status == 204), (len(h.hints) == 1), "%s: (status == 204); body %q", c.name, body)
	}
	h.hints = nil
	h.secret = understudy.NewSecret("replaced")
	if status, _ := h.call("/-/hook/twilio", form, good); status != 403 {
		t.Errorf("signed with the former secret: %d", status)
	}
	h.secret = understudy.Secret{}
	if status, _ := h.call("/-/hook/twilio", form, sign(public+"/-/hook/twilioCallSidCA1", "")); status != 404 || h.hints != nil {
		t.Errorf("with no secret: %d, hints %v", status, h.hints)
	}
	if _, err := NewHook(HookOptions{}); err == nil {
		t.Error("a hook of nothing is made")
	}
}

// TestHookExample: what docs/how-to/hooks.md shows is taken.
func TestHookExample(t *testing.T) {
	e := hookExample(t)
	h := newHooked(t, e.public, e.secret)
	if status, _ := h.call(e.target, e.form, e.signature); status != 204 || len(h.hints) != 1 {
		t.Errorf("the example of docs/how-to/hooks.md: %d, hints %v", status, h.hints)
	}
	form, _ := url.ParseQuery(e.form)
	if got := signedText(e.public+e.target, form); got != e.text {
		t.Errorf("it signs\n%s\nand the text says\n%s", got, e.text)
	}
}

type example struct{ public, target, secret, form, text, signature string }

// hookExample reads the worked example: lines of a name and a value.
func hookExample(t *testing.T) (e example) {
	t.Helper()
	data, err := os.ReadFile("../../docs/how-to/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		switch name {
		case "public URL":
			e.public = value
		case "path":
			e.target = value
		case "secret":
			e.secret = value
		case "form":
			e.form = value
		case "signed text":
			e.text = value
		case "signature":
			e.signature = value
		}
	}
	return e
}

func TestHookOrigins(t *testing.T) {
	for public, want := range map[string]string{
		"https://x.example":      "https://x.example https://x.example:443",
		"https://x.example/":     "https://x.example https://x.example:443",
		"http://x.example:8080":  "http://x.example:8080 http://x.example",
		"http://127.0.0.1:4114":  "http://127.0.0.1:4114 http://127.0.0.1",
		"http://[::1]:4114":      "http://[::1]:4114 http://[::1]",
		"https://[::1]":          "https://[::1] https://[::1]:443",
		"https://x.example:443/": "https://x.example:443 https://x.example",
		"":                       "",
	} {
		if got := strings.Join(origins(public), " "); got != want {
			t.Errorf("%s: %s, want %s", public, got, want)
		}
	}
}

// FuzzHookForm: whatever form comes, what is signed is what its pairs say in
// order, and a callback that is not signed gives no hint.
func FuzzHookForm(f *testing.F) {
	for _, seed := range []string{"", "CallSid=CA1&CallStatus=completed", "a=2&a=1&a=2", "a=%zz", "a;b", "%41=1&A=2", "=&=", "é=%C3%A9&a=%00",
		"a&b&a", "a=1=2"} {
		f.Add(seed, "CallSid", "CA1")
	}
	h := newHooked(f, "http://h", "12345")
	f.Fuzz(func(t *testing.T, body, name, value string) {
		h.hints = nil
		if status, _ := h.call("/-/hook/twilio", body, "c2lnbmF0dXJlc2lnbmF0dXJlMDA="); status != 403 && status != 413 || h.hints != nil {
			t.Fatalf("not signed: %d, hints %v", status, h.hints)
		}
		form, ok := hookForm(body)
		if !ok {
			return
		}
		var pairs []string // of a set
		seen := map[[2]string]bool{}
		for name, values := range form {
			for _, value := range values {
				if !seen[[2]string{name, value}] {
					seen[[2]string{name, value}] = true
					pairs = append(pairs, fmt.Sprintf("%s\x00%s", name, value))
				}
			}
		}
		sort.Slice(pairs, func(i, j int) bool {
			a, b := strings.SplitN(pairs[i], "\x00", 2), strings.SplitN(pairs[j], "\x00", 2)
			return a[0] < b[0] || a[0] == b[0] && a[1] < b[1]
		})
		want := "u"
		for _, p := range pairs {
			want += strings.Replace(p, "\x00", "", 1)
		}
		if got := signedText("u", form); got != want && !strings.Contains(form.Encode(), "%00") {
			t.Fatalf("%q signs %q, want %q", body, got, want)
		}
		if len(body) > maxHookBody {
			return
		}
		text := signedText("http://h/-/hook/twilio", form)
		if status, _ := h.call("/-/hook/twilio", body, sign(text, "12345")); status != 204 {
			t.Fatalf("%q, signed: %d", body, status)
		}
		form.Add(name, value)
		if changed := form.Encode(); signedText("http://h/-/hook/twilio", form) != text {
			if status, _ := h.call("/-/hook/twilio", changed, sign(text, "12345")); status == 204 {
				t.Fatalf("%q is taken with the signature of %q", changed, body)
			}
		}
	})
}
