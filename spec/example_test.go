package spec_test

import (
	"fmt"

	"understudy/spec"
	"understudy/spec/paging"
)

func ExampleSpec_Resolve() {
	s := &spec.Spec{
		Name: "example", Hosts: []spec.Host{{URL: "https://api.example.com"}}, Auth: spec.Auth{Style: "none"},
		Paging: spec.Paging{Rules: paging.Rules{Style: "body", Next: "next", Size: "size", Default: 50}},
		Kinds: []*spec.Kind{{
			Name: "calls", ID: []string{"sid"}, Fields: []*spec.Field{{Name: "sid"}},
			Lists:     []*spec.List{{Path: "/{Account}/calls", Key: "calls"}},
			Instances: []*spec.Instance{{Path: "/{Account}/calls/{Sid}.json", ID: []string{"Sid"}}},
		}},
	}
	if err := s.Compile(); err != nil {
		fmt.Println(err)
		return
	}
	list, _ := s.Resolve("main", "/AC1/calls", "")
	one, _ := s.Resolve("main", "/AC1/calls/CA1.json", "")
	fmt.Println(list.Key.URI, list.List != nil)
	fmt.Println(one.Kind.Name, one.ID)
	// Output:
	// /AC1/calls?size=50 true
	// calls CA1
}

func ExampleTemplate_FillEscaped() {
	t, err := spec.ParseTemplate("/v1/{Account}/calls/{Sid}.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Vars())
	fmt.Println(t.FillEscaped(func(name string) (string, bool) { return name + "/1", true }))
	// Output:
	// [Account Sid]
	// /v1/Account%2F1/calls/Sid%2F1.json true
}
