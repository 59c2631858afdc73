// SIGQUIT: the locks, then Go's stacks.

package operation

import (
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

func TestQuitPrintsLocksBeforeStacks(t *testing.T) {
	t.Parallel()
	server, _ := rig.StartServer(t, rig.Settings{Upstream: rig.StartAPI(t, "--records", "10").URL("slowapi"), Role: "all"})
	locks := server.URL("viewer") + "/-/locks"
	a, err := http.PostForm(locks, url.Values{"watch": {"on"}})
	checktest.MustNoError(t, err, "watch the locks")
	checktest.MustNoError(t, a.Body.Close(), "close the answer")
	checktest.MustEqual(t, a.StatusCode, 200, "status of the page after the form")
	rig.Get(t, "", server.URL("viewer")+"/twilio/calls")
	if page := string(rig.Get(t, "", locks).Body); !strings.Contains(page, "db.(*Pool)") || !strings.Contains(page, "Stop watching") {
		t.Errorf("the page lacks the lock of the database:\n%s", page)
	}
	checktest.MustNoError(t, syscall.Kill(server.Process(), syscall.SIGQUIT), "send SIGQUIT")
	for until := time.Now().Add(rig.Patience); !server.Exited() && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := server.Stop(); err == nil || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("the server ended with %v, want exit status 2", err)
	}
	server.Kill() // the end of the test does not ask how it ended
	log := server.Stderr()
	report, quit := strings.Index(log, "watched now: true"), strings.Index(log, "SIGQUIT: quit")
	if report < 0 || quit < report || !strings.Contains(log[quit:], "goroutine 1 ") {
		t.Errorf("want the locks, then the stacks:\n%s", log)
	}
}
