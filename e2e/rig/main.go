// Package rig is what all end-to-end tests use. It starts the built program, sends requests to it, and waits for what
// it does.
//
// A package of tests lies one folder below e2e. Its TestMain calls Main. Paths that begin with "../.." lead to the root
// of the tree, and those that begin with ".." to e2e.
package rig

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"understudy/e2e/binary"
)

// Program is the path of the built program. Main sets it.
var Program string

// atEnd is what Main calls after the tests, the last first.
var atEnd []func()

// AtEnd has Main call end when all tests have run. Only one goroutine at a time may call AtEnd.
func AtEnd(end func()) { atEnd = append(atEnd, end) }

// Main builds the program, runs the tests of a package, and ends the process.
func Main(m *testing.M) { os.Exit(run(m)) }

// MainOnLane is Main for a package in which many programs ask. Its tests fail when all of them have run and none was
// answered from the express lane: then they show nothing of it.
func MainOnLane(m *testing.M) { os.Exit(lanes.check(run(m))) }

// run returns the exit code. The tests run a copy of the program, which a later build does not replace.
func run(m *testing.M) int {
	flag.Parse()
	for _, name := range []string{"TWILIO_EDGE", "TWILIO_REGION", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		_ = os.Unsetenv(name) // the SDK would follow them
	}
	dir, err := os.MkdirTemp("", "understudy-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	Program = filepath.Join(dir, "understudy")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := binary.BuildShared(ctx, "../..", Program); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		for _, end := range slices.Backward(atEnd) {
			end()
		}
	}()
	return m.Run()
}
