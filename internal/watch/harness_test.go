// Harness: watches over a real store and search, and a receiver that does as it is told.

package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/callers"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/internal/search"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/spec"
	"understudy/spec/spectest"
)

var epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const (
	account    = "AC00000000000000000000000000000001"
	testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// gated is the gate as the application gives it.
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

// rig is a book of watches and what is around it.
type rig struct {
	*testing.T
	spec     *spec.Spec
	source   *spec.Source
	store    *store.DB
	book     *Book
	options  Options
	receiver *receiver
	url      string
	clock    time.Time
	roles    access.Roles
	role     string // of the credential desk; "": it is gone
	rules    Rules
	asked    map[string]bool // watches with a live job
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigAt(t, storetest.File(t))
}

// newRigAt returns a rig whose store has a path.
func newRigAt(t *testing.T, path string) *rig {
	t.Helper()
	sp := spectest.BuiltIn(t, "twilio")
	r := &rig{T: t, spec: sp, source: &spec.Source{Name: "twilio", Spec: sp, User: account}, clock: epoch, role: "support",
		receiver: &receiver{}, asked: map[string]bool{}}
	var err error
	r.store, err = store.Open(t.Context(), store.Options{Path: path, SaveTime: storetest.Patience, Specs: map[string]*spec.Spec{"twilio": sp},
		Now: func() time.Time { return r.clock }})
	checktest.MustNoError(t, err, "open the store")
	t.Cleanup(func() { checktest.NoError(t, r.store.Close(), "close the store") })
	server := httptest.NewServer(r.receiver)
	t.Cleanup(server.Close)
	r.url = server.URL
	r.roles = access.Roles{
		"support": {"twilio": {"*": "see", "phone": "last4", "body": "hide"}},
		"narrow":  {"twilio": {"calls": "see"}},
	}
	r.rules = Rules{Hosts: []string{strings.TrimPrefix(server.URL, "http://")}, AllowPrivate: true, Every: time.Minute}
	r.options = Options{Sources: []*spec.Source{r.source}, Records: r.store, KV: r.store.KV, Key: []byte("key"),
		Now: func() time.Time { return r.clock },
		Enqueue: func(_ context.Context, all ...understudy.Job) ([]int64, error) {
			for _, j := range all {
				r.asked[j.Key] = true
			}
			return nil, nil
		}}
	r.reopen()
	return r
}

// reopen is what a start after kill -9 does: everything in memory is gone.
func (r *rig) reopen() {
	r.Helper()
	book, err := Open(r.Context(), r.options)
	if err != nil {
		r.Fatal(err)
	}
	r.book = book
	clear(r.asked)
	r.enforce()
}

// enforce puts a policy in force.
func (r *rig) enforce() {
	r.Helper()
	specs := map[string]*spec.Spec{"twilio": r.spec}
	gate, err := access.NewWith(access.Options{Specs: specs, Roles: r.roles, Now: func() time.Time { return r.clock },
		Rows: map[string]map[string]access.RowRules{"support": {"twilio": {"messages": {Where: map[string]access.Match{
			"direction": {In: []string{"inbound"}}}}, "*": {Word: "all"}}}}})
	if err != nil {
		r.Fatal(err)
	}
	o := callers.Options{Sources: []*spec.Source{r.source}, Now: func() time.Time { return r.clock }}
	if r.role != "" {
		o.Credentials = []callers.Credential{{Name: "desk", Source: "twilio", User: account, Secret: understudy.NewSecret("secretofthedesk"),
			Grant: understudy.Grant{Role: r.role}}}
	}
	book, err := callers.New(o)
	if err != nil {
		r.Fatal(err)
	}
	key, err := search.Key(r.Context(), r.store.KV)
	if err != nil {
		r.Fatal(err)
	}
	s, err := search.New(search.Options{Sources: []*spec.Source{r.source}, Store: r.store, KV: r.store.KV, Gate: gated{gate}, Key: key,
		Now: func() time.Time { return r.clock }})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = s.Close() })
	r.book.SetPolicy(Policy{Search: s, Owners: book, Rules: r.rules, URL: "https://desk.example.com/",
		Mailer: &Mailer{Server: "127.0.0.1:1", From: "Understudy <understudy@example.com>"}})
}

// desk is the caller that owns watches.
func (r *rig) desk() understudy.Caller {
	return understudy.Caller{Name: "desk", Source: "twilio", Grant: &understudy.Grant{Role: r.role}}
}

// save keeps a search of the desk.
func (r *rig) save(name, text string) {
	r.Helper()
	s := r.book.policy.Load().Search.(*search.Searcher)
	if err := s.Save(r.Context(), r.desk(), query.SavedSearch{Name: name, Request: query.SearchRequest{Text: text}}); err != nil {
		r.Fatal(err)
	}
}

