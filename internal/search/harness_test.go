// Harness: a store filled from the slow API, and a gate as cmd makes it.

package search

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/query"
	"understudy/internal/slowapi"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/kit/token"
	"understudy/request"
	"understudy/spec"
	"understudy/spec/spectest"
	"understudy/upstream"
)

var epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const account = "AC00000000000000000000000000000001"

// filled is a database that holds what the slow API answers, written once for all tests.
var filled = sync.OnceValues(func() ([]byte, error) {
	all, err := pages()
	if err != nil {
		return nil, err
	}
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "understudy-search-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	o := storeOptions(filepath.Join(dir, "understudy.db"), map[string]*spec.Spec{"twilio": sp})
	db, err := store.Open(context.Background(), o)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if _, err := db.Save(context.Background(), p); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	if err := db.Close(); err != nil { // the log is in the file now
		return nil, err
	}
	return os.ReadFile(o.Path)
})

func storeOptions(path string, specs map[string]*spec.Spec) store.Options {
	return store.Options{Path: path, Specs: specs, Now: func() time.Time { return epoch }, SaveTime: storetest.Patience}
}

// pages fetches what the slow API answers.
func pages() ([]*understudy.Page, error) {
	world, err := slowapi.New(slowapi.Options{Records: 300, Seed: 7, Account: account, Token: "slowapitoken", Epoch: epoch})
	if err != nil {
		return nil, err
	}
	slow := httptest.NewServer(world)
	defer slow.Close()
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		return nil, err
	}
	source := &spec.Source{Name: "twilio", Spec: sp, User: account, PublicURL: "http://127.0.0.1:4115"}
	client, err := upstream.New(upstream.Options{Source: source, Base: slow.URL, Secret: understudy.NewSecret("slowapitoken"), Rate: 1e6})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var all []*understudy.Page
	walk := func(path, params string) error {
		next, err := sp.Resolve("twilio", path, params)
		for err == nil && next != nil {
			var p *understudy.Page
			if p, err = client.Fetch(context.Background(), request.Fetch{Target: next, RetryWindow: time.Minute}); err != nil {
				break
			}
			all = append(all, p)
			if next = nil; !p.Next.IsZero() {
				next, err = sp.ResolveLink("twilio", p.Next.URI)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	base := "/2010-04-01/Accounts/" + account + "/"
	for _, list := range []string{"Calls", "Messages", "IncomingPhoneNumbers", "Conferences", "Recordings", "Notifications"} {
		if err := walk(base+list+".json", "PageSize=200"); err != nil {
			return nil, err
		}
	}
	for _, p := range all {
		if p.Kind == "conferences" {
			for _, r := range p.Rows {
				if err := walk(base+"Conferences/"+r.ID+"/Participants.json", ""); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// bench is a searcher over a filled store.
type rig struct {
	*testing.T
	spec  *spec.Spec
	store *store.DB
	gate  *access.Gate
	s     *Searcher
	o     Options
	later time.Duration // when put saves
}

var roles = access.Roles{
	"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide"}},
	"finder":  {"twilio": {"*": "see", "phone": "last4", "body": "hide", "conferences": "hide", "participants": "hide"}},
	"blind":   {"twilio": {"*": "see", "phone": "hide"}},
	"billing": {"twilio": {"calls": "see", "messages": "see", "phone": "last4", "messages.body": "hide", "calls.caller_name": "hide",
		"calls.status": "hide"}},
	"texts":   {"twilio": {"messages.body": "see", "messages.status": "see", "messages.date_sent": "see", "messages.date_created": "see"}},
	"failed":  {"twilio": {"*": "see"}},
	"partial": {"twilio": {"*": "see", "messages.status": "hide", "messages.to": "hide", "calls.to": "hide"}},
	"open":    {"twilio": {"*": "see"}},
	"aged":    {"twilio": {"*": "see"}},
	"counter": {"twilio": {"*": "see", "phone": "hash"}},
	"analyst": {"twilio": {"*": "see", "phone": "hash", "messages.body": "hash", "calls.to": "country"}},
}

var does = access.Permissions{"finder": {"twilio": {access.PermitLookup}}, "blind": {"twilio": {access.PermitLookup}}}

var rows = map[string]map[string]access.RowRules{
	"aged":    {"twilio": {"messages": {Age: 9000 * 24 * time.Hour}, "*": {Word: "all"}}},
	"counter": {"twilio": {"calls": {Where: map[string]access.Match{"status": {In: []string{"failed", "busy"}}}}, "*": {Word: "all"}}},
	"failed":  {"twilio": {"calls": {Where: map[string]access.Match{"status": {In: []string{"failed", "busy"}}}}, "*": {Word: "all"}}},
}

// newRig has a source twilio, filled or not, and others by built-in specs of their names.
func newRig(t *testing.T, fill bool, others ...string) *rig {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	specs := map[string]*spec.Spec{"twilio": sp}
	for _, name := range others {
		specs[name] = spectest.BuiltIn(t, name)
	}
	path := storetest.File(t)
	if fill {
		data, err := filled()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db, err := store.Open(t.Context(), storeOptions(path, specs))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{T: t, spec: sp, store: db}
	if r.gate, err = access.NewWith(access.Options{Specs: specs, Roles: roles, Rows: rows, Do: does, NewestVersion: r.newest,
		Now: func() time.Time { return epoch }}); err != nil {
		t.Fatal(err)
	}
	key, err := Key(t.Context(), r.store.KV)
	if err != nil {
		t.Fatal(err)
	}
	r.o = Options{
		Sources: []*spec.Source{{Name: "twilio", Spec: sp, User: account}}, Store: r.store, KV: r.store.KV, Gate: gated{r.gate},
		Masked: r.gate, Key: key,
		Now: func() time.Time { return epoch }, Limits: Limits{Time: time.Minute, Count: time.Minute, Facets: time.Minute, Sum: time.Minute},
	}
	for _, name := range others {
		r.o.Sources = append(r.o.Sources, &spec.Source{Name: name, Spec: specs[name], User: "robin"})
	}
	r.s = r.with(func(*Options) {})
	return r
}

// newest is what the gate asks of the store.
func (r *rig) newest(source, kind, id string) *understudy.Record {
	rec, err := r.store.FindNewestOrNext(r.Context(), source, kind, id, false)
	if err != nil {
		r.Error(err)
	}
	return rec
}

// with is a searcher with other options.
func (r *rig) with(change func(o *Options)) *Searcher {
	r.Helper()
	o := r.o
	change(&o)
	s, err := New(o)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = s.Close() })
	return s
}

// gated is the gate as cmd gives it.
type gated struct{ *access.Gate }

func (g gated) CanSeeField(c understudy.Caller, source, kind, field string) bool {
	return g.Level(c, source, kind, field) == access.See
}

func (g gated) MakeView(c understudy.Caller, r *understudy.Record) ([]byte, error) {
	v, err := g.Gate.MakeView(c, &understudy.Page{Key: understudy.Key{Source: r.Source}, Kind: r.Kind, Status: 200, Body: r.Body})
	if err != nil {
		return nil, err
	}
	return v.Body, nil
}

func as(role string) understudy.Caller {
	return understudy.Caller{Name: role + "er", Grant: &understudy.Grant{Role: role}}
}

// all finds everything, page by page.
func (r *rig) all(role string, a query.SearchRequest) (ids []string) {
	r.Helper()
	for n := 0; ; n++ {
		out, err := r.s.Find(r.Context(), as(role), a)
		if err != nil {
			r.Fatalf("%s as %s: %v", a.Text, role, err)
		}
		for _, h := range out.Hits {
			ids = append(ids, h.Kind+"/"+string(idOf(r.spec.Kind(h.Kind), &h)))
		}
		if out.Next == "" {
			return ids
		}
		if a.Cursor = out.Next; n > 10_000 {
			r.Fatal("no end")
		}
	}
}

// idOf is the id of a hit even when the role does not see it.
func idOf(_ *spec.Kind, h *query.SearchHit) string {
	if h.ID != "" {
		return h.ID
	}
	return string(h.Body)
}

// fuzzRig is a searcher over nothing.
func fuzzRig(f *testing.F, sp *spec.Spec) *Searcher {
	f.Helper()
	specs := map[string]*spec.Spec{"twilio": sp}
	gate, err := access.NewWith(access.Options{Specs: specs, Roles: roles, Rows: rows, Now: func() time.Time { return epoch }})
	if err != nil {
		f.Fatal(err)
	}
	s, err := New(Options{Sources: []*spec.Source{{Name: "twilio", Spec: sp, User: account}},
		Store: storetest.Open(f, store.Options{Specs: specs}), Gate: gated{gate}, Key: make([]byte, token.KeySize)})
	if err != nil {
		f.Fatal(err)
	}
	return s
}
