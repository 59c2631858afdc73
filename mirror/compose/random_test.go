// Random list requests, composed and asked.

package compose_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/sample"
	"understudy/internal/slowapi"
	"understudy/kit/jsonspan"
	"understudy/mirror/compose"
	"understudy/mirror/compose/composetest"
	"understudy/spec"
	"understudy/spec/spectest"
)

// requests returns how many requests are compared in all.
func requests() int {
	if sample.UnderRace {
		return sample.Count(200, 20_000)
	}
	return sample.Count(400, 20_000)
}

// rig is a still slowapi, and what is held of it.
type rig struct {
	t     testing.TB
	slow  *slowapi.Server
	src   *spec.Source
	world *composetest.World
	draw  *composetest.Generator
	now   time.Time
	ticks int

	from     compose.Store // nil: the world's own records
	kept     keeper        // the same, when it is told what walks read
	again    func() keeper // opens it again
	restarts int

	asked, composed, refused, unsure, rows int
	kinds                                  map[string]int
}

func newRig(t testing.TB, seed uint64, sp *spec.Spec, quirks ...string) *rig {
	t.Helper()
	return newRigOver(t, nil, seed, sp, quirks...)
}

// newRigOver is newRig over a store that keeps what walks read.
func newRigOver(t testing.TB, held func(*rig) keeper, seed uint64, sp *spec.Spec, quirks ...string) *rig {
	t.Helper()
	slow, err := slowapi.New(slowapi.Options{Records: 300, Seed: seed%5 + 1, Account: account, Epoch: epoch, Quirks: quirks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slow.Close() })
	if sp == nil {
		sp = spectest.BuiltIn(t, "twilio")
	}
	r := &rig{t: t, slow: slow, now: epoch, kinds: map[string]int{}}
	r.src = &spec.Source{Name: "twilio", Spec: sp, User: account, PublicURL: "http://slow.test"}
	parents := 0
	if held != nil {
		parents = 25 // of each kind: pages are saved one by one
		if sample.UnderRace {
			parents = 3
		}
	}
	r.world = composetest.Empty(r.src, parents, r.ask)
	r.others()
	if held != nil {
		r.kept = held(r)
		r.from, r.world.Saved, r.world.Size = r.kept, r.save, 20
		t.Cleanup(func() { _ = r.kept.Close() })
	}
	r.walk()
	t.Logf("seed %d", seed)
	r.draw = composetest.NewGenerator(r.world, seed)
	return r
}

// others gives the accounts below the main one keys of their own, which do not
// tell whose they are.
func (r *rig) others() {
	r.t.Helper()
	_, body, _ := r.ask("/2010-04-01/Accounts.json")
	doc, err := jsonspan.Parse(body)
	if err != nil {
		r.t.Fatal(err)
	}
	rows, _ := jsonspan.Find(body, doc, "accounts")
	jsonspan.VisitElements(body, rows, func(v jsonspan.Value) bool {
		if sid := composetest.Text(v.Bytes(body), "sid"); sid != account {
			for _, list := range []string{"/Keys.json", "/SigningKeys.json"} {
				if status, _ := r.send(http.MethodPost, "/2010-04-01/Accounts/"+sid+list, "FriendlyName=other"); status != http.StatusCreated {
					r.t.Fatalf("%s: a key of its own: %d", sid, status)
				}
			}
		}
		return true
	})
}

// ask is what slowapi answers.
func (r *rig) ask(target string) (int, []byte, error) {
	status, body := r.send("GET", target, "")
	return status, body, nil
}

func (r *rig) send(method, target, body string) (int, []byte) {
	req := httptest.NewRequest(method, "http://slow.test"+target, strings.NewReader(body))
	req.SetBasicAuth(account, "slowapitoken")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	r.slow.ServeHTTP(w, req)
	return w.Code, w.Body.Bytes()
}

// store is what the records come from: sometimes one that gives more than it is
// asked for.
func (r *rig) store() compose.Store {
	switch {
	case r.from != nil:
		return r.from
	case r.asked%2 == 0:
		return r.world.Loose()
	}
	return r.world
}

