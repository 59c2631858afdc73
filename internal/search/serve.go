// This file serves the routes below /-/search.

package search

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/jsonapi"
	"understudy/internal/query"
	"understudy/internal/search/lang"
	"understudy/kit/header"
	"understudy/kit/jsonhttp"
)

// HandlerOptions are the dependencies and settings of a handler.
type HandlerOptions struct {
	Searcher *Searcher
	Callers  jsonapi.Callers
	// Audit records searches and exports before their answers are sent; if nil, nothing is recorded.
	Audit understudy.Auditor
	// Token gives a local request that carries it access to everything. An empty token gives no access.
	Token     string
	PublicURL string // the viewer's origin as browsers know it, or "" for the host of the request
	Logger    *slog.Logger
}

// Routes returns the methods and paths that a handler serves.
func Routes() []string {
	return []string{"GET /-/search", "GET /-/search/saved", "POST /-/search/saved", "DELETE /-/search/saved/{name}"}
}

type handler struct {
	o         HandlerOptions
	s         *Searcher
	api, find jsonapi.Options
}

// NewHandler returns the handler of Routes. It refuses requests from pages of other sites.
func NewHandler(o HandlerOptions) (http.Handler, error) {
	if o.Searcher == nil || o.Callers == nil {
		return nil, errors.New("search: a handler needs a searcher and callers")
	}
	understudy.SetDefaults(&o.Logger, nil)
	forms, err := jsonhttp.NewFormProtection(o.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("search: public_url: %w", err)
	}
	h := &handler{o: o, s: o.Searcher}
	h.api = jsonapi.Options{Identify: h.identify, Forms: forms, ForeignError: "this request comes from another site",
		Vary:    "Authorization, Accept",
		Timeout: o.Searcher.o.Limits.Time, MaxBody: maxBody, RequireJSON: true, Explain: h.explain,
		BodyError: `the request body is not valid; write {"name":"…","q":"…"}: `}
	h.find, h.find.RequestNoun = h.api, "search"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/search", h.search)
	mux.Handle("GET /-/search/saved", jsonapi.Handle(&h.api, h.listSaved))
	mux.Handle("POST /-/search/saved", jsonapi.HandleBody(&h.api, h.save))
	mux.Handle("DELETE /-/search/saved/{name}", jsonapi.Handle(&h.api, h.forget))
	return mux, nil
}

const (
	maxQuery = 16 << 10 // the maximum length of a URL query in bytes
	maxBody  = 16 << 10 // the maximum length of a request body in bytes
)

// search answers GET /-/search: a search, a sum or an export.
func (h *handler) search(w http.ResponseWriter, r *http.Request) {
	c, err := h.find.Admit(w, r)
	if err == nil {
		err = h.answer(w, r, c)
	}
	if err != nil {
		h.find.Refuse(w, r, err)
	}
}

// answer answers a request. If it returns an error, nothing was sent.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, c understudy.Caller) error {
	if r.URL.Query().Has("sum") {
		return h.answerSum(w, r, c)
	}
	a, form, err := readRequest(r)
	if err != nil {
		return err
	}
	if form != formJSON {
		return h.export(w, r, c, a, form)
	}
	result, err := h.s.Find(r.Context(), c, a)
	if err != nil {
		return err
	}
	ids := make([]string, 0, len(result.Hits))
	for i := range result.Hits {
		ids = append(ids, result.Hits[i].ID)
	}
	e := understudy.AuditEntry{Action: understudy.ActionSearch, IDs: ids, Rows: len(ids)}
	if err := h.recordAudit(r.Context(), c, a, e); err != nil {
		return err
	}
	h.s.setColumns(result)
	jsonhttp.Write(w, http.StatusOK, result)
	return nil
}

// recordAudit adds the request to an audit entry and records the entry.
func (h *handler) recordAudit(ctx context.Context, c understudy.Caller, a query.SearchRequest, e understudy.AuditEntry) error {
	e.Source = a.Source
	if a.Text != "" {
		e.Values = append(e.Values, a.Text)
	}
	if len(a.Kinds) == 1 {
		e.Kind = a.Kinds[0]
	}
	return jsonapi.RecordAudit(ctx, h.o.Audit, c, e)
}

// The formats of an answer.
const (
	formJSON  = "json"
	formLines = "jsonl"
	formXML   = "xml"
)

