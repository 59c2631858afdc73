// An origin whose things change at any time and whose answers say which version they show.

package vendors

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"understudy/e2e/rig"
)

// policy is how long an answer may be kept, and by whom it may be seen.
type policy struct {
	control     string
	tagged      bool  // it has an ETag
	life        int64 // seconds it is fresh
	stale       int64 // seconds more while it is renewed
	failing     int64 // seconds more while upstream answers an error
	cut         bool  // past fresh when upstream cannot be reached
	shared      bool  // whoever sent a credential with it
	neverStored bool
}

var policies = []policy{
	{control: "max-age=1", tagged: true, life: 1, cut: true},
	{control: "max-age=2", life: 2, cut: true},
	{control: "max-age=1, stale-while-revalidate=2", tagged: true, life: 1, stale: 2, cut: true},
	{control: "max-age=1, stale-if-error=3", tagged: true, life: 1, failing: 3, cut: true},
	{control: "max-age=1, must-revalidate", tagged: true, life: 1, shared: true},
	{control: "s-maxage=1, max-age=100", tagged: true, life: 1, shared: true},
	{control: "public, max-age=2", tagged: true, life: 2, shared: true, cut: true},
	{control: "no-cache", tagged: true},
	{control: "no-store", neverStored: true},
	{control: "private, max-age=5", neverStored: true},
}

// thing is something with an address and versions from 0 on.
type thing struct {
	policy
	path  string
	vary  bool         // each language has an answer of its own
	floor atomic.Int64 // what is older was there before a write that was acknowledged, or a purge

	mu    sync.Mutex
	ended []time.Time // when each version ended but the last
}

// changed makes the next version.
func (t *thing) changed() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = append(t.ended, time.Now())
	return int64(len(t.ended))
}

// atLeast lets nothing older than a version be shown from now on.
func (t *thing) atLeast(version int64) {
	for floor := t.floor.Load(); floor < version && !t.floor.CompareAndSwap(floor, version); floor = t.floor.Load() {
	}
}

func (t *thing) version() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int64(len(t.ended))
}

// trueAt reports whether a version was the newest at a time or later. One that will be is not.
func (t *thing) trueAt(version int64, at time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := int64(len(t.ended))
	return version == n || version < n && !t.ended[version].Before(at)
}

// content is what an answer shows: of which thing, in which version and language, to whom. One that
// is never stored has a serial number; others have 0.
type content struct {
	thing           int
	version, serial int64
	language, who   string
}

func (c content) tag() string {
	return fmt.Sprintf(`"%d.%d.%d.%s.%s"`, c.thing, c.version, c.serial, c.language, c.who)
}

// body is the tag and a text that follows from it. All bodies of a thing without ETags are of one
// length.
func (c content) body() string {
	tag, length := c.tag(), 5000
	h := fnv.New64a()
	io.WriteString(h, tag)
	if policies[c.thing%len(policies)].tagged {
		length = len(tag) + int(h.Sum64()%7000)
	}
	return (tag + strings.Repeat(fmt.Sprintf(" %016x", h.Sum64()), 420))[:length]
}

// contentOf reads a tag.
func contentOf(tag string) (c content, err error) {
	parts := strings.Split(strings.Trim(tag, `"`), ".")
	if len(parts) != 5 {
		return c, fmt.Errorf("%q is no tag", tag)
	}
	c.language, c.who = parts[3], parts[4]
	c.thing, _ = strconv.Atoi(parts[0])
	c.version, _ = strconv.ParseInt(parts[1], 10, 64)
	c.serial, _ = strconv.ParseInt(parts[2], 10, 64)
	if c.tag() != tag {
		return c, fmt.Errorf("%q is no tag", tag)
	}
	return c, nil
}

// changingOrigin answers for things, and fails as weather says.
type changingOrigin struct {
	*httptest.Server
	things  []*thing
	weather atomic.Pointer[weather]
	serials atomic.Int64
	renewed atomic.Int64 // 304
	failed  atomic.Int64

	mu      sync.Mutex
	chance  *rand.Rand
	applied map[string]int64 // the versions that writes made, by their names
}

// weather is what goes wrong with a part of the requests.
type weather struct {
	fault string
	share float64
}

const originError = "out of order"

var faults = []string{"reset", "reset after", "cut", "cut chunks", "500", "502", "503", "504 after", "delay", "stall", "stall body"}

