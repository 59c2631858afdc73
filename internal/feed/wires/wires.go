// This file routes requests to the wires and waits for their streams.

// Package wires sends the feed in other forms than server-sent events. Each form writes the events of feed.Subscription.Follow and
// decides nothing about who may see what.
package wires

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"understudy/internal/feed"
	"understudy/internal/jsonapi"
	"understudy/kit/lockwatch"
)

// Handler serves the feed as a WebSocket, as frames, and by gRPC, gRPC-Web and Connect. It is safe for concurrent use.
type Handler struct {
	feed *feed.Feed
	rpc  http.Handler

	mu      lockwatch.Mutex
	closed  bool
	streams sync.WaitGroup
}

// New returns the handler of a feed.
func New(f *feed.Feed) *Handler {
	h := &Handler{feed: f}
	h.rpc = newRPC(f)
	return h
}

// RPCRoute is the method and path of the gRPC service.
const RPCRoute = "POST " + followProcedure

// Routes returns the methods and paths that a Handler serves, with those of the feed.
func Routes() []string { return append(feed.Routes(), RPCRoute) }

// ServeHTTP serves the wires, and passes other requests to the handler of the feed.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serve := h.find(r)
	if serve == nil {
		h.feed.Handler().ServeHTTP(w, r)
		return
	}
	if !h.begin() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer h.streams.Done()
	serve(w, r)
}

// find returns the wire of a request, or nil if the feed itself serves it.
func (h *Handler) find(r *http.Request) http.HandlerFunc {
	upgrade := r.Header.Get("Upgrade")
	switch {
	case r.URL.Path == followProcedure:
		return h.rpc.ServeHTTP
	case r.Method != http.MethodGet || r.URL.Path != "/-/feed":
		return nil
	case strings.EqualFold(upgrade, "websocket"):
		return h.serveSocket
	case strings.EqualFold(upgrade, framesProtocol):
		return h.serveFrames
	}
	return nil
}

// subscribe checks a request as GET /-/feed does. If it refuses the request, it writes the JSON response of the feed and returns nil.
func (h *Handler) subscribe(w http.ResponseWriter, r *http.Request) *feed.Subscription {
	err := jsonapi.CheckGet(w, r, "question")
	if err == nil {
		var s *feed.Subscription
		if s, err = h.feed.Subscribe(r); err == nil {
			return s
		}
	}
	h.feed.Refuse(w, r, err)
	return nil
}

// begin counts a stream, unless the handler was closed.
func (h *Handler) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.streams.Add(1)
	}
	return !h.closed
}

// closeTimeout is how long Close waits for streams.
const closeTimeout = 5 * time.Second

// Close refuses new streams and waits until the streams have sent their last event, at most 5 s. Call it after feed.End.
func (h *Handler) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	done := make(chan struct{})
	go func() { h.streams.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(closeTimeout):
	}
	return nil
}
