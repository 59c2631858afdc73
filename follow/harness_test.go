// Harness: a feed over a table in memory, behind every wire.

package follow_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/internal/feed"
	"understudy/internal/feed/wires"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
)

// table is a store of changes and values.
type table struct {
	understudy.SharedKV // the feed asks for nothing else

	mu     sync.Mutex
	rows   []understudy.Change
	values map[string][]byte
}

func (t *table) ReadChanges(ctx context.Context, _ string, after int64, limit int) ([]understudy.Change, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := t.rows[min(int(after), len(t.rows)):]
	return slices.Clone(rows[:min(limit, len(rows))]), ctx.Err()
}

func (t *table) ReadLastChange(context.Context, string) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.rows)), nil
}

func (t *table) Value(_ context.Context, name string) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values[name] == nil {
		return nil, understudy.ErrNotFound
	}
	return t.values[name], nil
}

func (t *table) Change(_ context.Context, name string, change func([]byte) ([]byte, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, err := change(t.values[name])
	if err == nil {
		t.values[name] = value
	}
	return err
}

func (t *table) Watch(context.Context, string, func(string, []byte) error) error { return nil }

// roles of the tests: some sees calls without their price, so that its cursors are sealed.
var roles = access.Roles{"some": {"twilio": {"calls": "see", "price": "hide"}}, "other": {}}

// people name their role as the user of Basic auth. Without it they see everything. The role nobody is unknown.
type people struct{}

func (people) IdentifyPerson(r *http.Request) (understudy.Caller, error) {
	role, _, ok := r.BasicAuth()
	switch {
	case !ok:
		role = understudy.RoleAll
	case role == "nobody":
		return understudy.Caller{}, fmt.Errorf("%w: no credential", understudy.ErrUnauthorized)
	}
	return understudy.Caller{Name: role, Grant: &understudy.Grant{Role: role}}, nil
}

// counter is a feed behind a server. Each of its changes is an increment.
type counter struct {
	table  *table
	feed   *feed.Feed
	server *httptest.Server
}

func openCounter(t *testing.T) *counter {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	gate, err := access.New(map[string]*spec.Spec{"twilio": sp}, roles)
	checktest.MustNoError(t, err, "the gate")
	c := &counter{table: &table{values: map[string][]byte{}}}
	c.feed, err = feed.New(t.Context(), feed.Options{
		Sources: []*spec.Source{{Name: "twilio", Spec: sp}}, Store: c.table, KV: c.table, Policy: feed.Policy{Gate: gate, Callers: people{}},
	})
	checktest.MustNoError(t, err, "the feed")
	handler := wires.New(c.feed)
	c.server = httptest.NewServer(handler)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- c.feed.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		checktest.NoError(t, errors.Join(<-ended, handler.Close()), "the end of the feed")
		c.server.CloseClientConnections()
		c.server.Close()
	})
	return c
}

// add makes n changes.
func (c *counter) add(n int) {
	c.table.mu.Lock()
	for range n {
		n := int64(len(c.table.rows) + 1)
		ch := understudy.Change{N: n, Source: "twilio", Record: 100 + n, Version: 1000 + n, Kind: "calls", ID: fmt.Sprint("CA", n),
			Type: understudy.Appeared, At: time.Date(2026, 6, 1, 12, 0, int(n), int(n), time.UTC)}
		if n%3 == 0 {
			ch.Type, ch.Fields = understudy.Changed, understudy.NewNames("status", "end_time")
		}
		c.table.rows = append(c.table.rows, ch)
	}
	c.table.mu.Unlock()
	c.feed.NotifyPage(request.PageSaved{Changes: []understudy.Change{{Source: "twilio"}}})
}
