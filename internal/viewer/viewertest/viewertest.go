// Viewertest: a viewer over the real gate and callers, with the real client asking the simulated API.

// Package viewertest starts viewers for tests, asks them for pages and checks what they answer.
//
// Open puts a fake mirror below the viewer, which keeps pages and answers as a test says. OpenReal
// has the real mirror and store, and people who do something.
package viewertest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	runner "understudy/internal/actions"
	"understudy/internal/callers"
	"understudy/internal/slowapi"
	"understudy/internal/store"
	"understudy/internal/viewer"
	"understudy/internal/viewer/page"
	"understudy/spec"
	"understudy/spec/spectest"
	"understudy/upstream"
)

// Account is the account of the simulated API.
const Account = "AC00000000000000000000000000000001"

// Root begins the paths of upstream.
const Root = "/2010-04-01/Accounts/" + Account

// Noon is the moment tests happen at: five minutes after the newest record.
var Noon = time.Date(2026, 6, 1, 12, 5, 0, 0, time.UTC)

// Fixture is a viewer under test with everything that it uses.
type Fixture struct {
	testing.TB
	Viewer   *viewer.Viewer
	Spec     *spec.Spec
	Upstream *Upstream
	Mirror   *Mirror        // of Open
	Store    *store.DB      // of OpenReal
	Audit    *AuditLog      // of OpenReal
	Actions  *runner.Runner // of OpenReal
}

// Roles are the policy of the tests.
var Roles = access.Roles{
	"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide"}},
	"clerk":   {"twilio": {"*": "see", "calls.sid": "hide", "price": "hide", "messages": "hide", "alerts.log_level": "hide"}},
	"counter": {"twilio": {"incoming_phone_numbers": "see"}},
	"analyst": {"twilio": {"*": "see", "phone": "hash", "calls.to": "country", "body": "hash"}},
	"watcher": {"twilio": {"*": "see", "participants": "hide", "alerts": "hide", "conferences.date_created": "hide",
		"conferences.date_updated": "hide"}},
}

// Credential returns a credential of the source twilio with a role.
func Credential(name, secret, role string) callers.Credential {
	return callers.Credential{Name: name, Source: "twilio", User: Account, Secret: understudy.NewSecret(secret),
		Grant: understudy.Grant{Role: role, IssuedBy: "test"}}
}

// everyRole returns a credential for each role of the tests, and one without a role.
func everyRole() []callers.Credential {
	return []callers.Credential{
		Credential("everything", "alltoken", understudy.RoleAll), Credential("masked", "supporttoken", "support"),
		Credential("clerk", "clerktoken", "clerk"), Credential("counter", "countertoken", "counter"),
		Credential("analyst", "analysttoken", "analyst"),
		Credential("watcher", "watchertoken", "watcher"), Credential("nobody", "nobodytoken", ""),
	}
}

// Open starts a viewer over a fake mirror. It closes it when the test ends. set changes the viewer's options.
func Open(t testing.TB, set ...func(*page.Options)) *Fixture {
	t.Helper()
	now := func() time.Time { return Noon }
	up := startUpstream(t, slowapi.Options{Records: 400, Now: now})
	sp := spectest.BuiltIn(t, "twilio")
	src := &spec.Source{Name: "twilio", Spec: sp, User: Account, PublicURL: "http://127.0.0.1:4115"}
	client, err := upstream.New(upstream.Options{
		Source: src, Base: up.server.URL, Secret: understudy.NewSecret("slowapitoken"), Rate: 1000, Now: now,
	})
	Must(t, err)
	mirror := &Mirror{Fetch: client.Fetch, Pages: map[understudy.Key]*understudy.Page{}}
	gate, err := access.New(map[string]*spec.Spec{"twilio": sp}, Roles)
	Must(t, err)
	book, err := callers.New(callers.Options{Sources: []*spec.Source{src}, Now: now, Credentials: everyRole()})
	Must(t, err)
	o := page.Options{
		Sources: []*spec.Source{src}, Mirror: mirror, Gate: gate, Callers: book, Version: "0.1.0",
		Now: now, Snapshot: Snapshot, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, f := range set {
		f(&o)
	}
	v, err := viewer.New(o)
	Must(t, err)
	t.Cleanup(func() {
		Must(t, v.Visitor.Close())
		Must(t, client.Close())
		up.Close()
	})
	return &Fixture{TB: t, Viewer: v, Mirror: mirror, Spec: sp, Upstream: up}
}

// Snapshot returns the state of a source that does well.
func Snapshot(context.Context, string) page.Snapshot {
	s := page.Snapshot{
		State: "ok", Since: Noon.Add(-3 * time.Hour), DropIn: "http://127.0.0.1:4115",
		Day:      page.Day{Warm: 1204, Stale: 31, Composed: 12, Cold: 57, Walks: 100, Upstream: 141},
		Requests: page.RequestCounts{Upstream: 141},
		Kinds: map[string]page.StoredKind{
			"calls": {Records: 5000, CaughtUp: Noon.Add(-10 * time.Second)}, "messages": {Records: 10000, CaughtUp: Noon.Add(-8 * time.Second)},
			"incoming_phone_numbers": {Records: 8, Complete: true}, "accounts": {Records: 2},
		},
	}
	for i := range 60 {
		s.Latencies.StoredDurations = append(s.Latencies.StoredDurations, time.Duration(350+40*(i*7%11))*time.Microsecond)
		s.Latencies.UpstreamDurations = append(s.Latencies.UpstreamDurations, time.Duration(860+30*(i*5%13))*time.Millisecond)
	}
	s.Latencies.StoredTimes = page.Times{Answers: 1304, Mean: 800 * time.Microsecond, Deviation: 400 * time.Microsecond,
		Min: 300 * time.Microsecond, Max: 9 * time.Millisecond, P50: 550 * time.Microsecond, P99: 4 * time.Millisecond}
	s.Latencies.UpstreamTimes = page.Times{Answers: 141, Unanswered: 2, Mean: 1010 * time.Millisecond, Deviation: 110 * time.Millisecond,
		Min: 860 * time.Millisecond, Max: 1220 * time.Millisecond, P50: 1040 * time.Millisecond, P99: 1210 * time.Millisecond}
	calls := s.Latencies.UpstreamTimes
	calls.Kind, calls.Reason = "calls", "waiting"
	s.Latencies.Times = []page.Times{calls}
	return s
}

// Must ends a test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
