// Every wire: the same cases over each.

package wires

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/feed"
	"understudy/internal/feed/feedtest"
)

// event is one event as a client received it. A change is "came calls CA1".
type event struct{ kind, cursor, change string }

// client reads the events of one subscription. next returns errEnded after the last one.
type client interface {
	next() (event, error)
	close()
}

var errEnded = errors.New("the stream has ended")

// refusal is the status with which a subscription was refused.
type refusal int

func (r refusal) Error() string { return fmt.Sprint("refused: ", int(r)) }

// subscriber reads one wire as a client would: it keeps the last cursor.
type subscriber struct {
	t      *testing.T
	client client
	cursor string
}

// opener opens a subscription over one wire.
type opener func(t *testing.T, r *rig, role, query string) (client, error)

var all = []struct {
	name string
	open opener
}{
	{"events", openEvents}, {"poll", openPoll}, {"websocket", openSocket}, {"grpc", openGRPC}, {"grpcweb", openGRPCWeb},
	{"connect", openConnect}, {"zeromq", openZeroMQ}, {"frames", openFrames}, {"protoframes", openProtoFrames},
}

func overEach(t *testing.T, run func(t *testing.T, open opener)) {
	for _, w := range all {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			run(t, w.open)
		})
	}
}

func subscribe(t *testing.T, open opener, r *rig, role, query string) *subscriber {
	t.Helper()
	c, err := open(t, r, role, query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return &subscriber{t: t, client: c}
}

// next returns the next change, or an error after the last event.
func (s *subscriber) next() (string, error) {
	for {
		e, err := s.client.next()
		if e.cursor != "" {
			s.cursor = e.cursor
		}
		if err != nil || e.kind == "change" {
			return e.change, err
		}
	}
}

// take returns the next n changes.
func (s *subscriber) take(n int) (got []string) {
	s.t.Helper()
	for range n {
		ch, err := s.next()
		if err != nil {
			s.t.Fatalf("after %q: %v", got, err)
		}
		got = append(got, ch)
	}
	return got
}

// drain reads to the end of the stream and returns the changes before it.
func (s *subscriber) drain() (got []string) {
	for {
		ch, err := s.next()
		if err != nil {
			return got
		}
		got = append(got, ch)
	}
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFollowFromTheBeginningAndLive(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, open opener) {
		r := newRig(t, feedtest.NewTable("twilio"), 0)
		r.make(came("calls", "CA1"), came("messages", "SM1"))
		s := subscribe(t, open, r, "all", "after=0")
		equal(t, s.take(2), "1 came calls CA1", "2 came messages SM1")
		r.make(understudy.Change{Kind: "calls", ID: "CA1", Type: understudy.Changed, Fields: understudy.NewNames("status", "price")})
		r.make(understudy.Change{Kind: "calls", ID: "CA1", Type: understudy.Deleted})
		equal(t, s.take(2), "3 changed calls CA1 price status", "4 went calls CA1")
		checktest.True(t, strings.HasPrefix(s.cursor, "4."), "the cursor is %s", s.cursor)
	})
}

func TestResumeAfterACursor(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, open opener) {
		r := newRig(t, feedtest.NewTable("twilio"), 0)
		for i := range 5 {
			r.make(came("calls", fmt.Sprint("CA", i)), came("messages", fmt.Sprint("SM", i)))
		}
		for _, role := range []string{"all", "few"} { // the cursors of few are sealed
			s := subscribe(t, open, r, role, "after=0&kind=messages")
			first := s.take(2)
			s.client.close()
			rest := subscribe(t, open, r, role, "kind=messages&after="+s.cursor).take(3)
			var ids []string
			for _, ch := range append(first, rest...) {
				ids = append(ids, ch[strings.LastIndexByte(ch, ' ')+1:])
			}
			equal(t, ids, "SM0", "SM1", "SM2", "SM3", "SM4")
		}
	})
}

// The store was restored to an earlier state: the cursor names a change that is lost.
func TestCursorOfALostChangeIsRefused(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, open opener) {
		tab := feedtest.NewTable("twilio")
		r := newRig(t, tab, 0)
		r.make(came("calls", "CA1"))
		saved := tab.Copy()
		r.make(came("calls", "CA2"))
		s := subscribe(t, open, r, "all", "after=0")
		s.take(2)
		restored := newRig(t, saved, 0)
		restored.make(came("calls", "CA3"), came("calls", "CA4"))
		for _, cursor := range []string{s.cursor, "nonsense", "9"} {
			_, err := open(t, restored, "all", "after="+cursor)
			checktest.True(t, errors.Is(err, refusal(http.StatusBadRequest)), "after=%s: %v", cursor, err)
		}
	})
}

func TestHiddenRecordsNeverAppear(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, open opener) {
		r := newRig(t, feedtest.NewTable("twilio"), 0)
		r.make(came("calls", "CA1"), came("messages", "SM1"), came("calls", "CA2"))
		r.make(understudy.Change{Kind: "messages", ID: "SM1", Type: understudy.Changed, Fields: understudy.NewNames("body")})
		r.make(understudy.Change{Kind: "messages", ID: "SM1", Type: understudy.Changed, Fields: understudy.NewNames("body", "status")})
		s := subscribe(t, open, r, "few", "after=0")
		equal(t, s.take(2), "came messages SM1", "changed messages SM1 status")
		checktest.True(t, !strings.Contains(s.cursor, "."), "the cursor %s shows a number", s.cursor)
		_, err := open(t, r, "few", "after=0&kind=calls")
		checktest.True(t, errors.Is(err, refusal(http.StatusForbidden)), "a hidden kind: %v", err)
		_, err = open(t, r, "", "after=0")
		checktest.True(t, errors.Is(err, refusal(http.StatusUnauthorized)), "no credential: %v", err)
		_, err = open(t, r, "other", "after=0")
		checktest.True(t, errors.Is(err, refusal(http.StatusForbidden)), "a role without grants: %v", err)
	})
}

