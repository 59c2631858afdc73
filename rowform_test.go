package understudy

import (
	"strings"
	"testing"
)

// What is said of the rows of a list must be about what there is.
func TestRowForms(t *testing.T) {
	for _, c := range []struct {
		form RowForm
		want string // in the error; "" = none
	}{
		{RowForm{From: "sounds"}, ""},
		{RowForm{From: "sounds", Own: true}, ""},
		{RowForm{From: "sounds", Without: []string{"url"}, With: map[string]string{"uri": "/calls/{CallSid}/sounds/{sid}"}}, ""},
		{RowForm{}, "no list with fewer variables"},
		{RowForm{From: "call_sounds"}, "own shape"},
		{RowForm{From: "some_sounds"}, "no list with fewer variables"},
		{RowForm{From: "sounds", Own: true, Without: []string{"url"}}, "as they were seen"},
		{RowForm{From: "sounds", Without: []string{"color"}}, "want a field of the body"},
		{RowForm{From: "sounds", Without: []string{"sid"}}, "no part of the id"},
		{RowForm{From: "sounds", Without: []string{"urls.a"}}, "want a field of the body itself"},
		{RowForm{From: "sounds", Without: []string{"log"}}, "a filter looks at it"},
		{RowForm{From: "sounds", With: map[string]string{"uri": "/{Nobody}"}}, "names of fields"},
		{RowForm{From: "sounds", With: map[string]string{"uri": "/{sid}}"}}, "names of fields"},
	} {
		s := &Spec{
			Name: "x", Hosts: []Host{{URL: "http://x"}}, Auth: Auth{Style: "none"},
			Kinds: []*Kind{{
				Name: "sounds", ID: []string{"sid"}, Fields: []*Field{{Name: "sid"}, {Name: "uri"}, {Name: "url"}, {Name: "log"}, {Name: "urls.a"}},
				Lists: []*List{
					{Path: "/sounds"}, {Path: "/some", Shape: "some_sounds", Only: map[string]string{"log": "1"}},
					{Path: "/calls/{CallSid}/sounds", Shape: "call_sounds", Rows: &c.form, Filters: []*Filter{{Name: "Log", Field: "log"}}},
				},
			}},
		}
		err := s.Compile()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.form, err, c.want)
		}
	}
}
