// Where in its list a page begins, by its key.

package order

import (
	"testing"

	"understudy"
	"understudy/spec"
	"understudy/spec/paging"
)

// TestFollowed: only the parameter that takes the spec's tokens tells where a page
// stands; of another it is not known, and such a page puts nothing below a record.
func TestFollowed(t *testing.T) {
	sp := &spec.Spec{
		Name: "till", Hosts: []spec.Host{{URL: "https://till.example"}}, Auth: spec.Auth{Style: "none"},
		Paging: spec.Paging{Rules: paging.Rules{Style: "cursor", Next: "more", Cursor: "starting_after", Tokens: []string{"ending_before"}}},
		Pagings: map[string]*spec.Paging{
			"ways":  {Rules: paging.Rules{Style: "cursor", Next: "more", Cursor: "below", Back: "above"}},
			"links": {Rules: paging.Rules{Style: "body", Next: "next", Tokens: []string{"PageToken", "Before"}, Token: "PA{id}"}},
		},
	}
	if err := sp.Compile(); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]Follows{
		"":                                  {},
		"starting_after=ch_1":               {ID: "ch_1", After: true},
		"ending_before=ch_1":                {After: true},
		"above=ch_1":                        {ID: "ch_1", After: true, Up: true},
		"below=ch_1":                        {ID: "ch_1", After: true},
		"PageToken=PAch_1":                  {ID: "ch_1", After: true},
		"PageToken=PBch_1":                  {ID: "ch_1", After: true, Up: true},
		"Before=PAch_1":                     {After: true},
		"PageToken=ch_1&limit=2":            {After: true},
		"ending_before=&starting_after=c":   {ID: "c", After: true},
		"ending_before=ch_1&PageToken=PAch": {ID: "ch", After: true},
	} {
		if got := ReadFollows(sp, understudy.Key{Source: "s", URI: "/charges?" + query}); got != want {
			t.Errorf("%q: %+v, want %+v", query, got, want)
		}
	}
}
