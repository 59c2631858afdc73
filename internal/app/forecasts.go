// Forecasts: how they are joined to the application, and the job that tells of one.

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"understudy"
	"understudy/internal/forecast"
	"understudy/internal/jobs"
	"understudy/request"
)

// forecasts joins forecasts to the application.
type forecasts struct{ *App }

// open makes them; pages that are saved give samples.
func (h forecasts) open() error {
	f, err := forecast.New(forecast.Options{Sources: h.sources, Store: h.db, KV: h.db, Mirror: h.mirror, Tell: h.announce,
		Now: time.Now, Logger: h.log})
	if err != nil {
		return err
	}
	h.forecasts = f
	h.saved.Subscribe(func(_ context.Context, s request.PageSaved) error { f.Saved(s.Page); return nil })
	return nil
}

// tellJob is the kind of the jobs that tell a webhook of a forecast.
const tellJob = "tell forecast"

// announce plans to tell a webhook.
func (h forecasts) announce(ctx context.Context, t forecast.Told) error {
	payload, err := json.Marshal(t)
	if err == nil {
		_, err = h.jobs.Enqueue(ctx, understudy.Job{Kind: tellJob, Key: t.Key, Payload: payload, Priority: understudy.Steady})
	}
	return err
}

// kind is the job. It is tried for some hours.
func (h forecasts) kind() jobs.Kind {
	return jobs.Kind{Name: tellJob, Lane: understudy.Steady, Concurrency: 2, Attempts: 40, Backoff: 5 * time.Second,
		Run: func(ctx context.Context, r *jobs.Run) error {
			var t forecast.Told
			if err := json.Unmarshal(r.Job().Payload, &t); err != nil {
				return fmt.Errorf("%w: what is to be told cannot be read", understudy.ErrInvalid)
			}
			wanted := func(a forecast.Alert) bool { return a.Webhook == t.Webhook && a.Series.String() == t.Forecast.Of }
			if !slices.ContainsFunc(h.forecasts.Alerts(), wanted) {
				return nil // the settings want it no more, or its role sees it no more
			}
			return h.feed.Tell(ctx, t.Webhook, "forecast", t.Key, t.Forecast)
		}}
}
