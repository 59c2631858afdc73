// Servers: the built program, started by each test that needs it.

package rig

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/e2e/binary"
)

// Start runs the program in a folder until the test ends. The program must then end with exit code 0. Start logs what
// the program wrote when the test has failed.
func Start(t testing.TB, dir string, args ...string) *binary.Server {
	t.Helper()
	return startProgram(t, Program, dir, args...)
}

// startProgram does what Start does, with the program at a path.
func startProgram(t testing.TB, program, dir string, args ...string) *binary.Server {
	t.Helper()
	on := args[0] == "serve" && ChooseLane(t, dir)
	s, err := binary.Start(program, dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if args[0] == "serve" {
			lanes.count(t, s, on)
		}
		Client.CloseIdleConnections() // a server waits five seconds for connections that were never used
		if err := s.Stop(); err != nil {
			t.Errorf("understudy %s: %v", args[0], err)
		}
		if t.Failed() {
			t.Logf("understudy %s wrote:\n%s", strings.Join(args, " "), Tail(s.Log(), 6000))
		}
	})
	return s
}

// StartDemo runs the demo on free ports until the test ends.
func StartDemo(t testing.TB, args ...string) *binary.Server {
	t.Helper()
	s := Start(t, t.TempDir(), binary.Demo(args...)...)
	for _, name := range []string{"viewer", "twilio", "slowapi"} {
		if s.URL(name) == "" {
			t.Fatalf("the demo prints no address of %s; it prints %v\n%s", name, s.Names(), s.Log())
		}
	}
	return s
}

// StartAgain starts a server in a folder that has its settings and its data. Unlike Start, it lets a test stop the
// server before its end.
func StartAgain(t *testing.T, dir string) *binary.Server {
	t.Helper()
	ChooseLane(t, dir)
	house, err := binary.Start(Program, dir, "serve")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := house.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("understudy wrote:\n%s", Tail(house.Log(), 4000))
		}
	})
	return house
}

// CommandToken returns the token with which the commands of this machine ask the server in a folder.
func CommandToken(t *testing.T, dir string) string {
	t.Helper()
	var run struct{ Token string }
	raw, err := os.ReadFile(filepath.Join(dir, "data", "run.json"))
	if err != nil || json.Unmarshal(raw, &run) != nil {
		t.Fatalf("run.json: %v, %s", err, raw)
	}
	return run.Token
}
