// Specs: what Compile fills in and what it refuses; states of kinds; hosts.

package spec

import (
	"errors"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec/paging"
)

func TestCompileFillsIn(t *testing.T) {
	s := &Spec{
		Name: "x", Hosts: []Host{{URL: "http://x"}}, Auth: Auth{Style: "none"},
		Paging: Paging{Rules: paging.Rules{Style: "cursor", Next: "more", Cursor: "after"}},
		Kinds: []*Kind{{
			Name: "phone_numbers", ID: []string{"a"}, Fields: []*Field{{Name: "a"}, {Name: "b.c", Title: "C"}},
			Lists: []*List{{Path: "/a", Filters: []*Filter{{Name: "q"}}}}, Instances: []*Instance{{Path: "/a/{A}", ID: []string{"A"}}},
		}},
	}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	k := s.Kind("phone_numbers")
	checktest.Equal(t, s.Title, "x", "s.Title")
	checktest.Equal(t, s.ContentType, "application/json", "s.ContentType")
	checktest.Equal(t, s.Hosts[0].Prefixes[0], "/", "s.Hosts[0].Prefixes[0]")
	checktest.Equal(t, s.Paging.Tokens[0], "after", "s.Paging.Tokens[0]")
	checktest.Equal(t, k.Title, "phone numbers", "k.Title")
	checktest.Equal(t, k.Singular, "phone number", "k.Singular")
	checktest.Equal(t, k.Lists[0].Shape, k.Name, "k.Lists[0].Shape")
	checktest.Equal(t, k.Instances[0].Shape, k.Name, "k.Instances[0].Shape")
	checktest.Equal(t, k.Field("a").Type, TypeText, `k.Field("a").Type`)
	checktest.Equal(t, k.Lists[0].Filters[0].Op, "is", "k.Lists[0].Filters[0].Op")
	checktest.MustTrue(t, k.Lists[0].Filter("q") != nil, `lookups by name: k.Lists[0].Filter("q") is nil`)
	checktest.MustTrue(t, k.Lists[0].Filter("r") == nil, `lookups by name: k.Lists[0].Filter("r") != nil`)
	checktest.MustTrue(t, k.Field("z") == nil, `lookups by name: k.Field("z") != nil`)
	checktest.True(t, s.Kind("z") == nil, `lookups by name: s.Kind("z") != nil`)
	if k.Field("b.c").DisplayName() != "C" || (&Field{Name: "b_x.c"}).DisplayName() != "b x c" {
		t.Error("field names for people")
	}
	none := &Spec{Name: "x", Hosts: []Host{{URL: "http://x"}}, Auth: Auth{Style: "none"}}
	if err := none.Compile(); err != nil || none.Paging.Style != "none" {
		t.Errorf("%v %q", err, none.Paging.Style)
	}
}

// balance is a kind that is one thing of its source.
func balance(f *Field) *Kind {
	return &Kind{Name: "b", Instances: []*Instance{{Path: "/b"}}, Fields: []*Field{f}}
}

