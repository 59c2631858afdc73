// Harness: a feed over a table in memory, behind real HTTP, and a client for each wire.

package wires

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/coder/websocket"

	"understudy"
	"understudy/follow/feedpb"
	"understudy/internal/access"
	"understudy/internal/feed"
	"understudy/internal/feed/feedtest"
	"understudy/kit/jsonhttp"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
)

func came(kind, id string) understudy.Change {
	return understudy.Change{Kind: kind, ID: id, Type: understudy.Appeared}
}

// roles of the tests: few sees messages without their text, other sees nothing.
var roles = access.Roles{"few": {"twilio": {"messages": "see", "body": "hide"}}, "other": {}}

// people name themselves: the user of Basic auth is the role.
type people struct {
	mu      sync.Mutex
	over    bool
	revoked chan struct{}
}

func (p *people) IdentifyPerson(r *http.Request) (understudy.Caller, error) {
	role, _, ok := r.BasicAuth()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok || p.over {
		return understudy.Caller{}, fmt.Errorf("%w: no credential", understudy.ErrUnauthorized)
	}
	return understudy.Caller{Name: role, Grant: &understudy.Grant{Role: role, Revoked: p.revoked}}, nil
}

func (p *people) revoke() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	close(p.revoked)
}

// rig is a feed that runs behind a server.
type rig struct {
	*feedtest.Table
	feed    *feed.Feed
	handler *Handler
	callers *people
	server  *httptest.Server
	stop    func()
}

func newRig(t *testing.T, tab *feedtest.Table, stall time.Duration) *rig {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	gate, err := access.New(map[string]*spec.Spec{"twilio": sp}, roles)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Table: tab, callers: &people{revoked: make(chan struct{})}}
	r.feed, err = feed.New(t.Context(), feed.Options{
		Sources: []*spec.Source{{Name: "twilio", Spec: sp}}, Store: tab, KV: tab, Policy: feed.Policy{Gate: gate, Callers: r.callers},
		Limits: feed.Limits{Stall: stall},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.feed.Run(ctx) }()
	r.handler = New(r.feed)
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.handler.ServeHTTP(jsonhttp.SignErrors(w), req) // as the viewer's port does
	}))
	r.server.Config.Protocols = new(http.Protocols)
	r.server.Config.Protocols.SetHTTP1(true)
	r.server.Config.Protocols.SetUnencryptedHTTP2(true)
	r.server.Start()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, r.handler.Close()); err != nil {
			t.Error(err)
		}
		r.server.CloseClientConnections()
		r.server.Close()
	})
	t.Cleanup(r.stop)
	return r
}

// make appends changes and notifies the feed.
func (r *rig) make(changes ...understudy.Change) {
	r.Put(changes...)
	r.feed.NotifyPage(request.PageSaved{Changes: []understudy.Change{{Source: "twilio"}}})
}

// awaitFree waits until no subscriber has a place.
func (r *rig) awaitFree(t *testing.T) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for end := within(t); r.feed.Load().Now > 0; {
		select {
		case <-look.C:
		case <-end.Done():
			t.Fatal("a subscriber keeps its place")
		}
	}
}

// request returns a GET with the credential of a role.
func (r *rig) request(ctx context.Context, role, path string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.server.URL+path, nil)
	if err != nil {
		panic(err)
	}
	if role != "" {
		req.SetBasicAuth(role, "")
	}
	return req
}

// describe returns a change in few words, from its JSON.
func describe(data []byte) string {
	var m struct {
		N              int64
		What, Kind, ID string
		Fields         []string
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return err.Error()
	}
	text := strings.Join(append([]string{m.What, m.Kind, m.ID}, m.Fields...), " ")
	if m.N > 0 {
		text = fmt.Sprint(m.N, " ", text)
	}
	return text
}

// events is a stream of server-sent events.
type events struct {
	body io.ReadCloser
	in   *bufio.Reader
}

func openEvents(t *testing.T, r *rig, role, query string) (client, error) {
	resp, err := r.server.Client().Do(r.request(within(t), role, "/-/feed?"+query))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, refusal(resp.StatusCode)
	}
	return &events{resp.Body, bufio.NewReader(resp.Body)}, nil
}

func (e *events) next() (event, error) {
	one := event{kind: "heartbeat"}
	for {
		line, err := e.in.ReadString('\n')
		if err != nil {
			return event{}, errEnded
		}
		if line == "\n" {
			return one, nil
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			one.cursor = value
		case "data":
			one.kind, one.change = "change", describe([]byte(value))
		}
	}
}

func (e *events) close() { _ = e.body.Close() }

// poll asks for page after page.
type poll struct {
	r     *rig
	ctx   context.Context
	role  string
	query url.Values
}

func openPoll(t *testing.T, r *rig, role, query string) (client, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, err
	}
	p := &poll{r, within(t), role, q}
	if _, _, err := p.ask("0s"); err != nil {
		return nil, err
	}
	return p, nil
}

