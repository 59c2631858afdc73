// Media: the addresses under which a page's audio and images are played, and
// what answers there.

package viewer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"understudy"
	"understudy/kit/accesslog"
	"understudy/kit/content"
)

// mediaStall is how long a browser may take over 64 KiB.
const mediaStall = 30 * time.Second

// serveMedia answers a browser that plays or shows a content. It may take as
// long as the browser keeps taking it, so the viewer's deadline does not hold.
func serveMedia(v *Visitor) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		q, end := v.begin(ctx, w, r)
		defer end()
		defer cancel()
		if err := (mediaRequest{q}).media(); err != nil {
			q.fail(err)
		}
	})
}

var errMediaGone = notFound("This address is no longer good", "It was made for another session, or more than a quarter of an hour ago. Open the record again.", "/")

// mediaRequest is one request for a content.
type mediaRequest struct{ *exchange }

// media answers, or says why not; nothing has been sent when it returns an
// error.
func (q mediaRequest) media() (err error) {
	if q.caller, err = q.v.Callers.Person(q.r); err != nil {
		return err
	}
	q.known = true
	line := accesslog.Of(q.ctx)
	line.Caller = q.caller.Name
	key, bucket, ok := q.v.Seals.open(q.r.PathValue("token"), sessionOf(q.r), q.caller.Name, bucketOf(q.start))
	if !ok || q.v.Media == nil || q.v.byName[key.Source] == nil {
		return errMediaGone
	}
	q.source = q.v.byName[key.Source]
	t, err := q.source.Spec.Target(key.Source, key.Path(), key.Query())
	if err != nil {
		return err
	}
	if err := q.gate.Media(q.caller, t); err != nil {
		return err
	}
	switch err := q.gate.Find(q.ctx, q.caller, t, q.v.Mirror.Page); {
	case errors.Is(err, understudy.ErrNotFound):
		return errMediaGone
	case err != nil:
		return err
	}
	m, err := q.v.Media.Open(q.ctx, q.mediaAsk(t))
	if err != nil {
		return err
	}
	defer m.Close()
	line.How, line.Upstream = m.How.String(), m.Upstream
	return q.sendMedium(t, m, time.Unix((bucket+2)*int64(mediaBucket/time.Second), 0).Sub(q.start))
}

// mediaAsk is what the browser's request asks the mirror.
func (q mediaRequest) mediaAsk(t *understudy.Target) understudy.MediaAsk {
	a := understudy.MediaAsk{Target: t, Head: q.r.Method == http.MethodHead, NoCache: forced(q.r), Turn: q.caller.Turn}
	if a.Range = content.Range(q.r.Header); a.Range != "" && !a.Head {
		a.IfRange = q.r.Header.Get("If-Range")
	}
	if q.caller.Grant != nil {
		a.MaxStale = q.caller.Grant.MaxStale
	}
	return a
}

// sendMedium sends what the mirror opened; left is how long the address is
// still good.
func (q mediaRequest) sendMedium(t *understudy.Target, m *understudy.Medium, left time.Duration) error {
	h := q.w.Header()
	switch m.Status {
	case http.StatusOK, http.StatusPartialContent:
	case http.StatusRequestedRangeNotSatisfiable:
		return q.noRange(m.ContentRange)
	default:
		return notFound("This "+t.Kind.One+" has no content any more", "It may have been deleted, or it is not ready yet.", "")
	}
	h.Set("Cache-Control", "private, max-age="+strconv.Itoa(max(0, int(left/time.Second))))
	if m.Detail != "" {
		h.Set("Cache-Control", "private, no-cache") // perhaps somebody has deleted it meanwhile
	}
	_, err := content.Send(q.w, q.r, content.Content{
		File: m.File, Body: m, Status: m.Status, Size: m.Size, Range: m.ContentRange,
		Type: m.ContentType, ETag: m.ETag, Modified: m.Modified, Shown: t.Media.Types,
		Deadline: func() time.Time { return q.v.Now().Add(mediaStall) },
	})
	switch {
	case errors.Is(err, content.ErrRange):
		return q.noRange(h.Get("Content-Range"))
	case err != nil:
		panic(http.ErrAbortHandler) // the rest will not come; a part must not look whole
	}
	return nil
}

// noRange answers a range beyond the end.
func (q mediaRequest) noRange(size string) error {
	h := q.w.Header()
	for _, name := range []string{"Content-Length", "Content-Disposition", "Etag", "Last-Modified"} {
		h.Del(name)
	}
	h.Set("Cache-Control", "private, no-store")
	if size != "" {
		h.Set("Content-Range", size)
	}
	http.Error(q.w, fmt.Sprintf("%d range not satisfiable", http.StatusRequestedRangeNotSatisfiable), http.StatusRequestedRangeNotSatisfiable)
	return nil
}
