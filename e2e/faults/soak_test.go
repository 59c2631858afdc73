// Soak: answers under faults and changes, each compared with what is true; the
// process must hold no more at the end than at the start.

package faults

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
)

const (
	soakClients = 12 // with a connection each; a third of them sends many requests at once
	soakBatch   = 16 // as many at most
	soakTime    = 5 * time.Second
	soakPause   = 5 * time.Millisecond // between requests, when no count is asked for
	soakFresh   = 6                    // seconds: the longest any answer is fresh here
)

// TestSoak asks for PROVE_ANSWERS answers, or for some seconds. Meanwhile upstream's
// faults change every second, records come, change and go, settings are read anew,
// credentials end and are made, and what is held is forgotten.
func TestSoak(t *testing.T) {
	t.Parallel()
	chance := rig.Random(t)
	s := newSoak(t, chance)
	clients := soakClients
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if n := sample.CountFrom("PROVE_ANSWERS", 0); n > 0 {
		s.want, s.pause, clients = int64(n), 0, 4*soakClients
	} else {
		ctx, stop = context.WithTimeout(ctx, soakTime)
		defer stop()
	}
	before, express, began := s.held(), rig.ExpressAnswers(t, s.server.URL("viewer")), time.Now()
	var wg sync.WaitGroup
	for n := range clients {
		most := 1
		if n%3 == 0 {
			most = soakBatch
		}
		c := s.asker(most, rand.New(rand.NewPCG(chance.Uint64(), 1)))
		wg.Go(func() { c.run(ctx, stop) })
	}
	for _, trouble := range []func(context.Context, *rand.Rand){s.changes, s.revocations, s.reloads, s.purges} {
		by := rand.New(rand.NewPCG(chance.Uint64(), 2))
		wg.Go(func() { trouble(ctx, by) })
	}
	samples := s.storm(ctx, chance)
	wg.Wait()
	rig.Control(t, s.truths.up, "/-/faults", `{"rules":[]}`)
	s.tell(time.Since(began), rig.ExpressAnswers(t, s.server.URL("viewer"))-express)
	s.flat(samples)
	s.rest(before)
}

// newSoak starts the servers. Before any fault every role sees everything as upstream has it.
func newSoak(t *testing.T, chance *rand.Rand) *soak {
	t.Helper()
	up := rig.StartAPI(t, "--latency", "20ms", "--records", "3000").URL("slowapi")
	house, dir := rig.StartServer(t, rig.Settings{
		Upstream: up, Polls: "[calls, messages]", Role: "all",
		Source: "max_body: 1MiB, timeouts: {connect: 1s, first_byte: 2s, stall: 1s, total: 3s}",
		Mirror: "{memory: 8MiB, newest: 4s, older: 6s, settled_age: 6s, default_age: 4s, not_found: 2s, stale: 3s, outage_max_age: 2m, wait: 1s, try: 2s}",
		More: `  - {name: writer, source: twilio, user: writer, secret: "file:demo.secret", role: all, allow: [POST /2010-04-01/Accounts/*/*, ` +
			"POST /2010-04-01/Accounts/*/*/*, DELETE /2010-04-01/Accounts/*/*/*]}\n",
	})
	s := &soak{TB: t, server: house, dir: dir, token: rig.CommandToken(t, dir), want: forever, pause: soakPause, truths: truthsOf(t, up, chance)}
	s.nobody = rig.Get(t, rig.Account+":"+rig.APIToken, up+nobodysPath(nobodyNumber)).Body
	s.all, s.support = loginOf(rig.Account, rig.DemoToken, 0), loginOf(rig.Account, rig.MaskedToken)
	s.made.Store(s.make("all"))
	var wg sync.WaitGroup
	for some := range slices.Chunk(s.truths.keys, 20) {
		wg.Go(func() {
			for _, k := range some {
				whole := (*k.states.Load())[0].body
				for who, body := range map[*login][]byte{s.all: whole, s.support: masked(k.kind, 0, whole)} {
					r, err := rig.Ask(http.MethodGet, "", house.URL("twilio")+k.path, "", "Authorization", who.basic)
					if err != nil {
						t.Errorf("%s: %v", k.path, err)
						continue
					}
					checktest.Equal(t, r.Status, 200, "%s: status", k.path)
					checktest.True(t, bytes.Equal(r.Body, body), "%s: %s", k.path, rig.FirstDifference(body, r.Body))
				}
			}
		})
	}
	if wg.Wait(); t.Failed() {
		t.FailNow()
	}
	return s
}