// newChangingOrigin is one that is still to be started, and closed.
func newChangingOrigin(chance *rand.Rand) *changingOrigin {
	o := &changingOrigin{chance: rand.New(rand.NewPCG(chance.Uint64(), 4)), applied: map[string]int64{}}
	for n := range 4 * len(policies) {
		o.things = append(o.things, &thing{policy: policies[n%len(policies)], path: fmt.Sprintf("/things/%d", n), vary: chance.IntN(2) == 0})
	}
	o.weather.Store(&weather{})
	o.Server = httptest.NewUnstartedServer(o)
	return o
}

// draws is a fault for a request, or none.
func (o *changingOrigin) draws() string {
	w := o.weather.Load()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.chance.Float64() >= w.share {
		return ""
	}
	o.failed.Add(1)
	return w.fault
}

// changes lets things change by themselves.
func (o *changingOrigin) changes(ctx context.Context, chance *rand.Rand) {
	for ctx.Err() == nil {
		o.things[chance.IntN(len(o.things))].changed()
		rig.Pause(ctx, time.Duration(chance.IntN(20))*time.Millisecond)
	}
}

// storm changes the weather; half of the time it is good.
func (o *changingOrigin) storm(ctx context.Context, chance *rand.Rand, every time.Duration) {
	for n := 0; ctx.Err() == nil; n++ {
		w := &weather{}
		if n%2 == 1 {
			w = &weather{fault: faults[chance.IntN(len(faults))], share: []float64{0.1, 0.5, 1}[chance.IntN(3)]}
		}
		o.weather.Store(w)
		rig.Pause(ctx, every)
	}
}

func (o *changingOrigin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fault := o.draws()
	switch fault {
	case "reset":
		panic(http.ErrAbortHandler)
	case "500", "502", "503":
		status, _ := strconv.Atoi(fault)
		http.Error(w, originError, status)
		return
	case "delay":
		rig.Pause(r.Context(), 300*time.Millisecond)
	}
	n, err := strconv.Atoi(r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
	if err != nil || n >= len(o.things) {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodPost {
		o.write(w, r, n, fault)
		return
	}
	o.read(w, r, n, fault)
}

// write changes a thing: that of its path, or one that it names in Location.
func (o *changingOrigin) write(w http.ResponseWriter, r *http.Request, n int, fault string) {
	version := o.things[n].changed()
	o.mu.Lock()
	o.applied[r.Header.Get("X-Write")] = version
	o.mu.Unlock()
	switch fault {
	case "reset after", "cut", "cut chunks":
		panic(http.ErrAbortHandler)
	case "504 after":
		http.Error(w, originError, http.StatusGatewayTimeout)
		return
	case "stall", "stall body":
		<-r.Context().Done()
		return
	}
	if !strings.HasPrefix(r.URL.Path, "/things/") {
		w.Header().Set("Location", o.things[n].path)
		w.WriteHeader(http.StatusCreated)
	}
	fmt.Fprintf(w, "%d", version)
}

func (o *changingOrigin) read(w http.ResponseWriter, r *http.Request, n int, fault string) {
	t := o.things[n]
	c := content{thing: n, version: t.version(), language: "any", who: "nobody"}
	h := w.Header()
	if t.vary {
		h.Set("Vary", "Accept-Language")
		c.language = r.Header.Get("Accept-Language")
	}
	if who, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && who != rig.OriginToken {
		c.who = who
	}
	if t.neverStored {
		c.serial = o.serials.Add(1)
	}
	h.Set("Cache-Control", t.control)
	h.Set("Content-Type", "text/plain")
	h.Set("X-Version", c.tag())
	if t.tagged {
		h.Set("Etag", c.tag())
	}
	body := c.body()
	switch fault {
	case "reset after", "504 after":
		panic(http.ErrAbortHandler)
	case "cut", "cut chunks", "stall body":
		if fault != "cut chunks" {
			h.Set("Content-Length", strconv.Itoa(len(body)))
		}
		if r.Method == http.MethodGet {
			io.WriteString(w, body[:len(body)/2])
			http.NewResponseController(w).Flush()
		}
		if fault == "stall body" {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	case "stall":
		<-r.Context().Done()
		return
	}
	if t.tagged && r.Header.Get("If-None-Match") == c.tag() {
		o.renewed.Add(1)
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(body))
}