// watch makes a watch of a new saved search.
func (r *rig) watch(c Channel, text string) (id string) {
	r.Helper()
	name := string(c) + " " + text
	r.save(name, text)
	d := Destination{Channel: c, To: r.url + "/" + string(c)}
	if c == Webhook {
		d.Secret = testSecret
	}
	id, err := r.book.Make(r.Context(), r.desk(), name, d)
	if err != nil {
		r.Fatal(err)
	}
	return id
}

func message(n int, direction, status string) string {
	return fmt.Sprintf(`{"sid":"SM%032d","direction":%q,"status":%q,"body":"marker%d","from":"+15551230%03d","to":"+15559990000",`+
		`"date_created":"Mon, 01 Jun 2026 11:00:00 +0000","date_sent":"Mon, 01 Jun 2026 11:00:00 +0000"}`, n, direction, status, n, n%1000)
}

// put saves a page of messages; a second passes.
func (r *rig) put(bodies ...string) {
	r.Helper()
	r.clock = r.clock.Add(time.Second)
	if _, err := r.store.Save(r.Context(), r.page(bodies...)); err != nil {
		r.Fatal(err)
	}
}

// page is a page of messages.
func (r *rig) page(bodies ...string) *understudy.Page {
	r.Helper()
	target, err := r.spec.Resolve("twilio", "/2010-04-01/Accounts/"+account+"/Messages.json", "")
	if err != nil {
		r.Fatal(err)
	}
	p := &understudy.Page{Key: target.Key, Kind: "messages", Shape: target.List.Shape, List: true, Status: 200,
		ContentType: "application/json", At: r.clock}
	var b bytes.Buffer
	b.WriteString(`{"messages":[`)
	for i, body := range bodies {
		if i > 0 {
			b.WriteByte(',')
		}
		var m struct{ SID string }
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			r.Fatal(err)
		}
		start := b.Len()
		b.WriteString(body)
		p.Rows = append(p.Rows, understudy.Row{ID: m.SID, Start: start, End: b.Len(), Clock: epoch.Unix()})
	}
	b.WriteString("]}")
	p.Body = b.Bytes()
	return p
}

// job is a job that is run for a watch.
type job string

func (j job) Job() understudy.Job            { return understudy.Job{Kind: Kind, Key: string(j)} }
func (job) SetProgress(int64, int64, string) {}

// round looks once and runs the jobs that were asked for, each until it has ended or failed.
// Time passes where a job says that it waits.
func (r *rig) round() error {
	r.Helper()
	if err := r.book.readChanges(r.Context()); err != nil {
		r.Fatal(err)
	}
	var errs []error
	for id := range r.asked {
		err := r.book.Deliver(r.Context(), job(id))
		var later *understudy.Snooze
		for errors.As(err, &later) && errors.Unwrap(later).Error() == "one message was sent a moment ago" {
			r.clock = r.clock.Add(later.Wait)
			err = r.book.Deliver(r.Context(), job(id))
		}
		if err == nil {
			delete(r.asked, id)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// told goes one round, and returns what the receiver has got since.
func (r *rig) told() []got {
	r.Helper()
	if err := r.round(); err != nil {
		r.Fatal(err)
	}
	return r.receiver.take()
}

func (r *rig) status(id string) Status {
	r.Helper()
	for _, s := range r.book.Watches(r.desk(), false) {
		if s.Watch.ID == id {
			return s
		}
	}
	r.Fatalf("no watch %s", id)
	return Status{}
}

// got is a message that arrived.
type got struct {
	path, id string
	body     string
	ids      []string // of the records in a webhook
	header   http.Header
}

// receiver keeps messages and answers with a status, in turn.
type receiver struct {
	mu      sync.Mutex
	all     []got
	answers []int // of the next messages; then 200
	header  http.Header
	arrived func() // called with each message; nil: nothing is
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	if r.arrived != nil {
		r.arrived()
	}
	g := got{path: req.URL.Path, id: req.Header.Get("Webhook-Id"), body: string(body), header: req.Header}
	var m struct {
		Data struct{ Matches []struct{ ID string } }
	}
	if json.Unmarshal(body, &m) == nil {
		for _, one := range m.Data.Matches {
			g.ids = append(g.ids, strings.TrimLeft(strings.TrimPrefix(one.ID, "SM"), "0"))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, g)
	for name, values := range r.header {
		w.Header()[name] = values
	}
	if len(r.answers) > 0 {
		w.WriteHeader(r.answers[0])
		_, _ = io.WriteString(w, "said so\x00\n")
		r.answers = r.answers[1:]
	}
}

func (r *receiver) take() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.all)
	r.all = nil
	return all
}
