// Serve: /-/search for programs, and what errors look like.

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
	"understudy/kit/jsonhttp"
)

// Callers finds the caller of a request. callers.Book implements it.
type Callers interface {
	IdentifyPerson(r *http.Request) (understudy.Caller, error)
}

// HandlerOptions are what a handler is made of.
type HandlerOptions struct {
	Searcher *Searcher
	Callers  Callers
	// Audit lists searches and exports, before their answers; nil: nothing is listed.
	Audit understudy.Auditor
	// Token lets a request from this machine that carries it see everything; "": no request.
	Token     string
	PublicURL string // the origin browsers know the viewer by, "" for its own
	Logger    *slog.Logger
}

// Routes are the methods and paths a handler serves.
func Routes() []string {
	return []string{"GET /-/search", "GET /-/search/saved", "POST /-/search/saved", "DELETE /-/search/saved/{name}"}
}

type handler struct {
	o         HandlerOptions
	s         *Searcher
	api, find jsonapi.Options
}

// NewHandler makes the handler of Routes. It refuses requests of pages of other sites.
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
	h.api = jsonapi.Options{Who: h.who, Forms: forms, Foreign: "a page of another site asks", Vary: "Authorization, Accept",
		Time: o.Searcher.o.Limits.Time, MaxBody: maxBody, JSON: true, Explain: h.explain,
		Body: `the body is not what is expected, {"name":"…","q":"…"}: `}
	h.find, h.find.What = h.api, "search"
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/search", h.search)
	mux.Handle("GET /-/search/saved", jsonapi.Handle(&h.api, h.saved))
	mux.Handle("POST /-/search/saved", jsonapi.HandleBody(&h.api, h.save))
	mux.Handle("DELETE /-/search/saved/{name}", jsonapi.Handle(&h.api, h.forget))
	return mux, nil
}

const (
	maxQuery = 16 << 10 // bytes of a request's query
	maxBody  = 16 << 10
)

// search answers one search or a sum, or streams an export.
func (h *handler) search(w http.ResponseWriter, r *http.Request) {
	c, err := h.find.Admit(w, r)
	if err == nil {
		err = h.answer(w, r, c)
	}
	if err != nil {
		h.find.Refuse(w, r, err)
	}
}

// answer answers a request, or returns the error that is to be its answer.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, c understudy.Caller) error {
	if r.URL.Query().Has("sum") {
		return h.sums(w, r, c)
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
	if err := h.audit(r.Context(), c, a, e); err != nil {
		return err
	}
	h.s.setColumns(result)
	jsonhttp.Write(w, http.StatusOK, result)
	return nil
}

// audit lists what a caller does with a search.
func (h *handler) audit(ctx context.Context, c understudy.Caller, a query.SearchRequest, e understudy.AuditEntry) error {
	e.Source = a.Source
	if a.Text != "" {
		e.Values = append(e.Values, a.Text)
	}
	if len(a.Kinds) == 1 {
		e.Kind = a.Kinds[0]
	}
	return jsonapi.Audit(ctx, h.o.Audit, c, e)
}

// The forms of an answer.
const (
	formJSON  = "json"
	formLines = "jsonl"
	formXML   = "xml"
)

// readRequest reads the parameters of a search. Errors are ErrInvalid.
func readRequest(r *http.Request) (a query.SearchRequest, form string, err error) {
	values, err := parameters(r, "q", "kind", "source", "sort", "facets", "cursor", "limit", "format")
	if err != nil {
		return a, "", err
	}
	a = query.SearchRequest{Text: values.Get("q"), Source: values.Get("source"), Kinds: values["kind"], Sort: values.Get("sort"),
		Cursor: values.Get("cursor")}
	if text := values.Get("facets"); text != "" {
		if a.Facets, err = strconv.ParseBool(text); err != nil {
			return a, "", invalid("facets=%s: write true or false", understudy.Clip(text))
		}
	}
	if text := values.Get("limit"); text != "" {
		if a.Limit, err = strconv.Atoi(text); err != nil || a.Limit < 1 || a.Limit > query.MaxHits {
			return a, "", invalid("limit=%s: want 1 to %d", understudy.Clip(text), query.MaxHits)
		}
	}
	form = values.Get("format")
	switch form {
	case formJSON, formLines, formXML:
	case "":
		form = accepted(r.Header["Accept"])
	default:
		return a, "", invalid("format=%s: write json, jsonl or xml", understudy.Clip(form))
	}
	return a, form, nil
}