func TestCompileRefuses(t *testing.T) {
	for want, wrong := range map[string]func(*Spec){
		`name ""`:                       func(s *Spec) { s.Name = "" },
		`field "": write one word`:      func(s *Spec) { s.Roots.Kind, s.Kinds[0].Root = "shops", "url" },
		`field "a.b": write one word`:   func(s *Spec) { s.Roots.Field, s.Kinds[0].Root = "a.b", "url" },
		"write another name in roots":   func(s *Spec) { s.Roots.Field, s.Kinds[0].Root = s.Kinds[0].Fields[0].Name, "url" },
		`name "A"`:                      func(s *Spec) { s.Name = "A" },
		"hosts":                         func(s *Spec) { s.Hosts = nil },
		"hosts[1]: url":                 func(s *Spec) { s.Hosts[1].URL = "ftp://x" },
		"hosts[0]: url":                 func(s *Spec) { s.Hosts[0].URL = "x" },
		`content_type "json"`:           func(s *Spec) { s.ContentType = "json" },
		"is not a media type in UTF-8":  func(s *Spec) { s.ContentType = "application/json; charset=latin1" },
		"auth.style":                    func(s *Spec) { s.Auth.Style = "magic" },
		"paging.style":                  func(s *Spec) { s.Paging.Style = "odd" },
		`paging "odd" is not among`:     func(s *Spec) { s.Kinds[0].Lists[0].Paging = "odd" },
		"pagings.odd is empty":          func(s *Spec) { s.Pagings = map[string]*Paging{"odd": nil} },
		"pagings.odd.next":              func(s *Spec) { s.Pagings = map[string]*Paging{"odd": {Rules: paging.Rules{Style: "body"}}} },
		"is not a field of type media":  func(s *Spec) { s.Kinds[0].Media = []*Media{{Path: "/m/{Sid}", ID: []string{"Sid"}, Field: "sid"}} },
		"paging.next":                   func(s *Spec) { s.Paging.Next = "" },
		"paging.cursor":                 func(s *Spec) { s.Paging.Style = "cursor" },
		`field "": the name is empty`:   func(s *Spec) { s.Paging.Envelope = []*Field{{}} },
		"or another field has it":       func(s *Spec) { s.Kinds[0].Fields = append(s.Kinds[0].Fields, &Field{Name: "sid"}) },
		"kind calls appears twice":      func(s *Spec) { s.Kinds[1].Name = "calls" },
		`name "a b": write one word`:    func(s *Spec) { s.Kinds[0].Name = "a b" },
		"unknown type":                  func(s *Spec) { s.Kinds[0].Fields[0].Type = "odd" },
		"unknown class":                 func(s *Spec) { s.Kinds[0].Fields[0].Class = "odd" },
		"unknown show":                  func(s *Spec) { s.Kinds[0].Fields[0].Show = "odd" },
		"show: cost is only for prices": func(s *Spec) { s.Kinds[0].Fields[0].Show = ShowCost },
		"show: seconds is only for num": func(s *Spec) { s.Kinds[0].Fields[0].Show = ShowSeconds },
		`from "nobody"`:                 func(s *Spec) { s.Kinds[0].Fields[0].DerivedFrom = "nobody" },
		`link "nowhere" is not a kind`:  func(s *Spec) { s.Kinds[0].Fields[0].Link = "nowhere" },
		"limits.answer is not JSON":     func(s *Spec) { s.Limits.Path, s.Limits.Answer = "/rate", `{"left":{rest}}` },
		"limits.path \"\"":              func(s *Spec) { s.Limits.Answer = `{"left":{remaining}}` },
		"limits.path \"/rate\"":         func(s *Spec) { s.Limits.Path = "/rate" },
		"limits.path \"rate\"":          func(s *Spec) { s.Limits.Path, s.Limits.Answer = "rate", `{}` },
		"limits.path \"/{A}/rate\"":     func(s *Spec) { s.Limits.Path, s.Limits.Answer = "/{A}/rate", `{}` },
		"odd.operator \"maybe\"":        func(s *Spec) { s.Quirks.Operator = "maybe" },
		"odd.size_above":                func(s *Spec) { s.Quirks.Above = QuirkIgnored },
		"odd.page_alone":                func(s *Spec) { s.Quirks.Alone = QuirkRefused },
		"odd.size \"x\"":                func(s *Spec) { s.Quirks.Size = "x" },
		"shown.Sid: no kind has":        func(s *Spec) { s.VarFields = map[string]string{"Sid": "nowhere"} },
		`filter q: op "after"`:          func(s *Spec) { s.Kinds[0].Lists[0].Filters = []*Filter{{Name: "q", Field: "sid", Op: "after"}} },
		"filter q: open":                func(s *Spec) { s.Kinds[0].Lists[0].Filters = []*Filter{{Name: "q", Field: "sid", Exclusive: true}} },
		"back or longest is negative": func(s *Spec) {
			s.Kinds[0].Lists[0].Filters = []*Filter{{Name: "q", Field: "sid",
				Op: "day", MaxDaysBack: -1}}
		},
		"filter q: longest": func(s *Spec) {
			s.Kinds[0].Lists[0].Filters = []*Filter{{Name: "q", Field: "sid", Op: "until", MaxDays: 1}}
		},
		`"x9" is not among its fields`: func(s *Spec) { s.Kinds[0].Lists[0].FixedValues = map[string]string{"x9": "1"} },
		"is not a duration from 1s": func(s *Spec) {
			s.Kinds = append(s.Kinds, balance(&Field{Name: "l", Type: TypeDecimal, Sample: "1ms"}))
		},
		"sample is only for kinds that": func(s *Spec) { s.Kinds[0].Fields[0].Sample = "1h" },
		"have an instance but no id": func(s *Spec) {
			s.Kinds = append(s.Kinds, &Kind{Name: "b", Fields: []*Field{{Name: "l", Type: TypeDecimal, Sample: "1h"}}})
		},
		"of type decimal or int that are not secret": func(s *Spec) {
			s.Kinds = append(s.Kinds, balance(&Field{Name: "l", Sample: "1h"}))
		},
		"forgets.unlisted":                            func(s *Spec) { s.Kinds[0].Retention.Unlisted = true },
		"paging.answer is not JSON":                   func(s *Spec) { s.Paging.Template = `{"rows":{rows},}` },
		`"x1" is not among its fields`:                func(s *Spec) { s.Kinds[0].ID = []string{"x1"} },
		`"x2" is not among its fields`:                func(s *Spec) { s.Kinds[0].Columns = []string{"x2"} },
		`"x3" is not among its fields`:                func(s *Spec) { s.Kinds[0].Clock = "x3" },
		`"x4" is not among its fields`:                func(s *Spec) { s.Kinds[0].OwnNumber = "x4" },
		`"x5" is not among its fields`:                func(s *Spec) { s.Kinds[0].Final = []State{{Field: "x5"}} },
		`"x6" is not among its fields`:                func(s *Spec) { s.Kinds[0].Failed = []State{{Field: "sid", Set: []string{"x6"}}} },
		`"x7" is not among its fields`:                func(s *Spec) { s.Kinds[0].Lists[0].Filters[0].Field = "x7" },
		`"x8" is not among its fields`:                func(s *Spec) { s.Kinds[0].Parent = "x8" },
		"because the API never empties them":          func(s *Spec) { s.Kinds[0].Fields[0].Redacts = true }, // sid
		"forgets.days: -1":                            func(s *Spec) { s.Kinds[0].Retention.Days = -1 },
		"forgets.days: the kind has no clock":         func(s *Spec) { s.Kinds[0].Clock, s.Kinds[0].Retention.Days = "", 1 },
		"forgets.with_parent: the kind has no parent": func(s *Spec) { s.Kinds[0].Retention.WithParent = true },
		"add link with its name to field sid":         func(s *Spec) { s.Kinds[0].Retention.WithParent, s.Kinds[0].Parent = true, "sid" },
		"hook.style":                                  func(s *Spec) { s.Hook.Header = "X-Signature" },
		"hook.header":                                 func(s *Spec) { s.Hook = Hook{Style: HookForm, IDs: []string{"Sid"}, Header: "X Y"} },
		"hook.ids":                                    func(s *Spec) { s.Hook = Hook{Style: HookForm, Header: "X-Signature", IDs: []string{""}} },
		"does not begin with a slash":                 func(s *Spec) { s.Kinds[0].Lists[0].Path = "a" },
		"at most one variable in braces":              func(s *Spec) { s.Kinds[0].Lists[0].Path = "/{a}{b}" },
		"has no variable {Sid}":                       func(s *Spec) { s.Kinds[0].Instances[0].Path = "/1/{Account}" },
		"id names 2 path variables, but the kind's":   func(s *Spec) { s.Kinds[0].Instances[0].ID = []string{"Account", "Sid"} },
		"id names 0 path variables, but the kind's":   func(s *Spec) { s.Kinds[1].Instances[0].ID = nil },
	} {
		s := uncompiled(t)
		wrong(s)
		err := s.Compile()
		checktest.MustTrue(t, err != nil, "err is nil")
		checktest.Contains(t, err.Error(), want, "err.Error()")
		checktest.True(t, strings.HasPrefix(err.Error(), "spec "), "err.Error() is %q", err.Error())
	}
}

