// Contents of records: answered from a stored file, otherwise from upstream.
//
// A stored file is answered if it is fresh. An older file is answered too and revalidated in the background.
// If there is no file but the kind's contents are stored, one download fetches the content for all waiting
// readers. A large content, a HEAD and a content that is not stored get a request of their own.
//
// A record may change, but its content does not change once it exists. So a file stays fresh as long as a
// final record. An older file is revalidated and never dropped because of its age.

// Package media answers with the contents of records: recordings, pictures, faxes.
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
	"understudy/internal/aging"
	"understudy/kit/lockwatch"
	"understudy/request"
	"understudy/spec"
)

// Upstream requests audio and images. If the client of a source does not implement it, the source has none.
type Upstream interface {
	// Open requests an audio or image and returns when the response's header has arrived. Errors:
	// *understudy.UpstreamError and the context's error.
	Open(context.Context, request.MediaRequest) (*request.MediaResponse, error)
}

// Files stores audio and images. It must be safe for concurrent use.
type Files interface {
	// Get opens the file stored under a key. It returns ErrNotFound if there is none.
	Get(context.Context, understudy.Key) (request.Content, io.ReadSeekCloser, error)
	// Put stores a complete audio or image. If it returns ErrNotStored, it has stored nothing.
	Put(context.Context, request.Content, io.Reader) (request.Content, error)
	// Confirm stores the time at which upstream confirmed that an audio or image has not changed.
	Confirm(key understudy.Key, at time.Time) error
	// Forget deletes the files of a record and of the records below it, and ends running calls of Put for them.
	Forget(source, kind, id string) (gone int, err error)
}

// Readers counts the readers that wait for upstream. The mirror implements it.
type Readers interface {
	// Enter counts a reader that starts to wait. It returns an error if too many readers wait.
	Enter(flow uint64) error
	// Exit must be called when a reader that Enter has counted no longer waits.
	Exit(flow uint64)
}

// Ages are limits on the age of files and on how long a reader waits.
type Ages struct {
	Final time.Duration // how long a file is fresh
	Hard  time.Duration // the age from which a file is never used as an answer
	Wait  time.Duration // how long a reader waits for upstream if there is a stored file
	Try   time.Duration // how much longer a reader waits for upstream if there is no stored file
}

// age returns how long ago a file was fetched or confirmed. sane is false if that time is in the future.
func (a *Ages) age(at, now time.Time) (age time.Duration, sane bool) {
	age = aging.Age(at, now)
	if age < 0 {
		return 0, false
	}
	return min(age, a.Hard), true
}

// Options are the settings of a Cache. Readers and IsPruned are required.
type Options struct {
	Files   Files // stores the files; nil if no audio and images are stored
	Readers Readers
	// IsPruned reports whether upstream has dropped the record to which an audio or image belongs, without anybody
	// deleting it (spec.Retention).
	IsPruned func(context.Context, *spec.Target) bool
	Ages     Ages
	Now      func() time.Time // the function that returns the time; nil means time.Now
	Logger   *slog.Logger     // the log; nil means that nothing is logged
}

// Cache answers requests for audio and images. It is safe for concurrent use.
type Cache struct {
	options Options
	ages    atomic.Pointer[Ages]
	sources map[string]*source
	ctx     context.Context // a context that ends when the cache is closed
	cancel  context.CancelFunc
	work    sync.WaitGroup // counts the running downloads

	mu        lockwatch.Mutex
	downloads downloads
}

// source is one upstream that has audio or images.
type source struct {
	name     string
	upstream Upstream        // the client; nil if the source has no audio and images
	keeps    map[string]bool // the names of the kinds whose audio and images are stored
	counts   counts
}

// New returns a cache that has no sources yet.
func New(o Options) *Cache {
	understudy.SetDefaults(&o.Logger, &o.Now)
	c := &Cache{options: o, sources: map[string]*source{}}
	c.downloads.running, c.downloads.failures = map[understudy.Key]*download{}, map[understudy.Key]negative{}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.SetAges(o.Ages)
	return c
}

// AddSource adds the client of a source. It must be called before the first Open. up is nil if the source has no
// audio and images. It returns an error if Source.Media names a kind that has none.
func (c *Cache) AddSource(src *spec.Source, up Upstream) error {
	s := &source{name: src.Name, upstream: up, keeps: map[string]bool{}}
	for _, name := range src.MediaKinds {
		if k := src.Spec.Kind(name); k == nil || len(k.Media) == 0 {
			return fmt.Errorf("mirror: source %s: media: %q has no contents", src.Name, name)
		}
		s.keeps[name] = true
	}
	c.sources[src.Name] = s
	return nil
}

// SetAges replaces the ages. They also apply to files that are already stored.
func (c *Cache) SetAges(a Ages) { c.ages.Store(&a) }

