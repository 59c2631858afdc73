// This file keeps the tables of one source current.

package tables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/kit/retry"
)

const (
	connectTimeout     = 10 * time.Second
	transactionTimeout = time.Minute
	maxSweep           = time.Hour       // the maximum time for sweeping large tables when something was lost or erased
	pollInterval       = 3 * time.Second // how often changes and commands are read if there is no notification
	refillInterval     = time.Hour       // how often tables are filled under row rules, which can show or hide a record without a change of it
	batch              = query.MaxValues // how many changes are read, and how many rows of a kind are written at once
	// The first and the longest pause after an error.
	minPause, maxPause = 100 * time.Millisecond, time.Minute
)

// follower keeps the tables of one source current, under one policy.
type follower struct {
	o        *Options
	gate     *access.Gate
	caller   understudy.Caller
	target   Target
	source   string        // the name of the source
	state    string        // the quoted name of the state table
	policy   string        // what decides what the role may see
	narrowed bool          // whether narrow has succeeded; only SetPolicy and then run use it
	wake     chan struct{} // has a value if there may be changes
	stop     context.CancelFunc
	done     chan struct{} // closed when run has ended

	mu  sync.Mutex
	why string // why the tables are paused; "" if they are not
}

func newFollower(o *Options, gate *access.Gate, t Target) *follower {
	c := understudy.Caller{Name: "tables " + t.Source.Name, Source: t.Source.Name, Grant: &understudy.Grant{Role: t.Role}}
	return &follower{o: o, gate: gate, caller: c, target: t, source: t.Source.Name, wake: make(chan struct{}, 1),
		state: pgx.Identifier{t.Schema, stateTable}.Sanitize(), policy: gate.PolicyFingerprint(c) + " " + strings.Join(t.Kinds, " ")}
}

// session is a connection to the database of the tables.
type session struct {
	f     *follower
	conn  *pgx.Conn
	early map[string]*understudy.Record // records by id that fill has read before the lock
	after int64                         // a change before which early was not read
	fills int64                         // the number of fills that were requested before early was read
}

// use opens a connection, creates the tables that are missing, and calls do.
func (f *follower) use(ctx context.Context, do func(s *session) error) error {
	config, err := pgx.ParseConfig(f.target.DSN.Reveal())
	if err != nil {
		return err // pgx leaves the password out
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // other clients change the tables, so no statement stays prepared
	config.ConnectTimeout = connectTimeout
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		_ = conn.Close(ctx) // what is committed stays
	}()
	s := &session{f: f, conn: conn}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	return do(s)
}

// limit returns ctx, with a deadline after transactionTimeout if it has none.
func limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, transactionTimeout)
}

// run locks the states of the source and runs do, in one transaction. If ctx has no deadline, it takes at most transactionTimeout.
func (s *session) run(ctx context.Context, do func(t *transaction)) error {
	ctx, cancel := limit(ctx)
	defer cancel()
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		t := &transaction{f: s.f, ctx: ctx, tx: tx, states: map[string]*state{}}
		if t.err = t.lock(); t.err == nil {
			do(t)
		}
		return t.err
	})
}

// begin starts the follower, and end stops it.
func (f *follower) begin() {
	ctx, stop := context.WithCancel(context.Background())
	f.stop, f.done = stop, make(chan struct{})
	go func() {
		defer close(f.done)
		for n := 0; ctx.Err() == nil; n++ {
			err := error(nil)
			if f.o.IsLeader() {
				err = f.use(ctx, func(s *session) error { return s.keepCurrent(ctx, &n) })
			} else {
				n = 0 // a new leader does not wait long
			}
			if ctx.Err() == nil {
				f.note(err)
			}
			_ = retry.Wait(ctx, retry.Backoff(minPause, maxPause, n)) // the loop ends with ctx
		}
	}()
}

func (f *follower) end() {
	f.stop()
	<-f.done
}

// note stores whether the tables are paused, and logs a new reason or the end of the pause.
func (f *follower) note(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.why
	if f.why = ""; err != nil {
		f.why = understudy.PlainText(err)
	}
	if f.why != "" && f.why != before {
		f.o.Logger.Warn("tables paused; trying again", "source", f.source, "why", f.why)
	} else if before != "" && f.why == "" {
		f.o.Logger.Info("tables are written again", "source", f.source)
	}
}

