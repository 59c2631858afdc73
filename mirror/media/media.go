// Media: contents of records, from a file when one is held, else from upstream.
//
//	reader --> held, fresh -----------------> its file
//	       --> held, older -----------------> its file, revalidated in the background
//	       --> not held, of a kept kind ----> one download brings all of it,
//	                                          and every waiter gets the file
//	       --> large, a HEAD, not kept -----> a request of its own, passed on
//
// What a record says changes; its content, once there, does not. So a file is
// fresh as long as a final record. An older file is revalidated, never thrown
// away.

// Package media answers with contents of records: recordings, pictures, faxes.
package media

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

// Upstream is what a cache needs of the upstream package. An upstream that does
// not fill it has no contents.
type Upstream interface {
	// Open asks for a content and returns at its first byte. Errors:
	// *understudy.UpstreamError, the context's.
	Open(context.Context, request.MediaRequest) (*request.MediaResponse, error)
}

// Files is what a cache needs of the store. All methods are called from many
// goroutines.
type Files interface {
	// Get opens what is held under a key; ErrNotFound.
	Get(context.Context, understudy.Key) (request.Content, io.ReadSeekCloser, error)
	// Put keeps a content, all of it or nothing; ErrNotStored.
	Put(context.Context, request.Content, io.Reader) (request.Content, error)
	// Confirm notes when upstream said that a content is still so.
	Confirm(key understudy.Key, at time.Time) error
	// Forget removes what is held of a record and of what lies within it, and
	// what of that is being put.
	Forget(source, kind, id string) (gone int, err error)
}

// Readers are those that wait for upstream. The mirror counts them.
type Readers interface {
	// Enter counts a reader that waits for upstream; an error turns it away.
	Enter(flow uint64) error
	// Exit ends what Enter began.
	Exit(flow uint64)
}

// Ages say how old a content may be and how long a reader waits.
type Ages struct {
	Final time.Duration // fresh time
	Hard  time.Duration // nothing older is ever answered
	Wait  time.Duration // what a reader waits when a file is held
	Try   time.Duration // what it waits besides when none is
}

// of is how old something is. A time in the future is not sane.
func (a *Ages) of(at, now time.Time) (age time.Duration, sane bool) {
	age = now.Sub(at)
	if age < 0 {
		return 0, false
	}
	return min(age, a.Hard), true
}

// Options are a cache's settings. Readers and IsPruned must be set.
type Options struct {
	Files   Files // nil: no contents are kept
	Readers Readers
	// IsPruned reports whether upstream no longer keeps the record that a content
	// belongs to, though it was not deleted (spec.Retention).
	IsPruned func(context.Context, *spec.Target) bool
	Ages     Ages
	Now      func() time.Time // the clock; nil = time.Now
	Logger   *slog.Logger     // nil = silence
}

// Cache answers with contents. Its methods may be called by any number of
// goroutines.
type Cache struct {
	o       Options
	ages    atomic.Pointer[Ages]
	sources map[string]*source
	ctx     context.Context // ends when the cache is closed
	cancel  context.CancelFunc
	work    sync.WaitGroup // the downloads

	mu        sync.Mutex
	downloads downloads
}

// source is one upstream with contents.
type source struct {
	name     string
	upstream Upstream        // nil: it has no contents
	keeps    map[string]bool // kinds whose contents are kept
	counts   counts
}

// New makes a cache without sources.
func New(o Options) *Cache {
	understudy.SetDefaults(&o.Logger, &o.Now)
	c := &Cache{o: o, sources: map[string]*source{}}
	c.downloads.init()
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.SetAges(o.Ages)
	return c
}

// AddSource adds an upstream, before the first Open. up is nil for one without
// contents. Error: a kind of Source.Media without contents.
func (c *Cache) AddSource(src *spec.Source, up Upstream) error {
	s := &source{name: src.Name, upstream: up, keeps: map[string]bool{}}
	for _, name := range src.Media {
		if k := src.Spec.Kind(name); k == nil || len(k.Media) == 0 {
			return fmt.Errorf("mirror: source %s: media: %q has no contents", src.Name, name)
		}
		s.keeps[name] = true
	}
	c.sources[src.Name] = s
	return nil
}

// SetAges replaces the ages, also of files that are held already.
func (c *Cache) SetAges(a Ages) { c.ages.Store(&a) }

// Close ends the downloads and waits for them. From then on none begins.
func (c *Cache) Close() {
	c.mu.Lock()
	c.downloads.closed = true
	c.mu.Unlock()
	c.cancel()
	c.work.Wait()
}

// reading is one reader on its way to a content.
type reading struct {
	request request.MediaRequest
	source  *source
}

// kind is the kind of the record that the content belongs to.
func (r *reading) kind() string { return r.request.Target.Kind.Name }

