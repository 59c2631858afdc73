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
	"understudy/internal/query"
	"understudy/internal/search/lang"
	"understudy/kit/accesslog"
	"understudy/kit/jsonhttp"
)

// Callers finds the caller of a request. callers.Book implements it.
type Callers interface {
	Person(r *http.Request) (understudy.Caller, error)
}

// HandlerOptions are what a handler is made of.
type HandlerOptions struct {
	Searcher *Searcher
	Callers  Callers
	// Audit lists searches and exports, before their answers; nil: nothing is listed.
	Audit understudy.Auditor
	// Token lets a request from this machine that carries it see everything; "": no
	// request.
	Token     string
	PublicURL string // the origin browsers know the viewer by, "" for its own
	Logger    *slog.Logger
}

// Routes are the methods and paths a handler serves.
func Routes() []string {
	return []string{"GET /-/search", "GET /-/search/saved", "POST /-/search/saved", "DELETE /-/search/saved/{name}"}
}

type handler struct {
	o HandlerOptions
	s *Searcher
}

// NewHandler makes the handler of Routes. It refuses requests of pages of other sites.
func NewHandler(o HandlerOptions) (http.Handler, error) {
	if o.Searcher == nil || o.Callers == nil {
		return nil, errors.New("search: a handler needs a searcher and callers")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	forms := http.NewCrossOriginProtection()
	if o.PublicURL != "" {
		if err := forms.AddTrustedOrigin(strings.TrimSuffix(o.PublicURL, "/")); err != nil {
			return nil, fmt.Errorf("search: public_url: %w", err)
		}
	}
	forms.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		jsonhttp.Error(w, http.StatusForbidden, "a page of another site asks")
	}))
	h := &handler{o, o.Searcher}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /-/search", h.search)
	mux.HandleFunc("GET /-/search/saved", h.answer(h.saved))
	mux.Handle("POST /-/search/saved", forms.Handler(h.answer(h.save)))
	mux.Handle("DELETE /-/search/saved/{name}", forms.Handler(h.answer(h.forget)))
	return mux, nil
}

const (
	maxQuery = 16 << 10 // bytes of a request's query
	maxBody  = 16 << 10
)

// search answers one search or a sum, or streams an export.
func (h *handler) search(w http.ResponseWriter, r *http.Request) {
	prepare(w)
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
		h.refuse(w, r, invalid("a search has no body"))
		return
	}
	if r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Dest") != "document" {
		h.refuse(w, r, fmt.Errorf("search: %w: a page of another site asks", understudy.ErrForbidden))
		return
	}
	c, err := h.who(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	if r.URL.Query().Has("sum") {
		h.sums(w, r, c)
		return
	}
	a, form, err := readRequest(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	if form != formJSON {
		h.export(w, r, c, a, form)
		return
	}
	result, err := h.s.Find(r.Context(), c, a)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	ids := make([]string, 0, len(result.Hits))
	for i := range result.Hits {
		ids = append(ids, result.Hits[i].ID)
	}
	if err := h.audit(r, c, a, understudy.AuditEntry{Action: understudy.ActionSearch, IDs: ids, Rows: len(ids)}); err != nil {
		h.refuse(w, r, err)
		return
	}
	h.s.setColumns(result)
	jsonhttp.Write(w, http.StatusOK, result)
}

// audit lists what a caller does with a search.
func (h *handler) audit(r *http.Request, c understudy.Caller, a query.SearchRequest, e understudy.AuditEntry) error {
	e.Caller, e.Source, e.Request = c, a.Source, accesslog.Of(r.Context()).ID
	if a.Text != "" {
		e.Values = append(e.Values, a.Text)
	}
	if len(a.Kinds) == 1 {
		e.Kind = a.Kinds[0]
	}
	return understudy.Audit(r.Context(), h.o.Audit, e)
}

func prepare(w http.ResponseWriter) {
	head := w.Header()
	head.Set("Cache-Control", "private, no-store")
	head.Set("Vary", "Authorization, Accept")
	head.Set("X-Content-Type-Options", "nosniff")
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
			return a, "", invalid("facets=%s: write true or false", lang.Clip(text))
		}
	}
	if text := values.Get("limit"); text != "" {
		if a.Limit, err = strconv.Atoi(text); err != nil || a.Limit < 1 || a.Limit > query.MostHits {
			return a, "", invalid("limit=%s: want 1 to %d", lang.Clip(text), query.MostHits)
		}
	}
	form = values.Get("format")
	switch form {
	case formJSON, formLines, formXML:
	case "":
		form = accepted(r.Header["Accept"])
	default:
		return a, "", invalid("format=%s: write json, jsonl or xml", lang.Clip(form))
	}
	return a, form, nil
}