// compose answers from records.
func (r *rig) compose(target string) (int, []byte, error) {
	aim, err := r.src.Spec.ResolveLink("twilio", target)
	if err != nil {
		r.t.Fatalf("%s: %v", target, err)
	}
	o := compose.Options{Now: func() time.Time { return r.now }, FindRecord: r.world.Held, FindListed: r.own(aim)}
	l, err := compose.New(r.src, aim, o)
	if err == nil {
		err = l.Fill(context.Background(), r.store())
	}
	var refused *compose.Refusal
	if errors.As(err, &refused) {
		r.refused++
		return refused.Status, refused.Page(aim, epoch).Body, nil
	}
	if err != nil {
		return 0, nil, err
	}
	p, err := l.BuildPage(epoch)
	if err != nil {
		return 0, nil, err
	}
	for _, row := range p.Rows {
		if !json(p.Body[row.Start:row.End]) {
			r.t.Fatalf("%s: row %s is not where it is said to be", target, row.ID)
		}
	}
	r.rows += len(p.Rows)
	return p.Status, p.Body, nil
}

// own finds records as one list shows them.
func (r *rig) own(aim *spec.Target) func(*understudy.Record) *understudy.Record {
	return func(rec *understudy.Record) *understudy.Record { return r.world.Own(rec, aim.List.Shape) }
}

func json(data []byte) bool {
	v, err := jsonspan.Parse(data)
	return err == nil && v.Kind == jsonspan.Object
}

// differs reports whether one of so many requests is answered differently.
func (r *rig) differs(n int) bool {
	for range n {
		req := r.draw.Request()
		wantStatus, want, _ := r.ask(req.Target)
		if status, got, err := r.compose(req.Target); err == nil && (status != wantStatus || !bytes.Equal(got, want)) {
			return true
		}
	}
	return false
}

// same compares one request, and returns upstream's answer to it.
func (r *rig) same(req composetest.Request) []byte {
	r.t.Helper()
	r.asked++
	aim, err := r.src.Spec.ResolveLink("twilio", req.Target)
	if err != nil {
		r.t.Fatalf("%s: %v", req.Target, err)
	}
	wantStatus, want, _ := r.ask(req.Target)
	if status, body, _ := r.ask(aim.Key.URI); status != wantStatus || !bytes.Equal(body, want) {
		r.t.Fatalf("%s and its key %s are answered differently\n%.900s\n%.900s", req.Target, aim.Key.URI, want, body)
	}
	status, got, err := r.compose(req.Target)
	switch {
	case errors.Is(err, understudy.ErrInvalid) && (req.Unsure != "" || len(req.Kind.ID) > 1 && bytes.Contains(want, []byte("PageToken="))):
		r.unsure++
		return want
	case err != nil:
		r.t.Fatalf("%s: %v (%s)\nupstream %d %.900s", req.Target, err, req.Unsure, wantStatus, want)
	case status != wantStatus || !bytes.Equal(got, want):
		r.t.Fatalf("%s (%s)\ncomposed %d %.1500s\nupstream %d %.1500s", req.Target, req.Unsure, status, got, wantStatus, want)
	}
	r.composed++
	r.kinds[req.Kind.Name]++
	return want
}

// run compares so many requests; half of them go on by their links, most
// forwards and some backwards.
func (r *rig) run(n int) {
	r.t.Helper()
	for end := r.asked + n; r.asked < end; {
		req := r.draw.Request()
		body := r.same(req)
		for step := 0; step < 12 && r.asked < end && (r.asked%2 == 0 || step > 0); step++ {
			link := "next_page_"
			if step%4 == 3 {
				link = "previous_page_"
			}
			target := composetest.Text(body, link+"uri") + composetest.Text(body, "meta."+link+"url")
			if target == "" {
				break
			}
			if r.restarts == 0 || step > 0 && r.asked%8 == 0 {
				r.restart()
			}
			body = r.same(composetest.Request{Target: strings.TrimPrefix(target, "http://slow.test"), Kind: req.Kind, Unsure: req.Unsure})
		}
	}
}

func (r *rig) tell() {
	r.t.Helper()
	r.t.Logf("%d requests: %d composed (%d of them refusals) with %d rows, %d for upstream alone", r.asked, r.composed, r.refused, r.rows,
		r.unsure)
	// One walk that only upstream can answer weighs much among few requests.
	if r.composed*2 < r.asked || r.asked >= 500 && r.composed*10 < r.asked*8 {
		r.t.Errorf("only %d of %d requests were compared", r.composed, r.asked)
	}
}

func TestRandomRequests(t *testing.T) {
	r := newRig(t, sample.Seed(t), nil)
	r.run(requests() / 2)
	r.tell()
	for _, k := range r.src.Spec.Kinds {
		if len(k.ID) > 0 && len(k.Lists) > 0 && r.kinds[k.Name] == 0 && r.asked > 5000 {
			t.Errorf("no list of %s was compared", k.Name)
		}
	}
	fmt.Fprintln(t.Output(), r.kinds)
}
