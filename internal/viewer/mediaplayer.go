// The addresses of audio and images on the pages, and their handler.

package viewer

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"understudy"
	"understudy/internal/viewer/page"
	"understudy/kit/accesslog"
	"understudy/kit/httprange"
	"understudy/request"
	"understudy/spec"
)

// mediaChunkTimeout is how long a browser may take to receive 64 KiB of audio or an image.
const mediaChunkTimeout = 30 * time.Second

// serveMedia returns the handler that sends audio and images to browsers. Such a response may take longer than the
// viewer's request deadline, as long as the browser keeps reading.
func serveMedia(v *page.Visitor) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		q, end := v.Begin(ctx, w, r)
		defer end()
		defer cancel()
		if err := sendMedia(q); err != nil {
			q.Fail(err)
		}
	})
}

var errMediaExpired = page.NewNotFound("This link has expired",
	"It belongs to another session, or is more than 15 minutes old. Open the record again.", "/")

// sendMedia sends the audio or image that the address names. If it returns an error, it has sent nothing.
func sendMedia(q *page.Exchange) (err error) {
	if q.Rights.Caller, err = q.V.Options.Callers.IdentifyPerson(q.R); err != nil {
		return err
	}
	q.Rights.HasCaller = true
	line := accesslog.LineOf(q.Ctx)
	line.Caller = q.Rights.Caller.Name
	token, session, now := q.R.PathValue("token"), page.SessionOf(q.R), page.BucketOf(q.Clock.Start)
	key, bucket, ok := q.V.Options.Seals.Open(token, session, q.Rights.Caller.Name, now)
	if !ok || q.V.Options.Media == nil || q.V.ByName[key.Source] == nil {
		return errMediaExpired
	}
	q.Source = q.V.ByName[key.Source]
	t, err := q.Source.Spec.Resolve(key.Source, key.Path(), key.Query())
	if err != nil {
		return err
	}
	if err := q.Rights.Gate.CheckMedia(q.Rights.Caller, t); err != nil {
		return err
	}
	switch err := q.Rights.Gate.CheckFind(q.Ctx, q.Rights.Caller, t, q.V.Options.Mirror.Answer); {
	case errors.Is(err, understudy.ErrNotFound):
		return errMediaExpired
	case err != nil:
		return err
	}
	m, err := q.V.Options.Media.Open(q.Ctx, newMediaRequest(q, t))
	if err != nil {
		return err
	}
	defer m.Close()
	line.Outcome, line.Upstream = m.Outcome.String(), m.Upstream
	return sendContent(q, t, m, time.Unix((bucket+2)*int64(page.MediaBucket/time.Second), 0).Sub(q.Clock.Start))
}

func newMediaRequest(q *page.Exchange, t *spec.Target) request.MediaRequest {
	a := request.MediaRequest{Target: t, Head: q.R.Method == http.MethodHead, NoCache: page.IsForcedReload(q.R), Flow: q.Rights.Caller.Flow}
	if a.Range = httprange.Range(q.R.Header); a.Range != "" && !a.Head {
		a.IfRange = q.R.Header.Get("If-Range")
	}
	if q.Rights.Caller.Grant != nil {
		a.MaxStale = q.Rights.Caller.Grant.MaxStale
	}
	return a
}

// sendContent sends the audio or image that the mirror opened. left is the time until the address of the content expires.
func sendContent(q *page.Exchange, t *spec.Target, m *request.MediaResponse, left time.Duration) error {
	h := q.Reply.W.Header()
	switch m.Status {
	case http.StatusOK, http.StatusPartialContent:
		e := understudy.AuditEntry{Action: understudy.ActionPlay, Kind: t.Kind.Name, IDs: []string{t.ID}}
		if err := page.WriteAudit(q, e); err != nil {
			return err
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return refuseRange(q, m.ContentRange)
	default:
		return page.NewNotFound("This "+t.Kind.Singular+" has no content any more", "It may have been deleted, or it is not ready yet.", "")
	}
	h.Set("Cache-Control", "private, max-age="+strconv.Itoa(max(0, int(left/time.Second))))
	if m.Detail != "" {
		// the browser must ask again before it reuses the content, which may have been deleted in the meantime
		h.Set("Cache-Control", "private, no-cache")
	}
	_, err := httprange.Send(q.Reply.W, q.R, httprange.Content{
		File: m.File, Body: m, Status: m.Status, Size: m.Size, Range: m.ContentRange,
		Type: m.ContentType, ETag: m.ETag, Modified: m.Modified, Shown: t.Media.Types,
		Deadline: func() time.Time { return q.V.Options.Now().Add(mediaChunkTimeout) },
	})
	switch {
	case errors.Is(err, httprange.ErrRange):
		return refuseRange(q, h.Get("Content-Range"))
	case err != nil:
		// the rest of the content cannot be read; aborting tells the client that the response is incomplete
		panic(http.ErrAbortHandler)
	}
	return nil
}

// refuseRange answers a range request that begins after the end of the content.
func refuseRange(q *page.Exchange, size string) error {
	h := q.Reply.W.Header()
	for _, name := range []string{"Content-Length", "Content-Disposition", "Etag", "Last-Modified"} {
		h.Del(name)
	}
	h.Set("Cache-Control", "private, no-store")
	if size != "" {
		h.Set("Content-Range", size)
	}
	const status = http.StatusRequestedRangeNotSatisfiable
	http.Error(q.Reply.W, strconv.Itoa(status)+" range not satisfiable", status)
	return nil
}