// parameters are those of a request. One that is not known, empty or, but for kind and by, there
// twice is ErrInvalid.
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
			return nil, invalid("unknown parameter %q%s", lang.Clip(name), lang.Hint(name, known))
		case name != "kind" && name != "by" && len(all) > 1:
			return nil, invalid("%s is there %d times", name, len(all))
		case name != "q" && slices.Contains(all, ""):
			return nil, invalid("%s is empty; leave it out", name)
		}
	}
	return values, nil
}

// accepted is the form with the greatest weight in an Accept header (RFC 9110,
// 12.5.1), the first of equal ones.
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

// weight is the q among the parameters of a media type: 1 when there is none, 0
// when it cannot be read.
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
	if jsonhttp.Local(r) && jsonhttp.Bears(r, h.o.Token) {
		accesslog.Of(r.Context()).Caller = understudy.CommandCaller.Name
		return understudy.CommandCaller, nil
	}
	c, err := h.o.Callers.Person(r)
	if err == nil && c.Role() == "" {
		err = fmt.Errorf("search: %w: %s has no role", understudy.ErrForbidden, c.Name)
	}
	return c, err
}

// answer is a handler whose answer is one JSON document.
func (h *handler) answer(do func(ctx context.Context, c understudy.Caller, r *http.Request) (int, any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		prepare(w)
		c, err := h.who(r)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), h.s.o.Limits.Time)
		defer cancel()
		code, v, err := do(ctx, c, r)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		if v == nil {
			w.WriteHeader(code)
			return
		}
		jsonhttp.Write(w, code, v)
	}
}

// problem is an error in JSON. Where a query is wrong it says where.
type problem struct {
	Error     string `json:"error"`
	At        *int   `json:"at,omitempty"`  // in the query, in bytes
	End       *int   `json:"end,omitempty"` // up to there
	Character *int   `json:"character,omitempty"`
}

// Retry-After of a refused search and of a refused export, in seconds.
const (
	busyWait   = "1"
	exportWait = "5"
)

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	code, p := understudy.OwnStatus(err), problem{Error: understudy.PlainText(err)}
	var wrong *query.SyntaxError
	switch {
	case errors.As(err, &wrong):
		p.Error, p.At, p.End, p.Character = wrong.Why, &wrong.At, &wrong.End, &wrong.Character
	case code == http.StatusUnauthorized:
		jsonhttp.Challenge(w, r, "Understudy")
	case code == http.StatusServiceUnavailable:
		wait := busyWait
		if errors.Is(err, errExports) || errors.Is(err, errOwnExports) {
			wait = exportWait
		}
		w.Header().Set("Retry-After", wait)
		if at := strings.LastIndex(p.Error, understudy.ErrIndexing.Error()); at >= 0 && errors.Is(err, understudy.ErrIndexing) {
			p.Error = p.Error[at:]
		} else if errors.Is(err, understudy.ErrNotAudited) {
			p.Error = understudy.ErrNotAudited.Error() + ": the audit log cannot be written now"
		} else if errors.Is(err, understudy.ErrDamaged) {
			h.o.Logger.Error("search", "err", err)
			p.Error = understudy.ErrDamaged.Error()
		} else if busy := busyError(""); !errors.As(err, &busy) {
			if r.Context().Err() == nil {
				h.o.Logger.Error("search", "err", err)
			}
			p.Error = "the records cannot be read now"
		}
	}
	jsonhttp.SignError(w.Header(), code, p.Error)
	jsonhttp.Write(w, code, p)
}

// unix is a time in Unix seconds; 0 is the zero time.
func unix(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(at, 0).UTC()
}
