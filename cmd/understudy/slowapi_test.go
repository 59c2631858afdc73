// Stories whose subject is the server in front have the simulated API in the tests' own process.

package main

import (
	"log/slog"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdWorld serves the simulated API until the story ends, and sets $slowapi:
//
//	world LATENCY RECORDS
func cmdWorld(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: world LATENCY RECORDS")
	}
	latency, err := time.ParseDuration(args[0])
	ts.Check(err)
	records, err := strconv.Atoi(args[1])
	ts.Check(err)
	w := world{Seed: 1, Records: records, Epoch: time.Now().UTC().Truncate(time.Second)}
	api, err := worldFlags{Latency: latency, Cap: 200}.open(w, "", "", time.Now, slog.New(slog.DiscardHandler))
	ts.Check(err)
	srv := httptest.NewServer(api)
	ts.Defer(func() {
		srv.Close()
		ts.Check(api.Close())
	})
	ts.Setenv("slowapi", srv.URL)
}