// keepCurrent applies changes and fills tables until ctx ends, or until another process is the leader. It sets failures to 0 when
// the tables are current.
func (s *session) keepCurrent(ctx context.Context, failures *int) error {
	err := s.narrow(ctx)
	poll, refill := time.NewTicker(pollInterval), time.NewTicker(refillInterval)
	defer poll.Stop()
	defer refill.Stop()
	for err == nil && ctx.Err() == nil && s.f.o.IsLeader() {
		if err = cmp.Or(s.follow(ctx), s.fillWanted(ctx)); err != nil {
			break
		}
		*failures = 0
		s.f.note(nil)
		select {
		case <-refill.C:
			if s.f.gate.HasRowRules(s.f.caller, s.f.source) {
				err = s.requestFill(ctx, s.f.target.Kinds)
			}
		case <-s.f.wake:
		case <-poll.C:
		case <-ctx.Done():
		}
	}
	return err
}

// follow applies all changes after the stored position.
func (s *session) follow(ctx context.Context) error {
	at := int64(0)
	limited, cancel := limit(ctx)
	err := s.conn.QueryRow(limited, "SELECT position FROM "+s.f.state+" WHERE source = $1 AND kind = ''", s.f.source).Scan(&at)
	cancel()
	for err == nil {
		var changes []understudy.Change
		if changes, err = s.f.o.Store.ReadChanges(ctx, s.f.source, at, batch); err != nil || len(changes) == 0 {
			break
		}
		ids := map[string][]string{}
		for _, ch := range changes {
			if slices.Contains(s.f.target.Kinds, ch.Kind) {
				ids[ch.Kind] = append(ids[ch.Kind], ch.ID)
			}
		}
		at = changes[len(changes)-1].N
		err = s.sync(ctx, ids, at)
	}
	return err
}

// errPolicy means that another process decides what the tables contain.
var errPolicy = errors.New("another process has written the tables under other roles or settings; load the same settings in all processes")

// sync makes the rows of records equal to what the role sees of them now: it writes and deletes rows in one transaction, which
// also moves the position. The records are read after the lock, so that no later state is overwritten by an earlier one. early has
// only records that have not changed and were not erased since.
func (s *session) sync(ctx context.Context, ids map[string][]string, position int64) error {
	return s.run(ctx, func(t *transaction) {
		var changes []understudy.Change
		if t.states[""].policy != s.f.policy {
			t.err = errPolicy
		} else if len(s.early) > 0 {
			changes, t.err = s.f.o.Store.ReadChanges(ctx, s.f.source, s.after, batch)
		}
		for _, ch := range changes {
			delete(s.early, ch.ID)
		}
		if len(changes) == batch { // there may be more
			clear(s.early)
		}
		for kind, all := range ids {
			if t.states[kind].wanted != s.fills { // see AwaitErased
				clear(s.early)
			}
			if slices.Sort(all); t.err == nil {
				t.write(t.states[kind], slices.Compact(all), s.early)
			}
		}
		t.execute("UPDATE "+s.f.state+" SET position = $2 WHERE source = $1 AND kind = '' AND position < $2", s.f.source, position)
	})
}

// write writes the rows of records, which are sorted by id, and deletes those of which the role sees nothing.
func (t *transaction) write(st *state, ids []string, early map[string]*understudy.Record) {
	canFind := t.f.gate.RecordFilter(t.f.caller, t.f.source, st.name)
	var shown []*access.View
	var found []string
	show := func(r *understudy.Record) bool {
		if t.err == nil && (canFind == nil || canFind(r)) {
			page := understudy.Page{Key: understudy.Key{Source: t.f.source}, Kind: st.name, Status: http.StatusOK, Body: r.Body}
			v, err := t.f.gate.MakeView(t.f.caller, &page)
			t.err, shown, found = err, append(shown, v), append(found, r.ID)
		}
		return t.err == nil
	}
	unread := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return early[id] != nil && show(early[id]) })
	if len(unread) > 0 {
		q := query.RecordQuery{Source: t.f.source, Kinds: []string{st.name}, IDs: unread, ExpectedRows: len(unread)}
		err := t.f.o.Store.Seek(t.ctx, q, func(h query.Hit) bool { return show(h.Record) })
		t.err = cmp.Or(t.err, err)
	}
	if t.err == nil && len(found) > 0 {
		t.err = understudy.RecordAudit(t.ctx, t.f.o.Audit, understudy.AuditEntry{Caller: t.f.caller, Action: understudy.ActionList,
			What: "tables", Source: t.f.source, Kind: st.name, IDs: found, Rows: len(found)})
		e := encoder{st: st, isShown: func(field string) bool { return t.f.isShown(st, field) }}
		if e.encode(shown, found); e.changed {
			t.storeColumns(st, false)
		}
		t.replace(st, e.out)
	}
	slices.Sort(found)
	gone := slices.DeleteFunc(ids, func(id string) bool { _, ok := slices.BinarySearch(found, id); return ok })
	if len(gone) > 0 {
		t.execute("DELETE FROM "+t.f.relation(st.relation)+" WHERE "+st.id().sql()+" = ANY($1)", gone)
	}
}

