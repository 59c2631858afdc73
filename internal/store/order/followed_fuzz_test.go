// Tokens of pages come from outside: whatever they are, what is read of them is
// in them.

package order

import (
	"net/url"
	"strings"
	"testing"

	"understudy"
	"understudy/spec"
	"understudy/spec/paging"
)

func FuzzFollowed(f *testing.F) {
	for _, seed := range [][3]string{
		{"PA{id}", "PageToken=PACA01&Page=1&PageSize=50", "PACA01"},
		{"PA{id}", "PageToken=PBCA01", "PBCA01"},
		{"PA{id}Z", "Page=1&PageToken=PACA01Z&PageToken=PB", "PACA01Z"},
		{"{id}", "after=CA01", "CA01"},
		{"A{id}A", "PageToken=A", "A"},
		{"A{id}A", "PageToken=%41%41", "AA"},
		{"", "PageToken=%zz", ""},
		{"{id}{id}", "PageToken=PA%00&;=&&", "{id}"},
		{"0", "PageToken=0 %", "0"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, form, query, token string) {
		said := (&paging.Rules{Token: form}).TokenForm(true)
		if id, back, ok := said.ID(token); ok && !back && said.After+id+said.Tail != token {
			t.Errorf("%q in the form %q = %q", token, form, id)
		}
		for _, style := range []string{"", "cursor"} {
			tokens := []string{"PageToken", "after"}
			sp := &spec.Spec{
				Paging:  spec.Paging{Rules: paging.Rules{Style: style, Token: form, Tokens: tokens}},
				Pagings: map[string]*spec.Paging{"other": {Rules: paging.Rules{Token: "PA{id}", Tokens: tokens}}},
			}
			key := understudy.Key{Source: "s", URI: "/list?" + query}
			got := ReadFollows(sp, key)
			if got.ID != "" && !got.After || got.Up && got.ID == "" {
				t.Errorf("followed(%q, %q) = %+v", form, query, got)
			}
			params, err := understudy.ParseQuery(key.Query()) // to a space: the header of a key is behind it
			if err != nil && got != (Follows{}) {
				t.Errorf("followed(%q, %q) = %+v, though it is no query: %v", form, query, got, err)
			}
			in := false
			for _, name := range tokens {
				value, _ := params.Get(name)
				in = in || strings.Contains(value, got.ID)
			}
			if !in {
				t.Errorf("followed(%q, %q) = %+v, which no token has", form, query, got)
			}
			// A token made of a form is read back.
			if id, tail, ok := strings.Cut(form, "{id}"); ok && token != "" && !strings.Contains(id+tail, "{id}") && style == "" {
				uri := "/list?PageToken=" + url.QueryEscape(id+token+tail)
				if got := ReadFollows(sp, understudy.Key{Source: "s", URI: uri}); got.ID != token || got.Up {
					t.Errorf("followed(%q, %q) = %+v, want %q", form, uri, got, token)
				}
			}
		}
	})
}
