// Alert: a forecast that passes a probability is told to a webhook, once.

package forecast

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/jobs"
	"understudy/kit/suggest"
	"understudy/spec"
)

// Alert is a question that is asked with every new sample. Its Percent is the probability
// from which on a webhook is told.
type Alert struct {
	Question Question
	Webhook  string // its name
}

// CheckAlert says what is wrong with an alert: a number that is not sampled, or that the
// role of its webhook does not see as it is.
func CheckAlert(a Alert, role string, gate *access.Gate, src *spec.Source) error {
	k := src.Spec.Kind(a.Question.Series.Kind)
	var known []string
	for _, one := range src.Spec.Kinds {
		for _, field := range one.SampledFields() {
			known = append(known, understudy.Series{Source: src.Name, Kind: one.Name, Field: field.Name}.String())
		}
	}
	if k == nil || k.Field(a.Question.Series.Field) == nil || k.Field(a.Question.Series.Field).SampleInterval() == 0 {
		name := a.Question.Series.String()
		return fmt.Errorf("%s is not sampled%s; the spec marks fields with sample: 1h", name, suggest.Hint(name, known))
	}
	f := &Forecasts{kinds: map[understudy.Key]*sampled{}}
	if err := f.add(src, k); err != nil {
		return err
	}
	if !f.Shown(gate, understudy.Caller{Name: a.Webhook, Grant: &understudy.Grant{Role: role}}, a.Question.Series) {
		return fmt.Errorf("the role %s of the webhook %s does not see %s as it is", role, a.Webhook, a.Question.Series)
	}
	return nil
}

// name tells alerts apart.
func (a Alert) name() string {
	q := a.Question
	return fmt.Sprintf("%s level %s by %s percent %v to %s", q.Series, q.Level, q.Within, q.Percent, a.Webhook)
}

// Told is an alert that is told. Key is the same for every try of one.
type Told struct {
	Key      string    `json:"key"`
	Webhook  string    `json:"webhook"`
	Forecast *Forecast `json:"forecast"`
}

// tellJob is the kind of the jobs that tell a webhook of an alert.
const tellJob = "tell forecast"

// JobKind returns the kind of the jobs that tell webhooks of alerts by send. They are retried for some hours. A job whose
// alert is no longer in force sends nothing.
func (f *Forecasts) JobKind(send func(ctx context.Context, webhook, sort, key string, data any) error) jobs.Kind {
	return jobs.Kind{Name: tellJob, Lane: understudy.PrioritySteady, Concurrency: 2, Attempts: 40, Backoff: 5 * time.Second,
		Run: func(ctx context.Context, r *jobs.Run) error {
			var t Told
			if err := json.Unmarshal(r.Job().Payload, &t); err != nil {
				return fmt.Errorf("%w: what is to be told cannot be read", understudy.ErrInvalid)
			}
			wanted := func(a Alert) bool { return a.Webhook == t.Webhook && a.Question.Series.String() == t.Forecast.Of }
			if !slices.ContainsFunc(f.Alerts(), wanted) {
				return nil
			}
			return send(ctx, t.Webhook, "forecast", t.Key, t.Forecast)
		}}
}

// again is how much the probability has to fall below that of an alert before it can be
// told once more: a figure that trembles about it is told once.
const again = 0.8

// alertState is what is kept of an alert, as a value.
type alertState struct {
	Told  time.Time `json:"told,omitzero"` // zero: it is not told, or was armed anew
	Times int       `json:"times"`
}

// SetAlerts replaces the alerts. What was told stays told.
func (f *Forecasts) SetAlerts(alerts []Alert) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alerts = alerts
}

// askAlerts asks the questions about a series and tells of those that passed.
func (f *Forecasts) askAlerts(ctx context.Context, s understudy.Series) {
	f.mu.Lock()
	alerts := f.alerts
	f.mu.Unlock()
	for _, a := range alerts {
		if a.Question.Series != s || f.o.Enqueue == nil {
			continue
		}
		if err := f.judge(ctx, a); err != nil && ctx.Err() == nil {
			f.o.Logger.Error("forecast: an alert was not looked at", "alert", a.name(), "err", err)
		}
	}
}

func (f *Forecasts) judge(ctx context.Context, a Alert) error {
	made, err := f.Ask(ctx, a.Question)
	if err != nil || made.State == NotYet {
		return err
	}
	note := "forecast/" + a.name()
	var state alertState
	if err := understudy.ReadJSON(ctx, f.o.KV, note, &state); err != nil {
		return err
	}
	likely := 1.0
	if made.State == Ready {
		likely = made.Probability.Figure
	}
	switch {
	case likely >= a.Question.Percent && state.Told.IsZero():
		told := Told{Key: fmt.Sprintf("%s, %d", a.name(), state.Times), Webhook: a.Webhook, Forecast: made}
		payload, err := json.Marshal(told)
		if err != nil {
			return err
		}
		if _, err := f.o.Enqueue(ctx, understudy.Job{Kind: tellJob, Key: told.Key, Payload: payload,
			Priority: understudy.PrioritySteady}); err != nil {
			return err
		}
		state.Told, state.Times = f.o.Now().UTC(), state.Times+1
	case likely < a.Question.Percent*again && !state.Told.IsZero():
		state.Told = time.Time{}
	default:
		return nil
	}
	return understudy.WriteJSON(ctx, f.o.KV, note, state)
}

// Alerts are those in force.
func (f *Forecasts) Alerts() []Alert {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.alerts
}
