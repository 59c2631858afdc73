// Tests of health and stats.

package diagnostics

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/audit"
	"understudy/internal/certificate"
	"understudy/internal/checktest"
	"understudy/internal/connect"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/request"
)

type fixture struct {
	ending   bool
	readable error
	snapshot Snapshot
	caller   understudy.Caller
	callErr  error
	settings Settings
	nodes    []request.Node
	ended    bool // whether the lease of this process has ended
}

func (h *fixture) handler() http.Handler {
	return New(Options{
		Nodes:          func() ([]request.Node, bool) { return h.nodes, !h.ended },
		Snapshot:       func(context.Context) (Snapshot, error) { return h.snapshot, nil },
		Readable:       func(context.Context) error { return h.readable },
		IsEnding:       func() bool { return h.ending },
		SettingsStatus: func() Settings { return h.settings },
		Person:         func(*http.Request) (understudy.Caller, error) { return h.caller, h.callErr },
		Now:            func() time.Time { return time.Date(2026, 6, 1, 13, 0, 0, 0, time.UTC) },
	}).Handler()
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// twoNodes are two processes on one database.
var twoNodes = []request.Node{{ID: "a", Self: true, URL: "http://10.0.0.2:4114", Version: "1", Lease: 1800},
	{ID: "b", URL: "http://10.0.0.3:4114", Version: "1", Behind: 7}}

func TestHealth(t *testing.T) {
	ok := map[string]Source{"web": {State: "ok"}}
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		house  fixture
		status int
		body   string
	}{
		"ok": {fixture{snapshot: Snapshot{Sources: ok}}, 200, `{"status":"ok"}`},
		"degraded": {fixture{snapshot: Snapshot{Sources: map[string]Source{"web": {State: "down", Why: "secret detail"}}}}, 200,
			`{"status":"degraded","reasons":["source web: down"]}`},
		"L4: full": {fixture{snapshot: Snapshot{Sources: ok, Store: store.Space{Trouble: "disk full"}}}, 200,
			`{"status":"degraded","reasons":["the store: disk full"]}`},
		"jobs rest": {fixture{snapshot: Snapshot{Sources: ok, Jobs: jobs.Stats{Trouble: "disk full"}}}, 200,
			`{"status":"degraded","reasons":["no job begins: disk full"]}`},
		"backup failed": {fixture{snapshot: Snapshot{Sources: ok, Backup: &LastBackup{Error: "secret detail"}}}, 200,
			`{"status":"degraded","reasons":["the last backup failed; backup.error of /-/stats says why"]}`},
		"backup late": {fixture{snapshot: Snapshot{Sources: ok, Backup: &LastBackup{Late: true}}}, 200,
			`{"status":"degraded","reasons":["the last backup is too old"]}`},
		"no certificate": {fixture{snapshot: Snapshot{Sources: ok,
			Certificates: map[string]certificate.State{"calls.example.com": {FailedAt: at, Error: "secret detail"}}}}, 200,
			`{"status":"degraded","reasons":["the certificate calls.example.com was not issued at 2026-06-01T12:00:00Z; ` +
				`certificates.calls.example.com.error of /-/stats says why"]}`},
		"certificate expired": {fixture{snapshot: Snapshot{Sources: ok, Certificates: map[string]certificate.State{"file": {Ends: at}}}}, 200,
			`{"status":"degraded","reasons":["the certificate file has expired"]}`},
		"audit damaged": {fixture{snapshot: Snapshot{Sources: ok, Audit: &audit.Stats{Damaged: "20260601T120000Z-01020304"}}}, 200,
			`{"status":"degraded","reasons":["the audit log of an earlier run is damaged and left as it is; understudy audit verify says where"]}`},
		"loaded": {fixture{snapshot: Snapshot{Sources: ok}, settings: Settings{LoadedAt: at}}, 200,
			`{"status":"ok","loaded_at":"2026-06-01T12:00:00Z"}`},
		"not loaded": {fixture{snapshot: Snapshot{Sources: ok}, settings: Settings{LoadedAt: at, FailedAt: at, Error: "secret detail"}}, 200,
			`{"status":"degraded","reasons":["the settings could not be loaded again; the former ones are in force"],` +
				`"loaded_at":"2026-06-01T12:00:00Z"}`},
		"ending": {fixture{ending: true, snapshot: Snapshot{Sources: ok}}, 503, `{"status":"down","reasons":["shutting down"]}`},
		"unreadable": {fixture{readable: errors.New("disk on fire at /data"), snapshot: Snapshot{Sources: ok}}, 503,
			`{"status":"down","reasons":["the store cannot be read"]}`},
		"others": {fixture{snapshot: Snapshot{Sources: ok}, nodes: twoNodes}, 200,
			`{"status":"ok","nodes":[{"id":"a","self":true,"version":"1","lease_ms":1800,"behind":0},` +
				`{"id":"b","version":"1","lease_ms":0,"behind":7}]}`},
		"lease ended": {fixture{snapshot: Snapshot{Sources: ok}, nodes: twoNodes[:1], ended: true}, 200,
			`{"status":"degraded","reasons":["the database does not answer; answers come from memory as during an outage"],` +
				`"nodes":[{"id":"a","self":true,"version":"1","lease_ms":1800,"behind":0}]}`},
		"lease will end": {fixture{readable: errors.New("no route to db.internal"), nodes: twoNodes[:1]}, 200,
			`{"status":"degraded","reasons":["the database does not answer; answers come from memory as during an outage"],` +
				`"nodes":[{"id":"a","self":true,"version":"1","lease_ms":1800,"behind":0}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := get(c.house.handler(), "/-/health")
			if w.Code != c.status || strings.TrimSpace(w.Body.String()) != c.body {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, c.status, c.body)
			}
			ready := get(c.house.handler(), "/-/ready")
			if c.status == 200 {
				c.body = `{"status":"ready"}`
			}
			if ready.Code != c.status || strings.TrimSpace(ready.Body.String()) != c.body {
				t.Errorf("ready: %d %s, want %d %s", ready.Code, ready.Body, c.status, c.body)
			}
		})
	}
}

// What is asked every second is not logged every second.
func TestAnUnreadableStoreIsLoggedOnce(t *testing.T) {
	var lines strings.Builder
	broken := errors.New("disk on fire")
	d := New(Options{
		Snapshot: func(context.Context) (Snapshot, error) { return Snapshot{}, nil },
		Readable: func(context.Context) error { return broken },
		IsEnding: func() bool { return false },
		Logger:   slog.New(slog.NewTextHandler(&lines, nil)),
	}).Handler()
	for _, broken = range []error{broken, broken, broken, nil, nil, broken, nil} {
		get(d, "/-/health")
	}
	text := lines.String()
	checktest.Equal(t, strings.Count(text, "cannot be read"), 2, `log: strings.Count(text, "cannot be read")`)
	checktest.Equal(t, strings.Count(text, "can be read again"), 2, `log: strings.Count(text, "can be read again")`)
	checktest.Contains(t, text, "disk on fire", "log: text")
}

func TestStatsNeedARole(t *testing.T) {
	h := &fixture{callErr: understudy.ErrUnauthorized}
	if w := get(h.handler(), "/-/stats"); w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("nobody: %d %v", w.Code, w.Header())
	}
	h.callErr = understudy.ErrForbidden
	if w := get(h.handler(), "/-/stats"); w.Code != 403 {
		t.Errorf("forbidden: %d", w.Code)
	}
	h.callErr = nil
	if w := get(h.handler(), "/-/stats"); w.Code != 403 {
		t.Errorf("no role: %d", w.Code)
	}
}

// A caller with hidden fields or records learns no count of them.
func TestStatsCountNothingHidden(t *testing.T) {
	kinds := map[string]Kind{"calls": {Records: 5}, "alerts": {Records: 4711}}
	d := New(Options{
		Snapshot: func(context.Context) (Snapshot, error) {
			return Snapshot{
				Webhooks: []request.Webhook{{Name: "crm", After: 4711}}, Erasing: erase.Waiting{Records: 4711},
				Sources: map[string]Source{"web": {State: "ok", Kinds: kinds},
					"other": {State: "down", Kinds: map[string]Kind{"calls": {Records: 4711}}}},
			}, nil
		},
		Person: func(r *http.Request) (understudy.Caller, error) {
			return understudy.Caller{Source: r.Header.Get("Source"), Grant: &understudy.Grant{Role: r.Header.Get("Role")}}, nil
		},
		SeesAll: func(c understudy.Caller) bool { return c.Role() == understudy.RoleAll && c.Source == "" },
		SeesKind: func(c understudy.Caller, source, kind string) bool {
			return (c.Source == "" || c.Source == source) && source == "web" && kind == "calls"
		},
	}).Handler()
	for _, who := range [][2]string{{"support", ""}, {"support", "web"}, {"all", "web"}, {"all", ""}} {
		r := httptest.NewRequest(http.MethodGet, "/-/stats", nil)
		r.Header.Set("Role", who[0])
		r.Header.Set("Source", who[1])
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		body := w.Body.String()
		all := who == [2]string{"all", ""}
		checktest.Equal(t, w.Code, 200, "%v: w.Code; body %s", who, body)
		checktest.Equal(t, strings.Contains(body, "4711"), all, `%v: strings.Contains(body, "4711")`, who)
		checktest.Equal(t, strings.Contains(body, "crm"), all, `%v: strings.Contains(body, "crm")`, who)
		checktest.Contains(t, body, `"calls":{"records":5`, "%v: body", who)
		if who[1] != "" && strings.Contains(body, `"other"`) {
			t.Errorf("%v is told of another source: %s", who, body)
		}
	}
	if len(kinds) != 2 {
		t.Error("what everybody is told was changed")
	}
}

// L6: a caller of one source alone learns neither the ports of others nor their
// requests.
func TestStatsOfOneSource(t *testing.T) {
	own := Traffic{Requests: 3, Cold: 3, Upstream: request.SentCounts{Requests: 2, ByReason: request.ByReason{request.ReasonWaiting: 2}}}
	d := New(Options{
		Snapshot: func(context.Context) (Snapshot, error) {
			s := Snapshot{
				Media: request.Media{Requests: 4711, Limit: 5},
				Ports: map[string]Port{"viewer": {}, "web": {}, "connect": {Tunnels: &connect.Stats{Made: 4711}},
					"other": {Limits: map[string]request.Load{"connections": {Now: 4711}}}},
				Sources: map[string]Source{"web": {Traffic: own}, "other": {Traffic: Traffic{Requests: 4711,
					Upstream: request.SentCounts{Requests: 4711, ByReason: request.ByReason{request.ReasonPoll: 4711}}}}},
			}
			for _, src := range s.Sources {
				s.Add(&src.Traffic)
			}
			return s, nil
		},
		Person: func(r *http.Request) (understudy.Caller, error) {
			return understudy.Caller{Source: r.Header.Get("Source"), Grant: &understudy.Grant{Role: "support"}}, nil
		},
		SeesKind: func(c understudy.Caller, source, _ string) bool { return c.Source == "" || c.Source == source },
	}).Handler()
	for source, told := range map[string]string{"web": `"requests":3,"warm":0,"stale":0,"cold":3,`, "": `"requests":4714,`} {
		r := httptest.NewRequest(http.MethodGet, "/-/stats", nil)
		r.Header.Set("Source", source)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		body := w.Body.String()
		checktest.Equal(t, w.Code, 200, "%q: w.Code; body %s", source, body)
		checktest.Contains(t, body, told, "%q: body", source)
		checktest.Contains(t, body, `"viewer"`, "%q: body", source)
		if tunnels := strings.Contains(body, `"made":4711`); tunnels != (source == "") {
			t.Errorf("%q: tunnels to all sources are shown: %v", source, tunnels)
		}
		if source != "" && (strings.Contains(body, "4711") || strings.Contains(body, "other") || strings.Contains(body, `"poll":4711`)) {
			t.Errorf("%q is told of another source: %s", source, body)
		}
	}
}

// A caller bound by row rules sees no figure that changes with other records.
func TestStatsStandStill(t *testing.T) {
	moves := request.Load{Limit: 5, Now: 4711, Refused: 4711, Dropped: 4711, OldestMS: 4711, LongestMS: 4711}
	d := New(Options{
		Snapshot: func(context.Context) (Snapshot, error) {
			return Snapshot{
				Traffic: Traffic{
					Requests: 4711, Warm: 4711, Stale: 4711, Cold: 4711, Composed: 4711, Coalesced: 4711, NotStored: 4711,
					Upstream: request.SentCounts{Requests: 4711, Errors: 4711, ByReason: request.ByReason{request.ReasonWaiting: 4711}},
				},
				Hot: request.Hot{Bytes: 4711, Limit: 5, Pages: 4711},
				Store: store.Space{File: 4711, WAL: 4711, Free: 4711, Limit: 5, EvictedPages: 4711,
					EvictedVersions: 4711, Trouble: "disk full"},
				Media:   request.Media{Requests: 4711, Cold: 4711, Kept: 4711, Files: 4711, Bytes: 4711, Forgotten: 4711},
				Jobs:    jobs.Stats{Waiting: 4711, Done: 4711, Weight: 4711},
				Process: Process{Goroutines: 4711, Descriptors: 4711, Resident: 4711}, Limits: map[string]request.Load{"flights": moves},
				Erasing: erase.Waiting{Records: 4711},
				Sources: map[string]Source{"web": {State: "ok", Kinds: map[string]Kind{"calls": {Records: 4711}},
					Limits: map[string]request.Load{"queue": moves}}},
			}, nil
		},
		Person: func(r *http.Request) (understudy.Caller, error) {
			return understudy.Caller{Grant: &understudy.Grant{Role: r.Header.Get("Role")}}, nil
		},
		HasRowRules: func(c understudy.Caller) bool { return c.Role() == "few" },
	}).Handler()
	for role, all := range map[string]bool{"few": false, "all": true} {
		r := httptest.NewRequest(http.MethodGet, "/-/stats", nil)
		r.Header.Set("Role", role)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		body := w.Body.String()
		checktest.Equal(t, w.Code, 200, "%s: w.Code; body %s", role, body)
		checktest.Equal(t, strings.Contains(body, "4711"), all, `%s: strings.Contains(body, "4711")`, role)
		checktest.Contains(t, body, "disk full", "%s: body", role)
		checktest.Contains(t, body, `"flights":{"limit":5`, "%s: body", role)
	}
}

// The names scripts depend on.
func TestStatsShape(t *testing.T) {
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	h := &fixture{
		caller: understudy.Caller{Grant: &understudy.Grant{Role: understudy.RoleAll}},
		snapshot: Snapshot{
			Traffic: Traffic{Requests: 7, Upstream: request.SentCounts{Requests: 2, ByReason: request.ByReason{request.ReasonWaiting: 2}}},
			Sources: map[string]Source{"web": {State: "ok", Kinds: map[string]Kind{"calls": {Records: 5, CaughtUpTo: at}}}},
		},
	}
	w := get(h.handler(), "/-/stats")
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"requests", "warm", "stale", "cold", "composed", "coalesced", "upstream", "sources", "limits", "faces",
		"process", "settings", "store"} {
		if _, ok := got[name]; !ok {
			t.Errorf("stats have no %q", name)
		}
	}
	calls := got["sources"].(map[string]any)["web"].(map[string]any)["kinds"].(map[string]any)["calls"].(map[string]any)
	checktest.Equal(t, calls["records"], 5.0, `calls =: calls["records"]`)
	checktest.Equal(t, calls["complete"], false, `calls =: calls["complete"]`)
	checktest.Equal(t, calls["caught_up_to"], "2026-06-01T12:00:00Z", `calls =: calls["caught_up_to"]`)
}

func TestOtherPathsAreNotServed(t *testing.T) {
	if w := get((&fixture{}).handler(), "/-/nothing"); w.Code != 404 {
		t.Errorf("status %d", w.Code)
	}
}
