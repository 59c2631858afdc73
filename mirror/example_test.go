package mirror_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"understudy/internal/store"
	"understudy/mirror"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

const events = `
name: events
hosts: [{url: "https://api.example.com"}]
auth: {style: none}
kinds:
  - name: events
    id: [id]
    fields: [{name: id}]
    lists: [{path: /events, key: events}]
`

func Example() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"events": [{"id": "EV1"}]}`)
	}))
	defer api.Close()
	dir, err := os.MkdirTemp("", "mirror")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	sp, err := upstream.ReadSpec("events.yaml", []byte(events))
	if err != nil {
		fmt.Println(err)
		return
	}
	source := &spec.Source{Name: "main", Spec: sp}
	client, err := upstream.New(upstream.Options{Source: source, Base: api.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(dir, "understudy.db"), Specs: map[string]*spec.Spec{"main": sp}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	m, err := mirror.New(mirror.Options{Sources: []mirror.Source{{Source: source, Upstream: client}}, Store: db})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	defer func() { stop(); <-ended }()

	target, _ := sp.Resolve("main", "/events", "")
	for range 2 {
		r, err := m.Answer(ctx, request.Request{Target: target})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %s\n", r.Outcome, r.Page.Body)
	}
	// Output:
	// cold {"events": [{"id": "EV1"}]}
	// warm {"events": [{"id": "EV1"}]}
}
