// Media: the addresses under which a page's audio and images are played, and
// what answers there.

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

// mediaStall is how long a browser may take over 64 KiB.
const mediaStall = 30 * time.Second

// serveMedia answers a browser that plays or shows a content. It may take as
// long as the browser keeps taking it, so the viewer's deadline does not hold.
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

var errMediaGone = page.NotFound("This address is no longer good",
	"It was made for another session, or more than a quarter of an hour ago. Open the record again.", "/")

// sendMedia answers, or says why not; nothing has been sent when it returns an
// error.
func sendMedia(q *page.Exchange) (err error) {
	if q.Rights.Caller, err = q.V.Options.Callers.IdentifyPerson(q.R); err != nil {
		return err
	}
	q.Rights.Known = true
	line := accesslog.LineOf(q.Ctx)
	line.Caller = q.Rights.Caller.Name
	token, session, now := q.R.PathValue("token"), page.SessionOf(q.R), page.BucketOf(q.Clock.Start)
	key, bucket, ok := q.V.Options.Seals.Open(token, session, q.Rights.Caller.Name, now)
	if !ok || q.V.Options.Media == nil || q.V.ByName[key.Source] == nil {
		return errMediaGone
	}
	q.Source = q.V.ByName[key.Source]
	t, err := q.Source.Spec.Target(key.Source, key.Path(), key.Query())
	if err != nil {
		return err
	}
	if err := q.Rights.Gate.Media(q.Rights.Caller, t); err != nil {
		return err
	}
	switch err := q.Rights.Gate.Find(q.Ctx, q.Rights.Caller, t, q.V.Options.Mirror.Answer); {
	case errors.Is(err, understudy.ErrNotFound):
		return errMediaGone
	case err != nil:
		return err
	}
	m, err := q.V.Options.Media.Open(q.Ctx, askMedia(q, t))
	if err != nil {
		return err
	}
	defer m.Close()
	line.Outcome, line.Upstream = m.Outcome.String(), m.Upstream
	return sendMedium(q, t, m, time.Unix((bucket+2)*int64(page.MediaBucket/time.Second), 0).Sub(q.Clock.Start))
}

// askMedia returns what the browser's request asks the mirror.
func askMedia(q *page.Exchange, t *spec.Target) request.MediaRequest {
	a := request.MediaRequest{Target: t, Head: q.R.Method == http.MethodHead, NoCache: page.Forced(q.R), Flow: q.Rights.Caller.Flow}
	if a.Range = httprange.Range(q.R.Header); a.Range != "" && !a.Head {
		a.IfRange = q.R.Header.Get("If-Range")
	}
	if q.Rights.Caller.Grant != nil {
		a.MaxStale = q.Rights.Caller.Grant.MaxStale
	}
	return a
}

// sendMedium sends what the mirror opened; left is how long the address is
// still good.
func sendMedium(q *page.Exchange, t *spec.Target, m *request.MediaResponse, left time.Duration) error {
	h := q.Reply.W.Header()
	switch m.Status {
	case http.StatusOK, http.StatusPartialContent:
		e := understudy.AuditEntry{Action: understudy.ActionPlay, Kind: t.Kind.Name, IDs: []string{t.ID}}
		if err := page.Audit(q, e); err != nil {
			return err
		}
	case http.StatusRequestedRangeNotSatisfiable:
		return refuseRange(q, m.ContentRange)
	default:
		return page.NotFound("This "+t.Kind.One+" has no content any more", "It may have been deleted, or it is not ready yet.", "")
	}
	h.Set("Cache-Control", "private, max-age="+strconv.Itoa(max(0, int(left/time.Second))))
	if m.Detail != "" {
		h.Set("Cache-Control", "private, no-cache") // it may have been deleted meanwhile
	}
	_, err := httprange.Send(q.Reply.W, q.R, httprange.Content{
		File: m.File, Body: m, Status: m.Status, Size: m.Size, Range: m.ContentRange,
		Type: m.ContentType, ETag: m.ETag, Modified: m.Modified, Shown: t.Media.Types,
		Deadline: func() time.Time { return q.V.Options.Now().Add(mediaStall) },
	})
	switch {
	case errors.Is(err, httprange.ErrRange):
		return refuseRange(q, h.Get("Content-Range"))
	case err != nil:
		panic(http.ErrAbortHandler) // the rest will not come; a part must not look whole
	}
	return nil
}

// refuseRange answers a range beyond the end.
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
