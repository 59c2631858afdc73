package fleet

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"understudy/internal/store/nodes"
)

// SignPoke signs a poke for this node.
func (f *Fleet) SignPoke(r *http.Request) { r.Header.Set(pokeHeader, f.SignedAt(f.o.Now())) }

// SignedAt returns the header of a poke for this node.
func (f *Fleet) SignedAt(at time.Time) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	return seconds + ":" + f.sign(seconds, f.o.Node.ID)
}

// SplitBudgets splits the budgets after a renewal that has read all. The lease lasts for an hour.
func (f *Fleet) SplitBudgets(ctx context.Context, all []nodes.Node) error {
	err := f.splitBudgets(ctx, all, !f.IsCurrent())
	f.until.Store(f.uptime() + int64(time.Hour))
	return err
}

// EndLease ends the lease.
func (f *Fleet) EndLease() { f.until.Store(0) }