// ask returns the first change of the next page, or "".
func (p *poll) ask(wait string) (change, next string, err error) {
	q := maps.Clone(p.query)
	q.Set("limit", "1")
	q.Set("wait", wait)
	resp, err := p.r.server.Client().Do(p.r.request(p.ctx, p.role, "/-/feed.json?"+q.Encode()))
	if err != nil {
		return "", "", errEnded
	}
	defer func() { _ = resp.Body.Close() }()
	var page struct {
		Changes []json.RawMessage
		Next    string
	}
	if resp.StatusCode != http.StatusOK {
		return "", "", refusal(resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(&page); err != nil {
		return "", "", err
	}
	if len(page.Changes) > 0 {
		change = describe(page.Changes[0])
	}
	return change, page.Next, nil
}

func (p *poll) next() (event, error) {
	change, next, err := p.ask("20s")
	if err != nil || change == "" && understudy.IsClosed(p.r.callers.revoked) {
		return event{cursor: next}, errEnded
	}
	p.query.Set("after", next)
	if change == "" {
		return event{kind: "heartbeat", cursor: next}, nil
	}
	return event{"change", next, change}, nil
}

func (p *poll) close() {}

// socket is a WebSocket.
type socket struct {
	ctx  context.Context
	conn *websocket.Conn
}

func openSocket(t *testing.T, r *rig, role, query string) (client, error) {
	ctx := within(t)
	conn, resp, err := websocket.Dial(ctx, r.server.URL+"/-/feed?"+query, &websocket.DialOptions{
		HTTPClient: r.server.Client(), HTTPHeader: r.request(ctx, role, "").Header})
	if err != nil && resp != nil {
		return nil, refusal(resp.StatusCode)
	}
	return &socket{ctx, conn}, err
}

func (s *socket) next() (event, error) {
	_, data, err := s.conn.Read(s.ctx)
	if err != nil {
		return event{}, errEnded
	}
	return parseJSON(data)
}

// parseJSON reads the text of an event.
func parseJSON(data []byte) (event, error) {
	var m struct {
		Type, Cursor string
		Change       json.RawMessage
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return event{}, err
	}
	e := event{kind: m.Type, cursor: m.Cursor}
	if m.Change != nil {
		e.change = describe(bytes.Clone(m.Change))
	}
	return e, nil
}

func (s *socket) close() { _ = s.conn.CloseNow() }

// caller is a call of the gRPC service by its client.
type caller struct {
	stream *connect.ServerStreamForClient[feedpb.FollowResponse]
	first  bool
}

func openGRPC(t *testing.T, r *rig, role, query string) (client, error) {
	return openCall(t, r, role, query, connect.WithGRPC())
}

func openGRPCWeb(t *testing.T, r *rig, role, query string) (client, error) {
	return openCall(t, r, role, query, connect.WithGRPCWeb())
}

func openConnect(t *testing.T, r *rig, role, query string) (client, error) {
	return openCall(t, r, role, query, connect.WithProtoJSON())
}

func openCall(t *testing.T, r *rig, role, query string, o connect.ClientOption) (client, error) {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	ctx := within(t)
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, err
	}
	m := &feedpb.FollowRequest{After: q.Get("after"), Kinds: q["kind"]}
	limit, _ := strconv.Atoi(q.Get("limit"))
	m.Limit = uint32(limit)
	if q.Has("wait") {
		m.WaitSeconds = new(uint32)
	}
	ask := connect.NewRequest(m)
	for name, values := range r.request(ctx, role, "").Header {
		ask.Header()[name] = values
	}
	at := r.server.URL + followProcedure
	stream, err := connect.NewClient[feedpb.FollowRequest, feedpb.FollowResponse](&http.Client{Transport: tr}, at, o).
		CallServerStream(ctx, ask)
	if err != nil {
		return nil, err
	}
	if !stream.Receive() {
		codes := map[connect.Code]refusal{connect.CodeInvalidArgument: 400, connect.CodeUnauthenticated: 401, connect.CodePermissionDenied: 403}
		if status := codes[connect.CodeOf(stream.Err())]; status != 0 {
			return nil, status
		}
		return nil, stream.Err()
	}
	return &caller{stream, true}, nil
}

func (c *caller) next() (event, error) {
	if !c.first && !c.stream.Receive() {
		return event{}, errEnded
	}
	c.first = false
	return parseProto(c.stream.Msg()), nil
}

// parseProto reads the message of an event.
func parseProto(m *feedpb.FollowResponse) event {
	e := event{cursor: m.GetCursor()}
	switch v := m.GetEvent().(type) {
	case *feedpb.FollowResponse_Start:
		e.kind = "start"
	case *feedpb.FollowResponse_Heartbeat:
		e.kind = "heartbeat"
	case *feedpb.FollowResponse_End:
		e.kind = "end"
	case *feedpb.FollowResponse_Change:
		what := strings.ToLower(strings.TrimPrefix(v.Change.GetWhat().String(), "WHAT_"))
		e.kind = "change"
		e.change = strings.Join(append([]string{what, v.Change.GetKind(), v.Change.GetId()}, v.Change.GetFields()...), " ")
		if n := v.Change.GetN(); n > 0 {
			e.change = fmt.Sprint(n, " ", e.change)
		}
	}
	return e
}

func (c *caller) close() { _ = c.stream.Close() }