// tell says what there was. Of what the test is about there must be some.
func (s *soak) tell(took time.Duration, express int64) {
	s.Logf("%d answers in %v, %.0f a second: %d right (%d by the express lane, %d stale, %d fetched, %d masked, %d without a body), "+
		"%d refused in the right shape, %d of credentials that had ended, %d wrong",
		s.answers.Load(), took.Round(time.Second), float64(s.answers.Load())/took.Seconds(), s.right.Load(), express, s.stale.Load(), s.cold.Load(),
		s.masked.Load(), s.bare.Load(), s.refused.Load(), s.ended.Load(), s.wrong.Load())
	s.Logf("%d writes acknowledged, %d not, %d changes upstream, %d credentials, %d policies, %d purges; %d answers from before a write, in an outage; "+
		"upstream did %d late",
		s.acknowledged.Load(), s.unknown.Load(), s.moved.Load(), s.credentialsMade.Load(), s.policies.Load(), s.purged.Load(), s.overtaken.Load(),
		s.truths.late.Load())
	seen := map[string]int64{"right": s.right.Load(), "stale": s.stale.Load(), "fetched": s.cold.Load(), "masked": s.masked.Load(),
		"without a body": s.bare.Load()}
	if rig.ChooseLane(s.TB, s.dir) {
		seen["of the lane"] = express
	}
	if s.pause == 0 { // a short run may be without
		maps.Copy(seen, map[string]int64{"refused": s.refused.Load(), "of ended credentials": s.ended.Load(),
			"acknowledged writes": s.acknowledged.Load(), "policies": s.policies.Load(), "purges": s.purged.Load()})
	}
	for what, n := range seen {
		if n == 0 {
			s.Errorf("none %s: the faults, or the answers, were not what this test is about", what)
		}
	}
}

// soak is one run.
type soak struct {
	testing.TB
	server *binary.Server
	dir    string
	token  string // of commands of this machine
	truths *truths
	nobody []byte // the calls of a number that has none; every such number's look alike
	want   int64
	pause  time.Duration

	all, support *login
	made         atomic.Pointer[login] // by a command
	policy       atomic.Int64          // by its number support's role has one view or the other; -1 between two

	counts
}

type counts struct {
	answers, right, stale, cold, masked, bare, refused, ended, wrong, overtaken atomic.Int64
	acknowledged, unknown, moved, credentialsMade, policies, purged             atomic.Int64
}

// login is a credential. One that was made is revoked at some time.
type login struct {
	basic         string       // of the Authorization header
	views         []int        // of its role; nil: as the policy is
	ending, ended atomic.Int64 // when the end was asked for, and when it was acknowledged
}

