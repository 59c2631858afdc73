// Package fleet lets several processes ("nodes") on one database behave as one.
//
// Each node has a row in the table of nodes. The row contains the node's lease, and up to which position the node's memory
// contains the changes of the other nodes. A node may answer from memory while its lease lasts. Some calls make something
// in the memory of other nodes wrong: a write, a purge, an erasure, a lost permission. Such a call returns only after
// every other node has dropped it or the node's lease has ended. So a read that begins after the call has returned sees
// the change, even if messages were lost. Pokes over HTTP only shorten the wait.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/internal/certificate"
	"understudy/internal/store/nodes"
	"understudy/kit/retry"
	"understudy/request"
)

const (
	// renewInterval is how often a node renews its lease and reads the changes of other nodes, if it receives no poke.
	renewInterval = 250 * time.Millisecond
	// renewTimeout is the maximum time for a renewal. If it fails, the lease ends.
	renewTimeout = 5 * time.Second
	// margin is how much earlier the lease ends for the node itself than for the database. So its clock may lose 10 % of the time.
	margin = 200 * time.Millisecond
	// maxAwait is the maximum time that a call waits for other nodes. By then the leases of nodes that do not answer have ended.
	maxAwait = nodes.Lease + time.Second
	// noticeDelay is how long changes are collected before the other nodes are notified.
	noticeDelay = 20 * time.Millisecond
	// The first and the longest pause between two checks of what the other nodes have seen.
	minAwaitPause, maxAwaitPause = 2 * time.Millisecond, 50 * time.Millisecond
)

// Table is the table of nodes; nodes.Table implements it.
type Table interface {
	Renew(ctx context.Context, n nodes.Node) (all []nodes.Node, err error)
	List(ctx context.Context) (all []nodes.Node, err error)
	Remove(ctx context.Context, id string) error
	ReplaceParts(ctx context.Context, writes int64, parts string) (done bool, err error)
	Claim(ctx context.Context, key int64, id string) (claimed bool, err error)
	IsClaimed(ctx context.Context, key int64) (claimed bool, err error)
	EndClaim(ctx context.Context, key int64, id string) error
}

// Options are the options of a fleet. Table and Node.ID are required.
type Options struct {
	Table Table
	Node  nodes.Node // the ID, URL, Version and Settings of this node
	// Secret authenticates the pokes between nodes. Without a secret no pokes are sent.
	Secret understudy.Secret
	// Refresh loads what other nodes have changed. It is called if a lease has ended, before the next lease is valid.
	Refresh func(ctx context.Context) error
	// News is called after each renewal and each poke: other nodes may have saved something. It must not wait. It may be nil.
	News func()
	// Recovered is called after a renewal that has succeeded after others had failed. It may be nil.
	Recovered func()
	// KV has the notes of writes; nil if no node sends writes. Recheck is called with each write of another node whose result is
	// not known. Flush tells the store the results of the writes of this node.
	KV      understudy.KV
	Recheck func(t request.Invalidation)
	Flush   func(ctx context.Context)
	// Replaced says that other nodes may have leases from a database that was replaced by this one.
	Replaced bool
	Client   *http.Client // sends the pokes; nil means http.DefaultClient
	// Fingerprint returns the fingerprint of the key with which this node serves TLS, or "" without TLS. It may be nil.
	Fingerprint func() string
	Now         func() time.Time
	// SharedNow is a clock that all nodes share: the database's. The zero value means Now.
	SharedNow func() time.Time
	Logger    *slog.Logger
}

// Fleet is this node's membership. It is safe for concurrent use.
type Fleet struct {
	o     Options
	clock bootClock
	quiet int64                   // the time (see uptime) until which other nodes may have leases from a former database
	until atomic.Int64            // the time (see uptime) until which memory is current; 0 before the first lease
	all   atomic.Pointer[renewal] // the last renewal
	wake  chan struct{}
	pokes pokes
	known *http.Client // sends pokes to nodes that serve TLS

	budgets map[string]*budget // by source

	writes    writes
	rechecked int64       // when (see uptime) writes were last rechecked; only the goroutine that renews the lease uses it
	noticed   atomic.Bool // whether a message about new changes will be sent soon
}