// parameters are those of a request. One that is not known, empty or, but for kind and by, there twice is ErrInvalid.
func parameters(r *http.Request, known ...string) (url.Values, error) {
	if len(r.URL.RawQuery) > maxQuery {
		return nil, invalid("the query is longer than %d bytes", maxQuery)
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the query cannot be read: %w", err)
	}
	for name, all := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, invalid("unknown parameter %q%s", understudy.Clip(name), lang.Hint(name, known))
		case name != "kind" && name != "by" && len(all) > 1:
			return nil, invalid("%s is there %d times", name, len(all))
		case name != "q" && slices.Contains(all, ""):
			return nil, invalid("%s is empty; leave it out", name)
		}
	}
	return values, nil
}

// accepted is the form with the greatest weight in an Accept header (RFC 9110, 12.5.1), the first of equal ones.
func accepted(accept []string) string {
	best, most := formJSON, 0.0
	for _, field := range accept {
		for part := range strings.SplitSeq(field, ",") {
			name, params, _ := strings.Cut(part, ";")
			if form := formOf(strings.ToLower(strings.TrimSpace(name))); form != "" {
				if w := weight(params); w > most {
					best, most = form, w
				}
			}
		}
	}
	return best
}

// formOf is the form of a media type, "" when there is none.
func formOf(media string) string {
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

// weight is the q among the parameters of a media type: 1 when there is none, 0 when it cannot be read.
func weight(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		if name, value, ok := strings.Cut(strings.TrimSpace(p), "="); ok && strings.EqualFold(name, "q") {
			w, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0
			}
			return w
		}
	}
	return 1
}

// who returns the caller of a request: a person, or the bearer of the token.
func (h *handler) who(r *http.Request) (understudy.Caller, error) {
	return jsonapi.Person(r, h.o.Token, h.o.Callers.IdentifyPerson)
}

// Retry-After of a refused search and of a refused export, in seconds.
const (
	busyWait   = "1"
	exportWait = "5"
)

// explain says where a query is wrong, and when to come again.
func (h *handler) explain(r *http.Request, err error, a *jsonapi.Refusal) {
	var wrong *query.SyntaxError
	switch {
	case errors.As(err, &wrong):
		a.Error, a.At, a.End, a.Character = wrong.Why, &wrong.At, &wrong.End, &wrong.Character
	case a.Status == http.StatusServiceUnavailable:
		a.RetryAfter = busyWait
		if errors.Is(err, errExports) || errors.Is(err, errOwnExports) {
			a.RetryAfter = exportWait
		}
		if at := strings.LastIndex(a.Error, understudy.ErrIndexing.Error()); at >= 0 && errors.Is(err, understudy.ErrIndexing) {
			a.Error = a.Error[at:]
		} else if errors.Is(err, understudy.ErrNotAudited) {
			a.Error = understudy.ErrNotAudited.Error() + ": the audit log cannot be written now"
		} else if errors.Is(err, understudy.ErrDamaged) {
			h.o.Logger.Error("search", "err", err)
			a.Error = understudy.ErrDamaged.Error()
		} else if busy := busyError(""); !errors.As(err, &busy) {
			if r.Context().Err() == nil {
				h.o.Logger.Error("search", "err", err)
			}
			a.Error = "the records cannot be read now"
		}
	}
}

// unix is a time in Unix seconds; 0 is the zero time.
func unix(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(at, 0).UTC()
}
