// Mirror: a fake mirror that keeps every page it fetched and answers as a test says.

package viewertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"understudy"
	"understudy/request"
)

// Mirror keeps every page it fetched. Its mutex guards its fields while requests read them.
type Mirror struct {
	sync.Mutex
	Fetch  FetchFunc
	Pages  map[understudy.Key]*understudy.Page
	Asked  []string                                                            // the URIs that were asked for
	AsOf   []time.Time                                                         // the moments that were asked for
	Change func(request.Request, *request.Response) (*request.Response, error) // changes every answer; nil: none
}

// FetchFunc fetches a page from upstream.
type FetchFunc func(context.Context, request.Fetch) (*understudy.Page, error)

// Answer answers with the page it keeps, or fetches it.
func (m *Mirror) Answer(ctx context.Context, a request.Request) (*request.Response, error) {
	m.Lock()
	m.Asked, m.AsOf = append(m.Asked, a.Target.Key.URI), append(m.AsOf, a.AsOf)
	kept, change, fetch := m.Pages[a.Target.Key], m.Change, m.Fetch
	m.Unlock()
	answer := &request.Response{Page: kept, Outcome: request.Warm, Age: 12 * time.Second, StoreTime: 400 * time.Microsecond}
	if kept == nil {
		fetched, err := fetch(ctx, request.Fetch{Target: a.Target, Reason: request.ReasonWaiting, RetryWindow: 8 * time.Second})
		if err != nil {
			return nil, err
		}
		answer = &request.Response{Page: fetched, Outcome: request.Cold, UpstreamTime: 812 * time.Millisecond}
		m.Lock()
		m.Pages[a.Target.Key] = fetched
		m.Unlock()
	}
	if change != nil {
		return change(a, answer)
	}
	return answer, nil
}

// Forget drops every page, beside requests that still read some.
func (m *Mirror) Forget() {
	m.Lock()
	defer m.Unlock()
	clear(m.Pages)
}

// Count returns how often the mirror was asked.
func (m *Mirror) Count() int {
	m.Lock()
	defer m.Unlock()
	return len(m.Asked)
}

// Wrap replaces the function that fetches pages by a function that may call it.
func (m *Mirror) Wrap(wrap func(FetchFunc) FetchFunc) {
	m.Lock()
	defer m.Unlock()
	m.Fetch = wrap(m.Fetch)
}

// StopUpstream makes the mirror fail as in an outage.
func (h *Fixture) StopUpstream() {
	h.Mirror.Lock()
	defer h.Mirror.Unlock()
	h.Mirror.Change = func(request.Request, *request.Response) (*request.Response, error) {
		return nil, fmt.Errorf("mirror: fill: %w", &understudy.UpstreamError{Why: understudy.FailServer, Status: 503,
			Err: errors.New("after 3 tries")})
	}
}

// FetchNothing fetches from an upstream that has no records.
func FetchNothing(_ context.Context, f request.Fetch) (*understudy.Page, error) {
	p := &understudy.Page{Key: f.Target.Key, Kind: f.Target.Kind.Name, Shape: f.Target.Shape(), ID: f.Target.ID, Status: 200,
		ContentType: "application/json", Body: []byte(`{}`)}
	if f.Target.List != nil {
		p.List, p.Body = true, []byte(`{"`+f.Target.List.Key+`":[]}`)
	}
	return p, nil
}

// Refusal returns an answer of upstream to a list of calls that is no success.
func Refusal(status int, body string) *understudy.Page {
	return &understudy.Page{Key: understudy.Key{Source: "twilio", URI: Root + "/Calls.json"}, Kind: "calls",
		List: true, Status: status, ContentType: "application/json", Body: []byte(body)}
}

// Rewrite changes every body the mirror answers with.
func (h *Fixture) Rewrite(change func(string) string) {
	h.Mirror.Lock()
	defer h.Mirror.Unlock()
	h.Mirror.Change = func(_ request.Request, a *request.Response) (*request.Response, error) {
		changed, answer := *a.Page, *a
		changed.Body = []byte(change(string(changed.Body)))
		changed.Sum = [16]byte{}
		answer.Page = &changed
		return &answer, nil
	}
}
