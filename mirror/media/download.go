// Downloads: a download fetches an audio or image from upstream for all readers who wait for it.

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

// Limits of downloads.
const (
	maxDownloads = 8                // the maximum number of downloads at once; further readers get requests of their own
	maxSmall     = 4 << 20          // the size in bytes up to which readers wait until the whole file is stored
	downloadTime = 10 * time.Minute // the maximum time of one download
	diskPause    = 10 * time.Second // how long nothing is stored after the disk was full
)

// downloads are the running downloads, and the recent failures.
type downloads struct {
	running     map[understudy.Key]*download
	failures    map[understudy.Key]negative // for each content (an audio or image), the last failure of its download
	pausedUntil time.Time                   // no content is stored before this time, because the disk was full
	closed      bool
}

// download is one running download. Fields after headReceived are set before headReceived is closed, and fields after
// done before done is closed.
type download struct {
	target      *spec.Target
	source      *source
	reason      request.Reason
	revalidated request.Content // the stored content that upstream is asked to confirm; its Key is zero if there is none
	ctx         context.Context
	cancel      context.CancelFunc

	headReceived chan struct{}
	isSmall      bool // whether the content is small enough for readers to wait for the whole file
	loadTime     time.Duration

	done    chan struct{}
	status  int   // upstream's status; 404 and 410 mean that the content was deleted
	isKept  bool  // whether a file is stored that upstream has just sent or confirmed
	readErr error // the error of a response that ended before its body was complete
	err     error // the error of the request to upstream
}

// fetchContent waits for the download of a content, and starts it if needed. If the content is too large or cannot be
// stored, it returns neither a response nor an error. The reader must then send a request of its own.
func (c *Cache) fetchContent(ctx context.Context, r *reading, held request.Content) (*request.MediaResponse, error) {
	b, joined, err := c.begin(r, held, request.ReasonWaiting, request.TraceOf(ctx))
	if b == nil || err != nil {
		return nil, err
	}
	if err := c.options.Readers.Enter(r.request.Flow); err != nil {
		return nil, fmt.Errorf("mirror: open %s: %w", r.request.Target.Key, err)
	}
	defer c.options.Readers.Exit(r.request.Flow)
	ages := c.ages.Load()
	wait := ages.Wait
	if held.Key.IsZero() {
		wait += ages.Try
	}
	late := time.After(wait)
	for _, stage := range []<-chan struct{}{b.headReceived, b.done} {
		select {
		case <-stage:
		case <-late:
			return nil, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("mirror: open %s: %w", r.request.Target.Key, ctx.Err())
		}
		if stage == b.headReceived && !b.isSmall {
			return nil, nil
		}
	}
	return c.answerDownloaded(ctx, b, joined)
}

// answerDownloaded answers a reader after the download has ended.
func (c *Cache) answerDownloaded(ctx context.Context, b *download, joined bool) (*request.MediaResponse, error) {
	switch {
	case b.err != nil:
		return nil, fmt.Errorf("mirror: open %s: %w", b.target.Key, b.err)
	case b.status == http.StatusNotFound || b.status == http.StatusGone:
		return &request.MediaResponse{ReadCloser: http.NoBody, Status: b.status, Outcome: request.Cold, Upstream: b.loadTime, Joined: joined}, nil
	case !b.isKept:
		return nil, nil
	}
	content, file, err := c.options.Files.Get(ctx, b.target.Key)
	if err != nil {
		return nil, nil // the file was deleted in the meantime or cannot be read
	}
	ages := c.ages.Load()
	age, _ := ages.age(content.At, c.options.Now())
	out := newResponse(content, file, request.Cold, age, ages.Final-age)
	out.Upstream, out.Stored, out.Joined = b.loadTime, true, joined
	return out, nil
}