func loginOf(user, secret string, views ...int) *login {
	return &login{basic: "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+secret)), views: views}
}

// truthsOf takes lists and instances under random filters.
func truthsOf(t testing.TB, up string, chance *rand.Rand) *truths {
	t.Helper()
	w := &truths{TB: t, up: up, zero: time.Now(), seed: maphash.MakeSeed()}
	pick := func(words ...string) string { return words[chance.IntN(len(words))] }
	for len(w.keys) < 240 {
		kind := pick("Calls", "Messages", "Calls", "Messages", "IncomingPhoneNumbers")
		query := fmt.Sprintf("PageSize=%d", 1+chance.IntN(15))
		day := fmt.Sprintf("2026-05-%02d", 1+chance.IntN(31))
		switch {
		case chance.IntN(3) == 0 || kind == "IncomingPhoneNumbers":
		case kind == "Calls":
			query = pick("Status="+pick("completed", "busy", "no-answer", "failed"), "StartTime%3C="+day, "StartTime%3E="+day) + "&" + query
		default:
			query = pick("DateSent%3C="+day, "DateSent%3E="+day) + "&" + query
		}
		var page struct {
			Calls, Messages, Numbers []struct{ Sid string }
			Next                     *string `json:"next_page_uri"`
		}
		body := bytes.Replace(w.add(rig.Base+"/"+kind+".json?"+query, rig.KindName(kind)), []byte(`"incoming_phone_numbers"`), []byte(`"numbers"`), 1)
		if err := json.Unmarshal(body, &page); err != nil {
			t.Fatal(err)
		}
		rows := slices.Concat(page.Calls, page.Messages, page.Numbers)
		for _, r := range rows[:min(1, len(rows))] {
			w.add(rig.Base+"/"+kind+"/"+r.Sid+".json", rig.KindName(kind))
		}
		if page.Next != nil && kind != "IncomingPhoneNumbers" {
			w.add(*page.Next, rig.KindName(kind))
		}
	}
	return w
}

// nobodyNumber is a phone number without records. The numbers derived from it have the same length.
const nobodyNumber = 15550000000

func nobodysPath(n int) string {
	return fmt.Sprintf("%s/Calls.json?From=%%2B%d&PageSize=5", rig.Base, n)
}

// unasked is a request that was not made before. Its answer stays as it is.
func (s *soak) unasked(n int) *truth {
	was, is := strconv.Itoa(nobodyNumber), strconv.Itoa(nobodyNumber+n)
	k := &truth{path: nobodysPath(nobodyNumber + n), kind: "calls", list: true}
	k.states.Store(&[]*state{s.truths.state(200, bytes.ReplaceAll(s.nobody, []byte(was), []byte(is)), -forever)})
	k.known.Store(forever)
	return k
}

// bad notes a wrong answer.
func (s *soak) bad(format string, args ...any) {
	if s.wrong.Add(1) <= 10 {
		s.Errorf(format, args...)
	}
}

// holding is what the process holds.
type holding struct {
	Goroutines int   `json:"goroutines"`
	FDs        int   `json:"fds"`
	RSS        int64 `json:"rss"`
}

func (s *soak) held() holding {
	s.Helper()
	var stats struct{ Process holding }
	r := rig.Get(s.TB, rig.Account+":"+rig.DemoToken, s.server.URL("viewer")+"/-/stats")
	err := json.Unmarshal(r.Body, &stats)
	checktest.MustNoError(s, err, "stats")
	checktest.MustTrue(s, stats.Process.Goroutines != 0, "stats: stats.Process.Goroutines is 0")
	checktest.MustTrue(s, stats.Process.FDs != 0, "stats: stats.Process.FDs is 0")
	checktest.MustTrue(s, stats.Process.RSS != 0, "stats: stats.Process.RSS is 0")
	return stats.Process
}

// flat compares the resident memory of the last fifth of the run with the second.
func (s *soak) flat(samples []holding) {
	middle := func(part []holding) int64 {
		part = slices.SortedFunc(slices.Values(part), func(a, b holding) int { return int(a.RSS - b.RSS) })
		return part[len(part)/2].RSS
	}
	fifth := len(samples) / 5
	if fifth < 3 {
		s.Logf("only %d samples of memory", len(samples))
		return
	}
	second, last := middle(samples[fifth:2*fifth]), middle(samples[4*fifth:])
	s.Logf("resident memory: %d MiB in the second fifth, %d MiB in the last, %d samples", second>>20, last>>20, len(samples))
	if last > second+second/10+(8<<20) {
		s.Errorf("resident memory rose from %d to %d bytes", second, last)
	}
}

// rest waits until the process holds what it held before. Connections to
// upstream are kept idle for half a minute; a short run does not wait for that.
func (s *soak) rest(before holding) {
	more, patience := 50, 20*time.Second // as many may be kept
	if s.want > 0 {
		more, patience = 1, time.Minute
	}
	deadline := time.After(patience)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		now := s.held()
		if now.Goroutines <= before.Goroutines+2*more+2 && now.FDs <= before.FDs+more+2 {
			s.Logf("before %+v, after %+v", before, now)
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.Errorf("%v after the last answer %+v is held, before the first it was %+v", patience, now, before)
			return
		}
	}
}
