// This file starts and stops the followers, and serves commands.

// Package tables keeps a typed table for each kind of records in a PostgreSQL database of the user, as a role sees the
// records.
//
// The unit of work is a set of record ids. One transaction locks the state of the source's tables, reads the records of
// these ids from the store, and makes their rows equal to what the role sees now (session.sync). Changes, fills, erased
// records and lost permissions all name ids, so a repeated or late call does no harm. The same transaction stores up to which
// change the tables are current.
package tables

import (
	"cmp"
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
	"understudy/internal/access"
	"understudy/internal/jsonapi"
	"understudy/internal/query"
	"understudy/kit/suggest"
	"understudy/spec"

	"understudy/kit/lockwatch"
)

// Store has the changes and records. store.DB implements it.
type Store interface {
	ReadChanges(ctx context.Context, source string, after int64, limit int) ([]understudy.Change, error)
	ReadLastChange(ctx context.Context, source string) (int64, error)
	Seek(ctx context.Context, q query.RecordQuery, yield func(query.Hit) bool) error
}

// Target says which tables a source has, and where.
type Target struct {
	Source *spec.Source
	DSN    understudy.Secret
	Schema string
	Role   string // the role whose view of the records the tables contain
	Kinds  []string
}

// Check returns an error if a role cannot have a table of one of the kinds.
func (t Target) Check(gate *access.Gate) error {
	c, sp := understudy.Caller{Name: "tables", Grant: &understudy.Grant{Role: t.Role}}, t.Source.Spec
	for _, name := range t.Kinds {
		switch k := sp.Kind(name); {
		case k == nil:
			return fmt.Errorf("spec %s has no kind %q%s", sp.Name, understudy.Clip(name), suggest.Hint(name, sp.KindNames()))
		case len(k.ID) == 0:
			return fmt.Errorf("%s: its records have no id, so they cannot be rows of a table", name)
		case !gate.CanSeeIDs(c, t.Source.Name, k):
			return fmt.Errorf("%s: the role %s does not fully see the id of its records; show it, or remove the kind from kinds", name, t.Role)
		}
	}
	return nil
}

// Options are the dependencies of Tables. Store and IsLeader are required.
type Options struct {
	Store    Store
	IsLeader func() bool        // whether this process writes the tables; others on the same database do not
	Audit    understudy.Auditor // records which records were written; nil if nothing is recorded
	Logger   *slog.Logger
}

// Tables keeps the tables of all sources current until Close. It is safe for concurrent use.
type Tables struct {
	o         Options
	followers atomic.Pointer[map[string]*follower] // by source

	mu lockwatch.Mutex // held while followers are replaced
}

// New returns Tables without a target.
func New(o Options) *Tables {
	understudy.SetDefaults(&o.Logger, nil)
	t := &Tables{o: o}
	t.followers.Store(&map[string]*follower{})
	return t
}

// The maximum time for narrowing all tables in SetPolicy, for deleting erased rows, and for reading the state of the tables.
const narrowTimeout, eraseTimeout, statusTimeout = 20 * time.Second, 30 * time.Second, 5 * time.Second

// SetPolicy replaces the targets and the gate. It returns when the tables contain nothing that their role may not see. If a
// database does not answer in time, the error says so, and its tables are narrowed before anything else is written to them.
func (t *Tables) SetPolicy(ctx context.Context, gate *access.Gate, targets []Target) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	former, next := *t.followers.Load(), map[string]*follower{}
	for _, target := range targets {
		f := newFollower(&t.o, gate, target)
		if old := former[f.source]; old != nil && old.policy == f.policy && old.state == f.state &&
			old.target.DSN.Equal(target.DSN.Reveal()) {
			f = old
		}
		next[f.source] = f
	}
	for source, old := range former {
		if next[source] != old {
			old.end()
		}
	}
	t.followers.Store(&next)
	ctx, cancel := context.WithTimeout(ctx, narrowTimeout)
	defer cancel()
	var errs []error
	for _, source := range slices.Sorted(maps.Keys(next)) {
		f := next[source]
		if former[source] == f {
			continue
		}
		if err := f.use(ctx, func(s *session) error { return s.narrow(ctx) }); err != nil {
			f.note(err)
			errs = append(errs, fmt.Errorf("the tables of %s could not be adapted, and may contain what their role %s has lost; this is "+
				"done as soon as their database answers: %w", source, f.target.Role, err))
		}
		f.begin()
	}
	return errors.Join(errs...)
}

// Close stops the tables.
func (t *Tables) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range *t.followers.Load() {
		f.end()
	}
	return nil
}

// Notify tells that there may be new changes. It never blocks.
func (t *Tables) Notify() {
	for _, f := range *t.followers.Load() {
		understudy.Wake(f.wake)
	}
}

