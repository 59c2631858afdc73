package publish_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"understudy"
	"understudy/internal/publish"
)

// A store of buckets gets the changes as an object of JSON lines.
func Example() {
	store := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { fmt.Println(r.Method, r.URL.Path) }))
	defer store.Close()
	p, err := publish.New(publish.Options{URL: "s3://lake/changes?endpoint=" + store.URL, Secret: understudy.NewSecret("key:secret"),
		AllowPrivate: true, Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	at := time.Date(2026, 12, 1, 9, 30, 0, 0, time.UTC)
	if err := p.Publish(context.Background(), []publish.Message{{ID: "a1", Key: "CA1", At: at, Data: []byte(`{"id":"CA1"}`)}}); err != nil {
		fmt.Println(err)
	}
	// Output: PUT /lake/changes/2026-12-01/093000.000000Z-a1.jsonl
}
