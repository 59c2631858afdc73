// The express lane: tests run against servers that have it and, some of them, against servers that have not.

package rig

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

// ChooseLane decides by the seed whether a test's server has the express lane, and reports it. If not, ChooseLane
// writes so into the settings in dir. A demo, which has no settings, has the lane.
func ChooseLane(t testing.TB, dir string) bool {
	t.Helper()
	on, err := sample.ChooseLane(t.Name(), filepath.Join(dir, "understudy.yml"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if !on {
		t.Log("its servers have no express lane")
	}
	return on
}

// ExpressAnswers returns how many answers a server has given from the express lane.
func ExpressAnswers(t *testing.T, viewer string) int64 {
	t.Helper()
	n, err := countExpress(viewer)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// lanes counts the servers of this package, and their answers from the express lane.
var lanes laneCounts

type laneCounts struct{ with, without, answers atomic.Int64 }

// count adds a server that is about to end, if it answers the demo's credential.
func (c *laneCounts) count(t testing.TB, s *binary.Server, on bool) {
	if s.Exited() {
		return
	}
	n, err := countExpress(s.URL("viewer"))
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

// countExpress returns how many answers the ports of a server have given from the express lane.
func countExpress(viewer string) (n int64, err error) {
	var stats struct {
		Faces map[string]struct {
			Express int64 `json:"express"`
		} `json:"faces"`
	}
	r, err := Ask(http.MethodGet, Account+":"+DemoToken, viewer+"/-/stats", "")
	if err == nil && r.Status == http.StatusUnauthorized { // a server of other sources, which people see
		r, err = Ask(http.MethodGet, "", viewer+"/-/stats", "")
	}
	if err != nil || r.Status != http.StatusOK {
		return 0, fmt.Errorf("%d %s %v", r.Status, r.Body, err)
	}
	if err := json.Unmarshal(r.Body, &stats); err != nil {
		return 0, err
	}
	for _, one := range stats.Faces {
		n += one.Express
	}
	return n, nil
}

// check prints what was counted, and returns the exit code: code, or 1 if all tests have run and none was answered
// from the lane.
func (c *laneCounts) check(code int) int {
	fmt.Printf("express lane: %d answers of %d servers; %d servers without it\n", c.answers.Load(), c.with.Load(), c.without.Load())
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""
	if code == 0 && whole && c.answers.Load() == 0 {
		fmt.Println("no test was answered from the express lane")
		return 1
	}
	return code
}
