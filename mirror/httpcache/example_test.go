package httpcache_test

import (
	"fmt"
	"net/http"
	"time"

	"understudy/mirror/httpcache"
)

// An answer that is fresh for a minute is given for a minute, and while upstream is down.
func Example() {
	at := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	q := &httpcache.Request{Method: "GET", URI: "/prices", Header: http.Header{}}
	r := httpcache.NewResponse(200, http.Header{"Cache-Control": {"max-age=60"}}, at, at)
	fmt.Println("stored:", r.CanStore(q))
	for _, age := range []time.Duration{30 * time.Second, 90 * time.Second} {
		d := httpcache.Decide(q, &r, at.Add(age))
		fmt.Println(age, "answered:", d.Answer, "in an outage:", d.AnswerIfDown, "left:", d.FreshLeft)
	}
	// Output:
	// stored: true
	// 30s answered: true in an outage: true left: 30s
	// 1m30s answered: false in an outage: true left: -30s
}
