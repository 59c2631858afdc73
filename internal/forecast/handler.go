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
	"understudy/internal/jsonapi"
)

// Callers finds the caller of a request; callers.Book fills it.
type Callers interface {
	IdentifyPerson(r *http.Request) (understudy.Caller, error)
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

// askTime bounds one answer.
const askTime = 10 * time.Second

type handler struct{ o HandlerOptions }

// NewHandler makes the handler of Routes: with of=SOURCE/KIND.FIELD one forecast, without
// it the series that the caller may ask about.
func NewHandler(o HandlerOptions) http.Handler {
	h := &handler{o}
	who := func(r *http.Request) (understudy.Caller, error) {
		return jsonapi.Person(r, o.Token, o.Callers.IdentifyPerson)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, jsonapi.Handle(&jsonapi.Options{Who: who, Vary: "Authorization", Time: askTime}, h.answer))
	return mux
}

// List is the answer without a series.
type List struct {
	Series []string `json:"series"`
}

func (h *handler) answer(ctx context.Context, c understudy.Caller, r *http.Request) (any, error) {
	query := r.URL.Query()
	for name := range query {
		if name != "of" && !slices.Contains(Parameters, name) {
			return nil, invalid("there is no parameter %q; write of, level, by and percent", name)
		}
	}
	shown := func(s understudy.Series) bool { return h.o.Forecasts.Shown(h.o.Gate, c, s) }
	if query.Get("of") == "" {
		list := List{Series: []string{}}
		for _, s := range h.o.Forecasts.Series("") {
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
	e := understudy.AuditEntry{Action: understudy.ActionRecord, What: "forecast", Source: s.Source, Kind: s.Kind}
	if err := jsonapi.Audit(ctx, h.o.Audit, c, e); err != nil {
		return nil, err
	}
	return h.o.Forecasts.Ask(ctx, q)
}

// others names the series that may be asked about.
func (h *handler) others(shown func(understudy.Series) bool) string {
	var names []string
	for _, s := range h.o.Forecasts.Series("") {
		if shown(s) {
			names = append(names, s.String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; there is " + strings.Join(names, ", ")
}
