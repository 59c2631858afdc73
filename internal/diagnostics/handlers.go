// This file answers /-/health for load balancers, and /-/stats for people with a role.

package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"understudy"
	"understudy/internal/jobs"
	"understudy/internal/store"
	"understudy/internal/store/erase"
	"understudy/kit/jsonhttp"
	"understudy/request"
)

// healthTimeout is the maximum time for reading the store.
const healthTimeout = 2 * time.Second

// health is the body of /-/health. It contains no secret and no record, because anyone may read it.
type health struct {
	Status  string   `json:"status"` // one of ok, degraded and down
	Reasons []string `json:"reasons,omitempty"`
	// LoadedAt is when the current settings were read.
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	// Nodes are the processes that share the database, without their addresses.
	Nodes []request.Node `json:"nodes,omitempty"`
}

// leaseEnded is the reason for "degraded" while this process cannot learn what the others change.
const leaseEnded = "the database does not answer; answers come from memory as during an outage"

// Health returns a handler for /-/health and /-/ready. It responds with 200 while reads can be served. The body says
// "degraded", with the reasons, if an upstream has a problem or records cannot be saved. The status is 503 if the store
// cannot be read or the shutdown has begun. A process that shares its database with others goes on answering from memory
// without the database, so it is degraded then and not down. /-/ready has the same status without reasons to be degraded.
func (d *Diagnostics) Health() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), healthTimeout)
		defer cancel()
		check := d.health
		if r.URL.Path == readyPath {
			check = d.readiness
		}
		status, h := check(ctx)
		jsonhttp.Write(w, status, h)
	})
}

// readyPath is the path of the route that says only whether reads can be served.
const readyPath = "/-/ready"

// readiness returns the status and the body of /-/ready.
func (d *Diagnostics) readiness(ctx context.Context) (int, health) {
	if down := d.checkDown(ctx, d.o.Readable); down.Status == "down" {
		return http.StatusServiceUnavailable, down
	}
	return http.StatusOK, health{Status: "ready"}
}

// checkDown returns the state "down" if reads cannot be served, "degraded" if they are answered from memory because the
// database does not answer, and otherwise "ok". read reads the store.
func (d *Diagnostics) checkDown(ctx context.Context, read func(context.Context) error) health {
	all, current := d.o.Nodes()
	switch {
	case d.o.IsEnding():
		return health{Status: "down", Reasons: []string{"shutting down"}}
	case !current: // a query would only wait for the database
		return health{Status: "degraded", Reasons: []string{leaseEnded}}
	}
	if err := read(ctx); err != nil {
		d.logUnreadable(ctx, err)
		if len(all) > 0 { // the lease will end if this lasts
			return health{Status: "degraded", Reasons: []string{leaseEnded}}
		}
		return health{Status: "down", Reasons: []string{"the store cannot be read"}}
	}
	if d.unreadable.CompareAndSwap(true, false) {
		d.o.Logger.Info("health: the store can be read again")
	}
	return health{Status: "ok"}
}

// health returns the status and the body of /-/health.
func (d *Diagnostics) health(ctx context.Context) (int, health) {
	var s Snapshot
	h := d.checkDown(ctx, func(ctx context.Context) (err error) {
		if err = d.o.Readable(ctx); err == nil {
			s, err = d.o.Snapshot(ctx)
		}
		return err
	})
	if h.Status == "down" {
		return http.StatusServiceUnavailable, h
	}
	all, _ := d.o.Nodes()
	settings := d.o.SettingsStatus()
	h.LoadedAt, h.Nodes = settings.LoadedAt, hideURLs(all)
	if h.Status != "ok" {
		return http.StatusOK, h
	}
	degraded := func(is bool, why string) {
		if is {
			h.Status, h.Reasons = "degraded", append(h.Reasons, why)
		}
	}
	// An error of the settings or of the audit log may name files, so only /-/stats shows its text.
	degraded(d.o.IsPaused, "the data folder was restored: webhooks, watches, polls, syncs and jobs are paused until understudy resume")
	degraded(settings.Error != "", "the settings could not be loaded again; the former ones are in force")
	degraded(s.Backup != nil && s.Backup.Error != "", "the last backup failed; backup.error of /-/stats says why")
	degraded(s.Backup != nil && s.Backup.Late, "the last backup is too old")
	for _, name := range slices.Sorted(maps.Keys(s.Certificates)) {
		c := s.Certificates[name]
		degraded(c.Error != "", fmt.Sprintf("the certificate %s was not issued at %s; certificates.%[1]s.error of /-/stats says why", name,
			c.FailedAt.Format(time.RFC3339)))
		degraded(!c.Ends.IsZero() && c.Ends.Before(d.o.Now()), "the certificate "+name+" has expired")
	}
	degraded(s.LogMoved, "the access log's file was moved or removed; send SIGHUP to open it again")
	degraded(s.Store.Trouble != "", "the store: "+s.Store.Trouble)
	degraded(s.Jobs.Trouble != "" && s.Store.Trouble == "", "no job begins: "+s.Jobs.Trouble)
	if s.Audit != nil {
		degraded(s.Audit.Trouble != "", "the audit log cannot be written; requests that need an entry are answered with 503")
		degraded(s.Audit.Damaged != "",
			"the audit log of an earlier run is damaged and left as it is; understudy audit verify says where")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Sources)) {
		degraded(s.Sources[name].State != "ok", "source "+name+": "+s.Sources[name].State)
	}
	return http.StatusOK, h
}