// replace writes rows. A row that does not change is not written.
func (t *transaction) replace(st *state, rows []byte) {
	var names, keys, defs, sets, olds, news []string
	for i, c := range st.columns {
		key := columnKey(i)
		names, keys, defs = append(names, c.sql()), append(keys, key), append(defs, key+" "+c.Type)
		sets, olds, news = append(sets, c.sql()+" = EXCLUDED."+c.sql()), append(olds, "t."+c.sql()), append(news, "EXCLUDED."+c.sql())
	}
	list := func(all []string) string { return strings.Join(all, ", ") }
	t.execute(fmt.Sprintf("INSERT INTO %s AS t (%s) SELECT %s FROM jsonb_to_recordset($1::jsonb) AS r (%s) ON CONFLICT (%s) "+
		"DO UPDATE SET %s WHERE (%s) IS DISTINCT FROM (%s)", t.f.relation(st.relation), list(names), list(keys), list(defs), st.id().sql(),
		list(sets), list(olds), list(news)), string(rows))
}

// fillWanted fills the tables for which a fill was requested.
func (s *session) fillWanted(ctx context.Context) error {
	var wanted []*state
	err := s.run(ctx, func(t *transaction) {
		if t.states[""].policy != s.f.policy {
			t.err = errPolicy
		}
		for _, st := range t.states {
			if st.kind != nil && st.wanted > st.filled {
				wanted = append(wanted, st)
			}
		}
	})
	for _, st := range wanted {
		if s.fills = st.wanted; err == nil {
			err = s.fill(ctx, st.name)
		}
		if err == nil && st.filled > 0 {
			err = s.sweep(ctx, st.name)
		}
		if err == nil {
			limited, cancel := limit(ctx)
			_, err = s.conn.Exec(limited, "UPDATE "+s.f.state+" SET filled = greatest(filled, $3) WHERE source = $1 AND kind = $2", s.f.source,
				st.name, st.wanted)
			cancel()
		}
	}
	return err
}

// fill writes a row for every record of a kind.
func (s *session) fill(ctx context.Context, kind string) (err error) {
	head, err := s.f.o.Store.ReadLastChange(ctx, s.f.source)
	if err != nil {
		return err
	}
	s.early, s.after = map[string]*understudy.Record{}, head
	flush := func() error {
		err := s.sync(ctx, map[string][]string{kind: slices.Collect(maps.Keys(s.early))}, 0)
		clear(s.early)
		s.after = head // Seek may have read the next records already, but after the batch before this one
		if err == nil {
			head, err = s.f.o.Store.ReadLastChange(ctx, s.f.source)
		}
		return cmp.Or(err, s.follow(ctx))
	}
	q := query.RecordQuery{Source: s.f.source, Kinds: []string{kind}, OldestFirst: true, ExpectedRows: 1 << 62}
	seekErr := s.f.o.Store.Seek(ctx, q, func(h query.Hit) bool {
		if s.early[h.Record.ID] = h.Record; len(s.early) == batch {
			err = flush()
		}
		return err == nil
	})
	return cmp.Or(err, seekErr, flush())
}

// sweep deletes the rows whose records are not stored or may not be seen, and corrects the others.
func (s *session) sweep(ctx context.Context, kind string) (err error) {
	for last, more := "", true; err == nil && more; {
		var ids []string
		err = s.run(ctx, func(t *transaction) {
			id := t.states[kind].id().sql()
			rows, _ := t.tx.Query(t.ctx, fmt.Sprintf("SELECT %[2]s FROM %[1]s WHERE %[2]s > $1 ORDER BY 1 LIMIT %[3]d",
				t.f.relation(t.states[kind].relation), id, batch), last)
			ids, t.err = pgx.CollectRows(rows, pgx.RowTo[string]) // it returns the error of Query, too
		})
		if more = len(ids) > 0; more && err == nil {
			last = ids[len(ids)-1]
			err = cmp.Or(s.sync(ctx, map[string][]string{kind: ids}, 0), s.follow(ctx))
		}
	}
	return err
}

// requestFill makes the leader fill the tables of kinds.
func (s *session) requestFill(ctx context.Context, kinds []string) error {
	ctx, cancel := limit(ctx)
	defer cancel()
	_, err := s.conn.Exec(ctx, "UPDATE "+s.f.state+" SET wanted = wanted + 1 WHERE source = $1 AND kind = ANY($2)", s.f.source, kinds)
	return err
}
