// Downloads: one download brings a whole content for everybody who wants it.

package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

// Bounds of what is brought.
const (
	maxErrands  = 8                // at once; beyond them each reader has a request of his own
	smallMedium = 4 << 20          // bytes up to which readers wait for the file
	bringTime   = 10 * time.Minute // the longest one download may take
	notAgain    = 10 * time.Minute // after a content could not be kept
	whyKept     = 5 * time.Minute  // how long it is remembered that upstream failed
	diskPause   = 10 * time.Second // after the disk was full
	maxWhys     = 1024
)

// media is what the mirror knows of contents beside the files.
type media struct {
	files Files

	sync.Mutex
	downloads map[understudy.Key]*download
	negatives map[understudy.Key]negative // the last that went wrong
	paused    time.Time                   // nothing new is kept before
}

// negative is what went wrong with a content, and until when nobody tries again.
type negative struct {
	text        string
	again, ends time.Time
}

// download is a download under way. The fields after head are written before it
// is closed, those after done before that is.
type download struct {
	target *spec.Target
	source *source
	kind   *kind
	reason request.Reason
	held   request.Content // what it asks about; Key zero: nothing is held
	ctx    context.Context
	cancel context.CancelFunc

	head  chan struct{}
	small bool // all of it will be there soon
	took  time.Duration

	done   chan struct{}
	status int   // 404 and 410: it is gone
	kept   bool  // a file is held and upstream has just said that it is so
	cut    error // upstream broke off
	err    error // upstream's
}

// bring waits for a download, begun now unless it is under way. Without a
// Medium and an error there is no file after all and the reader may ask for
// himself: the content is large, or could not be kept.
func (m *Mirror) download(ctx context.Context, p *playing, held request.Content) (*request.MediaResponse, error) {
	b, joined, err := m.mediaRequest(p, held, request.Waiting)
	if b == nil || err != nil {
		return nil, err
	}
	if err := m.enter(p.Flow); err != nil {
		return nil, fmt.Errorf("mirror: open %s: %w", p.Target.Key, err)
	}
	defer m.exit(p.Flow)
	ages := m.ages()
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
			return nil, fmt.Errorf("mirror: open %s: %w", p.Target.Key, ctx.Err())
		}
		if stage == b.head && !b.small {
			return nil, nil
		}
	}
	return m.downloaded(ctx, b, joined)
}

// brought is what a download that has ended is to its readers.
func (m *Mirror) downloaded(ctx context.Context, b *download, joined bool) (*request.MediaResponse, error) {
	switch {
	case b.err != nil:
		return nil, fmt.Errorf("mirror: open %s: %w", b.target.Key, b.err)
	case b.status == http.StatusNotFound || b.status == http.StatusGone:
		return &request.MediaResponse{ReadCloser: http.NoBody, Status: b.status, Outcome: request.Cold, Upstream: b.took, Joined: joined}, nil
	case !b.kept:
		return nil, nil
	}
	c, file, err := m.media.files.Get(ctx, b.target.Key)
	if err != nil {
		return nil, nil // gone again, or unreadable
	}
	ages := m.ages()
	age, _ := ages.age(m.now(), c.At)
	out := medium(c, file, request.Cold, age, ages.Final-age)
	out.Upstream, out.Stored, out.Joined = b.took, true, joined
	return out, nil
}

// downloadInBackground asks about a content nobody waits for.
func (m *Mirror) downloadInBackground(p *playing, held request.Content) {
	_, _, _ = m.mediaRequest(p, held, request.Refresh) // a reader has been answered; who is next tries again
}

// mediaRequest finds the key's download or begins it. It is nil when none may begin:
// too many are under way, or the content could not be kept a while ago.
func (m *Mirror) mediaRequest(p *playing, held request.Content, reason request.Reason) (b *download, joined bool, err error) {
	m.media.Lock()
	defer m.media.Unlock()
	key, now := p.Target.Key, m.now()
	if b = m.media.downloads[key]; b != nil {
		return b, true, nil
	}
	if len(m.media.downloads) >= maxErrands || now.Before(m.media.negatives[key].again) || now.Before(m.media.paused) && held.Key.Zero() {
		return nil, false, nil
	}
	b = &download{
		target: p.Target, source: p.source, kind: p.kind, reason: reason, held: held,
		head: make(chan struct{}), done: make(chan struct{}),
	}
	// Goroutines are added under this lock while the mirror is open.
	m.flights.Lock()
	defer m.flights.Unlock()
	if m.closed.Load() {
		return nil, false, fmt.Errorf("mirror: %w", understudy.ErrClosed)
	}
	b.ctx, b.cancel = context.WithTimeout(m.ctx, bringTime)
	m.media.downloads[key] = b
	m.work.Go(func() { m.runDownload(b) })
	return b, false, nil
}

// run is a download's own goroutine.
func (m *Mirror) runDownload(b *download) {
	defer b.cancel()
	var notKept error
	began := sync.OnceFunc(func() { close(b.head) })
	defer func() {
		if p := recover(); p != nil {
			m.log.Error("mirror: panic", "key", b.target.Key.String(), "panic", p, "stack", string(debug.Stack()))
			b.err = fmt.Errorf("panic: %v", p)
		}
		m.ended(b, notKept)
		began()
		close(b.done)
	}()
	a := request.MediaRequest{Target: b.target, Reason: b.reason}
	if !b.held.Key.Zero() {
		a.IfNoneMatch = b.held.ETag
	}
	var medium *request.MediaResponse
	if medium, b.err = b.source.media.Open(b.ctx, a); b.err != nil {
		b.small = true // that it failed is known at once
		return
	}
	defer medium.Close()
	b.status, b.took = medium.Status, medium.Upstream
	b.small = medium.Status != http.StatusOK || medium.Size >= 0 && medium.Size <= smallMedium
	began()
	notKept = m.file(b, medium)
	b.kept = notKept == nil && (b.status == http.StatusOK || b.status == http.StatusNotModified)
}