// Close ends all downloads and waits for them. No download starts after it.
func (c *Cache) Close() {
	c.mu.Lock()
	c.downloads.closed = true
	c.mu.Unlock()
	c.cancel()
	c.work.Wait()
}

// reading is a request while it is being answered.
type reading struct {
	request request.MediaRequest
	source  *source
}

// Open returns the audio or image that a media path names, from a file or directly from upstream. The caller must
// close it. While upstream is down, a stored file younger than Ages.Hard is the answer.
//
// Errors: ErrUnavailable (nearly always an *understudy.UpstreamError), ErrNoStoredAnswer, ErrNotFound if the source
// has no audio and images, ErrInvalid, ErrClosed, and the context's error.
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

// open is Open without its checks and counters.
func (c *Cache) open(ctx context.Context, r *reading) (*request.MediaResponse, error) {
	if c.options.Files == nil || !r.source.keeps[r.request.Target.Kind.Name] {
		return c.forward(ctx, r)
	}
	content, file, err := c.options.Files.Get(ctx, r.request.Target.Key)
	switch {
	case err == nil:
		return c.openHeld(ctx, r, content, file)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("mirror: open %s: %w", r.request.Target.Key, ctx.Err())
	case !errors.Is(err, understudy.ErrNotFound):
		c.options.Logger.Warn("mirror: a stored content cannot be read", "key", r.request.Target.Key.String(), "error", err)
		return c.forward(ctx, r)
	case r.request.Head || r.request.OnlyIfCached:
		return c.forward(ctx, r)
	}
	medium, err := c.fetchContent(ctx, r, request.Content{})
	if medium == nil && err == nil {
		return c.forward(ctx, r)
	}
	return medium, err
}

// openHeld answers with a stored file, or with what upstream says when it is asked to confirm the file.
func (c *Cache) openHeld(
	ctx context.Context, r *reading, content request.Content, file io.ReadSeekCloser,
) (*request.MediaResponse, error) {
	ages, now := c.ages.Load(), c.options.Now()
	age, sane := ages.age(content.At, now)
	within := time.Duration(math.MaxInt64)
	switch {
	case r.request.NoCache:
		within = 0
	case r.request.MaxStale != nil:
		within = max(*r.request.MaxStale, 0)
	}
	held := newResponse(content, file, request.Warm, age, ages.Final-age)
	switch {
	case age < within && age < ages.Final && sane:
		return held, nil
	case age < within && age < ages.Hard:
		if !r.request.OnlyIfCached {
			_, _, _ = c.begin(r, content, request.ReasonRefresh, request.TraceOf(ctx)) // if no download starts, the next reader tries again
		}
		held.Outcome, held.TTL, held.Detail = request.Stale, min(held.TTL, 0), c.failure(r.request.Target.Key, now)
		return held, nil
	case r.request.OnlyIfCached:
		_ = file.Close() // an error of Close does not matter, because the file was only read
		return c.forward(ctx, r)
	}
	fresh, err := c.fetchContent(ctx, r, content)
	if age >= ages.Hard || errors.Is(err, understudy.ErrClosed) || ctx.Err() != nil {
		_ = file.Close() // an error of Close does not matter, because the file was only read
		if fresh == nil && err == nil {
			return c.forward(ctx, r)
		}
		return fresh, err
	}
	if fresh != nil {
		_ = file.Close()
		return fresh, nil
	}
	// Upstream has sent nothing newer, so the stored file is the answer.
	held.Outcome, held.TTL, held.Detail = request.Stale, min(held.TTL, 0), c.failure(r.request.Target.Key, c.options.Now())
	held.Detail = cmp.Or(held.Detail, "stale: upstream slow")
	return held, nil
}

// newResponse returns the response with a stored file.
func newResponse(content request.Content, file io.ReadSeekCloser, how request.Outcome, age, ttl time.Duration) *request.MediaResponse {
	return &request.MediaResponse{
		ReadCloser: file, File: file, Status: http.StatusOK, ContentType: content.ContentType, Size: content.Size,
		ETag: `"` + base64.RawURLEncoding.EncodeToString(content.Sum[:16]) + `"`, Modified: content.Modified,
		Outcome: how, Age: age, TTL: ttl,
	}
}

// forward requests the audio or image from upstream for this reader alone. It returns an error if the request forbids that.
func (c *Cache) forward(ctx context.Context, r *reading) (*request.MediaResponse, error) {
	if r.request.OnlyIfCached {
		return nil, fmt.Errorf("mirror: open %s: %w", r.request.Target.Key, understudy.ErrNoStoredAnswer)
	}
	if err := c.options.Readers.Enter(r.request.Flow); err != nil {
		return nil, fmt.Errorf("mirror: open %s: %w", r.request.Target.Key, err)
	}
	defer c.options.Readers.Exit(r.request.Flow)
	a := r.request
	a.Reason = request.ReasonWaiting
	medium, err := r.source.upstream.Open(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("mirror: open %s: %w", r.request.Target.Key, err)
	}
	return medium, nil
}
