// Downloads: one download brings a whole content for all its readers.

package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"understudy"
	"understudy/kit/header"
	"understudy/request"
	"understudy/spec"
)

// Bounds of what is downloaded.
const (
	maxDownloads = 8                // at once; beyond them each reader has a request of its own
	smallContent = 4 << 20          // bytes up to which readers wait for the file
	downloadTime = 10 * time.Minute // the longest one download may take
	diskPause    = 10 * time.Second // after the disk was full
)

// downloads are those under way, and the failures of those that ended.
type downloads struct {
	running  map[understudy.Key]*download
	failures map[understudy.Key]negative // the last of each content
	paused   time.Time                   // nothing new is kept before
	closed   bool
}

func (ds *downloads) init() {
	ds.running, ds.failures = map[understudy.Key]*download{}, map[understudy.Key]negative{}
}

// download is a download under way. The fields after head are written before it
// is closed, those after done before that is.
type download struct {
	target *spec.Target
	source *source
	reason request.Reason
	held   request.Content // what it revalidates; Key zero: nothing is held
	ctx    context.Context
	cancel context.CancelFunc

	head  chan struct{}
	small bool // all of it will be there soon
	took  time.Duration

	done   chan struct{}
	status int   // 404 and 410: it is gone
	kept   bool  // a file is held and upstream has just confirmed it
	cut    error // upstream broke off
	err    error // upstream's
}

// download waits for a download, begun now unless it is under way. It returns
// neither a response nor an error when there is no file after all: the content is
// large, or could not be kept. Then the reader asks upstream on its own.
func (c *Cache) download(ctx context.Context, r *reading, held request.Content) (*request.MediaResponse, error) {
	b, joined, err := c.begin(r, held, request.Waiting)
	if b == nil || err != nil {
		return nil, err
	}
	if err := c.o.Readers.Enter(r.request.Flow); err != nil {
		return nil, fmt.Errorf("mirror: open %s: %w", r.request.Target.Key, err)
	}
	defer c.o.Readers.Exit(r.request.Flow)
	ages := c.ages.Load()
	wait := ages.Wait
	if held.Key.Zero() {
		wait += ages.Try
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	for _, stage := range []<-chan struct{}{b.head, b.done} {
		select {
		case <-stage:
		case <-late.C:
			return nil, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("mirror: open %s: %w", r.request.Target.Key, ctx.Err())
		}
		if stage == b.head && !b.small {
			return nil, nil
		}
	}
	return c.downloaded(ctx, b, joined)
}

// downloaded is the answer to the readers of a download that has ended.
func (c *Cache) downloaded(ctx context.Context, b *download, joined bool) (*request.MediaResponse, error) {
	switch {
	case b.err != nil:
		return nil, fmt.Errorf("mirror: open %s: %w", b.target.Key, b.err)
	case b.status == http.StatusNotFound || b.status == http.StatusGone:
		return &request.MediaResponse{ReadCloser: http.NoBody, Status: b.status, Outcome: request.Cold, Upstream: b.took, Joined: joined}, nil
	case !b.kept:
		return nil, nil
	}
	content, file, err := c.o.Files.Get(ctx, b.target.Key)
	if err != nil {
		return nil, nil // gone again, or unreadable
	}
	ages := c.ages.Load()
	age, _ := ages.of(content.At, c.o.Now())
	out := medium(content, file, request.Cold, age, ages.Final-age)
	out.Upstream, out.Stored, out.Joined = b.took, true, joined
	return out, nil
}

// begin finds the key's download or begins it. It is nil when none may begin:
// too many are under way, or the content could not be kept a while ago.
func (c *Cache) begin(r *reading, held request.Content, reason request.Reason) (b *download, joined bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, now, ds := r.request.Target.Key, c.o.Now(), &c.downloads
	if b = ds.running[key]; b != nil {
		return b, true, nil
	}
	if len(ds.running) >= maxDownloads || now.Before(ds.failures[key].again) || now.Before(ds.paused) && held.Key.Zero() {
		return nil, false, nil
	}
	b = &download{
		target: r.request.Target, source: r.source, reason: reason, held: held,
		head: make(chan struct{}), done: make(chan struct{}),
	}
	// Goroutines are added under this lock while the cache is open.
	if ds.closed {
		return nil, false, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	b.ctx, b.cancel = context.WithTimeout(c.ctx, downloadTime)
	ds.running[key] = b
	c.work.Go(func() { c.run(b) })
	return b, false, nil
}

// run is a download's own goroutine.
func (c *Cache) run(b *download) {
	defer b.cancel()
	var notKept error
	began := sync.OnceFunc(func() { close(b.head) })
	defer func() {
		if p := recover(); p != nil {
			c.o.Logger.Error("mirror: panic", "key", b.target.Key.String(), "panic", p, "stack", string(debug.Stack()))
			b.err = fmt.Errorf("panic: %v", p)
		}
		c.end(b, notKept)
		began()
		close(b.done)
	}()
	a := request.MediaRequest{Target: b.target, Reason: b.reason}
	if !b.held.Key.Zero() {
		a.IfNoneMatch = b.held.ETag
	}
	var medium *request.MediaResponse
	medium, b.err = b.source.upstream.Open(b.ctx, a)
	if b.err == nil && medium.Status == http.StatusNotModified && !header.MatchTag(a.IfNoneMatch, medium.ETag) {
		_ = medium.Close()
		a.IfNoneMatch = "" // the 304 is about another content
		medium, b.err = b.source.upstream.Open(b.ctx, a)
	}
	if b.err != nil {
		b.small = true // that it failed is known at once
		return
	}
	defer medium.Close()
	b.status, b.took = medium.Status, medium.Upstream
	b.small = medium.Status != http.StatusOK || medium.Size >= 0 && medium.Size <= smallContent
	began()
	notKept = c.keep(b, medium)
	b.kept = notKept == nil && (b.status == http.StatusOK || b.status == http.StatusNotModified)
}

// keep saves what a download brought.
func (c *Cache) keep(b *download, medium *request.MediaResponse) error {
	switch b.status {
	case http.StatusOK:
		_, err := c.o.Files.Put(b.ctx, request.Content{
			Key: b.target.Key, Kind: b.target.Kind.Name, ID: b.target.ID, Within: b.target.Within(), ContentType: medium.ContentType,
			Size: medium.Size, ETag: medium.ETag, Modified: medium.Modified, At: c.o.Now(),
		}, &watched{medium, &b.cut})
		return err
	case http.StatusNotModified:
		err := c.o.Files.Confirm(b.target.Key, c.o.Now())
		if errors.Is(err, understudy.ErrNotFound) {
			b.status = 0 // it went meanwhile; each waiter asks on its own
			return nil
		}
		return err
	case http.StatusNotFound, http.StatusGone:
		if b.held.Key.Zero() {
			return nil // perhaps it is only not under this path, or not yet
		}
		if c.o.IsPruned(b.ctx, b.target) {
			return nil // the readers get the 404, and the file stays
		}
		_, err := c.o.Files.Forget(b.source.name, b.target.Kind.Name, b.target.ID)
		return err
	}
	return nil
}

// watched notes an error of what is read. Then upstream is the reason that a
// content is not kept, and the next try comes soon.
type watched struct {
	io.Reader
	err *error
}

// Read reads.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && err != io.EOF {
		*w.err = err
	}
	return n, err
}

