package compose_test

import (
	"context"
	"fmt"
	"time"

	"understudy"
	"understudy/internal/query"
	"understudy/mirror/compose"
	"understudy/spec"
	"understudy/spec/paging"
)

// charges is a store of three records; the first is the newest.
type charges []string

func (c charges) Seek(_ context.Context, _ query.RecordQuery, yield func(query.Hit) bool) error {
	for i, id := range c {
		rec := &understudy.Record{ID: id, Body: []byte(`{"id":"` + id + `"}`)}
		if !yield(query.Hit{Record: rec, Order: query.OrderKey(len(c) - i)}) {
			break
		}
	}
	return nil
}

func (charges) FindPlace(context.Context, string, string, string) (query.OrderKey, error) {
	return 0, understudy.ErrNotFound
}

func ExampleNew() {
	s := &spec.Spec{
		Name: "till", Hosts: []spec.Host{{URL: "https://till.example"}}, Auth: spec.Auth{Style: "bearer"},
		Paging: spec.Paging{Rules: paging.Rules{
			Style: "cursor", Next: "has_more", Cursor: "after", Size: "limit", Default: 10,
			Template: `{"data":{rows},"has_more":{more}}`,
		}},
		Kinds: []*spec.Kind{{
			Name: "charges", ID: []string{"id"}, Fields: []*spec.Field{{Name: "id"}},
			Lists: []*spec.List{{Path: "/charges", Key: "data"}},
		}},
	}
	if err := s.Compile(); err != nil {
		fmt.Println(err)
		return
	}
	target, _ := s.Resolve("till", "/charges", "limit=2")
	list, err := compose.New(&spec.Source{Name: "till", Spec: s}, target, compose.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = list.Fill(context.Background(), charges{"ch_3", "ch_2", "ch_1"})
	page, err := list.BuildPage(time.Now())
	fmt.Printf("%s %s %v\n", page.Body, page.Next.URI, err)
	// Output: {"data":[{"id":"ch_3"},{"id":"ch_2"}],"has_more":true} /charges?limit=2&after=ch_2 <nil>
}