// renewal is the result of renewing the lease.
type renewal struct {
	all []nodes.Node
	at  int64 // the time (see uptime) at which the renewal began
}

// New returns the membership of a node that has not joined yet.
func New(o Options) *Fleet {
	understudy.SetDefaults(&o.Logger, &o.Now)
	if o.SharedNow == nil {
		o.SharedNow = o.Now
	}
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	if o.News == nil {
		o.News = func() {}
	}
	f := &Fleet{o: o, clock: bootClock{now: o.Now, start: o.Now()}, wake: make(chan struct{}, 1), budgets: map[string]*budget{}}
	if o.Replaced {
		f.quiet = f.uptime() + int64(nodes.Lease)
	}
	f.known = &http.Client{Transport: &http.Transport{TLSClientConfig: certificate.NewClientConfig(f.isNode)}}
	f.pokes.sending = make(chan struct{}, maxPokes)
	f.writes = writes{open: map[int64]request.Invalidation{}, owed: map[int64]bool{}, noting: make(chan struct{}, 1)}
	return f
}

// IsCurrent reports whether memory contains every change for which other nodes have waited. It is fast.
func (f *Fleet) IsCurrent() bool { return f.uptime() < f.until.Load() }

// uptime returns a time in nanoseconds. If the system has such a clock, it includes the time in which the machine was suspended.
func (f *Fleet) uptime() int64 {
	if t, ok := f.clock.read(); ok {
		return t
	}
	return int64(f.o.Now().Sub(f.clock.start)) + 1 // so that it is never 0
}

// ID returns the name of this node.
func (f *Fleet) ID() string { return f.o.Node.ID }

// Nodes returns all nodes as of the last renewal, including this node, with the present remaining time of their leases.
func (f *Fleet) Nodes() []nodes.Node {
	last := f.all.Load()
	if last == nil {
		return nil
	}
	all, now := slices.Clone(last.all), f.uptime()
	for i := range all {
		all[i].Left = max(all[i].Left-time.Duration(now-last.at), 0)
		if all[i].ID == f.o.Node.ID {
			all[i].Left = max(time.Duration(f.until.Load()-now), 0)
		}
	}
	return all
}

// Join registers the node and returns when its memory is current. url is the address at which other nodes reach it. If a
// live node has other settings, Join returns an error that names the setting. Call Join before Run.
func (f *Fleet) Join(ctx context.Context, url string) error {
	f.o.Node.URL = url
	all, err := f.o.Table.List(ctx)
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	for _, n := range all {
		if n.Left <= 0 || n.ID == f.o.Node.ID || n.Settings == f.o.Node.Settings {
			continue
		}
		if name := findDifference(n.Settings, f.o.Node.Settings, n.Version == f.o.Node.Version); name != "" {
			return fmt.Errorf("fleet: the process %s on the same database has another %s; all processes of a database need the same "+
				"settings: change it here, or stop that process first", n.ID, name)
		}
	}
	if err := f.renew(ctx); err != nil {
		return err
	}
	f.sendNotice() // so that the others learn of this node
	return nil
}

// Run renews the lease until ctx ends, and then removes the node. It returns ErrReplaced if another server answers for the database.
func (f *Fleet) Run(ctx context.Context) error {
	timer := time.NewTimer(renewInterval)
	defer timer.Stop()
	for failed := false; ; {
		select {
		case <-ctx.Done():
			f.leave(context.WithoutCancel(ctx))
			return nil
		case <-timer.C:
		case <-f.wake:
		}
		err := f.renew(ctx)
		if errors.Is(err, understudy.ErrReplaced) {
			return err
		}
		if ctx.Err() == nil && (err != nil) != failed {
			if failed = err != nil; failed {
				f.o.Logger.Warn("fleet: the lease of this process cannot be renewed; it answers from memory only as during an outage", "error", err)
			} else {
				f.o.Logger.Info("fleet: the lease of this process is renewed again")
				if f.o.Recovered != nil {
					f.o.Recovered()
				}
			}
		}
		timer.Reset(renewInterval)
	}
}