// file keeps what a download brought.
func (m *Mirror) file(b *download, medium *request.MediaResponse) error {
	switch b.status {
	case http.StatusOK:
		_, err := m.media.files.Put(b.ctx, request.Content{
			Key: b.target.Key, Kind: b.kind.name, ID: b.target.ID, Within: b.target.Within(), ContentType: medium.ContentType,
			Size: medium.Size, ETag: medium.ETag, Modified: medium.Modified, At: m.now(),
		}, &watched{medium, &b.cut})
		return err
	case http.StatusNotModified:
		err := m.media.files.Confirm(b.target.Key, m.now())
		if errors.Is(err, understudy.ErrNotFound) {
			b.status = 0 // it went meanwhile; whoever waits asks for himself
			return nil
		}
		return err
	case http.StatusNotFound, http.StatusGone:
		if b.held.Key.Zero() {
			return nil // perhaps it is only not under this path, or not yet
		}
		if rec := m.known(b.ctx, b.source, b.target.Kind, b.target.ID); rec != nil && m.forgotten(b.ctx, b.kind, rec) {
			return nil // it passes that it is not there, and what is held stays
		}
		_, err := m.media.files.Forget(b.source.Name, b.kind.name, b.target.ID)
		return err
	}
	return nil
}

// watched notes an error of what is read: then it is upstream's fault that a
// content is not kept, and no reason to leave it alone for long.
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

// ended takes a download off the list and remembers what went wrong.
func (m *Mirror) ended(b *download, notKept error) {
	m.media.Lock()
	defer m.media.Unlock()
	key, now := b.target.Key, m.now()
	if m.media.downloads[key] == b {
		delete(m.media.downloads, key)
	}
	switch {
	case b.err == nil:
	case m.closed.Load():
		b.err = understudy.ErrClosed
	case b.ctx.Err() != nil:
		b.err = nil // its record went, or it took too long: whoever waits asks for himself
	}
	var failed *understudy.UpstreamError
	var short interface{ Short() string }
	switch {
	case errors.As(b.err, &failed):
		m.media.rememberFailure(key, negative{"stale: " + failed.Short(), now.Add(coolTime), now.Add(whyKept)}, now)
	case b.cut != nil && b.ctx.Err() == nil:
		m.media.rememberFailure(key, negative{"stale: upstream unreachable", now.Add(coolTime), now.Add(whyKept)}, now)
	case notKept != nil && b.ctx.Err() == nil:
		b.source.counts.media.notKept.Add(1)
		m.log.Warn("mirror: a content is not kept", "key", key.String(), "error", notKept)
		if errors.As(notKept, &short) && short.Short() == "disk full" {
			m.media.paused = now.Add(diskPause)
			break
		}
		m.media.rememberFailure(key, negative{again: now.Add(notAgain), ends: now.Add(notAgain)}, now)
	default:
		if b.status == http.StatusOK && b.kept {
			b.source.counts.media.kept.Add(1)
		}
		delete(m.media.negatives, key)
	}
}

// remember notes what went wrong; the lock is held.
func (x *media) rememberFailure(key understudy.Key, w negative, now time.Time) {
	if len(x.negatives) >= maxWhys {
		for k, old := range x.negatives {
			if !now.Before(old.ends) {
				delete(x.negatives, k)
			}
		}
	}
	if len(x.negatives) < maxWhys {
		x.negatives[key] = w
	}
}

// negative is what last went wrong when a content was asked about, as a detail for
// its readers; "" when nothing did, or nobody has asked since it was right.
func (x *media) negative(key understudy.Key, now time.Time) string {
	x.Lock()
	defer x.Unlock()
	if w := x.negatives[key]; now.Before(w.ends) {
		return w.text
	}
	return ""
}

// forgetMedia makes sure that nothing held of a record, or of what lies within
// it, is given out any more, nor what is on its way.
func (m *Mirror) forgetMedia(k *kind, id string) {
	if m.media.files == nil || len(k.source.keeps) == 0 || id == "" {
		return
	}
	m.media.Lock()
	for key, b := range m.media.downloads {
		if b.source == k.source && (b.kind == k && b.target.ID == id || slices.Contains(b.target.Within(), id)) {
			b.cancel()
			delete(m.media.downloads, key)
		}
	}
	m.media.Unlock()
	if _, err := m.media.files.Forget(k.source.Name, k.name, id); err != nil {
		m.log.Error("mirror: contents of a record that went cannot be removed", "kind", k.name, "id", id, "error", err)
	}
}

// wrote makes contents follow a write: a record that may have gone takes its
// own and what lies within it along; one that may have changed, its own.
func (m *Mirror) wrote(k *kind, w request.Write) {
	if w.Method == http.MethodDelete || k.source.keeps[k.name] {
		m.forgetMedia(k, w.Target.ID)
	}
}
