// This file serves /-/forecast.

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

// HandlerOptions are the dependencies and settings of a handler.
type HandlerOptions struct {
	Forecasts *Forecasts
	Gate      *access.Gate
	Callers   jsonapi.Callers
	Audit     understudy.Auditor // the audit log; nil if nothing is recorded
	Token     string             // gives requests from this machine that carry it access to everything; "" gives no access
}

// Path is the path of the forecast API.
const Path = "/-/forecast"

// Routes returns the methods and paths that the handler serves.
func Routes() []string { return []string{"GET " + Path} }

// askTimeout is the time limit of one request.
const askTimeout = 10 * time.Second

type handler struct{ o HandlerOptions }

// NewHandler returns the handler of Routes. A request with the parameter of=SOURCE/KIND.FIELD gets a forecast.
// Without the parameter it gets a SeriesList of the series that the caller may see.
func NewHandler(o HandlerOptions) http.Handler {
	h := &handler{o}
	who := func(r *http.Request) (understudy.Caller, error) {
		return jsonapi.IdentifyPerson(r, o.Token, o.Callers.IdentifyPerson)
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, jsonapi.Handle(&jsonapi.Options{Identify: who, Vary: "Authorization", Timeout: askTimeout}, h.answer))
	return mux
}

// SeriesList is the response to a request without the parameter "of".
type SeriesList struct {
	Series []string `json:"series"`
}

// answer checks the parameters and the access of the caller, writes an audit entry, and returns a forecast
// or a SeriesList. A series that the caller may not see gets the same error as an unknown series.
func (h *handler) answer(ctx context.Context, c understudy.Caller, r *http.Request) (any, error) {
	query := r.URL.Query()
	for name := range query {
		if name != "of" && !slices.Contains(Parameters, name) {
			return nil, newInputError("there is no parameter %q; write of, level, by and percent", name)
		}
	}
	canSee := func(s understudy.Series) bool { return h.o.Forecasts.CanSee(h.o.Gate, c, s) }
	if query.Get("of") == "" {
		list := SeriesList{Series: []string{}}
		for _, s := range h.o.Forecasts.Series("") {
			if canSee(s) {
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
	if !canSee(s) {
		return nil, fmt.Errorf("forecast: %w: no number called %s is sampled that you may see%s", understudy.ErrNotFound,
			understudy.Clip(s.String()), h.seriesHint(canSee))
	}
	e := understudy.AuditEntry{Action: understudy.ActionRecord, What: "forecast", Source: s.Source, Kind: s.Kind}
	if err := jsonapi.RecordAudit(ctx, h.o.Audit, c, e); err != nil {
		return nil, err
	}
	return h.o.Forecasts.Ask(ctx, q)
}

// seriesHint returns the end of an error text that lists the series that the caller may see, or "" if there are none.
func (h *handler) seriesHint(canSee func(understudy.Series) bool) string {
	var names []string
	for _, s := range h.o.Forecasts.Series("") {
		if canSee(s) {
			names = append(names, s.String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; there is " + strings.Join(names, ", ")
}
