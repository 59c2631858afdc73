// Links of upstream that lead here.

package proxy

import (
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"understudy/spec"
)

func TestLinksToUpstreamLeadHere(t *testing.T) {
	for public, ours := range map[string]string{"": "", "https://front.example": "", "https://front.example/api": "/api"} {
		sp, err := spec.NewGeneric("http://up.example:8080", "none")
		if err != nil {
			t.Fatal(err)
		}
		src := &spec.Source{Name: "site", Spec: sp, PublicURL: public}
		stored := []string{`<http://up.example:8080/items?page=2>; rel="next", <https://other.example/>; rel=up`, `</style.css>; rel=preload`}
		h := http.Header{"Location": {"http://UP.example:8080/a b?x=1#y"}, "Content-Location": {"//up.example:8080"}, "Link": stored}
		rewriteLinks(h, src)
		for name, want := range map[string]string{
			"Location": ours + "/a b?x=1#y", "Content-Location": ours + "/",
			"Link": `<` + ours + `/items?page=2>; rel="next", <https://other.example/>; rel=up`,
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if !strings.HasPrefix(stored[0], "<http://up.example:8080/") {
			t.Error("the stored header was changed")
		}
		h = http.Header{"Location": {"http://up.example:8080//evil.example/x"}}
		if rewriteLinks(h, src); h.Get("Location") != ours+"/evil.example/x" {
			t.Errorf("two slashes became %q", h.Get("Location"))
		}
		for _, turned := range []string{"https://up.example/a", "https://up.example:443/a", "HTTPS://up.example:8080/a"} {
			h := http.Header{"Location": {turned}}
			if rewriteLinks(h, src); h.Get("Location") != ours+"/a" {
				t.Errorf("%q, of the other scheme, became %q", turned, h.Get("Location"))
			}
		}
		for _, other := range []string{"http://up.example/a", "https://up.example:8443/a", "/a",
			"http://up.example:8080.evil.example/", "", "http://[::1"} {
			h := http.Header{"Location": {other}}
			if rewriteLinks(h, src); h.Get("Location") != other {
				t.Errorf("%q became %q", other, h.Get("Location"))
			}
		}
	}
}

func TestLinksWithTheUsualPortLeadHere(t *testing.T) {
	for base, others := range map[string][]string{
		"https://up.example": {"https://up.example:443/a", "HTTPS://UP.example/a", "//up.example:443/a", "http://up.example/a",
			"http://up.example:80/a"},
		"http://up.example:80":  {"http://up.example/a", "http://up.example:80/a"},
		"https://up.example:80": {"https://up.example:80/a"},
	} {
		sp, err := spec.NewGeneric(base, "none")
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range others {
			h := http.Header{"Location": {other}}
			if rewriteLinks(h, &spec.Source{Name: "site", Spec: sp}); h.Get("Location") != "/a" {
				t.Errorf("%s: %q became %q", base, other, h.Get("Location"))
			}
		}
	}
}

func TestEverySpellingOfUpstreamsAddressLeadsHere(t *testing.T) {
	for base, spellings := range map[string][]string{
		"http://127.0.0.1:8000": {"127.1", "127.0.1", "0x7f.1", "0X7F.0x0.0.1", "2130706433", "0x7f000001", "017700000001", "0177.0.0.1",
			"127.0.0.1.", "2130706433.", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]", "%31%32%37.1"},
		"http://2130706433:8000":        {"127.0.0.1"},
		"http://[::1]:8000":             {"[0:0:0:0:0:0:0:1]", "[::0001]", "[::0.0.0.1]"},
		"http://[2001:db8::a]:8000":     {"[2001:DB8::A]", "[2001:0db8:0::000a]"},
		"http://[::ffff:10.0.0.1]:8000": {"10.0.0.1", "10.1"},
		"http://up.example.:8000":       {"up.example", "UP.example.", "%75p.example"},
	} {
		sp, err := spec.NewGeneric(base, "none")
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range spellings {
			h := http.Header{"Location": {"http://" + host + ":8000/a"}}
			if rewriteLinks(h, &spec.Source{Name: "site", Spec: sp}); h.Get("Location") != "/a" {
				t.Errorf("%s: %s became %q", base, host, h.Get("Location"))
			}
		}
		for _, host := range []string{"127.2", "0x7f.0x100.1", "4294967296", "256.1", "127.0.0.0.1", "127..1", "0x7g.1", "089.1",
			"-1", "+1", "1_0.1", "[::2]", "[::ffff:127.0.0.2]", "127.0.0.1.evil.example", "1e1"} {
			h := http.Header{"Location": {"http://" + host + ":8000/a"}}
			if rewriteLinks(h, &spec.Source{Name: "site", Spec: sp}); h.Get("Location") == "/a" {
				t.Errorf("%s: %s, another host, became a path", base, host)
			}
		}
	}
}

// FuzzPlainHost: a host that was made plain stays as it is, and an address stays the same address.
func FuzzPlainHost(f *testing.F) {
	for _, host := range []string{"127.1", "0x7f.1", "::ffff:127.0.0.1", "up.example.", "%31%32%37.1", "017700000001", "fe80::1%25eth0",
		"::%."} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, host string) {
		plain := plainHost(host)
		if at, err := netip.ParseAddr(host); err == nil && plain != at.Unmap().WithZone("").String() {
			t.Errorf("the address %q became %q", host, plain)
		}
		if at, ok := parseIPv4(plain); ok && plainHost(plain) != at.String() {
			t.Errorf("%q became %q, and then %q", host, plain, plainHost(plain))
		}
	})
}