// renew renews the lease. Afterwards memory contains all changes that were committed before the call.
func (f *Fleet) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	if err := f.beginRenewal(ctx, cancel); err != nil {
		return err
	}
	begin := f.uptime()
	node := f.o.Node
	if f.o.Fingerprint != nil && f.o.Fingerprint() != "" {
		node.URL += "#" + f.o.Fingerprint() // it may have changed
	}
	all, err := f.o.Table.Renew(ctx, node)
	ended := !f.IsCurrent()
	if err == nil && begin >= f.rechecked+int64(recheckInterval) {
		f.recheckWrites(ctx, all)
		f.rechecked = begin
	}
	if err == nil && ended {
		// Before the row said that this node is alive, the other nodes did not wait for it.
		err = f.o.Refresh(ctx)
	}
	if err != nil {
		return err
	}
	if err := f.splitBudgets(ctx, all, ended); err != nil {
		f.o.Logger.Warn("fleet: the budgets of requests could not be divided", "error", err)
	}
	f.until.Store(begin + int64(nodes.Lease-margin))
	f.all.Store(&renewal{all, begin})
	f.cleanNote(ctx)
	f.o.News()
	return nil
}

// isOther reports whether a node is a live node other than this one.
func (f *Fleet) isOther(n nodes.Node) bool { return n.ID != f.o.Node.ID && n.Left > 0 }

// leave removes the node, so that no other node waits for it. If it has writes that have not ended, others must recheck them instead.
func (f *Fleet) leave(ctx context.Context) {
	f.until.Store(0)
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	if !f.cleanNote(ctx) {
		return
	}
	if err := f.o.Table.Remove(ctx, f.o.Node.ID); err != nil {
		f.o.Logger.Warn("fleet: this process could not be removed from the table of processes", "error", err)
	}
}

// Await returns when every other node has seen the change with a number or has lost its lease, after at most 3 s.
func (f *Fleet) Await(position int64) {
	ctx, cancel := context.WithTimeout(context.Background(), maxAwait)
	defer cancel()
	_ = retry.Wait(ctx, time.Duration(f.quiet-f.uptime())) // ctx ends later
	for n := 0; ; n++ {
		all, err := f.o.Table.List(ctx)
		if err == nil {
			all = slices.DeleteFunc(all, func(n nodes.Node) bool { return !f.isOther(n) || n.Seen >= position })
			if len(all) == 0 {
				return
			}
			f.sendPokes(all)
		}
		if retry.Wait(ctx, retry.Backoff(minAwaitPause, maxAwaitPause, n)) != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				f.o.Logger.Warn("fleet: other processes did not confirm a change in time", "processes", len(all), "error", err)
			}
			return
		}
	}
}

// NotifyOthers notifies the other nodes soon that there are new changes. Without a notice they find the changes a little
// later. NotifyOthers does not wait, and many calls send few messages.
func (f *Fleet) NotifyOthers() {
	if !f.noticed.Swap(true) {
		time.AfterFunc(noticeDelay, f.sendNotice)
	}
}

// sendNotice pokes all other nodes.
func (f *Fleet) sendNotice() {
	f.noticed.Store(false)
	if all := slices.DeleteFunc(f.Nodes(), func(n nodes.Node) bool { return !f.isOther(n) }); len(all) > 0 {
		f.sendPokes(all)
	}
}

// findDifference returns the name of the first setting that differs between two texts of NewSettings, or "". A setting that
// only one of two versions of the program knows does not count.
func findDifference(a, b string, isSameVersion bool) string {
	mine, other := parseSettings(a), parseSettings(b)
	names := slices.AppendSeq(slices.Collect(maps.Keys(mine)), maps.Keys(other))
	slices.Sort(names)
	for _, name := range names {
		if mine[name] != other[name] && (isSameVersion || mine[name] != "" && other[name] != "") {
			return name
		}
	}
	return ""
}
