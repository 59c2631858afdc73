// This file serves the routes of the feed and writes their errors.

package feed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
	"understudy/kit/jsonhttp"
)

// Routes returns the methods and paths that Handler serves.
func Routes() []string {
	return []string{"GET /-/feed", "GET /-/feed.json", "GET /-/webhooks", "POST /-/webhooks/{name}"}
}

func (f *Feed) addRoutes() {
	forms, _ := jsonhttp.NewFormProtection("") // cannot fail for an empty address
	hooks := &jsonapi.Options{Identify: f.authorizeCommand, Forms: forms,
		ForeignError: "this request comes from another site", Explain: f.explain,
		MaxBody: maxCommandBytes, RequireJSON: true, BodyError: `the request body is not valid; write {"after":N}, {"pause":true} or {}: `}
	f.mux = http.NewServeMux()
	f.mux.HandleFunc("GET /-/feed", func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, isJSONPreferred(r.Header["Accept"])) })
	f.mux.HandleFunc("GET /-/feed.json", func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, true) })
	f.mux.Handle("GET /-/webhooks", jsonapi.Handle(hooks, f.listHooks))
	f.mux.Handle("POST /-/webhooks/{name}", jsonapi.HandleBody(hooks, f.handleCommand))
}

// Handler returns the handler of Routes. It answers any other path with 404.
func (f *Feed) Handler() http.Handler { return f.mux }

// answerTime is the time limit for reading the changes of one answer, in addition to its wait.
const answerTime = 30 * time.Second

// serve checks a request for the feed and answers with a page or a stream.
func (f *Feed) serve(w http.ResponseWriter, r *http.Request, pages bool) {
	head := w.Header()
	head.Set("Cache-Control", "no-store, no-transform")
	head.Set("Vary", "Authorization, Accept")
	head.Set("X-Content-Type-Options", "nosniff")
	ctx, cancel := context.WithTimeout(r.Context(), answerTime)
	defer cancel()
	if err := jsonapi.CheckGet(w, r, "question"); err != nil {
		f.Refuse(w, r, err)
		return
	}
	s, err := f.subscribe(ctx, r, pages)
	if err != nil {
		f.Refuse(w, r, err)
		return
	}
	if r.Method == http.MethodHead {
		head.Set("Content-Type", "text/event-stream")
		if pages {
			head.Set("Content-Type", "application/json")
		}
		return
	}
	if err := f.admit(r, s, !pages || s.query.wait > 0); err != nil {
		f.Refuse(w, r, err)
		return
	}
	if pages {
		s.answerPage(ctx, w, r)
		return
	}
	f.stream(w, r, s)
}

// isJSONPreferred reports whether the Accept header prefers application/json to text/event-stream (RFC 9110, 12.5.1).
func isJSONPreferred(accept []string) bool {
	json, events := 0.0, 0.0
	for _, field := range accept {
		for part := range strings.SplitSeq(field, ",") {
			name, params, _ := strings.Cut(part, ";")
			q := 1.0
			for p := range strings.SplitSeq(params, ";") {
				if text, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(p)), "q="); ok {
					if v, err := strconv.ParseFloat(text, 64); err == nil {
						q = v
					}
				}
			}
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "application/json":
				json = max(json, q)
			case "text/event-stream":
				events = max(events, q)
			}
		}
	}
	return json > events
}

// errFull is the error for a subscriber that exceeds the limit of subscribers.
var errFull = errors.New("feed: too many subscribers; try again in a moment")

// fullRetryAfter is the Retry-After header of a refused subscriber, in seconds.
const fullRetryAfter = "5"

// Explain returns the status and the text of the response to an error. It hides and logs errors of the store.
func (f *Feed) Explain(r *http.Request, err error) (status int, text string) {
	a := jsonapi.Refusal{Status: understudy.OwnPathStatus(err), Error: understudy.PlainText(err)}
	f.explain(r, err, &a)
	return a.Status, a.Error
}

// Refuse answers a request with an error, as GET /-/feed does.
func (f *Feed) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	(&jsonapi.Options{Explain: f.explain}).Refuse(w, r, err)
}

// explain completes an error response: it sets Retry-After and hides the text of errors of the store.
func (f *Feed) explain(r *http.Request, err error, a *jsonapi.Refusal) {
	if a.Status != http.StatusServiceUnavailable {
		return
	}
	if a.RetryAfter = fullRetryAfter; errors.Is(err, errFull) {
		return
	}
	if r.Context().Err() == nil {
		f.o.Logger.Error("feed", "err", err)
	}
	a.Error = "the changes cannot be read at the moment; the server's log has the reason"
}

// authorizeCommand returns the caller of a command. It permits the local holder of the token, and people who see
// everything.
func (f *Feed) authorizeCommand(r *http.Request) (understudy.Caller, error) {
	c, err := f.Identify(r)
	if err == nil && (c.Role() != understudy.RoleAll || c.Source != "" && len(f.names) > 1) {
		err = fmt.Errorf("feed: %w: only the role all can see webhooks", understudy.ErrForbidden)
	}
	return c, err
}
