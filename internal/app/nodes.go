// This file connects this process with the other processes on the same database.

package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/feed"
	"understudy/internal/fleet"
	"understudy/internal/store"
	"understudy/internal/store/nodes"
	"understudy/internal/tables"
	"understudy/internal/watch"
	"understudy/request"
)

// pokeClientTimeout is the maximum time for a message to another process.
const pokeClientTimeout = time.Second

// followTimeout is the maximum time for reading what other processes have changed. After it, reading begins again at the next renewal.
const followTimeout = 5 * time.Second

// changesAtOnce is the maximum number of changes of other processes that are read at once.
const changesAtOnce = 1000

// historyKey is the key under which the KV store has the history of the database.
const historyKey = "nodes/history"

// replacedTime is how long after a standby was promoted a process that starts counts with leases of the former database.
const replacedTime = time.Minute

// history says which history of the database the nodes share.
type history struct {
	Timeline int64     `json:"timeline"`
	Since    time.Time `json:"since"` // when the database may have lost writes: a standby was promoted
}

// readHistory reads the history of the database, which is another one than before if a standby was promoted.
func (a *App) readHistory(ctx context.Context) (h history, err error) {
	if err := understudy.ReadJSON(ctx, a.db.KV, historyKey, &h); err != nil {
		return h, err
	}
	if now := a.db.Nodes.Timeline(); h.Timeline != now {
		if h.Timeline != 0 {
			a.log.Warn("another server answers for the database and may lack the last writes; stored pages are fetched again")
			h.Since, a.saved.replaced = time.Now(), true
		}
		h.Timeline = now
	}
	return h, nil
}

// openFleet prepares this process for other processes on the same database. Other processes are possible only with PostgreSQL.
func (a *App) openFleet(ctx context.Context) error {
	cfg := a.opts.Settings
	if !store.IsPostgreSQL(cfg.Store.DSN) {
		return nil
	}
	var err error
	if a.saved.history, err = a.readHistory(ctx); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	o := fleet.Options{
		Table: a.db.Nodes, Refresh: a.db.Refresh, KV: a.db.KV, Now: time.Now, SharedNow: a.db.Jobs.Now, Logger: a.log,
		Client: &http.Client{Timeout: pokeClientTimeout}, Fingerprint: func() string { return a.ports.tls.Fingerprint() },
		Replaced: time.Since(a.saved.history.Since).Abs() < replacedTime,
		Node: nodes.Node{ID: host + "-" + strings.ToLower(rand.Text()[:6]), Version: a.opts.Version,
			Settings: fleet.NewSettings(cfg.SharedSettings())},
	}
	if cfg.Nodes.Secret != "" && !a.opts.Offline {
		if o.Secret, err = a.opts.Secrets(ctx, cfg.Nodes.Secret); err != nil {
			return fmt.Errorf("nodes.secret: %w", err)
		}
	}
	if !a.opts.Headless {
		o.News = func() { a.saved.others.wake() }
		o.Recovered = func() { a.mirror.NoteDatabaseBack() }
		o.Recheck, o.Flush = func(t request.Invalidation) { a.mirror.RecheckWrite(t) }, func(ctx context.Context) { a.mirror.Flush(ctx) }
	}
	a.saved.fleet = fleet.New(o)
	a.db.Nodes.SetBarrier(a.saved.fleet.Await)
	return nil
}

// joinFleet registers this process with the others on the database. From then on it may answer from memory.
func (a *App) joinFleet(ctx context.Context, changes *feed.Feed, watches *watch.Book, rows *tables.Tables) error {
	if a.saved.fleet == nil {
		return nil
	}
	a.saved.others = &others{app: a, feed: changes, watches: watches, tables: rows,
		news: make(chan struct{}, 1), last: map[string]int64{}, processes: 1}
	for _, src := range a.sources {
		n, err := a.db.ReadLastChange(ctx, src.Name)
		if err != nil {
			return err
		}
		a.saved.others.last[src.Name] = n
	}
	if err := understudy.WriteJSON(ctx, a.db.KV, historyKey, a.saved.history); err != nil {
		return err
	}
	err := a.db.Nodes.SetOthers(ctx, nodes.Others{Written: a.mirror.NoteWriteElsewhere, Deleted: a.mirror.NoteDeletionElsewhere})
	if err != nil {
		return err
	}
	a.saved.listen(func(s request.PageSaved) {
		if len(s.Changes) > 0 {
			a.saved.fleet.NotifyOthers()
		}
	})
	for name, c := range a.clients {
		a.saved.fleet.AddBudget(name, c.Budget(), c.Breaker())
	}
	a.tasks = append(a.tasks, a.saved.fleet.Run, a.saved.others.run)
	return a.saved.fleet.Join(ctx, cmp.Or(a.opts.Settings.Nodes.URL, a.ports.viewer()))
}

