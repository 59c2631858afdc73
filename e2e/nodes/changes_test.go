// What one process takes back, the others do not show after the call has returned.

package nodes_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/signin"
)

// command sends a request with the token of a node's run.json, as the commands of its machine do.
func (g *group) command(t *testing.T, node int, path, body string) rig.Reply {
	t.Helper()
	r, err := rig.Ask(http.MethodPost, "", g.nodes[node].URL("viewer")+path, body, "Authorization", "Bearer "+rig.CommandToken(t, g.dirs[node]),
		"Content-Type", "application/json")
	checktest.MustNoError(t, err, "POST %s", path)
	checktest.MustTrue(t, r.Status < 300, "POST %s answers %d %s", path, r.Status, r.Body)
	return r
}

// TestRevokedCredentialIsRefusedAtTheOthers: a program whose credential was revoked at one process gets 401 at the others.
func TestRevokedCredentialIsRefusedAtTheOthers(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 2)
	for i := range sample.Count(3, 100) {
		from, to := i%2, (i+1)%2
		name := fmt.Sprint("program-", i)
		made := parse[struct{ User, Secret string }](t, g.command(t, from, "/-/credentials", fmt.Sprintf(`{"name":%q,"source":"twilio","role":"all"}`, name)))
		ask := func(node int) int {
			return rig.Get(t, made.User+":"+made.Secret, g.nodes[node].URL("twilio")+"/2010-04-01/Accounts/"+rig.Account+"/Calls.json?PageSize=5").Status
		}
		checktest.Equal(t, ask(from), 200, "status at the process that made %s", name)
		// A new credential is accepted at the others a moment later; a revoked one is refused at once.
		rig.Await(t, func() string {
			if status := ask(to); status != 200 {
				return fmt.Sprintf("status at the other process for %s is %d", name, status)
			}
			return ""
		})
		g.command(t, from, "/-/credentials/"+name+"/revoke", "")
		checktest.Equal(t, ask(to), 401, "status at the other process after %s was revoked", name)
	}
}

// TestEndedSessionIsRefusedAtTheOthers: a browser that was signed out at one process has to sign in at the others.
func TestEndedSessionIsRefusedAtTheOthers(t *testing.T) {
	t.Parallel()
	users := filepath.Join(t.TempDir(), "users")
	err := signin.UpdateFile(users, func(u *signin.Users) error { return u.Add("anna", "all", rig.AnnasPassword) })
	checktest.MustNoError(t, err, "write the users")
	g := &group{users: rig.ReadFile(t, users)}
	g.start(t, 2, databases.Database(t))
	form := url.Values{"name": {"anna"}, "password": {rig.AnnasPassword}, "back": {"/"}}.Encode()
	for i := range sample.Count(2, 20) {
		from, to := i%2, (i+1)%2
		in, err := rig.Ask(http.MethodPost, "", g.nodes[from].URL("viewer")+"/-/sign-in", form)
		checktest.MustNoError(t, err, "sign in")
		checktest.MustEqual(t, in.Status, 303, "status of the sign-in")
		cookie, _, _ := strings.Cut(in.Header.Get("Set-Cookie"), ";")
		open := func(node int) int {
			return rig.Get(t, "", g.nodes[node].URL("viewer")+"/-/sessions", "Cookie", cookie).Status
		}
		checktest.Equal(t, open(from), 200, "status at the process at which anna signed in")
		checktest.MustEqual(t, open(to), 200, "status at the other process")
		out, err := rig.Ask(http.MethodPost, "", g.nodes[from].URL("viewer")+"/-/sign-out", "", "Cookie", cookie)
		checktest.MustNoError(t, err, "sign out")
		checktest.MustEqual(t, out.Status, 303, "status of the sign-out")
		checktest.Equal(t, open(to), 303, "status at the other process after the sign-out")
	}
}

// TestForgottenRecordIsNotAnsweredByTheOthers: what was purged or erased at one process is in the memory of no other, which has to
// ask the API.
func TestForgottenRecordIsNotAnsweredByTheOthers(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]struct{ path, body string }{
		"purge": {"/-/purge", `{"source":"twilio","what":"calls/%s"}`},
		"erase": {"/-/erase", `{"source":"twilio","what":"calls/%s"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGroup(t, 2)
			calls := parse[struct{ Calls []message }](t, g.ask(t, 0, http.MethodGet, "/Calls.json?PageSize=10", "")).Calls
			checktest.MustEqual(t, len(calls), 10, "calls")
			for _, c := range calls {
				for node := range g.nodes {
					checktest.MustEqual(t, g.ask(t, node, http.MethodGet, "/Calls/"+c.Sid+".json", "").Status, 200, "status at node %d", node)
				}
			}
			for i, c := range calls {
				from, to := i%2, (i+1)%2
				g.command(t, from, forget.path, fmt.Sprintf(forget.body, c.Sid))
				how := g.ask(t, to, http.MethodGet, "/Calls/"+c.Sid+".json", "").Header.Get("Cache-Status")
				checktest.True(t, strings.Contains(how, "fwd=uri-miss") && !strings.Contains(how, "hit"), "Cache-Status at the other process is %q", how)
			}
		})
	}
}

// TestChangeReachesSubscriberOfAnotherNode: a subscriber of one process hears what another has saved.
func TestChangeReachesSubscriberOfAnotherNode(t *testing.T) {
	t.Parallel()
	g := startGroup(t, 2)
	n := sample.Count(20, 100)
	all := parse[struct{ Messages []message }](t, g.ask(t, 0, http.MethodGet, "/Messages.json?PageSize=100", "")).Messages
	checktest.MustTrue(t, len(all) >= n, "%d messages, want %d", len(all), n)
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.nodes[1].URL("viewer")+"/-/feed?kind=messages", nil)
	checktest.MustNoError(t, err, "request")
	r.SetBasicAuth(rig.Account, rig.DemoToken)
	feed, err := http.DefaultClient.Do(r)
	checktest.MustNoError(t, err, "subscribe")
	defer feed.Body.Close()
	checktest.MustEqual(t, feed.StatusCode, 200, "status of the feed")
	lines := bufio.NewScanner(feed.Body)
	await := func(texts ...string) {
		t.Helper()
		for lines.Scan() {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(lines.Text(), text) }) {
				return
			}
		}
		t.Fatalf("the feed ends before %q: %v", texts, lines.Err())
	}
	await("id: ") // from here on it is subscribed
	var writes, arrivals []time.Duration
	for _, m := range all[:n] {
		began := time.Now()
		done := make(chan time.Duration, 1)
		go func() {
			w, err := rig.Ask(http.MethodPost, rig.Account+":"+rig.APIToken, g.nodes[0].URL("twilio")+rig.Base+"/Messages/"+m.Sid+".json", "Body=")
			if err != nil || w.Status != 200 {
				t.Errorf("the write answers %d %s %v", w.Status, w.Body, err)
			}
			done <- time.Since(began)
		}()
		await(m.Sid, `"what":"changed"`)
		arrivals = append(arrivals, time.Since(began))
		writes = append(writes, <-done)
	}
	slices.Sort(writes)
	slices.Sort(arrivals)
	t.Logf("%d changes: the write p50 %v, p99 %v; the event at the other process after the write began p50 %v, p99 %v", n,
		writes[n/2], writes[n*99/100], arrivals[n/2], arrivals[n*99/100])
}
