// This file notifies people when a source's upstream stops to answer, and when it answers again.

package push

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"understudy"
	"understudy/kit/retry"
)

// The times of notices.
const (
	healthInterval = 15 * time.Second
	minOutage      = 2 * time.Minute // how long an upstream must fail, or answer again, before people are notified
	noticeLifetime = time.Hour       // for how long a notice that was not accepted is sent again
)

// Health is the state of a source's upstream.
type Health struct {
	Source, State string    // the state is "ok", "down", "credential" or "limited"
	Since         time.Time // when the state began
	IsKnown       bool      // whether the upstream has answered since the start
}

// Outages notifies the receivers that want it of outages, once when an outage has begun and once when it has ended. It stores
// which sources are down, so that a restart repeats no notice.
type Outages struct {
	Book   *Book
	Health func() []Health // the state of all sources; of none if another process sends the notices
	Logger *slog.Logger
}

// Run checks the state of each upstream, and once in an hour the owners of receivers, until ctx ends.
func (o *Outages) Run(ctx context.Context) error {
	for n := 1; retry.Wait(ctx, healthInterval) == nil; n++ {
		err := o.check(ctx)
		if n%int(ownerInterval/healthInterval) == 0 {
			err = errors.Join(err, o.Book.CheckOwners(ctx))
		}
		if err != nil && ctx.Err() == nil {
			o.Logger.Warn("push: notices of outages; trying again", "err", err)
		}
	}
	return nil
}

// check sends a notice for each source whose outage has begun or ended. After an error the next check sends it again.
func (o *Outages) check(ctx context.Context) (err error) {
	for _, h := range o.Health() {
		state, isDown := []byte(h.State), h.State == "down" || h.State == "credential"
		told, err2 := understudy.ReadValue(ctx, o.Book.kv, "outage/"+h.Source)
		isNews := isDown && told == nil || h.State == "ok" && h.IsKnown && told != nil
		if lasted := o.Book.now().Sub(h.Since); err2 == nil && isNews && lasted >= minOutage {
			if err2 = o.tell(ctx, &h, isDown); err2 == nil || lasted >= noticeLifetime {
				if !isDown {
					state = nil
				}
				err2 = o.Book.kv.SetValue(ctx, "outage/"+h.Source, state)
			}
		}
		err = errors.Join(err, err2)
	}
	return err
}

// tell sends a notice to people who may see something of the source. It contains no data of records.
func (o *Outages) tell(ctx context.Context, h *Health, isDown bool) error {
	values, err := o.Book.kv.ReadValues(ctx, receiverPrefix)
	p := o.Book.policy.Load()
	var all []Receiver
	for _, value := range values {
		var r Receiver
		if json.Unmarshal(value, &r) == nil && r.Outages {
			if c, ok := p.Owners.Resolve(r.Owner); ok && p.CanSee(c, h.Source) {
				all = append(all, r)
			}
		}
	}
	m := Message{Title: h.Source + " answers again", URL: p.URL, Tag: hashText("outage\x00" + h.Source)}
	if isDown {
		m.Title = h.Source + map[string]string{"down": " is down", "credential": " refuses its credential"}[h.State]
		m.Body = "It has failed since " + h.Since.UTC().Format("15:04 UTC") + ". Stored records are shown in its place."
	}
	m.ID = hashText(m.Title + h.Since.String())
	if len(all) > 0 {
		_, _, err = o.Book.Send(ctx, all, m)
	}
	return err
}
