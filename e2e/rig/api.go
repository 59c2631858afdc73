// The simulated API.

package rig

import (
	"encoding/json"
	"net/http"
	"testing"

	"understudy/e2e/binary"
)

// StartAPI runs the simulated API alone until the test ends.
func StartAPI(t testing.TB, args ...string) *binary.Server {
	t.Helper()
	return Start(t, t.TempDir(), append([]string{"slowapi", "--listen", "127.0.0.1:0"}, args...)...)
}

// Control sends a command to the simulated API: an edit, a fault, a step of its clock.
func Control(t testing.TB, api, path, body string) {
	t.Helper()
	r, err := Ask(http.MethodPost, "", api+path, body)
	if err != nil || r.Status != http.StatusOK {
		t.Fatalf("POST %s %s: %d %s %v", path, body, r.Status, r.Body, err)
	}
}

// APIStats are the simulated API's counters.
type APIStats struct {
	Requests int            `json:"requests"`
	ByTarget map[string]int `json:"by_target"`
}

// ReadAPIStats returns the counters of the simulated API.
func ReadAPIStats(t testing.TB, api string) (s APIStats) {
	t.Helper()
	if err := json.Unmarshal(Get(t, "", api+"/-/stats").Body, &s); err != nil {
		t.Fatal(err)
	}
	return s
}
