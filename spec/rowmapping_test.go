package spec

import (
	"strings"
	"testing"
)

// What is said of the rows of a list must be about what there is.
func TestRowForms(t *testing.T) {
	for _, c := range []struct {
		form RowMapping
		want string // in the error; "" = none
	}{
		{RowMapping{From: "sounds"}, ""},
		{RowMapping{From: "sounds", AsSeen: true}, ""},
		{RowMapping{From: "sounds", Omit: []string{"url"}, Replace: map[string]string{"uri": "/calls/{CallSid}/sounds/{sid}"}}, ""},
		{RowMapping{}, "no list with fewer path variables"},
		{RowMapping{From: "call_sounds"}, "own shape"},
		{RowMapping{From: "some_sounds"}, "no list with fewer path variables"},
		{RowMapping{From: "sounds", AsSeen: true, Omit: []string{"url"}}, "as they were seen"},
		{RowMapping{From: "sounds", Omit: []string{"color"}}, "is not a field at the top of the body"},
		{RowMapping{From: "sounds", Omit: []string{"sid"}}, "it is part of the id"},
		{RowMapping{From: "sounds", Omit: []string{"urls.a"}}, "is not a field at the top of the body"},
		{RowMapping{From: "sounds", Omit: []string{"log"}}, "a filter of the list tests it"},
		{RowMapping{From: "sounds", Replace: map[string]string{"uri": "/{Nobody}"}}, "names of fields"},
		{RowMapping{From: "sounds", Replace: map[string]string{"uri": "/{sid}}"}}, "names of fields"},
	} {
		s := &Spec{
			Name: "x", Hosts: []Host{{URL: "http://x"}}, Auth: Auth{Style: "none"},
			Kinds: []*Kind{{
				Name: "sounds", ID: []string{"sid"}, Fields: []*Field{{Name: "sid"}, {Name: "uri"}, {Name: "url"}, {Name: "log"}, {Name: "urls.a"}},
				Lists: []*List{
					{Path: "/sounds"}, {Path: "/some", Shape: "some_sounds", FixedValues: map[string]string{"log": "1"}},
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
