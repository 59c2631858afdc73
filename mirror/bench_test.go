// Bench pages: lists of fifty calls, about 100 KB each, from the slow API at
// no latency through the real upstream package.

package mirror

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"understudy"
	"understudy/internal/sample"
	"understudy/internal/slowapi"
	"understudy/mirror/cache"
	"understudy/request"
	"understudy/spec"
	"understudy/upstream"
)

// inProcess is a round tripper into a handler.
type inProcess struct{ http.Handler }

func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// slow is the slow API and a client of it.
func slow(t testing.TB, records int) (*spec.Source, *upstream.Client) {
	t.Helper()
	api, err := slowapi.New(slowapi.Options{Records: records})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	src := &spec.Source{Name: "twilio", Spec: sp, User: account}
	client, err := upstream.New(upstream.Options{Source: src, Base: "http://slow.test", User: account,
		Secret: understudy.NewSecret("slowapitoken"), Rate: 1e6, Concurrency: 100, Transport: inProcess{api}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return src, client
}

// walk yields the pages of a list, newest first, numbered as a store would.
func walk(t testing.TB, src *spec.Source, client *upstream.Client, path string, yield func(*spec.Target, *understudy.Page) bool) {
	t.Helper()
	target, err := src.Spec.Resolve("twilio", path, "PageSize=50")
	if err != nil {
		t.Fatal(err)
	}
	for n := int64(1); ; {
		p, err := client.Fetch(context.Background(), request.Fetch{Target: target})
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Rows {
			p.Rows[i].Record, p.Rows[i].Version = n, n+3
			n++
		}
		p.Version = n
		if !yield(target, p) || p.Next.IsZero() {
			return
		}
		if target, err = src.Spec.ResolveLink("twilio", p.Next.URI); err != nil {
			t.Fatal(err)
		}
	}
}

const callsPath = "/2010-04-01/Accounts/" + account + "/Calls.json"

func benchKind(t testing.TB, src *spec.Source, client Upstream) *kind {
	t.Helper()
	m, err := New(Options{Sources: []Source{{Source: src, Upstream: client}}, Store: noStore{}})
	if err != nil {
		t.Fatal(err)
	}
	return m.env.sources["twilio"].kinds["calls"]
}

// noStore holds nothing and saves at no cost.
type noStore struct{}

func (noStore) ReadPage(context.Context, understudy.Key) (*understudy.Page, error) {
	return nil, understudy.ErrNotFound
}

func (noStore) Record(context.Context, string, string, string, string) (*understudy.Record, error) {
	return nil, understudy.ErrNotFound
}

func (noStore) Save(_ context.Context, p *understudy.Page) (request.SaveResult, error) {
	return request.SaveResult{Page: p}, nil
}

func (noStore) Touch(context.Context, request.Invalidation) (int64, error) { return 1, nil }

// TestBenchPagesPacked: what 25 MiB hold, by the tier's own books, and that
// the books are true.
func TestBenchPagesPacked(t *testing.T) {
	const limit = 25 << 20
	pages := sample.Count(100, 300)
	src, client := slow(t, pages*50)
	k := benchKind(t, src, client)
	h := cache.New(limit)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var body int
	walk(t, src, client, callsPath, func(_ *spec.Target, p *understudy.Page) bool {
		body += len(p.Body)
		e := h.Pack(k.pages, p)
		if e == nil {
			t.Fatalf("%s cannot be packed", p.Key)
		}
		return h.Put(e, nil)
	})
	u := h.Usage()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	each := float64(u.Bytes-u.Codecs) / float64(u.Entries)
	holds := int(float64(limit-u.Codecs) / each)
	t.Logf("%d pages of %d bytes: %.0f bytes each by the books, codecs %d KiB; heap grew by %d KiB, books say %d KiB; 25 MiB hold %d",
		u.Entries, body/u.Entries, each, u.Codecs>>10, grown>>10, u.Bytes>>10, holds)
	if u.Entries != pages {
		t.Errorf("%d pages held, want all %d", u.Entries, pages)
	}
	if holds < 4200 {
		t.Errorf("25 MiB hold %d bench pages, want 4200", holds)
	}
	if grown > u.Bytes+u.Bytes/10+1<<20 {
		t.Errorf("the heap grew by %d bytes, the books say %d", grown, u.Bytes)
	}
	runtime.KeepAlive(h)
}

// BenchmarkWarm is Page on a page that is ready.
func BenchmarkWarm(b *testing.B) {
	s := open(b, 3)
	s.delay = func(request.Fetch) time.Duration { return 0 }
	target := s.target(b, "Calls.json", older) // five minutes fresh, no next page
	for s.Stats("twilio").ReadyEntries == 0 {
		s.get(b, target)
	}
	ask := request.Request{Target: target}
	b.Run("one reader", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if a, err := s.Answer(context.Background(), ask); err != nil || a.Outcome != request.Warm {
				b.Fatal(a, err)
			}
		}
	})
	b.Run("many readers", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if a, err := s.Answer(context.Background(), ask); err != nil || a.Outcome != request.Warm {
					b.Error(a, err)
					return
				}
			}
		})
	})
}

// benchPages are some bench pages with their targets.
func benchPages(b testing.TB, n int) (*spec.Source, []*spec.Target, []*understudy.Page) {
	src, client := slow(b, n*50)
	var targets []*spec.Target
	var pages []*understudy.Page
	walk(b, src, client, callsPath, func(t *spec.Target, p *understudy.Page) bool {
		targets, pages = append(targets, t), append(pages, p)
		return len(pages) < n
	})
	return src, targets, pages
}

// BenchmarkPacking is what a bench page costs on its way into the hot tier and
// out of it.
func BenchmarkPacking(b *testing.B) {
	src, _, pages := benchPages(b, 64)
	k := benchKind(b, src, echo{})
	h := cache.New(64 << 20)
	b.Run("pack", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if h.Pack(k.pages, pages[i%len(pages)]) == nil {
				b.Fatal("not packed")
			}
		}
	})
	e := h.Pack(k.pages, pages[7])
	b.Run("unpack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := h.Unpack(e); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ready", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h.Encode(pages[7])
		}
	})
}

// echo is an upstream that has its pages ready.
type echo struct {
	pages map[understudy.Key]*understudy.Page
}

func (e echo) Fetch(_ context.Context, f request.Fetch) (*understudy.Page, error) {
	p := *e.pages[f.Target.Key]
	p.At = time.Now()
	return &p, nil
}

func (echo) Write(context.Context, request.Write) (*understudy.Page, error) {
	return nil, understudy.ErrUnavailable
}

// BenchmarkCold is the mirror's own part of a cold page: the flight, the hot
// tier, the answer. Upstream and store cost nothing here.
func BenchmarkCold(b *testing.B) {
	src, targets, pages := benchPages(b, 64)
	e := echo{pages: map[understudy.Key]*understudy.Page{}}
	for _, p := range pages {
		p.Next = understudy.Key{} // no prefetch
		e.pages[p.Key] = p
	}
	m, err := New(Options{Sources: []Source{{Source: src, Upstream: e}}, Store: noStore{}})
	if err != nil {
		b.Fatal(err)
	}
	zero := time.Duration(0)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		a, err := m.Answer(context.Background(), request.Request{Target: targets[i%len(targets)], AgeLimit: &zero})
		if err != nil || a.Outcome != request.Cold {
			b.Fatal(a, err)
		}
	}
}