// Open is the content a media path names, from a file or straight from upstream;
// it must be closed. While upstream is down, a held file is given out until it
// is Ages.Hard old.
//
// Errors: ErrUnavailable (nearly always an *understudy.UpstreamError),
// ErrNotHeld, ErrNotFound when the source has no contents, ErrInvalid,
// ErrClosed, the context's.
func (c *Cache) Open(ctx context.Context, a request.MediaRequest) (*request.MediaResponse, error) {
	if a.Target == nil || a.Target.Media == nil || c.sources[a.Target.Key.Source] == nil {
		return nil, fmt.Errorf("mirror: %w: no such content", understudy.ErrInvalid)
	}
	r := &reading{request: a, source: c.sources[a.Target.Key.Source]}
	if a.Target.Kind == nil || r.source.upstream == nil {
		return nil, fmt.Errorf("mirror: open %s: %w", a.Target.Key, understudy.ErrNotFound)
	}
	medium, err := c.open(ctx, r)
	r.source.counts.add(medium, err)
	return medium, err
}

func (c *Cache) open(ctx context.Context, r *reading) (*request.MediaResponse, error) {
	if c.o.Files == nil || !r.source.keeps[r.kind()] {
		return c.relay(ctx, r)
	}
	content, file, err := c.o.Files.Get(ctx, r.request.Target.Key)
	switch {
	case err == nil:
		return c.openHeld(ctx, r, content, file)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("mirror: open %s: %w", r.request.Target.Key, ctx.Err())
	case !errors.Is(err, understudy.ErrNotFound):
		c.o.Logger.Warn("mirror: a content cannot be read", "key", r.request.Target.Key.String(), "error", err)
		return c.relay(ctx, r)
	case r.request.Head || r.request.OnlyIfCached:
		return c.relay(ctx, r)
	}
	medium, err := c.download(ctx, r, request.Content{})
	if medium == nil && err == nil {
		return c.relay(ctx, r)
	}
	return medium, err
}

// openHeld answers from a file, or with the outcome of its revalidation.
func (c *Cache) openHeld(
	ctx context.Context, r *reading, content request.Content, file io.ReadSeekCloser,
) (*request.MediaResponse, error) {
	ages, now := c.ages.Load(), c.o.Now()
	age, sane := ages.of(content.At, now)
	within := time.Duration(math.MaxInt64)
	switch {
	case r.request.NoCache:
		within = 0
	case r.request.MaxStale != nil:
		within = max(*r.request.MaxStale, 0)
	}
	held := medium(content, file, request.Warm, age, ages.Final-age)
	switch {
	case age < within && age < ages.Final && sane:
		return held, nil
	case age < within && age < ages.Hard:
		if !r.request.OnlyIfCached {
			_, _, _ = c.begin(r, content, request.Refresh) // the reader is answered; the next one tries again
		}
		held.Outcome, held.TTL, held.Detail = request.Stale, min(held.TTL, 0), c.failure(r.request.Target.Key, now)
		return held, nil
	case r.request.OnlyIfCached:
		_ = file.Close() // it was only read
		return c.relay(ctx, r)
	}
	fresh, err := c.download(ctx, r, content)
	if age >= ages.Hard || errors.Is(err, understudy.ErrClosed) || ctx.Err() != nil {
		_ = file.Close() // it was only read
		if fresh == nil && err == nil {
			return c.relay(ctx, r)
		}
		return fresh, err
	}
	if fresh != nil {
		_ = file.Close()
		return fresh, nil
	}
	// Nothing newer came: the held file is the fallback.
	held.Outcome, held.TTL, held.Detail = request.Stale, min(held.TTL, 0), c.failure(r.request.Target.Key, c.o.Now())
	held.Detail = cmp.Or(held.Detail, "stale: upstream slow")
	return held, nil
}

// medium is a content as a reader gets it.
func medium(content request.Content, file io.ReadSeekCloser, how request.Outcome, age, ttl time.Duration) *request.MediaResponse {
	return &request.MediaResponse{
		ReadCloser: file, File: file, Status: http.StatusOK, ContentType: content.ContentType, Size: content.Size,
		ETag: `"` + base64.RawURLEncoding.EncodeToString(content.Sum[:16]) + `"`, Modified: content.Modified,
		Outcome: how, Age: age, TTL: ttl,
	}
}

// relay asks upstream for this reader alone, if upstream may be asked.
func (c *Cache) relay(ctx context.Context, r *reading) (*request.MediaResponse, error) {
	if r.request.OnlyIfCached {
		return nil, fmt.Errorf("mirror: open %s: %w", r.request.Target.Key, understudy.ErrNotHeld)
	}
	if err := c.o.Readers.Enter(r.request.Flow); err != nil {
		return nil, fmt.Errorf("mirror: open %s: %w", r.request.Target.Key, err)
	}
	defer c.o.Readers.Exit(r.request.Flow)
	a := r.request
	a.Reason = request.Waiting
	medium, err := r.source.upstream.Open(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("mirror: open %s: %w", r.request.Target.Key, err)
	}
	return medium, nil
}
