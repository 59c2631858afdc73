// Storing: answers as pages, and which stored answer belongs to a request.

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

// The page under the key of a URI is the answer itself. If answers depend on request fields, it is an index:
// a page with status 0 whose header lists the sets of fields. Answers older than its "since" are ignored.
// Each answer then has its own key.
// Fields of an index, and the maximum number of its sets.
const (
	fieldsName = "vary"  // one set of fields, separated by commas
	sinceName  = "since" // answers older than this time are ignored, in Unix nanoseconds
	maxSets    = 8       // maximum number of sets
)

// index is a parsed page with status 0.
type index struct {
	sets  []string
	since int64
}

// readIndex parses an index. ok is false if the page is an answer.
func readIndex(p *understudy.Page) (in index, ok bool) {
	if p == nil || p.Status != 0 {
		return index{}, false
	}
	q, _ := understudy.ParseQuery(p.Header) // the query was written by page
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

// page returns the index as a page.
func (in *index) page(key understudy.Key, at time.Time) *understudy.Page {
	q := understudy.Query{{Name: sinceName, Value: strconv.FormatInt(in.since, 10)}}
	for _, set := range in.sets {
		q = append(q, understudy.Param{Name: fieldsName, Value: set})
	}
	return &understudy.Page{Key: key, Header: q.String(), At: at}
}

// variantKey returns the key of the answer to a request with this header.
func variantKey(base understudy.Key, fields []string, h http.Header) understudy.Key {
	if v := httpcache.Variant(fields, h); v != "" {
		return base.WithHeader("variant=" + v)
	}
	return base
}

// look finds the stored answer to a request and decides how it may be used.
func (c *Cache) look(ctx context.Context, r *reading) error {
	err := c.find(ctx, r)
	if r.stored != nil {
		r.decision = httpcache.Decide(&r.q, &r.stored.response, c.now())
	}
	return err
}

// find finds the stored answer to a request. If several match, it takes the newest (RFC 9111, 4.1).
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

// load returns a page. It returns nil if there is none or the store cannot be read.
func (c *Cache) load(ctx context.Context, key understudy.Key) (*understudy.Page, error) {
	p, err := c.pages.Load(ctx, key)
	switch {
	case err == nil && c.isUsable(p):
		return p, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("mirror: %s: %w", key, ctx.Err())
	case err != nil && !errors.Is(err, understudy.ErrNotFound):
		c.log.Warn("mirror: a stored answer cannot be read", "key", key.String(), "error", err)
	}
	return nil, nil
}

// isUsable reports whether a page was stored after the store last failed to delete one.
func (c *Cache) isUsable(p *understudy.Page) bool {
	return p.At.UnixNano() > c.sources[p.Key.Source].ignoredUntil.Load()
}

// IsReady reports whether a request would be answered from memory with a fresh answer. It counts no request.
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

// newStored returns a page as a stored answer.
func (c *Cache) newStored(p *understudy.Page) *stored {
	h, ok := c.headers.Get(p.Header)
	if !ok {
		q, _ := understudy.ParseQuery(p.Header) // the query was written by newPage
		h = make(http.Header, len(q))
		for _, f := range q {
			h[f.Name] = append(h[f.Name], f.Value)
		}
		c.headers.Put(p.Header, h, int64(4*len(p.Header)+64*len(q)))
	}
	return &stored{httpcache.Response{Status: p.Status, Header: h, At: p.At, InitialAge: p.InitialAge}, p}
}

// newPage returns an answer as a page.
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
		p.NotStored = "its header says so"
	}
	return p
}

// keep stores a page unless a write to its URI was answered since the exchange began. If the page cannot be
// stored, its NotStored says why.
func (c *Cache) keep(r *reading, p *understudy.Page, written int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.NotStored != "":
		return
	case c.running[r.exchange.Target.Key].written != written:
		p.NotStored = "a write came meanwhile"
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

// addToIndex adds the fields on which an answer depends to the index of its URI.
func (c *Cache) addToIndex(r *reading, p *understudy.Page) error {
	fields, _ := c.newStored(p).response.Vary()
	set := strings.Join(fields, ",")
	base, err := c.load(context.Background(), r.exchange.Target.Key)
	if err != nil {
		return err
	}
	in, ok := readIndex(base)
	if !ok { // ignore answers of an earlier index: a write may have come since
		in.since = p.At.UnixNano() - 1
	}
	if len(in.sets) > 0 && in.sets[0] == set {
		return nil
	}
	in.sets = append([]string{set}, slices.DeleteFunc(in.sets, func(s string) bool { return s == set })...)
	in.sets = in.sets[:min(len(in.sets), maxSets)]
	return c.pages.Keep(in.page(r.exchange.Target.Key, c.now()))
}

// forgetTime is the maximum time for deleting a page from the store.
const forgetTime = 10 * time.Second

// Invalidate makes the stored answers of a URI, and those being fetched, invalid. It also deletes the index;
// the next index ignores older answers. If the store fails, all answers of the source stored until then are
// ignored until the process ends. The work goes on after the caller has left.
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
		c.log.Error("mirror: what a write changed is still stored; until a restart nothing counts that was stored of the source before",
			"key", key.String(), "error", err)
	}
}

// enter counts an exchange of a URI that starts. It returns how many writes to the URI were answered so far.
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

// exit ends what enter counted.
func (c *Cache) exit(key understudy.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.running[key]
	if u.count--; u.count == 0 {
		delete(c.running, key)
	}
}
