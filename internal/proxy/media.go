// Media: GET and HEAD of the content of a record.

package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/kit/header"
	"understudy/kit/httprange"
	"understudy/kit/jsonhttp"
	"understudy/request"
)

// mediaStall is how long a caller may take over 64 KiB of a content.
const mediaStall = 30 * time.Second

// variesByCaller alone: contents are not compressed.
var variesByCaller = []string{"Authorization"}

// medium asks the gate, then the mirror, and sends what it opened. A caller
// that leaves ends what upstream sends. What goes wrong before the first byte
// is an error in upstream's shape; later the connection is cut.
func (v *exchange) medium() error {
	if err := v.proxy.o.Gate.CheckMedia(v.caller, v.target); err != nil {
		return err
	}
	if v.proxy.o.Media == nil {
		return fmt.Errorf("proxy: contents: %w", understudy.ErrNotFound)
	}
	if err := v.proxy.o.Gate.CheckFind(v.r.Context(), v.caller, v.target, v.proxy.o.Mirror.Answer); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(v.r.Context())
	defer cancel(nil)
	if wait, ok := header.Wait(v.r.Header["Prefer"]); ok {
		late := time.AfterFunc(wait, func() { cancel(context.DeadlineExceeded) })
		defer late.Stop()
		m, err := v.proxy.o.Media.Open(ctx, v.mediaAsk())
		if !late.Stop() && err != nil {
			err = fmt.Errorf("proxy: %w", context.Cause(ctx))
		}
		return v.sendMedium(m, err)
	}
	return v.sendMedium(v.proxy.o.Media.Open(ctx, v.mediaAsk()))
}

// maxValidator bounds the conditions that are passed on, in bytes.
const maxValidator = 1 << 10

// mediaAsk is what the request asks the mirror.
func (v *exchange) mediaAsk() request.MediaRequest {
	page := request.Request{Target: v.target, AgeLimit: v.caller.Grant.MaxStale, Flow: v.caller.Flow}
	v.freshen(&page)
	a := request.MediaRequest{
		Target: v.target, Head: v.r.Method == http.MethodHead, NoCache: page.NoCache && !page.JoinOnly, MaxStale: oldest(&page),
		OnlyIfCached: page.OnlyIfCached, Flow: page.Flow,
	}
	if tags := v.r.Header["If-None-Match"]; len(tags) == 1 && len(tags[0]) <= maxValidator {
		a.IfNoneMatch = tags[0]
	}
	if a.Head {
		return a // a range is of a GET (RFC 9110, 14.2)
	}
	if condition := v.r.Header.Get("If-Range"); len(condition) <= maxValidator {
		if a.Range = httprange.Range(v.r.Header); a.Range != "" {
			a.IfRange = condition
		}
	}
	return a
}

// sendMedium answers with what the mirror opened.
func (v *exchange) sendMedium(m *request.MediaResponse, err error) error {
	if err != nil {
		return err
	}
	defer m.Close()
	v.start(&request.Response{
		Outcome: m.Outcome, Age: m.Age, TTL: m.TTL, Stored: m.Stored, Joined: m.Joined,
		Detail: m.Detail, UpstreamTime: m.Upstream,
	})
	h := v.w.Header()
	h["Vary"] = variesByCaller
	switch m.Status {
	case http.StatusOK, http.StatusPartialContent:
		if err := v.audit(understudy.ActionPlay, nil, ""); err != nil {
			return err
		}
	case http.StatusNotModified:
		if m.ETag != "" {
			h["Etag"] = []string{m.ETag}
		}
		v.send(m.Status, nil)
		return nil
	case http.StatusRequestedRangeNotSatisfiable:
		v.noRange(m.ContentRange)
		return nil
	default:
		v.refuse(access.Failure{Word: access.NotFound, Status: m.Status})
		return nil
	}
	sent, err := httprange.Send(v.w, v.r, httprange.Content{
		File: m.File, Body: m, Status: m.Status, Size: m.Size, Range: m.ContentRange,
		Type: m.ContentType, ETag: m.ETag, Modified: m.Modified, Shown: v.target.Media.Types,
		Deadline: func() time.Time { return v.proxy.o.Now().Add(mediaStall) },
	})
	v.sent, v.line.Status, v.line.Bytes = sent.Status != 0, sent.Status, sent.Bytes
	switch {
	case errors.Is(err, httprange.ErrRange):
		v.noRange(h.Get("Content-Range"))
	case err != nil:
		if v.r.Context().Err() != nil {
			v.line.Status = statusGone
		}
		panic(http.ErrAbortHandler) // never a part that looks whole
	}
	return nil
}

// noRange answers a range that lies outside; size is "bytes */N".
func (v *exchange) noRange(size string) {
	if size != "" {
		v.w.Header()["Content-Range"] = []string{size}
	}
	f := access.Failure{Word: access.Invalid, Status: http.StatusRequestedRangeNotSatisfiable, Message: outsideRange}
	jsonhttp.SignError(v.w.Header(), f.Status, f.Message)
	v.refuse(f)
}

const outsideRange = "the range lies outside the content"

// refuse answers in upstream's shape; what was said of a content is taken back.
func (v *exchange) refuse(f access.Failure) {
	h := v.w.Header()
	for _, name := range []string{"Etag", "Last-Modified", "Content-Disposition", "Accept-Ranges"} {
		delete(h, name)
	}
	v.confine()
	f.Path = v.target.Key.Path()
	body, contentType := access.Error(v.proxy.o.Source.Spec, f)
	h["Cache-Control"] = private
	h["Content-Type"] = []string{contentType}
	h["Content-Length"] = []string{fmt.Sprint(len(body))}
	v.send(f.Status, body)
}