// hideURLs returns nodes without their addresses, which are for administrators only.
func hideURLs(all []request.Node) []request.Node {
	all = slices.Clone(all)
	for i := range all {
		all[i].URL = ""
	}
	return all
}

// logUnreadable logs the first of consecutive failures to read the store, unless the client has disconnected.
func (d *Diagnostics) logUnreadable(ctx context.Context, err error) {
	if !errors.Is(ctx.Err(), context.Canceled) && !d.unreadable.Swap(true) {
		d.o.Logger.Error("health: the store cannot be read", "err", err)
	}
}

var errUnreadable = errors.New("the store cannot be read")

func (d *Diagnostics) showStats(ctx context.Context, caller understudy.Caller, _ *http.Request) (any, error) {
	s, err := d.o.Snapshot(ctx)
	if err != nil {
		d.logUnreadable(ctx, err)
		return nil, errUnreadable
	}
	if !d.o.SeesAll(caller) {
		d.hideCounts(&s, caller)
	}
	return s, nil
}

// showFigures responds with the descriptions of all figures of stats, without their values.
func showFigures(context.Context, understudy.Caller, *http.Request) (any, error) {
	return map[string][]Figure{"figures": Figures()}, nil
}

// hideCounts removes from a snapshot the counts of records that the caller may not see. These are the kinds hidden from
// the caller, and the numbers of changes and erasures of all kinds. A caller of a single source does not see the
// ports and the traffic of other sources.
func (d *Diagnostics) hideCounts(s *Snapshot, caller understudy.Caller) {
	s.Webhooks, s.Erasing, s.Audit, s.Backup, s.Certificates, s.Nodes = nil, erase.Waiting{}, nil, nil, nil, hideURLs(s.Nodes)
	sources := map[string]Source{}
	for name, src := range s.Sources {
		kinds := map[string]Kind{}
		for kind, k := range src.Kinds {
			if d.o.SeesKind(caller, name, kind) {
				k.Lists = slices.Clone(k.Lists)
				for i := range k.Lists {
					k.Lists[i].Field, k.Lists[i].Where = "", "" // Field and Where name a field and a record
				}
				kinds[kind] = k
			}
		}
		src.Kinds, src.Times, src.Spent, src.Use = kinds, nil, nil, nil // the paths show what other callers requested, and who they are
		if caller.Source == "" || caller.Source == name {
			sources[name] = src
		}
	}
	if own := caller.Source; own != "" {
		s.Ports = maps.Clone(s.Ports)
		for name, port := range s.Ports {
			port.Tunnels = nil // tunnels lead to all sources, also to sources that the caller may not see
			s.Ports[name] = port
		}
		maps.DeleteFunc(s.Ports, func(name string, _ Port) bool {
			_, isSource := s.Sources[name]
			return isSource && name != own
		})
		s.Traffic = Traffic{}
		if src, ok := sources[own]; ok {
			s.Traffic.Add(&src.Traffic)
		}
		if len(s.Sources) > 1 { // Media counts all sources together
			s.Media = request.Media{Limit: s.Media.Limit, FileLimit: s.Media.FileLimit}
		}
	}
	s.Sources = sources
	if d.o.HasRowRules(caller) {
		s.hideVolatile()
	}
}

// hideVolatile removes, for every caller, figures that change with every record. Otherwise a caller could request a
// record and learn from the change in memory, disk or work whether the record exists.
func (s *Snapshot) hideVolatile() {
	s.Traffic = Traffic{}
	s.Hot = request.Hot{Limit: s.Hot.Limit}
	s.Store = store.Space{Limit: s.Store.Limit, Trouble: s.Store.Trouble}
	s.Media = request.Media{Limit: s.Media.Limit, FileLimit: s.Media.FileLimit}
	s.Jobs = jobs.Stats{Memory: s.Jobs.Memory, Trouble: s.Jobs.Trouble}
	s.Process = Process{}
	s.Limits = limitsOnly(s.Limits)
	for name, src := range s.Sources {
		src.Limits = limitsOnly(src.Limits)
		s.Sources[name] = src
	}
}

// limitsOnly returns the limits without their current use.
func limitsOnly(limits map[string]request.Load) map[string]request.Load {
	all := make(map[string]request.Load, len(limits))
	for name, l := range limits {
		all[name] = request.Load{Limit: l.Limit}
	}
	return all
}
