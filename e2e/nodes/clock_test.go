// Processes whose clock is wrong.

package nodes_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	build "understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

// buildWithBrokenClock builds the program with the clock of testdata/boottime_linux.go. The packages below internal/app get
// their time from internal/app, and the leases from internal/fleet.
var buildWithBrokenClock = sync.OnceValues(func() (string, error) {
	folder := filepath.Dir(rig.Program)
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	app := filepath.Join(root, "internal", "app")
	broken, err := filepath.Abs("testdata/boottime_linux.go")
	if err != nil {
		return "", err
	}
	replace := map[string]string{filepath.Join(root, "internal", "fleet", "boottime_linux.go"): broken}
	write := func(path, text string) error {
		replace[path] = filepath.Join(folder, "clock-"+filepath.Base(path))
		return os.WriteFile(replace[path], []byte(text), 0o600)
	}
	err = write(filepath.Join(app, "brokenclock.go"), "package app\n\nimport \"understudy/internal/fleet\"\n\nvar brokenNow = fleet.Now\n")
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(app, "*.go"))
	if err != nil {
		return "", err
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if strings.HasSuffix(path, "_test.go") || !strings.Contains(string(text), "time.Now") {
			continue
		}
		if err := write(path, strings.ReplaceAll(string(text), "time.Now", "brokenNow")+"\nvar _ time.Time\n"); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	program := rig.Program + "-clock"
	return program, build.Build(context.Background(), root, program, "-overlay", list)
})

// clock is the broken clock of a process.
type clock struct {
	t    *testing.T
	file string
}

// addWithBrokenClock starts one more process, whose clock is still right.
func (g *group) addWithBrokenClock(t *testing.T, dsn string) clock {
	t.Helper()
	path, err := buildWithBrokenClock()
	checktest.MustNoError(t, err, "build the program with a broken clock")
	set := g.settings(dsn)
	set.Program = path
	s, dir := rig.StartServer(t, set)
	g.nodes, g.dirs = append(g.nodes, s), append(g.dirs, dir)
	return clock{t, filepath.Join(dir, "clock")}
}

// step makes the wall clock wrong by a duration.
func (c clock) step(wrong time.Duration) { c.set(0, int64(wrong)) }

// set sets a field of the state of the clock in testdata/boottime_linux.go.
func (c clock) set(field int64, value int64) {
	c.t.Helper()
	f, err := os.OpenFile(c.file, os.O_WRONLY, 0)
	checktest.MustNoError(c.t, err, "open the clock")
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(value)), 8*field)
	checktest.MustNoError(c.t, err, "set the clock")
	checktest.MustNoError(c.t, f.Close(), "close the clock")
}

// slow makes the clocks lose 5 % of the time.
func (c clock) slow() { c.set(1, 1) }

// mustBeRead fails the test if the process has not read the broken clock.
func (c clock) mustBeRead() {
	c.t.Helper()
	state := rig.ReadFile(c.t, c.file)
	checktest.MustTrue(c.t, binary.NativeEndian.Uint64([]byte(state[16:])) > 0, "the process does not use the broken clock")
}

// isStale matches the Cache-Status of a stored answer that does not claim to be fresh.
var isStale = regexp.MustCompile(`hit; ttl=(-\d+|0; detail=)`)

// readMessage returns the text of a message at a node, and whether the answer claims to be fresh.
func (g *group) readMessage(t *testing.T, node int, path string) (body string, fresh bool) {
	t.Helper()
	r := g.ask(t, node, http.MethodGet, path, "")
	checktest.MustEqual(t, r.Status, 200, "status of %s at node %d (%.200s)", path, node, r.Body)
	return parse[message](t, r).Body, !isStale.MatchString(r.Header.Get("Cache-Status"))
}

