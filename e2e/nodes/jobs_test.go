// Jobs that processes share.

package nodes_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/store/pgtest"
)

// TestJobOfALivingProcessIsNotTakenOver: the clock of one process is an hour ahead. It takes over the job of the other process when that
// has died, and not before.
func TestJobOfALivingProcessIsNotTakenOver(t *testing.T) {
	t.Parallel()
	arrived, end := make(chan string, 10), make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- r.Header.Get("Webhook-Id")
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(receiver.Close)
	t.Cleanup(func() { close(end) })
	await := func() string {
		t.Helper()
		select {
		case id := <-arrived:
			return id
		case <-time.After(rig.Patience):
			t.Fatal("no message arrives")
			panic("unreachable")
		}
	}
	dsn := databases.Database(t)
	g := &group{more: fmt.Sprintf("webhooks: [{name: crm, url: %q, secret: \"cmd:printf whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\", role: all, "+
		"allow_private: true}]\n", receiver.URL)}
	g.start(t, 0, dsn)
	clocks := []clock{g.addWithBrokenClock(t, dsn), g.addWithBrokenClock(t, dsn)}
	all := parse[struct{ Messages []message }](t, g.ask(t, 0, http.MethodGet, "/Messages.json?PageSize=20", "")).Messages
	checktest.MustEqual(t, len(all), 20, "messages")
	id := await()
	const columns = "SELECT worker || ' ' || attempt FROM job WHERE kind = 'deliver changes' AND state = 2"
	job := pgtest.Query(t, dsn, columns)
	worker, _, _ := strings.Cut(job, " ")
	one := 0
	if pgtest.Query(t, dsn, "SELECT url FROM node WHERE id = '"+worker+"'") != g.nodes[0].URL("viewer") {
		one = 1
	}
	other := 1 - one
	clocks[other].step(time.Hour)
	others := "SELECT count(*) FROM job WHERE number > " + pgtest.Query(t, dsn, "SELECT max(number) FROM job") + " AND worker NOT IN ('', '" + worker + "')"
	for n := 0; pgtest.Query(t, dsn, others) == "0"; n++ { // the other process has claimed no job
		checktest.MustTrue(t, n < len(all), "no job runs at the process whose clock is ahead")
		g.command(t, other, "/-/erase", fmt.Sprintf(`{"source":"twilio","what":"messages/%s"}`, all[n].Sid))
	}
	checktest.Equal(t, pgtest.Query(t, dsn, columns), job, "worker and attempt of the job")
	g.nodes[one].Kill()
	checktest.Equal(t, await(), id, "id of the message that the other process sends")
	clocks[other].mustBeRead()
}
