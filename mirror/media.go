// Media: contents of records, from a file when one is held, else from upstream.
//
//	reader --> held, fresh -----------------> its file
//	       --> held, older -----------------> its file, asked about behind
//	       --> not held, of a kept kind ----> one download brings all of it,
//	                                          whoever waits gets the file
//	       --> large, a HEAD, not kept -----> a request of his own, passed on
//
// What a record says changes; its content, once there, does not. So a file is
// fresh as long as a final record, and is only asked about, never thrown away,
// when it is older.

package mirror

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/request"
)

// Media is what the mirror needs of the upstream package for contents. An Upstream
// that is none has no contents.
type Media interface {
	// Open asks for a content and returns at its first byte. Errors:
	// *understudy.UpstreamError, the context's.
	Open(context.Context, request.MediaRequest) (*request.MediaResponse, error)
}

// Files is what the mirror needs of the store for contents. All methods
// are called from many goroutines.
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

// playing is one reader on his way to a content.
type playing struct {
	request.MediaRequest
	source *source
	kind   *kind
}

// Open is the content a media path names, from a file of ours or straight from
// upstream; it must be closed. While upstream is down, what is held is given
// out until it is Ages.Hard old.
//
// Errors: ErrUnavailable (nearly always an *understudy.UpstreamError),
// ErrNotHeld, ErrNotFound when contents are not brought at all, ErrInvalid, ErrClosed, the
// context's.
func (m *Mirror) Open(ctx context.Context, a request.MediaRequest) (*request.MediaResponse, error) {
	if m.closed.Load() {
		return nil, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	if a.Target == nil || a.Target.Media == nil || m.sources[a.Target.Key.Source] == nil {
		return nil, fmt.Errorf("mirror: %w: no such content", understudy.ErrInvalid)
	}
	p := &playing{MediaRequest: a, source: m.sources[a.Target.Key.Source]}
	if p.kind = p.source.of(a.Target); p.kind == nil || p.source.media == nil {
		return nil, fmt.Errorf("mirror: open %s: %w", a.Target.Key, understudy.ErrNotFound)
	}
	wasRead(&p.source.lastRead, m.monotonic(m.now()))
	medium, err := m.play(ctx, p)
	p.source.counts.media.add(medium, err)
	return medium, err
}

func (m *Mirror) play(ctx context.Context, p *playing) (*request.MediaResponse, error) {
	if m.media.files == nil || !p.source.keeps[p.kind.name] {
		return m.relay(ctx, p)
	}
	c, file, err := m.media.files.Get(ctx, p.Target.Key)
	switch {
	case err == nil:
		return m.playHeld(ctx, p, c, file)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("mirror: open %s: %w", p.Target.Key, ctx.Err())
	case !errors.Is(err, understudy.ErrNotFound):
		m.log.Warn("mirror: a content cannot be read", "key", p.Target.Key.String(), "error", err)
		return m.relay(ctx, p)
	case p.Head || p.OnlyIfCached:
		return m.relay(ctx, p)
	}
	medium, err := m.download(ctx, p, request.Content{})
	if medium == nil && err == nil {
		return m.relay(ctx, p)
	}
	return medium, err
}

// playHeld answers from a file, or with what has come of asking about it.
func (m *Mirror) playHeld(ctx context.Context, p *playing, c request.Content, file io.ReadSeekCloser) (*request.MediaResponse, error) {
	ages, now := m.ages(), m.now()
	age, sane := ages.age(now, c.At)
	within := time.Duration(math.MaxInt64)
	switch {
	case p.NoCache:
		within = 0
	case p.MaxStale != nil:
		within = max(*p.MaxStale, 0)
	}
	held := medium(c, file, request.Warm, age, ages.Final-age)
	switch {
	case age < within && age < ages.Final && sane:
		return held, nil
	case age < within && age < ages.Hard:
		if !p.OnlyIfCached {
			m.downloadInBackground(p, c)
		}
		held.Outcome, held.TTL, held.Detail = request.Stale, min(held.TTL, 0), m.media.negative(p.Target.Key, now)
		return held, nil
	case p.OnlyIfCached:
		_ = file.Close() // it was only read
		return m.relay(ctx, p)
	}
	fresh, err := m.download(ctx, p, c)
	if age >= ages.Hard || errors.Is(err, understudy.ErrClosed) || ctx.Err() != nil {
		_ = file.Close() // it was only read
		if fresh == nil && err == nil {
			return m.relay(ctx, p)
		}
		return fresh, err
	}
	if fresh != nil {
		_ = file.Close()
		return fresh, nil
	}
	// Nothing newer came: what is held is the second choice.
	held.Outcome, held.TTL, held.Detail = request.Stale, min(held.TTL, 0), m.media.negative(p.Target.Key, m.now())
	if held.Detail == "" {
		held.Detail = "stale: upstream slow"
	}
	return held, nil
}

// medium is a content as a reader gets it.
func medium(c request.Content, file io.ReadSeekCloser, how request.Outcome, age, ttl time.Duration) *request.MediaResponse {
	return &request.MediaResponse{
		ReadCloser: file, File: file, Status: http.StatusOK, ContentType: c.ContentType, Size: c.Size,
		ETag: `"` + base64.RawURLEncoding.EncodeToString(c.Sum[:16]) + `"`, Modified: c.Modified,
		Outcome: how, Age: age, TTL: ttl,
	}
}

// relay asks upstream for this reader alone, if upstream may be asked.
func (m *Mirror) relay(ctx context.Context, p *playing) (*request.MediaResponse, error) {
	if p.OnlyIfCached {
		return nil, fmt.Errorf("mirror: open %s: %w", p.Target.Key, understudy.ErrNotHeld)
	}
	if err := m.enter(p.Flow); err != nil {
		return nil, fmt.Errorf("mirror: open %s: %w", p.Target.Key, err)
	}
	defer m.exit(p.Flow)
	a := p.MediaRequest
	a.Reason = request.Waiting
	medium, err := p.source.media.Open(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("mirror: open %s: %w", p.Target.Key, err)
	}
	return medium, nil
}

// enter and exit count a reader who waits for upstream.
func (fs *flights) enter(turn uint64) error {
	fs.Lock()
	defer fs.Unlock()
	return fs.admit(fs.limits.Load(), turn, false)
}

func (fs *flights) exit(turn uint64) {
	fs.Lock()
	defer fs.Unlock()
	fs.dismiss(turn)
}

// mediaCounts are one source's counters of contents; they only rise.
type mediaCounts struct{ warm, stale, cold, failed, kept, notKept atomic.Int64 }

// add counts one answer.
func (c *mediaCounts) add(medium *request.MediaResponse, err error) {
	switch {
	case err != nil:
		c.failed.Add(1)
	case medium.Outcome == request.Warm:
		c.warm.Add(1)
	case medium.Outcome == request.Stale:
		c.stale.Add(1)
	default:
		c.cold.Add(1)
	}
}

// MediaStats counts contents; counts only rise.
type MediaStats struct {
	Requests int64 // contents asked for
	Warm     int64 // from a file
	Stale    int64 // from a file past fresh
	Cold     int64 // from upstream, or from a file just brought
	Failed   int64 // ended in an error
	Kept     int64 // brought whole and kept
	NotKept  int64 // brought, and too large or no room
}

func (c *mediaCounts) stats() MediaStats {
	s := MediaStats{
		Warm: c.warm.Load(), Stale: c.stale.Load(), Cold: c.cold.Load(), Failed: c.failed.Load(),
		Kept: c.kept.Load(), NotKept: c.notKept.Load(),
	}
	s.Requests = s.Warm + s.Stale + s.Cold + s.Failed
	return s
}