// begin returns the running download of a content, and starts one if needed. It returns nil if too many are running,
// or if the content could not be stored a short time ago.
func (c *Cache) begin(
	r *reading, held request.Content, reason request.Reason, cause *request.Trace,
) (b *download, joined bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, now, ds := r.request.Target.Key, c.options.Now(), &c.downloads
	if b = ds.running[key]; b != nil {
		return b, true, nil
	}
	if len(ds.running) >= maxDownloads || now.Before(ds.failures[key].nextTry) || now.Before(ds.pausedUntil) && held.Key.IsZero() {
		return nil, false, nil
	}
	b = &download{
		target: r.request.Target, source: r.source, reason: reason, revalidated: held,
		headReceived: make(chan struct{}), done: make(chan struct{}),
	}
	// While the cache is open, goroutines are counted under this lock.
	if ds.closed {
		return nil, false, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	b.ctx, b.cancel = context.WithTimeout(request.WithTrace(c.ctx, cause), downloadTime)
	ds.running[key] = b
	c.work.Go(func() { c.run(b) })
	return b, false, nil
}

// run requests the content of a download from upstream and stores it. It runs in a goroutine of its own.
func (c *Cache) run(b *download) {
	defer b.cancel()
	var notKept error
	began := sync.OnceFunc(func() { close(b.headReceived) })
	defer func() {
		if p := recover(); p != nil {
			c.options.Logger.Error("mirror: panic", "key", b.target.Key.String(), "panic", p, "stack", string(debug.Stack()))
			b.err = fmt.Errorf("panic: %v", p)
		}
		c.end(b, notKept)
		began()
		close(b.done)
	}()
	a := request.MediaRequest{Target: b.target, Reason: b.reason}
	if !b.revalidated.Key.IsZero() {
		a.IfNoneMatch = b.revalidated.ETag
	}
	var medium *request.MediaResponse
	medium, b.err = b.source.upstream.Open(b.ctx, a)
	if b.err == nil && medium.Status == http.StatusNotModified && !header.MatchTag(a.IfNoneMatch, medium.ETag) {
		_ = medium.Close()
		a.IfNoneMatch = "" // the 304 is for another content, so upstream is asked again without the condition
		medium, b.err = b.source.upstream.Open(b.ctx, a)
	}
	if b.err != nil {
		b.isSmall = true // readers need not wait, because the failure is known at once
		return
	}
	defer medium.Close()
	b.status, b.loadTime = medium.Status, medium.Upstream
	b.isSmall = medium.Status != http.StatusOK || medium.Size >= 0 && medium.Size <= maxSmall
	began()
	notKept = c.keep(b, medium)
	b.isKept = notKept == nil && (b.status == http.StatusOK || b.status == http.StatusNotModified)
}

// keep stores the content of a download as a file.
func (c *Cache) keep(b *download, medium *request.MediaResponse) error {
	switch b.status {
	case http.StatusOK:
		_, err := c.options.Files.Put(b.ctx, request.Content{
			Key: b.target.Key, Kind: b.target.Kind.Name, ID: b.target.ID, ParentIDs: b.target.EnclosingIDs(), ContentType: medium.ContentType,
			Size: medium.Size, ETag: medium.ETag, Modified: medium.Modified, At: c.options.Now(),
		}, &errorNoter{medium, &b.readErr})
		return err
	case http.StatusNotModified:
		err := c.options.Files.Confirm(b.target.Key, c.options.Now())
		if errors.Is(err, understudy.ErrNotFound) {
			b.status = 0 // the content was deleted in the meantime, so each reader sends a request of its own
			return nil
		}
		return err
	case http.StatusNotFound, http.StatusGone:
		if b.revalidated.Key.IsZero() {
			return nil // upstream may have the content at another path, or may have it later
		}
		if c.options.IsPruned(b.ctx, b.target) {
			return nil // the readers get the 404 response, and the stored file is kept
		}
		_, err := c.options.Files.Forget(b.source.name, b.target.Kind.Name, b.target.ID)
		return err
	}
	return nil
}

// errorNoter is an io.Reader that remembers its error. If upstream's response was incomplete, the next attempt comes soon.
type errorNoter struct {
	io.Reader
	err *error
}

// Read reads from upstream's response.
func (w *errorNoter) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && err != io.EOF {
		*w.err = err
	}
	return n, err
}

// end removes a download from the running ones, and remembers its failure.
func (c *Cache) end(b *download, notKept error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, now := b.target.Key, c.options.Now()
	ds := &c.downloads
	if ds.running[key] == b {
		delete(ds.running, key)
	}
	switch {
	case b.err == nil:
	case ds.closed:
		b.err = understudy.ErrClosed
	case b.ctx.Err() != nil:
		b.err = nil // the content was deleted, or storing it took too long, so each reader sends a request of its own
	}
	var failed *understudy.UpstreamError
	var short interface{ ShortString() string }
	switch {
	case errors.As(b.err, &failed):
		ds.rememberFailure(key, negative{"stale: " + failed.ShortText(), now.Add(failurePause), now.Add(failureShown)}, now)
	case b.readErr != nil && b.ctx.Err() == nil:
		ds.rememberFailure(key, negative{"stale: upstream unreachable", now.Add(failurePause), now.Add(failureShown)}, now)
	case notKept != nil && b.ctx.Err() == nil:
		b.source.counts.notKept.Add(1)
		c.options.Logger.Warn("mirror: a content is not stored", "key", key.String(), "error", notKept)
		if errors.As(notKept, &short) && short.ShortString() == "disk full" {
			ds.pausedUntil = now.Add(diskPause)
			break
		}
		ds.rememberFailure(key, negative{nextTry: now.Add(notKeptPause), ends: now.Add(notKeptPause)}, now)
	default:
		if b.status == http.StatusOK && b.isKept {
			b.source.counts.kept.Add(1)
		}
		delete(ds.failures, key)
	}
}
