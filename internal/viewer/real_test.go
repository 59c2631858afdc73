// The viewer over the real mirror and store, as the product wires it.

package viewer

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/slowapi"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/internal/viewer/page"
	"understudy/mirror"
	"understudy/spec"
	"understudy/spec/spectest"
	"understudy/upstream"
)

// overRealParts puts the real mirror, store and client under a viewer.
func overRealParts(t *testing.T) (*fixture, *httptest.Server) {
	t.Helper()
	api, err := slowapi.New(slowapi.Options{Records: 400})
	must(t, err)
	web := httptest.NewServer(api)
	sp := spectest.BuiltIn(t, "twilio")
	src := &spec.Source{Name: "twilio", Spec: sp, User: account, PublicURL: "http://127.0.0.1:4115"}
	client, err := upstream.New(upstream.Options{Source: src, Base: web.URL, Secret: understudy.NewSecret("slowapitoken"), Rate: 1000})
	must(t, err)
	m, err := mirror.New(mirror.Options{
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Sources: []mirror.Source{{Source: src, Upstream: client}},
		Ages:  mirror.Ages{Wait: time.Second},
		Store: storetest.Open(t, store.Options{Specs: map[string]*spec.Spec{"twilio": sp}}),
	})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ran // its error is that it was told to end
		must(t, client.Close())
		web.Close()
		must(t, api.Close())
	})
	gate, err := access.New(map[string]*spec.Spec{"twilio": sp}, testRoles)
	must(t, err)
	return open(t, func(o *page.Options) { o.Mirror, o.Gate, o.Sources = m, gate, []*spec.Source{src} }), web
}

func TestOverRealParts(t *testing.T) {
	h, web := overRealParts(t)
	first := h.page("/twilio/calls?Status=completed&PageSize=20", all)
	if !strings.Contains(first, "fresh from upstream") {
		t.Error("the first page does not come from upstream")
	}
	again := h.page("/twilio/calls?PageSize=20&Status=completed", all)
	if !strings.Contains(again, "held, less than 1 s old") {
		t.Error("the second time the page is not held")
	}
	next := h.page(href(first, "Older"), all)
	call := regexp.MustCompile(`/twilio/calls/CA[0-9a-f]{32}`).FindString(next)
	if page := h.page(call, all); !strings.Contains(page, "Raw JSON") {
		t.Error("no call")
	}
	web.Close()
	for _, path := range []string{"/twilio/calls?Status=completed&PageSize=20", call, href(next, "Newer")} {
		h.page(path, all)
	}
	status, body, head := h.get("/twilio/messages?From=%2B15550000000", all)
	if status != 503 || head.Get("Retry-After") == "" || !strings.Contains(body, "Twilio is not answering") {
		t.Errorf("what is not held, without upstream: %d", status)
	}
}