// end removes a download and remembers what went wrong.
func (c *Cache) end(b *download, notKept error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, now := b.target.Key, c.o.Now()
	ds := &c.downloads
	if ds.running[key] == b {
		delete(ds.running, key)
	}
	switch {
	case b.err == nil:
	case ds.closed:
		b.err = understudy.ErrClosed
	case b.ctx.Err() != nil:
		b.err = nil // its record went, or it took too long: each waiter asks on its own
	}
	var failed *understudy.UpstreamError
	var short interface{ Short() string }
	switch {
	case errors.As(b.err, &failed):
		ds.rememberFailure(key, negative{"stale: " + failed.Short(), now.Add(coolTime), now.Add(failureKept)}, now)
	case b.cut != nil && b.ctx.Err() == nil:
		ds.rememberFailure(key, negative{"stale: upstream unreachable", now.Add(coolTime), now.Add(failureKept)}, now)
	case notKept != nil && b.ctx.Err() == nil:
		b.source.counts.notKept.Add(1)
		c.o.Logger.Warn("mirror: a content is not kept", "key", key.String(), "error", notKept)
		if errors.As(notKept, &short) && short.Short() == "disk full" {
			ds.paused = now.Add(diskPause)
			break
		}
		ds.rememberFailure(key, negative{again: now.Add(retryAfter), ends: now.Add(retryAfter)}, now)
	default:
		if b.status == http.StatusOK && b.kept {
			b.source.counts.kept.Add(1)
		}
		delete(ds.failures, key)
	}
}