// Clients find links in lines that break the grammar, too.
func TestLinksInOddLinesLeadHere(t *testing.T) {
	sp, err := spec.NewGeneric("http://up.example", "none")
	if err != nil {
		t.Fatal(err)
	}
	src := &spec.Source{Name: "site", Spec: sp}
	for _, c := range [][3]string{
		{"Link", `</p>; title="a < b", <http://up.example/x>; rel=next`, `</p>; title="a < b", </x>; rel=next`},
		{"Link", `</p>; title="1 < 2 > 1", <http://up.example/x>; rel=next`, `</p>; title="1 < 2 > 1", </x>; rel=next`},
		{"Link", `<http://up.example/x>; title="a > b < c", <http://up.example/y>`, `</x>; title="a > b < c", </y>`},
		{"Link", `</p>; title=a<b, <http://up.example/x>`, `</p>; title=a<b, </x>`},
		{"Link", `< http://up.example/a >; rel=next`, `< /a >; rel=next`},
		{"Link", `http://up.example/a; rel=next, http://up.example/b; rel=last`, `/a; rel=next, /b; rel=last`},
		{"Link", `"http://up.example"; rel=next`, `"/"; rel=next`},
		{"Link", `<http://up.example/a`, `</a`},
		{"Link", `<http://up.example/a?q=<b>>; rel=next`, `</a?q=<b>>; rel=next`},
		{"Link", `</a>; anchor="http://up.example/z"; x=http://up.example/z`, `</a>; anchor="/z"; x=http://up.example/z`},
		{"Link", `<http://up.example/a?to=http://up.example/b>; rel="http://up.example/r http://up.example/q"`,
			`</a?to=http://up.example/b>; rel="http://up.example/r http://up.example/q"`},
		{"Location", "http://up.example/%zz", "/%zz"},
		{"Location", "http://up.example./a", "/a"},
		{"Location", `http:\\up.example\a`, "/a"},
		{"Location", "http://user:p;w@up.example:080/a", "/a"},
		{"Location", "<http://up.example/a>", "</a>"},
		{"Link", `<https://up.example/x>; rel=next`, `</x>; rel=next`},
		{"Location", "https://up.example.evil.example/a", "https://up.example.evil.example/a"},
		{"Location", "/login?to=http://up.example/a", "/login?to=http://up.example/a"},
		{"Location", "http://up.example@evil.example/a", "http://up.example@evil.example/a"},
		{"Refresh", "0; url=http://up.example/a", "0; url=/a"},
		{"Refresh", "5;URL='http://up.example/a'", "5;URL='/a'"},
		{"Refresh", "5, http://up.example/a", "5, /a"},
		{"Refresh", "5", "5"},
		{"Operation-Location", "http://up.example/jobs/1", "/jobs/1"},
		{"Azure-Asyncoperation", "http://up.example/jobs/1", "/jobs/1"},
	} {
		stored := []string{"http://up.example", c[1]} // each line counts
		h := http.Header{c[0]: stored}
		rewriteLinks(h, src)
		if h[c[0]][0] != "/" {
			t.Errorf("%s: the first of two lines is %q", c[0], h[c[0]][0])
		}
		if got := h[c[0]][1]; got != c[2] {
			t.Errorf("%s: %q became %q, want %q", c[0], c[1], got, c[2])
		}
		if stored[1] != c[1] {
			t.Errorf("%s: the stored line became %q", c[0], stored[1])
		}
	}
}

// FuzzRewriteLinks: no address of upstream's origin is left where a client looks for one, which is behind blanks,
// quotes and brackets at the start of a line, behind < and > in Link, and behind a blank of a Link without quotes.
func FuzzRewriteLinks(f *testing.F) {
	f.Add(`<http://up.example/a>; rel="next", <b>`)
	f.Add(`</p>; title="a < b", < HTTP://u:p@up.example.:080\a>; anchor="//up.example"`)
	f.Add(`<https://up.example:443/a>; rel="next", https://up.example:80/b`)
	sp, err := spec.NewGeneric("http://up.example", "none")
	if err != nil {
		f.Fatal(err)
	}
	src := &spec.Source{Name: "site", Spec: sp}
	const user = `[/\\]*(?:[^/?#\\<>" \t]*@)?(?i:up\.example)\.?`
	const origin = `(?:(?i:http:[/\\]|[/\\]{2})` + user + `(?::0*(?:80)?)?|(?i:https:[/\\])` + user +
		`(?::0*(?:80|443)?)?)(?:[/?#\\<>" \t,;']|$)`
	first := regexp.MustCompile(`^[ \t<>"']*` + origin)
	links := regexp.MustCompile(`[<>][ \t<>"']*` + origin)
	bare := regexp.MustCompile(`[ \t]` + origin)
	f.Fuzz(func(t *testing.T, line string) {
		h := http.Header{}
		for _, name := range []string{"Link", "Location", "Content-Location", "Refresh"} {
			h[name] = []string{line, line}
		}
		rewriteLinks(h, src)
		for name, lines := range h {
			for _, got := range lines {
				link := name == "Link" && (links.MatchString(got) || !strings.Contains(got, `"`) && bare.MatchString(got))
				if link || first.MatchString(got) {
					t.Errorf("%s: %q became %q", name, line, got)
				}
				if !strings.Contains(strings.ToLower(line), "up.example") && got != line {
					t.Errorf("%s without an address of upstream: %q became %q", name, line, got)
				}
			}
		}
	})
}