// uncompiled is exampleSpec's spec as it was before Compile.
func uncompiled(t *testing.T) *Spec {
	s := *exampleSpec(t)
	s.routes, s.kinds = nil, nil
	return &s
}

func TestURL(t *testing.T) {
	s := exampleSpec(t)
	for _, c := range []struct{ uri, base, want string }{
		{"/1/a?b=c", "", "https://api.example.com/1/a?b=c"},
		{"/1", "", "https://api.example.com/1"},
		{"/v1/x", "", "https://monitor.example.com/v1/x"},
		{"/v2?x", "", "https://monitor.example.com/v2?x"},
		{"/10/a", "", ""},
		{"/v1", "", ""},
		{"/", "", ""},
		{"/10/a", "http://127.0.0.1:4116/", "http://127.0.0.1:4116/10/a"},
	} {
		got, err := s.BuildURL(understudy.Key{URI: c.uri}, c.base)
		checktest.Equal(t, got, c.want, "%s: got; %v", c.uri, err)
		checktest.Equal(t, (err == nil), (c.want != ""), "%s: (err == nil); got %q", c.uri, got)
		checktest.True(t, !(err != nil && !errors.Is(err, understudy.ErrInvalid)),
			"%s: err != nil && !errors.Is(err, understudy.ErrInvalid); err is %v; got %q", c.uri, err, got)
	}
}

func TestKindIDs(t *testing.T) {
	k := exampleSpec(t).Kind("calls")
	for id, want := range map[string]bool{"CA1": true, "CA": false, "CB1": false, "": false, "ca1": false} {
		if k.HasIDPrefix(id) != want {
			t.Errorf("%q: not %v", id, want)
		}
	}
	if got := k.JoinID([]string{"a", "b"}); got != "a~b" {
		t.Errorf("composite id %q", got)
	}
}

