// This file reads a media content within its limits, and checks which headers may be forwarded.

package upstream

import (
	"context"
	"io"
	"mime"
	"strconv"
	"strings"
	"sync"
	"time"

	"understudy"
	"understudy/request"
	"understudy/upstream/body"
	"understudy/upstream/throttle"
)

// stream is a content that is being read. It is the io.ReadCloser of a MediaResponse or an ExchangeResponse. Only one
// goroutine may read, but any goroutine may close it.
type stream struct {
	c         *Client
	request   *request.MediaRequest
	ctx       context.Context
	cancel    context.CancelCauseFunc
	done      func()
	quiet     *throttle.Deadline
	body      io.ReadCloser
	isOutside bool  // whether a host outside the source sends the content
	left      int64 // the maximum number of bytes that may still follow
	broken    bool
	once      sync.Once
	hasSlot   bool
}

// Read returns the data that was received. The wait for data of the upstream has a time limit, but the pauses of the
// reader have none.
func (s *stream) Read(p []byte) (int, error) {
	if int64(len(p)) > s.left+1 {
		p = p[:s.left+1]
	}
	s.quiet.ResetCause(&throttle.LateError{What: "the content stalled: no more data", After: s.c.o.Stall}, s.c.o.Stall)
	n, err := s.body.Read(p)
	s.quiet.Stop()
	if s.left -= int64(n); s.left < 0 {
		n, err = 0, body.NewTooLarge(s.c.o.Source.Name, "max_media", s.c.media.limit)
	}
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, s.reportBroken(err)
}

// reportBroken reports once that a content ended before it was complete, unless its reader left.
func (s *stream) reportBroken(err error) error {
	err = s.c.credential.clean(throttle.FindCause(s.ctx, body.ReplaceEOF(err)))
	if s.broken || s.ctx.Err() != nil && !throttle.IsLate(s.ctx) {
		return err
	}
	s.broken = true
	s.c.counts.AddFailure(s.c.o.Now())
	if why := bodyFailure(err); !s.isOutside && why == understudy.FailUnreachable {
		s.c.reportFailure(s.request.Target.Key.URI, &understudy.UpstreamError{Why: why, Err: err}, false)
	}
	return err
}

// Close ends the request and frees its slot.
func (s *stream) Close() error {
	s.once.Do(func() {
		s.cancel(nil)
		if s.body != nil {
			_ = s.body.Close() // an error only means that the body was not read to its end
		}
		s.quiet.Stop()
		s.done()
		if s.hasSlot {
			<-s.c.media.slots
		}
	})
	return nil
}

const (
	defaultMedia = 1 << 30          // the default of Options.MaxMedia, in bytes
	mediaQueue   = 10 * time.Second // the maximum wait for the request budget and for a stream slot
)

// enter takes a stream slot. It returns an error if none is free in time.
func (w *originPolicy) enter(ctx context.Context) error {
	select {
	case w.slots <- struct{}{}:
		return nil
	case <-time.After(mediaQueue):
		return &throttle.QueueError{After: throttle.MinRetry}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxHeader is the maximum length in bytes of a header value that is forwarded.
const maxHeader = 256

// mediaType returns a Content-Type if it can be forwarded, else "".
func mediaType(text string) string {
	if _, _, err := mime.ParseMediaType(text); err != nil || len(text) > maxHeader || !isPrintable(text) {
		return ""
	}
	return text
}

// entityTag returns an ETag if it can be forwarded (RFC 9110, 8.8.3), else "".
func entityTag(text string) string {
	tag := strings.TrimPrefix(text, "W/")
	if len(tag) < 2 || len(text) > maxHeader || tag[0] != '"' || tag[len(tag)-1] != '"' || !isPrintable(tag) ||
		strings.Contains(tag[1:len(tag)-1], `"`) {
		return ""
	}
	return text
}

func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// contentRange returns a Content-Range in bytes if it can be forwarded (RFC 9110, 14.4), else "".
func contentRange(text string) string {
	part, size, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	if !ok || !strings.HasPrefix(text, "bytes ") || size != "*" && !isNumber(size) {
		return ""
	}
	if first, last, ok := strings.Cut(part, "-"); part != "*" && !(ok && isNumber(first) && isNumber(last)) {
		return ""
	}
	return text
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 63)
	return err == nil && text[0] != '+'
}
