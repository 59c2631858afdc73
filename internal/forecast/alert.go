// This file notifies a webhook once when the probability of a forecast reaches a limit.

package forecast

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/jobs"
	"understudy/kit/suggest"
	"understudy/spec"
)

// Alert is a question that is asked again after every new sample. The webhook is notified
// when the probability of the forecast reaches Question.Percent.
type Alert struct {
	Question Question
	Webhook  string // the name of the webhook to notify
}

// CheckAlert returns an error if the alert's series is not sampled, or if the role of the webhook may not see its
// forecasts.
func CheckAlert(a Alert, role string, gate *access.Gate, src *spec.Source) error {
	k := src.Spec.Kind(a.Question.Series.Kind)
	var known []string
	for _, kind := range src.Spec.Kinds {
		for _, field := range kind.SampledFields() {
			known = append(known, understudy.Series{Source: src.Name, Kind: kind.Name, Field: field.Name}.String())
		}
	}
	if k == nil || k.Field(a.Question.Series.Field) == nil || k.Field(a.Question.Series.Field).SampleInterval() == 0 {
		name := a.Question.Series.String()
		return fmt.Errorf("%s is not sampled%s; the spec marks fields with sample: 1h", name, suggest.Hint(name, known))
	}
	f := &Forecasts{kinds: map[understudy.Key]*sampledKind{}}
	if err := f.add(src, k); err != nil {
		return err
	}
	if !f.CanSee(gate, understudy.Caller{Name: a.Webhook, Grant: &understudy.Grant{Role: role}}, a.Question.Series) {
		return fmt.Errorf("the role %s of the webhook %s does not see %s as it is", role, a.Webhook, a.Question.Series)
	}
	return nil
}

// name returns a text that is different for every alert. It is part of KV names and of job keys.
func (a Alert) name() string {
	q := a.Question
	return fmt.Sprintf("%s level %s by %s percent %v to %s", q.Series, q.Level, q.Within, q.Percent, a.Webhook)
}

// AlertNotice is the payload of a job that notifies a webhook of an alert. Key is the same for every attempt to send it.
type AlertNotice struct {
	Key      string    `json:"key"`
	Webhook  string    `json:"webhook"`
	Forecast *Forecast `json:"forecast"`
}

// alertJobKind is the kind of the jobs that notify a webhook of an alert.
const alertJobKind = "tell forecast"

// JobKind returns the kind of the jobs that notify webhooks of alerts by calling send. A failed job is retried for
// some hours. A job sends nothing if its alert was removed from the settings, or if another job has sent the notice.
func (f *Forecasts) JobKind(send func(ctx context.Context, webhook, sort, key string, data any) error) jobs.Kind {
	return jobs.Kind{Name: alertJobKind, Lane: understudy.PrioritySteady, Concurrency: 2, Attempts: 40, Backoff: 5 * time.Second,
		Run: func(ctx context.Context, r *jobs.Run) error {
			var t AlertNotice
			if err := json.Unmarshal(r.Job().Payload, &t); err != nil {
				return fmt.Errorf("%w: the text of the alert cannot be read", understudy.ErrInvalid)
			}
			wanted := func(a Alert) bool { return a.Webhook == t.Webhook && a.Question.Series.String() == t.Forecast.Of }
			if !slices.ContainsFunc(f.Alerts(), wanted) {
				return nil
			}
			sent := "forecast sent " + strings.TrimRight(t.Key, "0123456789") // without the number of the notice
			last, err := understudy.ReadValue(ctx, f.o.KV, sent)
			if err == nil && string(last) != t.Key { // another process may have added the job, too
				if err = send(ctx, t.Webhook, "forecast", t.Key, t.Forecast); err == nil {
					err = f.o.KV.SetValue(ctx, sent, []byte(t.Key))
				}
			}
			return err
		}}
}

// rearmFactor is the share of Percent below which the probability must fall before an alert can notify again.
const rearmFactor = 0.8

// alertState is the state of an alert, stored as JSON in the KV.
type alertState struct {
	NotifiedAt time.Time `json:"told,omitzero"` // the time of the last notice; zero if the alert can notify again
	Times      int       `json:"times"`         // the number of notices so far, which makes the keys of the jobs unique
}

// SetAlerts replaces the alerts. The stored state of each alert is kept, so that an alert does not notify twice.
func (f *Forecasts) SetAlerts(alerts []Alert) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alerts = alerts
}

// checkAlerts computes the forecast of every alert on a series and adds jobs for the notices that are due.
func (f *Forecasts) checkAlerts(ctx context.Context, s understudy.Series) {
	for _, a := range f.Alerts() {
		if a.Question.Series != s || f.o.Enqueue == nil {
			continue
		}
		if err := f.notifyIfLikely(ctx, a); err != nil && ctx.Err() == nil {
			f.o.Logger.Error("forecast: an alert was not looked at", "alert", a.name(), "err", err)
		}
	}
}

// notifyIfLikely computes the forecast of an alert. If the probability has reached Percent and the alert can notify, it
// adds a job that sends a notice. After the probability has fallen far enough, the alert can notify again.
func (f *Forecasts) notifyIfLikely(ctx context.Context, a Alert) error {
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
	case likely >= a.Question.Percent && state.NotifiedAt.IsZero():
		told := AlertNotice{Key: fmt.Sprintf("%s, %d", a.name(), state.Times), Webhook: a.Webhook, Forecast: made}
		payload, err := json.Marshal(told)
		if err != nil {
			return err
		}
		if _, err := f.o.Enqueue(ctx, understudy.Job{Kind: alertJobKind, Key: told.Key, Payload: payload,
			Priority: understudy.PrioritySteady}); err != nil {
			return err
		}
		state.NotifiedAt, state.Times = f.o.Now().UTC(), state.Times+1
	case likely < a.Question.Percent*rearmFactor && !state.NotifiedAt.IsZero():
		state.NotifiedAt = time.Time{}
	default:
		return nil
	}
	return understudy.WriteJSON(ctx, f.o.KV, note, state)
}

// Alerts returns the current alerts. The caller must not change the slice.
func (f *Forecasts) Alerts() []Alert {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.alerts
}