// readRequest reads the parameters of a search. It returns ErrInvalid for wrong parameters.
func readRequest(r *http.Request) (a query.SearchRequest, form string, err error) {
	values, err := parseParameters(r, "q", "kind", "source", "sort", "facets", "cursor", "limit", "format")
	if err != nil {
		return a, "", err
	}
	a = query.SearchRequest{Text: values.Get("q"), Source: values.Get("source"), Kinds: values["kind"], Sort: values.Get("sort"),
		Cursor: values.Get("cursor")}
	if text := values.Get("facets"); text != "" {
		if a.Facets, err = strconv.ParseBool(text); err != nil {
			return a, "", newInvalid("facets=%s: write true or false", understudy.Clip(text))
		}
	}
	if a.Limit, err = readLimit(values, query.MaxHits); err != nil {
		return a, "", err
	}
	form = values.Get("format")
	switch form {
	case formJSON, formLines, formXML:
	case "":
		form = acceptedForm(r.Header["Accept"])
	default:
		return a, "", newInvalid("format=%s: write json, jsonl or xml", understudy.Clip(form))
	}
	return a, form, nil
}

// readLimit reads the parameter limit. It returns 0 if there is none.
func readLimit(values url.Values, most int) (limit int, err error) {
	if text := values.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > most {
			return 0, newInvalid("limit=%s is not allowed; write a number from 1 to %d", understudy.Clip(text), most)
		}
	}
	return limit, nil
}

// parseParameters returns the parameters of a request. It returns ErrInvalid for an unknown, empty or repeated
// parameter. Only kind and by may be repeated.
func parseParameters(r *http.Request, known ...string) (url.Values, error) {
	if len(r.URL.RawQuery) > maxQuery {
		return nil, newInvalid("the query is longer than %d bytes", maxQuery)
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, newInvalid("the query string cannot be parsed: %w", err)
	}
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, newInvalid("unknown parameter %q%s", understudy.Clip(name), lang.Hint(name, known))
		case name != "kind" && name != "by" && len(all) > 1:
			return nil, newInvalid("%s appears %d times", name, len(all))
		case name != "q" && slices.Contains(all, ""):
			return nil, newInvalid("%s is empty; leave it out", name)
		}
	}
	return values, nil
}

// acceptedForm returns the format with the highest weight in an Accept header (RFC 9110, 12.5.1), or the first of
// several equal formats.
func acceptedForm(accept []string) string {
	best, highest := formJSON, 0
	for item := range header.Items(accept) {
		media, weight := header.Weight(item)
		if form := mediaForm(strings.ToLower(media)); form != "" && weight > highest {
			best, highest = form, weight
		}
	}
	return best
}

// mediaForm returns the format for a media type, or "" if there is none.
func mediaForm(media string) string {
	switch media {
	case "application/json", "*/*", "application/*", "text/html":
		return formJSON
	case "application/x-ndjson", "application/jsonl", "application/jsonlines":
		return formLines
	case "application/xml", "text/xml":
		return formXML
	}
	return ""
}

// identify returns the caller of a request: a person, or the local holder of the token.
func (h *handler) identify(r *http.Request) (understudy.Caller, error) {
	return jsonapi.IdentifyPerson(r, h.o.Token, h.o.Callers.IdentifyPerson)
}

// The Retry-After headers of a refused search and of a refused export, in seconds.
const (
	busyRetryAfter   = "1"
	exportRetryAfter = "5"
)

// explain completes an error response with the position of a syntax error, or with the time when to try again.
func (h *handler) explain(r *http.Request, err error, a *jsonapi.Refusal) {
	var wrong *query.SyntaxError
	switch {
	case errors.As(err, &wrong):
		a.Error, a.At, a.End, a.Character = wrong.Why, &wrong.At, &wrong.End, &wrong.Character
	case a.Status == http.StatusServiceUnavailable:
		a.RetryAfter = busyRetryAfter
		if errors.Is(err, errExports) || errors.Is(err, errOwnExports) {
			a.RetryAfter = exportRetryAfter
		}
		if at := strings.LastIndex(a.Error, understudy.ErrIndexing.Error()); at >= 0 && errors.Is(err, understudy.ErrIndexing) {
			a.Error = a.Error[at:]
		} else if errors.Is(err, understudy.ErrNotAudited) {
			a.Error = understudy.ErrNotAudited.Error() + ": the audit log can't be written; the server's log has the reason"
		} else if errors.Is(err, understudy.ErrDamaged) {
			h.o.Logger.Error("search", "err", err)
			a.Error = understudy.ErrDamaged.Error()
		} else if busy := busyError(""); !errors.As(err, &busy) {
			if r.Context().Err() == nil {
				h.o.Logger.Error("search", "err", err)
			}
			a.Error = "the records cannot be read at the moment; the server's log has the reason"
		}
	}
}

// unixTime returns a time in Unix seconds as a time.Time; 0 becomes the zero time.
func unixTime(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(at, 0).UTC()
}
