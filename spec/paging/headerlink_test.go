package paging

import (
	"strings"
	"testing"
)

func TestNextLink(t *testing.T) {
	for _, c := range []struct {
		fields []string
		want   string
	}{
		{nil, ""},
		{[]string{`</a?page=2>; rel="next"`}, "/a?page=2"},
		{[]string{`</a>; rel=next`}, "/a"},
		{[]string{`</p>; rel="prev", </n>; rel="next", </l>; rel="last"`}, "/n"},
		{[]string{`</p>; rel="prev"`, `</n>; rel="last next"`}, "/n"},
		{[]string{`</a>;REL = "NEXT"`}, "/a"},
		{[]string{`</a>; title="x, </b>; rel=next"; rel="prev"`}, ""},
		{[]string{`</a>; title="a \" b"; rel=next`}, "/a"},
		{[]string{`</a>; rel=prev; rel=next`}, ""},
		{[]string{`</a,b;c>; rel=next`}, "/a,b;c"},
		{[]string{`</a>; foo; rel=next`}, "/a"},
		{[]string{`</a>; relx=next`}, ""},
		{[]string{`</a; rel=next`}, ""},
		{[]string{`</a>; rel="next`}, "/a"},
		{[]string{`</a>`}, ""},
		{[]string{`</a>; rel="next"; results="true"; cursor="0:100:0"`}, "/a"},
		{[]string{`</a>; rel="next"; results="false"; cursor="0:100:0"`}, ""},
		{[]string{`</a>; results=FALSE; rel=next`}, ""},
		{[]string{`</p>; rel="previous"; results="false", </n>; rel="next"; results="true"`}, "/n"},
		{[]string{`</p>; rel="previous"; results="true", </n>; rel="next"; results="false"`}, ""},
		{[]string{`,,;;<>;rel=next`}, ""},
	} {
		if got := LinkTarget(c.fields, "next"); got != c.want {
			t.Errorf("%q: %q, want %q", c.fields, got, c.want)
		}
	}
}

func TestLinksKeepTheParametersThatClientsGoBy(t *testing.T) {
	const line = `</p?c=0>; rel="previous"; results="false"; cursor="0:0:1", </n>; title=x; rel=next; cursor="a\"b"; results=true`
	for relation, want := range map[string][2]string{
		"next":     {"/n", `; cursor="a\"b"; results="true"`},
		"previous": {"", `; results="false"; cursor="0:0:1"`},
		"first":    {"", ""},
	} {
		if link, params := LinkAndParams([]string{line}, relation); link != want[0] || params != want[1] {
			t.Errorf("%s: %q and %q, want %q", relation, link, params, want)
		}
	}
}

func TestEveryRelationIsRead(t *testing.T) {
	value := ""
	for _, relation := range append([]string{"next"}, Relations...) {
		value = AppendLink(value, "https://x/a?page="+relation, relation)
	}
	for _, relation := range append([]string{"next"}, Relations...) {
		if got := LinkTarget([]string{value}, relation); got != "https://x/a?page="+relation {
			t.Errorf("%s of %s: %q", relation, value, got)
		}
	}
}

func FuzzNextLink(f *testing.F) {
	f.Add(`</p>; rel="prev", </n>; title="\""; rel="x next"`)
	f.Add(`<>;;=,<`)
	f.Add(`<p>; rel="next"; results="false", <n>; results=; rel=next`)
	f.Add(`<a>;rel="next`)
	f.Add(`<http://x:80/a>; rel="next", <HTTPS://u@x.:443/a>; rel="last"`)
	f.Fuzz(func(t *testing.T, link string) {
		if to := LinkTarget([]string{link}, "next"); to != "" && (!strings.Contains(link, "<"+to) && !strings.Contains(link, to)) {
			t.Fatalf("%q comes from nowhere in %q", to, link)
		}
	})
}