// others passes on the changes that other processes save.
type others struct {
	app     *App
	feed    *feed.Feed
	watches *watch.Book
	tables  *tables.Tables
	news    chan struct{} // has a value if there may be changes

	// Only the goroutine of run uses these fields.
	last      map[string]int64 // the number of the last change passed on, by source
	processes int              // the number of processes on the database
}

// wake makes run look for changes. It does not wait.
func (o *others) wake() {
	if o != nil {
		understudy.Wake(o.news)
	}
}

// run passes on the changes of other processes until ctx ends. It has a goroutine of its own, so that no lease waits for it.
func (o *others) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.news:
			o.follow(ctx)
		}
	}
}

// follow passes on the changes of other processes since the last call. Changes of this process are passed on again, which does no harm.
func (o *others) follow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	if n := o.app.saved.fleet.CountLiving(); n != o.processes {
		o.processes = n
		o.app.jobs.Wake()
	}
	for _, src := range o.app.sources {
		if err := o.followSource(ctx, src.Name); err != nil && !errors.Is(err, context.Canceled) {
			o.app.log.Warn("the changes of other processes could not be read; they are read a little later", "source", src.Name, "error", err)
		}
	}
}

// followSource passes on the changes of one source.
func (o *others) followSource(ctx context.Context, source string) error {
	newest, err := o.app.db.ReadLastChange(ctx, source)
	if err != nil || newest == o.last[source] {
		return err
	}
	if o.app.saved.fleet.IsAlone() {
		o.last[source] = newest
		return nil
	}
	o.app.db.Nodes.NoteSaves()
	for o.last[source] < newest {
		changes, err := o.app.db.ReadChanges(ctx, source, o.last[source], changesAtOnce)
		if err != nil {
			return err
		}
		if len(changes) == 0 {
			break // the records are erased
		}
		o.app.mirror.NoteChangesElsewhere(changes)
		o.app.crawler.NoteChangesElsewhere(changes)
		o.last[source] = changes[len(changes)-1].N
	}
	o.last[source] = newest
	o.feed.NotifySource(source)
	o.watches.Notify()
	o.tables.Notify()
	return nil
}

// readNodes returns the state of each process on the same database, and whether this process may answer from memory. It
// does not read the database. It returns no states if other processes are not possible.
func (h *figures) readNodes() (all []request.Node, current bool) {
	if h.fleet == nil {
		return nil, true
	}
	for _, n := range h.fleet.Nodes() {
		url, _, _ := strings.Cut(n.URL, "#")
		all = append(all, request.Node{ID: n.ID, Self: n.ID == h.fleet.ID(), URL: url, Version: n.Version,
			Lease: n.Left.Milliseconds(), Behind: n.Behind})
	}
	return all, h.fleet.IsCurrent()
}

// isLeader reports whether this process does the work that one process does for all processes on the database.
func (a *App) isLeader() bool { return a.saved.fleet == nil || a.saved.fleet.IsLeader() }

// readSharing returns whether other processes serve the feed of the same database.
func (a *App) readSharing(ctx context.Context) (feed.Sharing, error) {
	if a.saved.fleet == nil {
		return feed.Alone, nil
	}
	all, err := a.db.Nodes.List(ctx)
	if !a.saved.replaced && slices.ContainsFunc(all, func(n nodes.Node) bool { return n.Left > 0 }) {
		return feed.Joined, err
	}
	return feed.Shared, err
}