// TestSlowClockEndsTheLeaseInTime: a process whose clock loses 5 % is cut off from the database. A write at another process
// returns when the lease has ended by the clock of the database. It has then ended by the slow clock, too.
func TestSlowClockEndsTheLeaseInTime(t *testing.T) {
	t.Parallel()
	dsn := databases.Database(t)
	w, through := newWire(t, dsn)
	g := &group{}
	g.start(t, 1, dsn)
	c := g.addWithBrokenClock(t, through)
	c.slow()
	all := parse[struct{ Messages []message }](t, g.ask(t, 0, http.MethodGet, "/Messages.json?PageSize=20", "")).Messages
	checktest.MustEqual(t, len(all), 20, "messages")
	stale, longest := 0, time.Duration(0)
	for i, m := range all[:sample.Count(1, 20)] {
		path := "/Messages/" + m.Sid + ".json"
		g.awaitRenewals(t, 1)
		rig.Await(t, func() string {
			if body, fresh := g.readMessage(t, 1, path); body != m.Body || !fresh {
				return "it is not in the memory of the slow process: " + body
			}
			return ""
		})
		w.cut()
		began := time.Now()
		checktest.MustEqual(t, g.ask(t, 0, http.MethodPost, path, "Body=").Status, 200, "status of the write")
		returned := time.Now()
		longest = max(longest, returned.Sub(began))
		for time.Since(returned) < 300*time.Millisecond {
			body, fresh := g.readMessage(t, 1, path)
			if fresh && body != "" {
				t.Fatalf("round %d: %v after the write the slow process calls the text of before fresh", i, time.Since(returned))
			}
			stale++
		}
		w.join()
	}
	c.mustBeRead()
	checktest.True(t, stale > 0, "no answers")
	t.Logf("%d answers after the writes, none of them wrongly fresh; the longest write took %v", stale, longest)
}

// TestSteppedClock: the wall clock of a process is stepped by an hour, forward and back, and by two minutes. After each write, what
// a process calls fresh is what was written.
func TestSteppedClock(t *testing.T) {
	t.Parallel()
	dsn := databases.Database(t)
	g := &group{}
	g.start(t, 1, dsn)
	c := g.addWithBrokenClock(t, dsn)
	all := parse[struct{ Messages []message }](t, g.ask(t, 0, http.MethodGet, "/Messages.json?PageSize=100", "")).Messages
	steps := []time.Duration{0, time.Hour, -time.Hour, 2 * time.Minute, -2 * time.Minute}
	each := sample.Count(2, 20)
	checktest.MustTrue(t, len(all) >= each*len(steps), "%d messages", len(all))
	var slowest time.Duration
	for n, wrong := range steps {
		c.step(wrong)
		for i, m := range all[n*each : (n+1)*each] {
			path, writer := "/Messages/"+m.Sid+".json", i%2
			for node := range g.nodes {
				body, _ := g.readMessage(t, node, path)
				checktest.MustEqual(t, body, m.Body, "text at node %d with a clock that is wrong by %v", node, wrong)
			}
			began := time.Now()
			checktest.MustEqual(t, g.ask(t, writer, http.MethodPost, path, "Body=").Status, 200, "status of the write")
			slowest = max(slowest, time.Since(began))
			for node := range g.nodes {
				for range 2 {
					body, fresh := g.readMessage(t, node, path)
					checktest.True(t, body == "" || !fresh, "node %d calls the text of before a write at node %d fresh; the clock is wrong by %v", node, writer, wrong)
				}
				list := g.ask(t, node, http.MethodGet, "/Messages.json?PageSize=100", "")
				for _, in := range parse[struct{ Messages []message }](t, list).Messages {
					if in.Sid == m.Sid && in.Body != "" && !isStale.MatchString(list.Header.Get("Cache-Status")) {
						t.Errorf("node %d calls a list of before a write at node %d fresh; the clock is wrong by %v", node, writer, wrong)
					}
				}
			}
		}
	}
	c.mustBeRead()
	t.Logf("%d writes, the slowest took %v", each*len(steps), slowest)
}
