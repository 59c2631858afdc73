// Serve: /-/forecast for programs and commands.

package forecast

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/kit/accesslog"
	"understudy/kit/jsonhttp"
)

// Callers finds the caller of a request; callers.Book fills it.
type Callers interface {
	Person(r *http.Request) (understudy.Caller, error)
}

// HandlerOptions are what a handler is made of.
type HandlerOptions struct {
	Forecasts *Forecasts
	Gate      *access.Gate
	Callers   Callers
	Audit     understudy.Auditor // nil: nothing is listed
	// Token lets a request from this machine that carries it see everything; "": no
	// request.
	Token string
}

// Path is where programs ask.
const Path = "/-/forecast"

// Routes are the methods and paths a handler serves.
func Routes() []string { return []string{"GET " + Path} }

// bearer is the name of the caller of a request with the token.
const bearer = "run.json"

// askTime bounds one answer.
const askTime = 10 * time.Second

type handler struct{ HandlerOptions }

// NewHandler makes the handler of Routes: with of=SOURCE/KIND.FIELD one forecast, without
// it the series that the caller may ask about.
func NewHandler(o HandlerOptions) http.Handler {
	h := &handler{o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, h.serve)
	return mux
}

// List is the answer without a series.
type List struct {
	Series []string `json:"series"`
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Cache-Control", "private, no-store")
	head.Set("Vary", "Authorization")
	head.Set("X-Content-Type-Options", "nosniff")
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	answer, err := h.answer(ctx, r)
	if err != nil {
		status := understudy.OwnStatus(err)
		if status == http.StatusUnauthorized {
			jsonhttp.Challenge(w, r, "Understudy")
		}
		jsonhttp.Error(w, status, understudy.PlainText(err))
		return
	}
	jsonhttp.Write(w, http.StatusOK, answer)
}

func (h *handler) answer(ctx context.Context, r *http.Request) (any, error) {
	c, err := h.who(r)
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	for name := range query {
		if name != "of" && !slices.Contains(Parameters, name) {
			return nil, invalid("there is no parameter %q; write of, level, by and percent", name)
		}
	}
	shown := func(s understudy.Series) bool { return h.Forecasts.Shown(h.Gate, c, s) }
	if query.Get("of") == "" {
		list := List{Series: []string{}}
		for _, s := range h.Forecasts.Series("") {
			if shown(s) {
				list.Series = append(list.Series, s.String())
			}
		}
		return list, nil
	}
	s, err := understudy.ParseSeries(query.Get("of"))
	if err != nil {
		return nil, fmt.Errorf("forecast: %w", err)
	}
	q, err := ParseQuestion(s, query)
	if err != nil {
		return nil, err
	}
	if !shown(s) {
		return nil, fmt.Errorf("forecast: %w: no number called %s is sampled that you may see%s", understudy.ErrNotFound,
			understudy.Clip(s.String()), h.others(shown))
	}
	if h.Audit != nil {
		e := understudy.AuditEntry{Caller: c, Action: understudy.ActionRecord, What: "forecast", Source: s.Source, Kind: s.Kind}
		e.Request = accesslog.Of(ctx).ID
		if err := h.Audit.Audit(ctx, e); err != nil {
			return nil, err
		}
	}
	return h.Forecasts.Ask(ctx, q)
}

// others names the series that may be asked about.
func (h *handler) others(shown func(understudy.Series) bool) string {
	var names []string
	for _, s := range h.Forecasts.Series("") {
		if shown(s) {
			names = append(names, s.String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; there is " + strings.Join(names, ", ")
}

// who names the caller of a request.
func (h *handler) who(r *http.Request) (understudy.Caller, error) {
	if jsonhttp.Local(r) && jsonhttp.Bears(r, h.Token) {
		accesslog.Of(r.Context()).Caller = bearer
		return understudy.Caller{Name: bearer, Grant: &understudy.Grant{Role: understudy.RoleAll}}, nil
	}
	c, err := h.Callers.Person(r)
	if err == nil && c.Role() == "" {
		err = fmt.Errorf("forecast: %w: %s has no role", understudy.ErrForbidden, c.Name)
	}
	return c, err
}