// AwaitErased returns when the tables of a source contain no row of a record that was erased before the call. No change names
// the records that were erased for their age, so all rows are compared with the store. A fill that has read such records before
// notices the new request, and reads them again.
func (t *Tables) AwaitErased(ctx context.Context, source string, aged bool) error {
	f := (*t.followers.Load())[source]
	if f == nil {
		return nil
	}
	kinds, timeout := []string(nil), eraseTimeout
	if aged {
		kinds, timeout = f.target.Kinds, maxSweep
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := f.use(ctx, func(s *session) error {
		_, err := s.conn.Exec(ctx, "UPDATE "+f.state+" SET wanted = wanted + 1 WHERE source = $1 AND kind = ANY($2) AND wanted > filled",
			source, kinds)
		err = cmp.Or(err, s.follow(ctx))
		for _, kind := range kinds {
			if err == nil {
				err = s.sweep(ctx, kind)
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("tables: the rows of erased records of %s are not deleted yet: %w", source, err)
	}
	return nil
}

// Status is the state of one table.
type Status struct {
	Source   string `json:"source"`
	Kind     string `json:"kind"`
	Table    string `json:"table"`
	Rows     int64  `json:"rows"`
	Position int64  `json:"position"` // the change up to which the table is current
	Behind   int64  `json:"behind"`   // the number of changes of the source after it
	State    string `json:"state"`    // ok, filling or paused
	Why      string `json:"why,omitempty"`
}

// ReadStatus returns the state of every table, by source and kind. It asks the databases.
func (t *Tables) ReadStatus(ctx context.Context) (all []Status, err error) {
	followers := *t.followers.Load()
	for _, source := range slices.Sorted(maps.Keys(followers)) {
		f := followers[source]
		head, err := t.o.Store.ReadLastChange(ctx, source)
		if err != nil {
			return nil, err
		}
		found := make([]Status, len(f.target.Kinds))
		ctx, cancel := context.WithTimeout(ctx, statusTimeout)
		err = f.use(ctx, func(s *session) error {
			return s.run(ctx, func(t *transaction) {
				for i, kind := range f.target.Kinds {
					st, at := t.states[kind], t.states[""].position
					found[i] = Status{Table: f.relation(st.relation), Position: at, Behind: max(head-at, 0), State: "ok"}
					if st.wanted > st.filled {
						found[i].State = "filling"
					}
					if t.err == nil {
						t.err = t.tx.QueryRow(ctx, "SELECT count(*) FROM "+found[i].Table).Scan(&found[i].Rows)
					}
				}
			})
		})
		cancel()
		f.mu.Lock()
		why := f.why
		f.mu.Unlock()
		if err != nil {
			why = cmp.Or(why, understudy.PlainText(err))
		}
		for i := range found {
			found[i].Source, found[i].Kind, found[i].Why = source, f.target.Kinds[i], why
			if why != "" {
				found[i].State = "paused"
			}
		}
		all = append(all, found...)
	}
	return all, nil
}

// Command is the body of a command. If it names a kind, the table of the kind is filled again; readers see no empty table
// meanwhile. The source may be left out if only one has such a table.
type Command struct {
	Source string `json:"source,omitempty"`
	Kind   string `json:"kind,omitempty"`
}

// Answer is the answer to a command: the state of all tables.
type Answer struct {
	Tables []Status `json:"tables"`
}

// Path is the path of the handler.
const Path = "/-/tables"

const maxCommand = 4 << 10 // the maximum size of a request body, in bytes

// NewHandler returns the handler of POST Path with a Command, for callers on this machine with the token.
func (t *Tables) NewHandler(token string) http.Handler {
	o := &jsonapi.Options{Identify: jsonapi.AuthorizeCommand(token), Methods: []string{http.MethodPost}, MaxBody: maxCommand,
		BodyError: "the request body is not valid: "}
	return jsonapi.HandleBody(o, func(ctx context.Context, c understudy.Caller, _ *http.Request, r *Command) (any, error) {
		if r.Kind != "" {
			e := understudy.AuditEntry{Action: understudy.ActionAdminister, What: "tables rebuild", Source: r.Source}
			if err := jsonapi.RecordAudit(ctx, t.o.Audit, c, e); err != nil {
				return nil, err
			}
			if err := t.RequestRebuild(ctx, *r); err != nil {
				return nil, err
			}
		}
		all, err := t.ReadStatus(ctx)
		return Answer{all}, err
	})
}

// RequestRebuild makes the leader fill a table again. It returns ErrInvalid if there is no such table or more than one.
func (t *Tables) RequestRebuild(ctx context.Context, r Command) error {
	var found []*follower
	for source, f := range *t.followers.Load() {
		if (r.Source == "" || r.Source == source) && slices.Contains(f.target.Kinds, r.Kind) {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("%w: %d sources have a table of %q; understudy tables lists all", understudy.ErrInvalid, len(found),
			understudy.Clip(r.Kind))
	}
	defer understudy.Wake(found[0].wake)
	return found[0].use(ctx, func(s *session) error { return s.requestFill(ctx, []string{r.Kind}) })
}
