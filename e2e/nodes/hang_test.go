// A database that hangs: its connections are open, and it does not answer.

package nodes_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/store/pgtest"
)

// pauseServer stops all processes of a PostgreSQL server. They go on when the test calls resume, at the latest when the test ends.
func pauseServer(t *testing.T, dsn string) (resume func()) {
	t.Helper()
	u, err := url.Parse(dsn)
	checktest.MustNoError(t, err, "parse %s", dsn)
	first, _, _ := strings.Cut(rig.ReadFile(t, filepath.Join(u.Query().Get("host"), "data", "postmaster.pid")), "\n")
	server, err := strconv.Atoi(first)
	checktest.MustNoError(t, err, "the id of the server's process")
	checktest.MustNoError(t, syscall.Kill(server, syscall.SIGSTOP), "stop the server") // so that it starts no more processes
	processes := append([]int{server}, listChildren(t, server)...)
	for _, one := range processes {
		_ = syscall.Kill(one, syscall.SIGSTOP) // one may have ended
	}
	resume = func() {
		for _, one := range processes {
			_ = syscall.Kill(one, syscall.SIGCONT)
		}
	}
	t.Cleanup(resume)
	return resume
}

// listChildren returns the ids of the processes that a process has started.
func listChildren(t *testing.T, parent int) (all []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	checktest.MustNoError(t, err, "list the processes")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // the state, the parent
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			checktest.MustNoError(t, err, "the id of a process")
			all = append(all, id)
		}
	}
	return all
}

// TestDatabaseHangs: without an answer of the database, each process answers soon from memory, and says so. It refuses writes.
// Afterwards all is as before, and nothing is lost.
func TestDatabaseHangs(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Server(t)
	g := &group{}
	g.start(t, 2, dsn)
	all := parse[struct{ Messages []message }](t, g.ask(t, 0, http.MethodGet, "/Messages.json?PageSize=20", "")).Messages
	checktest.MustEqual(t, len(all), 20, "messages")
	path := func(i int) string { return "/Messages/" + all[i].Sid + ".json" }
	checktest.MustEqual(t, g.ask(t, 0, http.MethodPost, path(0), "Body=").Status, 200, "status of a write before")
	for node := range g.nodes {
		g.awaitRenewals(t, node)
		for i := range all {
			checktest.MustEqual(t, g.ask(t, node, http.MethodGet, path(i), "").Status, 200, "status of message %d at node %d", i, node)
		}
	}
	resume := pauseServer(t, dsn)
	hung := time.Now()
	var both sync.WaitGroup
	for node := range g.nodes {
		both.Go(func() {
			slowest := time.Duration(0)
			timed := func(method, path, body string) rig.Reply {
				began := time.Now()
				r := g.ask(t, node, method, path, body)
				slowest = max(slowest, time.Since(began))
				return r
			}
			rig.AwaitFor(t, 10*time.Second, func() string {
				if how := timed(http.MethodGet, path(1), "").Header.Get("Cache-Status"); !staleAnswer.MatchString(how) {
					return how
				}
				return ""
			})
			noticed, rounds := time.Since(hung), 0
			for ; time.Since(hung) < time.Duration(sample.Count(5, 30))*time.Second; rounds++ {
				r := timed(http.MethodGet, path(1+rounds%10), "")
				checktest.Equal(t, r.Status, 200, "status of what is in memory of node %d (%.200s)", node, r.Body)
				checktest.True(t, staleAnswer.MatchString(r.Header.Get("Cache-Status")), "Cache-Status at node %d is %q", node, r.Header.Get("Cache-Status"))
				wrote := timed(http.MethodPost, path(11+node), "Body=")
				checktest.MustEqual(t, wrote.Status, 503, "status of a write at node %d (%.200s)", node, wrote.Body)
				checktest.Equal(t, g.readHealth(t, node).Status, "degraded", "health of node %d", node)
			}
			t.Logf("node %d: stale after %v; %d rounds, the slowest answer took %v", node, noticed, rounds, slowest)
			checktest.True(t, slowest < 5*time.Second, "an answer of node %d took %v", node, slowest)
		})
	}
	both.Wait()
	resume()
	back := time.Now()
	for node := range g.nodes {
		rig.AwaitFor(t, 5*time.Second, func() string {
			if h := g.readHealth(t, node); h.Status != "ok" {
				return fmt.Sprint("health: ", h)
			}
			return ""
		})
	}
	t.Logf("all is well %v after the database goes on", time.Since(back))
	for node := range g.nodes {
		for i, want := range map[int]string{0: "", 11: all[11].Body, 12: all[12].Body} {
			body, _ := g.readMessage(t, node, path(i))
			checktest.Equal(t, body, want, "text of message %d at node %d afterwards", i, node)
		}
	}
	checktest.Equal(t, g.ask(t, 1, http.MethodPost, path(11), "Body=").Status, 200, "status of a write afterwards")
	body, _ := g.readMessage(t, 0, path(11))
	checktest.Equal(t, body, "", "text at the other process")
}
