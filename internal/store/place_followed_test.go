// Where in its list a page begins, by its key.

package store

import (
	"testing"

	"understudy"
	"understudy/spec"
)

// TestFollowed: only the parameter that takes the spec's tokens tells where a page
// stands; of another it is not known, and such a page puts nothing below a record.
func TestFollowed(t *testing.T) {
	sp := &spec.Spec{
		Name: "till", Hosts: []spec.Host{{URL: "https://till.example"}}, Auth: spec.Auth{Style: "none"},
		Paging:  spec.Paging{Style: "cursor", Next: "more", Cursor: "starting_after", Tokens: []string{"ending_before"}},
		Pagings: map[string]*spec.Paging{"links": {Style: "body", Next: "next", Tokens: []string{"PageToken", "Before"}, Token: "PA{id}"}},
	}
	if err := sp.Compile(); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]follows{
		"":                                  {},
		"starting_after=ch_1":               {id: "ch_1", after: true},
		"ending_before=ch_1":                {after: true},
		"PageToken=PAch_1":                  {id: "ch_1", after: true},
		"PageToken=PBch_1":                  {id: "ch_1", after: true, up: true},
		"Before=PAch_1":                     {after: true},
		"PageToken=ch_1&limit=2":            {after: true},
		"ending_before=&starting_after=c":   {id: "c", after: true},
		"ending_before=ch_1&PageToken=PAch": {id: "ch", after: true},
	} {
		if got := followed(sp, understudy.Key{Source: "s", URI: "/charges?" + query}); got != want {
			t.Errorf("%q: %+v, want %+v", query, got, want)
		}
	}
}
