package accesslog

import (
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// isID takes two capitals and 32 hex digits for an id, as many APIs write theirs.
func isID(text string) bool { return idPattern.MatchString(text) }

var idPattern = regexp.MustCompile(`^[A-Z]{2}[0-9a-f]{32}$`)

// L3: numbers stayed in segments that are not bare, and in names of parameters.
func TestTarget(t *testing.T) {
	for target, want := range map[string]string{
		"/2010-04-01/Accounts/AC00000000000000000000000000000001/Calls.json": "/2010-04-01/Accounts/" +
			"AC00000000000000000000000000000001/Calls.json",
		"/x/Calls.json?To=%2B14155551234&StartTime%3E=2026-01-01&Page=0": "/x/Calls.json?To=…&StartTime%3E=…&Page=…",
		"/x?StartTime>=2026-01-01":                                       "/x?StartTime>=…",
		"/twilio/number/+14155551234":                                    "/twilio/number/…",
		"/twilio/number/%2B14155551234.json":                             "/twilio/number/…",
		"/twilio/number/%34%31%35%35%35%35%31%32":                        "/twilio/number/…",
		"/x?%2B14155551234":                                              "/x?…",
		"/x?+1(415)555-1234=1":                                           "/x?…=…",
		"/twilio/number/whatsapp%3A%2B14155550102":                       "/twilio/number/…",
		"/twilio/number/tel:+1-415-555-0103":                             "/twilio/number/…",
		"/twilio/number/4155550106x":                                     "/twilio/number/…",
		"/twilio/calls;to=+14155550115":                                  "/twilio/…",
		"/twilio/number/４１５５５５０１０６":                                      "/twilio/number/…",
		"/twilio/number/%252B14155550107":                                "/twilio/number/…",
		"/twilio/number/%25252531%34155550107":                           "/twilio/number/…",
		"/x?a%3D%2B14155550116":                                          "/x?…",
		"/x/CA4155550106/y":                                              "/x/…/y",
		"/x/CA0123456789abcdef0123456789abcdef.json":                     "/x/CA0123456789abcdef0123456789abcdef.json",
		"/x/2010-04-01-5550106":                                          "/x/…",
		"/x?":                                                            "/x?",
		"/x?a=&=b&&c":                                                    "/x?a=&=…&&c",
		"/x?a=b=c":                                                       "/x?a=…",
		"/a\"b\\c\x1b[31m\x80":                                           `/a\"b\\c\x1b[31m\x80`,
		"*":                                                              "*",
		"http://h/p":                                                     "http://h/p",
		"":                                                               "",
	} {
		if got := string(AppendTarget(nil, target, isID)); got != want {
			t.Errorf("%q: got %q, want %q", target, got, want)
		}
	}
}

func FuzzTarget(f *testing.F) {
	for _, s := range []string{"/a/b?c=d", "/+14155551234?x", "%", "/%2", "?&&==", "\x00\"\\\n", "/1234567.json"} {
		f.Add(s)
	}
	for _, s := range []string{"/whatsapp%3A%2B14155550102", "/4155550106x", "/%252B14155550107", "/４１５５５５０１０６", "/x?a%3D%2B14155550116=1",
		"/CA0123456789abcdef0123456789abcdef/2010-04-01"} {
		f.Add(s)
	}
	explained := regexp.MustCompile(`\b[A-Z]{2}[0-9a-f]{32}\b|\b\d{4}-\d{2}-\d{2}\b`)
	number := regexp.MustCompile(`(?:\pN.*){7}`)
	f.Fuzz(func(t *testing.T, target string) {
		out := string(AppendTarget(nil, target, isID))
		for i := range len(out) {
			if out[i] < ' ' || out[i] == '"' && (i == 0 || out[i-1] != '\\') {
				t.Fatalf("%q gives %q", target, out)
			}
		}
		path, query, _ := strings.Cut(out, "?")
		pieces := strings.Split(path, "/")
		for p := range strings.SplitSeq(query, "&") {
			name, _, _ := strings.Cut(p, "=")
			pieces = append(pieces, name)
		}
		for _, piece := range pieces {
			piece = escape.ReplaceAllStringFunc(piece, func(code string) string {
				c, err := strconv.ParseUint(code[2:], 16, 8)
				if err != nil {
					return code[1:] // a quote or a backslash
				}
				return string([]byte{byte(c)})
			})
			for last := ""; last != piece; {
				last = piece
				piece = percent.ReplaceAllStringFunc(piece, func(code string) string {
					c, _ := strconv.ParseUint(code[1:], 16, 8)
					return string([]byte{byte(c)})
				})
			}
			if number.MatchString(explained.ReplaceAllString(piece, "")) {
				t.Fatalf("%q gives %q: a number", target, out)
			}
		}
		for p := range strings.SplitSeq(query, "&") {
			if _, value, _ := strings.Cut(p, "="); value != "" && value != redacted {
				t.Fatalf("%q gives %q: a value", target, out)
			}
		}
	})
}

// escape is how the log writes what must not stand between quotes.
var escape = regexp.MustCompile(`\\(x[0-9a-f]{2}|["\\])`)

var percent = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

func clientOf(host, agent string) Client {
	return ClientOf(&http.Request{Host: host, Header: http.Header{"User-Agent": {agent}}})
}

func TestClientOf(t *testing.T) {
	for host, want := range map[string]string{
		"api.example.com": "api.example.com", "127.0.0.1:4114": "127.0.0.1:4114",
		"[2001:db8::1234:5678]:4114": "[2001:db8::1234:5678]:4114",
		"node-123.example.com:41144": "node-123.example.com:41144", "": "",
		"14155550100.example.com": "…", "x4155550100:80": "x…", "fe80::1%14155550100": "fe…", "%34%31%35%35.example.com": "%…",
		strings.Repeat("x", 300): strings.Repeat("x", 256),
	} {
		if got := clientOf(host, "").Host; got != want {
			t.Errorf("host %q: %q, want %q", host, got, want)
		}
	}
	for agent, want := range map[string]string{
		"twilio-python/9.0.0 (Linux x86_64)":               "twilio-python/9.0.0 (Linux x86_64)",
		"Mozilla/5.0 (x86_64; rv:109.0) Gecko/20100101":    "Mozilla/5.0 (x86_64; rv:109.0) Gecko/…",
		"Mozilla/5.0 (KHTML, like Gecko) Chrome/120.0.0.0": "Mozilla/5.0 (KHTML, like Gecko) Chrome/120.0.0.0",
		"x +1 (415) 555-0100 y":                            "x +…",
		"%34%31%35%35":                                     "%…", "４１５５５５０１００": "…", "": "", "\xff": "\xff", strings.Repeat("x",
			300): strings.Repeat("x", 256),
	} {
		if got := clientOf("", agent).Agent; got != want {
			t.Errorf("agent %q: %q, want %q", agent, got, want)
		}
	}
}

// No part of a client's host or agent has seven digits in a row, whatever is between them except letters.
func FuzzClient(f *testing.F) {
	for _, s := range []string{"127.0.0.1:80", "4155550100:80", "[::1%4155550100]", "x 415 555-0100", "\xff4155550100",
		"４１５５５５０１００", "1234567"} {
		f.Add(s)
	}
	number := regexp.MustCompile(`(\pN\PL*){7}`)
	f.Fuzz(func(t *testing.T, text string) {
		c := clientOf(text, text)
		if number.MatchString(c.Agent) {
			t.Errorf("%q gives the agent %q", text, c.Agent)
		}
		_, notAddress := netip.ParseAddr(c.Host)
		_, notPort := netip.ParseAddrPort(c.Host)
		if number.MatchString(c.Host) && notAddress != nil && notPort != nil {
			t.Errorf("%q gives the host %q", text, c.Host)
		}
	})
}
