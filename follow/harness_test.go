// Harness: a feed over a table in memory, behind every wire.

package follow_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/internal/feed"
	"understudy/internal/feed/feedtest"
	"understudy/internal/feed/wires"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
)

// roles of the tests: some sees calls without their price, so that its cursors are sealed.
var roles = access.Roles{"some": {"twilio": {"calls": "see", "price": "hide"}}, "other": {}}

// people name their role as the user of Basic auth. Without it they see everything. The role nobody and the token
// old are unknown.
type people struct{}

func (people) IdentifyPerson(r *http.Request) (understudy.Caller, error) {
	role, _, ok := r.BasicAuth()
	switch {
	case role == "nobody" || r.Header.Get("Authorization") == "Bearer old":
		return understudy.Caller{}, fmt.Errorf("%w: no credential", understudy.ErrUnauthorized)
	case !ok:
		role = understudy.RoleAll
	}
	return understudy.Caller{Name: role, Grant: &understudy.Grant{Role: role}}, nil
}

// counter is a feed behind a server. Each of its changes is an increment.
type counter struct {
	table  *feedtest.Table
	feed   *feed.Feed
	server *httptest.Server
}

func openCounter(t *testing.T) *counter {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	gate, err := access.New(map[string]*spec.Spec{"twilio": sp}, roles)
	checktest.MustNoError(t, err, "the gate")
	c := &counter{table: feedtest.NewTable("twilio")}
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
	changes := make([]understudy.Change, n)
	for i := range changes {
		changes[i] = understudy.Change{Kind: "calls", ID: fmt.Sprint("CA", i), Type: understudy.Appeared}
		if i%3 == 2 {
			changes[i].Type, changes[i].Fields = understudy.Changed, understudy.NewNames("status", "end_time")
		}
	}
	c.table.Put(changes...)
	c.feed.NotifyPage(request.PageSaved{Changes: []understudy.Change{{Source: "twilio"}}})
}
