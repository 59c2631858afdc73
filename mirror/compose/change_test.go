// Requests after changes: arrivals, states that move on, deletions, redactions,
// late edits, records of another account.

package compose_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/sample"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
	"understudy/mirror/compose"
	"understudy/mirror/compose/composetest"
	"understudy/request"
	"understudy/spec"
)

// must sends a write that must succeed.
func (r *rig) must(method, target, body string) []byte {
	r.t.Helper()
	status, answer := r.send(method, target, body)
	if status >= 300 {
		r.t.Fatalf("%s %s %s: %d %s", method, target, body, status, answer)
	}
	return answer
}

// walk takes in what has changed.
func (r *rig) walk() {
	r.t.Helper()
	before := map[string][]string{}
	for _, k := range r.src.Spec.Kinds {
		before[k.Name] = r.world.Present(k.Name)
	}
	if err := r.world.Walk(); err != nil {
		r.t.Fatal(err)
	}
	for kind, ids := range before {
		for _, id := range ids {
			if r.kept != nil && r.world.Held(kind, id) == nil {
				r.gone(kind, id)
			}
		}
	}
}

func (r *rig) advance(body string) {
	r.t.Helper()
	clock := composetest.Text(r.must("POST", "/-/advance", body), "clock")
	at, err := time.Parse(time.RFC3339, clock)
	if err != nil {
		r.t.Fatal(err)
	}
	r.now = at
}

const root = "/2010-04-01/Accounts/" + account

func TestRandomRequestsAfterChanges(t *testing.T) {
	seed := sample.Seed(t)
	newRig(t, seed, nil).live(rand.New(rand.NewPCG(seed, 2)), requests()/40)
}

// The same with records that a store keeps, as pages of twenty brought them. It
// is closed and opened again in the middle of walks: tokens stay what they were.
func TestRandomRequestsOverAFile(t *testing.T) {
	seed := sample.Seed(t)
	newRigOver(t, disk, seed, nil).live(rand.New(rand.NewPCG(seed, 4)), requests()/40)
}

// live goes through changes and compares after each.
func (r *rig) live(rng *rand.Rand, each int) {
	r.t.Helper()
	rounds := 5
	if each < 20 {
		rounds, each = 2, 25
	}
	if sample.UnderRace && r.kept != nil {
		rounds, each = 1, 20
	}
	for round := range rounds {
		r.advance(fmt.Sprintf(`{"calls":%d,"messages":%d,"conferences":2,"alerts":3,"seconds":%d}`, rng.IntN(30), rng.IntN(30),
			rng.IntN(3)*rng.IntN(100_000)))
		r.walk()
		r.run(each)
		r.deletions(rng)
		r.walk()
		r.run(each)
		r.edits(rng)
		r.walk()
		r.run(each)
		r.writes(round)
		r.walk()
		r.restart()
		r.run(each)
	}
	r.tell()
}

// keeper is a store that has the world's pages.
type keeper interface {
	compose.Store
	Save(ctx context.Context, p *understudy.Page) (request.SaveResult, error)
	Close() error
}

func (r *rig) options() store.Options {
	return store.Options{Specs: map[string]*spec.Spec{"twilio": r.src.Spec}, Now: r.tick}
}

func disk(r *rig) keeper {
	path := storetest.File(r.t)
	open := func() keeper {
		o := r.options()
		o.Path = path
		db, err := store.Open(r.t.Context(), o)
		if err != nil {
			r.t.Fatal(err)
		}
		return db
	}
	r.again = open
	return open()
}

// restart closes the store and opens it again, if that is what it can do.
func (r *rig) restart() {
	r.t.Helper()
	if r.again == nil {
		return
	}
	if err := r.kept.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.kept = r.again()
	r.from, r.restarts = r.kept, r.restarts+1
}

// tick is a clock of its own for each thing that is saved.
func (r *rig) tick() time.Time {
	r.ticks++
	return epoch.Add(time.Duration(r.ticks) * time.Second)
}

// save keeps a page that a walk read.
func (r *rig) save(p *understudy.Page) error {
	p.At = r.tick()
	_, err := r.kept.Save(r.t.Context(), p)
	return err
}

// gone keeps what upstream says of a record that went.
func (r *rig) gone(kind, id string) {
	r.t.Helper()
	k := r.src.Spec.Kind(kind)
	p := &understudy.Page{Key: understudy.Key{Source: "twilio", URI: "/gone/" + id}, Kind: kind, Shape: k.Lists[0].Shape, ID: id, Status: 404,
		ContentType: "application/json", Body: []byte("{}")}
	if err := r.save(p); err != nil {
		r.t.Fatal(err)
	}
}

// deletions takes some records of several kinds away.
func (r *rig) deletions(rng *rand.Rand) {
	for kind, path := range map[string]string{
		"calls": "/Calls/", "messages": "/Messages/", "recordings": "/Recordings/", "applications": "/Applications/",
		"outgoing_caller_ids": "/OutgoingCallerIds/", "keys": "/Keys/", "transcriptions": "/Transcriptions/",
	} {
		ids := r.world.Present(kind)
		for n := range 4 {
			if len(ids) == 0 {
				break
			}
			i := rng.IntN(len(ids))
			if n == 0 {
				i = 0 // the newest: the page begins elsewhere
			}
			r.send("DELETE", root+path+ids[i]+".json", "")
		}
	}
	for _, id := range r.world.Present("participants") {
		if room, call, _ := strings.Cut(id, "~"); rng.IntN(3) == 0 {
			r.send("DELETE", root+"/Conferences/"+room+"/Participants/"+call+".json", "")
		}
	}
}

// edits empties messages, changes old records without a hint, and brings some
// back that were deleted.
func (r *rig) edits(rng *rand.Rand) {
	messages := r.world.Present("messages")
	for range 10 {
		r.send("POST", root+"/Messages/"+messages[rng.IntN(len(messages))]+".json", "Body=")
	}
	for range 10 {
		r.send("POST", "/-/edit", fmt.Sprintf(`{"kind":"calls","records":[{"index":%d,"price":"-0.%d","status":%q}]}`, rng.IntN(290),
			rng.IntN(99), []string{"completed", "busy", "failed"}[rng.IntN(3)]))
		r.send("POST", "/-/edit", fmt.Sprintf(`{"kind":"messages","records":[{"index":%d,"delete":true}]}`, rng.IntN(600)))
		r.send("POST", "/-/edit", fmt.Sprintf(`{"kind":"calls","records":[{"index":%d,"restore":true}]}`, rng.IntN(300)))
	}
}

// writes makes records in both accounts, and ends a conference.
func (r *rig) writes(round int) {
	accounts := r.world.Present("accounts")
	for _, id := range accounts {
		in := "/2010-04-01/Accounts/" + id
		r.must("POST", in+"/Messages.json", "To=%2B15005550006&From=%2B15005550001&Body=%22hello%22+%E2%9C%93+"+fmt.Sprint(round))
		r.must("POST", in+"/Calls.json", "To=%2B15005550006&From=%2B15005550001&Url=http%3A%2F%2Fexample.com")
		r.must("POST", in+"/Applications.json", "FriendlyName=a%5Cb%22c%0A+"+fmt.Sprint(round))
		if id == account { // a key does not tell whose it is
			r.must("POST", in+"/Keys.json", "FriendlyName=k")
		}
	}
	for _, id := range r.world.Present("conferences") {
		if r.send("POST", root+"/Conferences/"+id+".json", "Status=completed"); round%2 == 0 {
			break
		}
	}
}