func TestSpellID(t *testing.T) {
	k := &Kind{Name: "calls", Prefixes: []string{"CA", "ch_"}}
	const id = "CA0123456789abcdef0123456789abcdef"
	for typed, want := range map[string]string{
		id: id, strings.ToUpper(id): id, strings.ToLower(id): id, "cA" + id[2:]: id,
		"": "", id[1:]: "", id + "0": "", "SM" + id[2:]: "", "ca" + strings.Repeat("g", 32): "", "ch_" + id[2:]: "", "\u017f" + id[2:]: "",
		id[:33] + "\n": "",
	} {
		if got, ok := k.NormalizeID(typed); got != want || ok != (want != "") {
			t.Errorf("%q is spelt %q, %v", typed, got, ok)
		}
	}
}

// What belongs to media and to lists with a paging of their own.
func TestMediaAndPagings(t *testing.T) {
	s := &Spec{
		Name: "x", Hosts: []Host{{URL: "http://x"}}, Auth: Auth{Style: "none"},
		Paging:  Paging{Rules: paging.Rules{Style: "body", Next: "next", Page: "Page", Tokens: []string{"Token"}}},
		Pagings: map[string]*Paging{"other": {Rules: paging.Rules{Style: "body", Next: "meta.next", Page: "page"}}},
		Kinds: []*Kind{{
			Name: "sounds", ID: []string{"sid"}, Fields: []*Field{{Name: "sid"}, {Name: "audio", Type: TypeMedia}},
			Lists:     []*List{{Path: "/sounds"}, {Path: "/v1/sounds", Paging: "other"}},
			Instances: []*Instance{{Path: "/sounds/{Sid}.json", ID: []string{"Sid"}}},
			Media: []*Media{{Path: "/sounds/{Sid}", ID: []string{"Sid"}, Field: "audio"},
				{Path: "/sounds/{Sid}.mp3", ID: []string{"Sid"}, Field: "audio"}},
		}},
	}
	if err := s.Compile(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/sounds/S1.json": "instance S1", "/sounds/S1": "media S1 /sounds/{Sid}", "/sounds/S1.mp3": "media S1 /sounds/{Sid}.mp3",
		"/sounds/S1.xml": "none", "/sounds/S1.x.mp3": "none", "/sounds/": "none",
	} {
		target, err := s.Resolve("x", path, "")
		if err != nil {
			t.Fatal(err)
		}
		have := "none"
		switch {
		case target.Media != nil:
			have = "media " + target.ID + " " + target.Media.Path
		case target.Instance != nil:
			have = "instance " + target.ID
		}
		if have != want {
			t.Errorf("%s: %s, want %s", path, have, want)
		}
	}
	for uri, first := range map[string]bool{"/v1/sounds?page=0": true, "/v1/sounds?page=2": false, "/v1/sounds?Token=a": true,
		"/sounds?Token=a": false} {
		path, query, _ := strings.Cut(uri, "?")
		if target, err := s.Resolve("x", path, query); err != nil || target.First != first {
			t.Errorf("%s: first %v, %v", uri, target.First, err)
		}
	}
}

func TestTokenForm(t *testing.T) {
	one, two := &Kind{ID: []string{"sid"}}, &Kind{ID: []string{"room", "sid"}}
	for _, test := range []struct {
		token, rule string
		kind        *Kind
		id          string
		back        bool
	}{
		{"PAX1", "PA{id}", one, "X1", false},
		{"PBX1", "PA{id}", one, "X1", true},
		{"PCX1", "PA{id}", one, "", false},
		{"PA", "PA{id}", one, "", false},
		{"A-X1.", "A-{id}.", one, "X1", false},
		{"B-X1.", "A-{id}.", one, "X1", true},
		{"A-X1", "A-{id}.", one, "", false},
		{"X1", "{id}", one, "X1", false},
		{"after~r~1", "PA{id}", two, "r~1", false},
		{"before~r~1", "", two, "r~1", true},
		{"PAr~1", "PA{id}", two, "", false},
		{"after~X1", "", one, "X1", false},
		{"", "", one, "", false},
	} {
		form := (&Paging{Rules: paging.Rules{Token: test.rule}}).TokenForm(test.kind)
		id, back, ok := form.ID(test.token)
		if ok != (test.id != "") || ok && (id != test.id || back != test.back) {
			t.Errorf("%q by %q: %q, %v, %v", test.token, test.rule, id, back, ok)
		}
	}
}
