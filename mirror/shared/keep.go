// Storing: how responses are stored as pages, and which stored response belongs to a request.

package shared

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/mirror/httpcache"
	"understudy/spec"
)

// The page under the key of a URI is the response itself, unless responses depend on request header fields. Then it
// is an index: a page with status 0 whose header names these fields and the time before which responses are ignored.
// Each response then has a key of its own.
const (
	fieldsName = "vary"  // the name for a set of header fields, which are separated by commas
	sinceName  = "since" // the name for the time, in Unix nanoseconds, before which stored responses are ignored
	maxSets    = 8       // the maximum number of sets of header fields
)

// index is a parsed page with status 0, which says on which request header fields the responses for a URI depend.
type index struct {
	sets  []string
	since int64
}

// readIndex parses an index. ok is false if the page is not an index but a response.
func readIndex(p *understudy.Page) (in index, ok bool) {
	if p == nil || p.Status != 0 {
		return index{}, false
	}
	q, _ := understudy.ParseQuery(p.Header) // this cannot fail, because the method page has written it
	for _, param := range q {
		switch param.Name {
		case fieldsName:
			in.sets = append(in.sets, param.Value)
		case sinceName:
			in.since, _ = strconv.ParseInt(param.Value, 10, 64)
		}
	}
	return in, true
}

// page returns the index in the form of a page.
func (in *index) page(key understudy.Key, at time.Time) *understudy.Page {
	q := understudy.Query{{Name: sinceName, Value: strconv.FormatInt(in.since, 10)}}
	for _, set := range in.sets {
		q = append(q, understudy.Param{Name: fieldsName, Value: set})
	}
	return &understudy.Page{Key: key, Header: q.String(), At: at}
}

// variantKey returns the key of the response to a request with this header. fields are the header fields on which the
// response depends.
func variantKey(base understudy.Key, fields []string, h http.Header) understudy.Key {
	if v := httpcache.Variant(fields, h); v != "" {
		return base.WithHeader("variant=" + v)
	}
	return base
}

// lookUp finds the stored response for a request and decides how it may be used.
func (c *Cache) lookUp(ctx context.Context, r *reading) error {
	err := c.find(ctx, r)
	if r.stored != nil {
		r.decision = httpcache.Decide(&r.q, &r.stored.response, c.now())
	}
	return err
}

// find finds the stored response for a request. If several match, it uses the newest (RFC 9111, 4.1).
func (c *Cache) find(ctx context.Context, r *reading) error {
	r.miss = "uri-miss"
	base, err := c.load(ctx, r.exchange.Target.Key)
	if err != nil || base == nil {
		return err
	}
	in, ok := readIndex(base)
	if !ok {
		r.stored = c.newStored(base)
		return nil
	}
	r.miss = "vary-miss"
	for _, set := range in.sets {
		p, err := c.load(ctx, variantKey(r.exchange.Target.Key, strings.Split(set, ","), r.exchange.Header))
		if err != nil {
			return err
		}
		if p != nil && p.At.UnixNano() > in.since && (r.stored == nil || p.At.After(r.stored.page.At)) {
			r.stored = c.newStored(p)
		}
	}
	return nil
}

// load returns a stored page. It returns nil if there is none or if the store cannot be read.
func (c *Cache) load(ctx context.Context, key understudy.Key) (*understudy.Page, error) {
	p, err := c.pages.Load(ctx, key)
	switch {
	case err == nil && c.isUsable(p):
		return p, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("mirror: %s: %w", key, ctx.Err())
	case err != nil && !errors.Is(err, understudy.ErrNotFound):
		c.log.Warn("mirror: a stored answer is damaged", "key", key.String(), "error", err)
	}
	return nil, nil
}

// isUsable reports whether a page was stored after the last time that the store failed to delete a page.
func (c *Cache) isUsable(p *understudy.Page) bool {
	return p.At.UnixNano() > c.sources[p.Key.Source].ignoredUntil.Load()
}

// IsReady reports whether a fresh response in memory would answer a request. It does not count as a request.
func (c *Cache) IsReady(t *spec.Target, h http.Header) bool {
	r := &reading{q: httpcache.Request{Method: http.MethodGet, URI: t.Key.URI, Header: h}}
	base := c.pages.Find(t.Key)
	if in, ok := readIndex(base); ok {
		base = nil
		for _, set := range in.sets {
			p := c.pages.Find(variantKey(t.Key, strings.Split(set, ","), h))
			if p != nil && p.At.UnixNano() > in.since && (base == nil || p.At.After(base.At)) {
				base = p
			}
		}
	}
	if base == nil || r.q.IsForOrigin() || isMisleading(t, h) || !c.isUsable(base) {
		return false
	}
	v := httpcache.Decide(&r.q, &c.newStored(base).response, c.now())
	return v.Answer && !v.Refresh
}