func TestRevokedCredentialEndsTheStream(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, open opener) {
		r := newRig(t, feedtest.NewTable("twilio"), 0)
		r.make(came("calls", "CA1"))
		s := subscribe(t, open, r, "all", "after=0")
		s.take(1)
		r.callers.revoke()
		equal(t, s.drain())
		_, err := open(t, r, "all", "after="+s.cursor)
		checktest.True(t, errors.Is(err, refusal(http.StatusUnauthorized)), "again: %v", err)
		r.awaitFree(t)
	})
}

// A server that stops ends its streams, and the cursor of the last event continues after it.
func TestShutdownTellsWhereToResume(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, open opener) {
		tab := feedtest.NewTable("twilio")
		r := newRig(t, tab, 0)
		r.make(came("calls", "CA1"), came("messages", "SM1"), came("calls", "CA2"))
		s := subscribe(t, open, r, "few", "after=0")
		equal(t, s.take(1), "came messages SM1")
		r.stop()
		equal(t, s.drain())
		later := newRig(t, tab, 0)
		later.make(came("calls", "CA3"), came("messages", "SM2"))
		equal(t, subscribe(t, open, later, "few", "after="+s.cursor).take(1), "came messages SM2")
	})
}

// A subscriber that reads nothing is disconnected, and the server keeps nothing for it.
func TestSlowReaderIsDisconnected(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 4000)
	tab := feedtest.NewTable("twilio")
	for i := range 6000 {
		tab.Put(came("calls", fmt.Sprint("CA", i, long)))
	}
	for _, w := range all {
		if w.name == "poll" || w.name == "zeromq" { // a page is bounded by itself
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tab.Copy(), 200*time.Millisecond)
			subscribe(t, w.open, r, "all", "after=0")
			r.awaitFree(t)
			checktest.Equal(t, r.feed.Load().Dropped, 1, "subscribers disconnected")
		})
	}
}

func TestLimitAndWaitEndTheStream(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, open opener) {
		r := newRig(t, feedtest.NewTable("twilio"), 0)
		r.make(came("calls", "CA1"), came("calls", "CA2"), came("calls", "CA3"))
		s := subscribe(t, open, r, "all", "after=0&limit=2")
		equal(t, s.take(2), "1 came calls CA1", "2 came calls CA2")
		_, isPoll := s.client.(*poll)
		if _, isZeroMQ := s.client.(*zmqClient); !isPoll && !isZeroMQ { // a page ends by itself
			equal(t, s.drain())
			equal(t, subscribe(t, open, r, "all", "after=2&wait=0s").drain(), "3 came calls CA3")
		}
	})
}

// A page of another site cannot open a stream with the cookies of a visitor.
func TestOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, feedtest.NewTable("twilio"), 0)
	for _, c := range []struct{ method, path, upgrade, field, value string }{
		{http.MethodGet, "/-/feed", "websocket", "Sec-Fetch-Site", "cross-site"},
		{http.MethodGet, "/-/feed", "websocket", "Origin", "https://elsewhere.example"},
		{http.MethodGet, "/-/feed", "understudy-frames", "Sec-Fetch-Site", "cross-site"},
		{http.MethodPost, "/understudy.feed.v1.FeedService/Follow", "", "Sec-Fetch-Site", "cross-site"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, r.server.URL+c.path, nil)
		checktest.MustNoError(t, err, "a request")
		for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": c.upgrade, "Sec-WebSocket-Version": "13",
			"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Content-Type": "application/connect+json", c.field: c.value} {
			req.Header.Set(name, value)
		}
		req.SetBasicAuth("all", "")
		resp, err := r.server.Client().Do(req)
		checktest.MustNoError(t, err, c.path)
		_ = resp.Body.Close()
		checktest.Equal(t, resp.StatusCode, http.StatusForbidden, "%s with %s", c.path, c.field)
	}
	r.awaitFree(t)
}

// After Close no stream begins, and none is left.
func TestCloseWaitsForStreams(t *testing.T) {
	t.Parallel()
	for _, open := range []opener{openSocket, openFrames} {
		r := newRig(t, feedtest.NewTable("twilio"), 0)
		s := subscribe(t, open, r, "all", "after=0")
		if e, err := s.client.next(); err != nil || e.kind != "start" {
			t.Fatalf("%v, %v", e, err)
		}
		ended := make(chan error)
		go func() { ended <- r.handler.Close() }()
		r.feed.End()
		e, err := s.client.next()
		checktest.MustNoError(t, err, "the end")
		checktest.Equal(t, e.kind, "end", "the last event")
		checktest.NoError(t, <-ended, "close")
		_, err = open(t, r, "all", "after=0")
		checktest.True(t, errors.Is(err, refusal(http.StatusServiceUnavailable)), "after Close: %v", err)
	}
}

var _ feed.Store = (*feedtest.Table)(nil)

// within returns a context for one wait of a test.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
