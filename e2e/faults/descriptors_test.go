// Descriptors: a process that has none left goes on answering.

package faults

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
)

// Many connections that send nothing use up every descriptor the process may
// have. Requests are still answered: idle connections are closed for them.
func TestNoDescriptorsLeft(t *testing.T) {
	t.Parallel()
	up := rig.StartAPI(t, "--latency", "10ms", "--records", "300").URL("slowapi")
	_, dir := rig.StartServer(t, rig.Settings{Upstream: up}) // it writes the settings
	const most = 80
	house, err := binary.Start("/bin/sh", dir, "-c", fmt.Sprintf("ulimit -n %d && exec %s serve --data other", most, rig.Program))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := house.Stop(); err != nil {
			t.Errorf("%v\n%s", err, house.Log())
		}
	})
	user := rig.Account + ":" + rig.DemoToken
	warm := house.URL("twilio") + rig.Base + "/Calls.json?PageSize=20"
	if r := rig.Get(t, user, warm); r.Status != 200 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	for range 3 * most {
		c, err := net.Dial("tcp", strings.TrimPrefix(house.URL("twilio"), "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	client := &http.Client{Timeout: rig.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for i := range 20 {
		began := time.Now()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, warm, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(rig.Account, rig.DemoToken)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("request %d, after %v: %v", i, time.Since(began), err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("request %d: %d", i, resp.StatusCode)
		}
	}
	var s struct {
		Process holding
		Ports   map[string]struct {
			Limits map[string]struct{ Now, Dropped int }
		} `json:"faces"`
	}
	if err := json.Unmarshal(rig.Get(t, user, house.URL("viewer")+"/-/stats").Body, &s); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", s)
	if s.Process.FDs > most || s.Ports["twilio"].Limits["connections"].Dropped == 0 {
		t.Errorf("no connection was dropped: %+v", s)
	}
}