// newStored returns the stored response in a page.
func (c *Cache) newStored(p *understudy.Page) *stored {
	h, ok := c.headers.Get(p.Header)
	if !ok {
		q, _ := understudy.ParseQuery(p.Header) // this cannot fail, because newPage has written it
		h = make(http.Header, len(q))
		for _, f := range q {
			h[f.Name] = append(h[f.Name], f.Value)
		}
		c.headers.Put(p.Header, h, int64(4*len(p.Header)+64*len(q)))
	}
	return &stored{httpcache.Response{Status: p.Status, Header: h, At: p.At, InitialAge: p.InitialAge}, p}
}

// newPage returns a response in the form of a page.
func (c *Cache) newPage(r *reading, a *httpcache.Response, body []byte, took time.Duration) *understudy.Page {
	kept := a.StoredHeader()
	var q understudy.Query
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		for _, value := range kept[name] {
			q = append(q, understudy.Param{Name: name, Value: value})
		}
	}
	p := &understudy.Page{Status: a.Status, ContentType: kept.Get("Content-Type"), Body: body, Header: q.String(),
		At: a.At, InitialAge: a.InitialAge, Took: took}
	fields, ok := a.Vary()
	p.Key = variantKey(r.exchange.Target.Key, fields, r.exchange.Header)
	if !ok {
		p.NotStored = "its header forbids it"
	}
	return p
}

// storePage stores a page, unless a write to its URI has been answered since the request was sent. If the page cannot be
// stored, its field NotStored says why.
func (c *Cache) storePage(r *reading, p *understudy.Page, written int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.NotStored != "":
		return
	case c.running[r.exchange.Target.Key].written != written:
		p.NotStored = "a write happened during the fetch"
		return
	}
	err := c.pages.Keep(p)
	if err == nil && p.Key != r.exchange.Target.Key {
		err = c.addToIndex(r, p)
	}
	if err != nil {
		p.NotStored = "it could not be saved"
	}
}

// addToIndex adds the request header fields on which a response depends to the index of its URI.
func (c *Cache) addToIndex(r *reading, p *understudy.Page) error {
	fields, _ := c.newStored(p).response.Vary()
	set := strings.Join(fields, ",")
	base, err := c.load(context.Background(), r.exchange.Target.Key)
	if err != nil {
		return err
	}
	in, ok := readIndex(base)
	if !ok { // a write may have deleted the earlier index, so responses stored under it are ignored
		in.since = p.At.UnixNano() - 1
	}
	if len(in.sets) > 0 && in.sets[0] == set {
		return nil
	}
	in.sets = append([]string{set}, slices.DeleteFunc(in.sets, func(s string) bool { return s == set })...)
	in.sets = in.sets[:min(len(in.sets), maxSets)]
	return c.pages.Keep(in.page(r.exchange.Target.Key, c.now()))
}

// forgetTime is how long deleting a page from the store may take.
const forgetTime = 10 * time.Second

// Invalidate makes the stored responses for a URI invalid, and those that are being fetched. It deletes the index, so
// that responses stored under it are ignored. If the store fails to do so, all responses of the source that are
// stored now are ignored until the process ends. Invalidate continues even if the caller's context ends.
func (c *Cache) Invalidate(ctx context.Context, key understudy.Key) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTime)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources[key.Source].invalidations.Add(1)
	if u := c.running[key]; u != nil {
		u.written++
	}
	_, err := c.pages.Load(ctx, key)
	if errors.Is(err, understudy.ErrNotFound) {
		return
	}
	if err := c.pages.Forget(ctx, key); err != nil {
		c.sources[key.Source].ignoredUntil.Store(c.now().UnixNano())
		c.log.Error("mirror: answers from before a write could not be removed; until a restart all older answers of the source are ignored",
			"key", key.String(), "error", err)
	}
}

// enter counts a request to upstream for a URI, before it is sent. It returns how many writes to the URI have been
// answered so far.
func (c *Cache) enter(key understudy.Key) (written int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.running[key]
	if u == nil {
		u = &exchanges{}
		c.running[key] = u
	}
	u.count++
	return u.written
}

// exit ends what enter began. Call it once for each call of enter, when the request has been answered.
func (c *Cache) exit(key understudy.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.running[key]
	if u.count--; u.count == 0 {
		delete(c.running, key)
	}
}
