// This file serves the media content of records to GET and HEAD.

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

// mediaStall is how long a caller may take to read 64 KiB of media content.
const mediaStall = 30 * time.Second

// variesByCaller is the value of Vary for media content, which is never compressed.
var variesByCaller = []string{"Authorization"}

// serveMedia checks the request with the gate and sends the content that the mirror opens. If the caller leaves,
// the upstream request is cancelled. After an error before the first byte, serveMedia sends an error response in
// upstream's format. After a later error it closes the connection.
func (v *exchange) serveMedia() error {
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
		m, err := v.proxy.o.Media.Open(ctx, v.mediaRequest())
		if !late.Stop() && err != nil {
			err = fmt.Errorf("proxy: %w", context.Cause(ctx))
		}
		return v.sendMedia(m, err)
	}
	return v.sendMedia(v.proxy.o.Media.Open(ctx, v.mediaRequest()))
}

// maxValidator is the maximum length of a condition (If-None-Match, If-Range) that is passed to upstream, in bytes.
const maxValidator = 1 << 10

// mediaRequest returns the request to the mirror.
func (v *exchange) mediaRequest() request.MediaRequest {
	page := request.Request{Target: v.target, AgeLimit: v.caller.Grant.MaxStale, Flow: v.caller.Flow}
	v.readDirectives(&page)
	a := request.MediaRequest{
		Target: v.target, Head: v.r.Method == http.MethodHead, NoCache: page.NoCache && !page.JoinOnly, MaxStale: maxAge(&page),
		OnlyIfCached: page.OnlyIfCached, Flow: page.Flow,
	}
	if tags := v.r.Header["If-None-Match"]; len(tags) == 1 && len(tags[0]) <= maxValidator {
		a.IfNoneMatch = tags[0]
	}
	if a.Head {
		return a // a range applies only to GET (RFC 9110, 14.2), so a HEAD request has none
	}
	if condition := v.r.Header.Get("If-Range"); len(condition) <= maxValidator {
		if a.Range = httprange.Range(v.r.Header); a.Range != "" {
			a.IfRange = condition
		}
	}
	return a
}

// sendMedia sends the content that the mirror opened.
func (v *exchange) sendMedia(m *request.MediaResponse, err error) error {
	if err != nil {
		return err
	}
	defer m.Close()
	v.setOriginFields(&request.Response{
		Outcome: m.Outcome, Age: m.Age, TTL: m.TTL, Stored: m.Stored, Joined: m.Joined,
		Detail: m.Detail, UpstreamTime: m.Upstream,
	})
	h := v.w.Header()
	h["Vary"] = variesByCaller
	switch m.Status {
	case http.StatusOK, http.StatusPartialContent:
		if err := v.logAction(understudy.ActionPlay, nil, ""); err != nil {
			return err
		}
	case http.StatusNotModified:
		if m.ETag != "" {
			h["Etag"] = []string{m.ETag}
		}
		v.send(m.Status, nil)
		return nil
	case http.StatusRequestedRangeNotSatisfiable:
		v.refuseRange(m.ContentRange)
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
		v.refuseRange(h.Get("Content-Range"))
	case err != nil:
		if v.r.Context().Err() != nil {
			v.line.Status = statusClientLeft
		}
		panic(http.ErrAbortHandler) // ends the connection, so that the client does not take a partial content as complete
	}
	return nil
}

// refuseRange answers a request for a range outside the content. size is the value of Content-Range, "bytes */N".
func (v *exchange) refuseRange(size string) {
	if size != "" {
		v.w.Header()["Content-Range"] = []string{size}
	}
	f := access.Failure{Word: access.Invalid, Status: http.StatusRequestedRangeNotSatisfiable, Message: outsideRange}
	jsonhttp.SignError(v.w.Header(), f.Status, f.Message)
	v.refuse(f)
}

const outsideRange = "the range lies outside the content"

// refuse sends an error in upstream's format and removes the fields that describe the content.
func (v *exchange) refuse(f access.Failure) {
	h := v.w.Header()
	for _, name := range []string{"Etag", "Last-Modified", "Content-Disposition", "Accept-Ranges"} {
		delete(h, name)
	}
	v.restrictContent()
	f.Path = v.target.Key.Path()
	body, contentType := access.Error(v.proxy.o.Source.Spec, f)
	h["Cache-Control"] = cachePrivate
	h["Content-Type"] = []string{contentType}
	h["Content-Length"] = []string{fmt.Sprint(len(body))}
	v.send(f.Status, body)
}
