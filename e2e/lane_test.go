// Lane: tests run against servers with the express lane and, some of them, without.

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"understudy/e2e/binary"
	"understudy/internal/sample"
)

// withLane reports whether a server of a test has the express lane, and writes into the settings
// in dir that it has none. Without settings, as a demo, it has.
func withLane(t testing.TB, dir string) bool {
	t.Helper()
	on, err := sample.Lane(t.Name(), filepath.Join(dir, "understudy.yml"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if !on {
		t.Log("its servers have no express lane")
	}
	return on
}

// lanes counts what tests have asked of servers that were asked at the end.
var lanes laneCounts

type laneCounts struct{ with, without, answers atomic.Int64 }

// count adds a server that still runs, if it answers the demo's credential.
func (c *laneCounts) count(t testing.TB, s *binary.Server, on bool) {
	if s.Exited() {
		return
	}
	n, err := laneAnswers(s.URL("viewer"))
	switch {
	case err != nil:
		return
	case on:
		c.with.Add(1)
	default:
		if c.without.Add(1); n > 0 {
			t.Errorf("a server without the express lane gave %d answers from it", n)
		}
	}
	c.answers.Add(n)
}

// laneAnswers is how many answers a server's ports have given without net/http.
func laneAnswers(viewer string) (n int64, err error) {
	var stats struct {
		Faces map[string]struct {
			Express int64 `json:"express"`
		} `json:"faces"`
	}
	r, err := ask(http.MethodGet, account+":"+demoToken, viewer+"/-/stats", "")
	if err == nil && r.status == http.StatusUnauthorized { // a server of other sources, which people see
		r, err = ask(http.MethodGet, "", viewer+"/-/stats", "")
	}
	if err != nil || r.status != http.StatusOK {
		return 0, fmt.Errorf("%d %s %v", r.status, r.body, err)
	}
	if err := json.Unmarshal(r.body, &stats); err != nil {
		return 0, err
	}
	for _, one := range stats.Faces {
		n += one.Express
	}
	return n, nil
}

// told says what was counted. When all tests have run and none was answered from the lane, they
// show nothing of it.
func (c *laneCounts) told(code int) int {
	fmt.Printf("express lane: %d answers of %d servers; %d servers without it\n", c.answers.Load(), c.with.Load(), c.without.Load())
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""
	if code == 0 && whole && c.answers.Load() == 0 {
		fmt.Println("no test was answered from the express lane")
		return 1
	}
	return code
}
