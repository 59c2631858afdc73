// A generic source at random: what its cache answers while the origin fails and changes, compared
// with what RFC 9111 lets a shared cache answer.

package vendors

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// TestGenericAtRandom asks for some seconds, a minute with UNDERSTUDY_PROVE, at a drop-in port and
// through tunnels. Each answer shows something that was true within the age it says, and no longer
// ago than its Cache-Control allows; never what was there before a write that was acknowledged, or a
// purge; never what was made for another request and may not be stored.
func TestGenericAtRandom(t *testing.T) {
	t.Parallel()
	t.Run("drop-in", func(t *testing.T) {
		t.Parallel()
		chance, dir := rig.Random(t), t.TempDir()
		o := newChangingOrigin(chance)
		o.Start()
		t.Cleanup(o.Close)
		writeSettings(t, dir, fmt.Sprintf(`data: ./data
viewer: {listen: "127.0.0.1:0", sign_in: none, role: all}
sources:
  web: {generic: %q, listen: "127.0.0.1:0", loopback: true, %s}
`, o.URL, genericLimits))
		s := rig.Start(t, dir, "serve")
		g := &genericAnswers{TB: t, origin: o, at: s.URL("web"), orders: s.URL("viewer"), token: rig.CommandToken(t, dir)}
		before := rig.ExpressAnswers(t, s.URL("viewer"))
		g.run(chance, func(n int) sender {
			if n%4 == 0 {
				return &pipeline{host: strings.TrimPrefix(g.at, "http://")}
			}
			return plainSender{&http.Client{Timeout: rig.Patience, Transport: &http.Transport{DisableCompression: true}}}
		})
		if n := rig.ExpressAnswers(t, s.URL("viewer")) - before; rig.ChooseLane(t, dir) {
			g.some(map[string]int64{"of the express lane": n})
		}
	})
	t.Run("tunnels", func(t *testing.T) {
		t.Parallel()
		chance, s := rig.Random(t), &rig.Tunnels{Dir: t.TempDir()}
		o := newChangingOrigin(chance)
		host := s.StartBefore(t, o.Server, genericLimits, "POST /**")
		g := &genericAnswers{TB: t, origin: o, at: "https://" + host, orders: s.URL("viewer"), token: rig.CommandToken(t, s.Dir), secret: rig.OriginToken}
		g.run(chance, func(n int) sender {
			c := s.Client(t)
			if n%2 == 0 {
				c.Transport.(*http.Transport).ForceAttemptHTTP2 = false
				c.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"http/1.1"}
			}
			return plainSender{c}
		})
	})
}

// genericLimits are those of the source: nothing is refused for its rate, and it fails soon.
const genericLimits = "rate: 1000000, timeouts: {connect: 1s, first_byte: 1s, stall: 1s, total: 3s}"

func writeSettings(t testing.TB, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "understudy.yml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run has clients ask while the origin changes, and looks whether all is well after it.
func (g *genericAnswers) run(chance *rand.Rand, senderOf func(n int) sender) {
	g.Helper()
	took, every := time.Duration(sample.Count(4, 60))*time.Second, 250*time.Millisecond
	if sample.IsFullRun() {
		every = time.Second
	}
	ctx, stop := context.WithTimeout(context.Background(), took)
	defer stop()
	var wg sync.WaitGroup
	for n := range 16 {
		a := &genericAsker{genericAnswers: g, sender: senderOf(n), chance: rand.New(rand.NewPCG(chance.Uint64(), 1)), tags: map[string]string{}}
		wg.Go(func() {
			defer a.close()
			for ctx.Err() == nil && g.wrong.Load() < 10 {
				a.act()
			}
		})
	}
	by := rand.New(rand.NewPCG(chance.Uint64(), 2))
	wg.Go(func() { g.origin.changes(ctx, by) })
	g.origin.storm(ctx, rand.New(rand.NewPCG(chance.Uint64(), 3)), every)
	wg.Wait()
	g.origin.weather.Store(&weather{})
	g.told()
	last := &genericAsker{genericAnswers: g, sender: senderOf(1), chance: chance, tags: map[string]string{}}
	defer last.close()
	for n, t := range g.origin.things { // it recovers
		rig.Await(g.TB, func() string {
			version, q := t.version(), last.request(http.MethodGet, n)
			last.send([]*genericRequest{q})
			if q.resp == nil || q.resp.StatusCode != http.StatusOK || q.err != nil {
				return fmt.Sprintf("%s: %v %v", t.path, q.resp, q.err)
			}
			if c, err := contentOf(q.resp.Header.Get("X-Version")); err != nil || c.version != version {
				return fmt.Sprintf("%s is %v, not of version %d", t.path, q.resp.Header, version)
			}
			return ""
		})
	}
}

// genericAnswers counts what was answered.
type genericAnswers struct {
	testing.TB
	origin  *changingOrigin
	at      string
	orders  string   // where commands of this machine go
	token   string   // of those
	secret  string   // that every request sends; else some send one of their own
	serials sync.Map // that were seen

	writes, purged, right, hits, stale, excused, parts, bare, acknowledged, refused, broken, behind, wrong atomic.Int64
}

func (g *genericAnswers) told() {
	g.Logf("%d right (%d hits, %d stale, %d of them in an outage, %d parts, %d without a body), %d writes acknowledged, %d purges, "+
		"%d refused, %d broken off, %d not answered behind those, %d wrong; upstream failed %d times and confirmed %d",
		g.right.Load(), g.hits.Load(), g.stale.Load(), g.excused.Load(), g.parts.Load(), g.bare.Load(), g.acknowledged.Load(), g.purged.Load(),
		g.refused.Load(), g.broken.Load(), g.behind.Load(), g.wrong.Load(), g.origin.failed.Load(), g.origin.renewed.Load())
	g.some(map[string]int64{"right": g.right.Load(), "hit": g.hits.Load(), "part": g.parts.Load(), "without a body": g.bare.Load(),
		"acknowledged write": g.acknowledged.Load(), "confirmed": g.origin.renewed.Load()})
	if sample.IsFullRun() { // a short run may be without
		g.some(map[string]int64{"stale": g.stale.Load(), "in an outage": g.excused.Load(), "purge": g.purged.Load(),
			"refused": g.refused.Load(), "broken off": g.broken.Load()})
	}
}

// some says of what there was none.
func (g *genericAnswers) some(seen map[string]int64) {
	for what, n := range seen {
		if n == 0 {
			g.Errorf("none %s: the answers were not what this test is about", what)
		}
	}
}

// bad notes a wrong answer.
func (g *genericAnswers) bad(q *genericRequest, why string) {
	if g.wrong.Add(1) > 10 {
		return
	}
	answer := "no answer"
	if q.resp != nil {
		answer = fmt.Sprintf("%s %d %v", q.resp.Proto, q.resp.StatusCode, q.resp.Header)
	}
	g.Errorf("%s %s %v: %s: %s", q.Method, q.URL.Path, q.Header, answer, why)
}
