// Actions: what people do in the viewer, done here.

package app

import (
	"context"
	"time"

	"understudy/internal/actions"
	"understudy/internal/diagnostics"
)

// operations are the commands of this server, as people order them.
type operations struct{ *App }

// open makes the runner of actions. It ends before the mirror does.
func (h operations) open() {
	h.actions = actions.New(actions.Options{Store: h.db, Mirror: h.mirror, Operator: h, Logger: h.log, Now: time.Now})
	h.closers = append(h.closers, h.actions.Close)
}

// Sync implements actions.Operator.
func (h operations) Sync(ctx context.Context, source, kind string) error {
	return h.walker.Keep(ctx, source, kind)
}

// Purge implements actions.Operator.
func (h operations) Purge(ctx context.Context, source, kind, id string) error {
	_, err := h.purge(ctx, diagnostics.Purge{Source: source, What: kind + "/" + id})
	return err
}

// Belongs implements actions.Operator.
func (h operations) Belongs(ctx context.Context, source, what string) (kinds map[string]int, own bool, err error) {
	found, err := erasures(h).list(ctx, diagnostics.Erase{Source: source, What: what, Dry: true})
	return found.Found, found.Own, err
}

// Erase implements actions.Operator.
func (h operations) Erase(ctx context.Context, source, what string, own bool) (receipt int64, err error) {
	got, err := erasures(h).erase(ctx, diagnostics.Erase{Source: source, What: what, Own: own})
	if got.Receipt != nil {
		receipt = got.Receipt.Number
	}
	return receipt, err
}
