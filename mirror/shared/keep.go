// Keep: stored answers as pages, and which of them a request is answered with.

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

// The page under the key of a URI is the answer itself, or, where answers depend on fields of
// requests, an index: a page of status 0, whose header lists the sets of fields and since
// after which stored answers count. Each answer has a key of its own then.
const (
	fieldsName = "vary"  // one set of fields, with commas
	sinceName  = "since" // Unix nanoseconds
	mostSets   = 8       // of fields
)

// index is a page of status 0, read.
type index struct {
	sets  []string
	since int64
}

// readIndex reads a page; ok is false for an answer.
func readIndex(p *understudy.Page) (in index, ok bool) {
	if p == nil || p.Status != 0 {
		return index{}, false
	}
	q, _ := understudy.ParseQuery(p.Header) // made by page
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

// page is the index as it is stored.
func (in *index) page(key understudy.Key, at time.Time) *understudy.Page {
	q := understudy.Query{{Name: sinceName, Value: strconv.FormatInt(in.since, 10)}}
	for _, set := range in.sets {
		q = append(q, understudy.Param{Name: fieldsName, Value: set})
	}
	return &understudy.Page{Key: key, Header: q.String(), At: at}
}

// variantKey is where the answer to a request with some header is stored.
func variantKey(base understudy.Key, fields []string, h http.Header) understudy.Key {
	if v := httpcache.Variant(fields, h); v != "" {
		return base.With("variant=" + v)
	}
	return base
}

// look finds what is stored for a request, and decides what may be done with it.
func (c *Cache) look(ctx context.Context, r *reading) error {
	err := c.find(ctx, r)
	if r.held != nil {
		r.decision = httpcache.Decide(&r.q, &r.held.response, c.now())
	}
	return err
}

// find looks for what is stored for a request: of several answers the newest (RFC 9111, 4.1).
func (c *Cache) find(ctx context.Context, r *reading) error {
	r.miss = "uri-miss"
	base, err := c.load(ctx, r.exchange.Target.Key)
	if err != nil || base == nil {
		return err
	}
	in, ok := readIndex(base)
	if !ok {
		r.held = c.storedOf(base)
		return nil
	}
	r.miss = "vary-miss"
	for _, set := range in.sets {
		p, err := c.load(ctx, variantKey(r.exchange.Target.Key, strings.Split(set, ","), r.exchange.Header))
		if err != nil {
			return err
		}
		if p != nil && p.At.UnixNano() > in.since && (r.held == nil || p.At.After(r.held.page.At)) {
			r.held = c.storedOf(p)
		}
	}
	return nil
}

// load is a page; nil when there is none, or when the store cannot be read.
func (c *Cache) load(ctx context.Context, key understudy.Key) (*understudy.Page, error) {
	p, err := c.pages.Load(ctx, key)
	switch {
	case err == nil && c.counts(p):
		return p, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("mirror: %s: %w", key, ctx.Err())
	case err != nil && !errors.Is(err, understudy.ErrNotFound):
		c.log.Warn("mirror: a stored answer cannot be read", "key", key.String(), "error", err)
	}
	return nil, nil
}

// counts reports whether a page was stored after the store failed to forget one.
func (c *Cache) counts(p *understudy.Page) bool {
	return p.At.UnixNano() > c.sources[p.Key.Source].lost.Load()
}

// Ready reports whether a request would be answered from memory now, as fresh. It counts
// nothing.
func (c *Cache) Ready(t *spec.Target, h http.Header) bool {
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
	if base == nil || r.q.ForOrigin() || misleading(t, h) || !c.counts(base) {
		return false
	}
	v := httpcache.Decide(&r.q, &c.storedOf(base).response, c.now())
	return v.Answer && !v.Refresh
}

// storedOf is a page as a stored answer.
func (c *Cache) storedOf(p *understudy.Page) *stored {
	h, ok := c.headers.Get(p.Header)
	if !ok {
		q, _ := understudy.ParseQuery(p.Header) // made by pageOf
		h = make(http.Header, len(q))
		for _, f := range q {
			h[f.Name] = append(h[f.Name], f.Value)
		}
		c.headers.Put(p.Header, h, int64(4*len(p.Header)+64*len(q)))
	}
	return &stored{httpcache.Response{Status: p.Status, Header: h, At: p.At, InitialAge: p.InitialAge}, p}
}

// pageOf is the page of an answer.
func (c *Cache) pageOf(r *reading, a *httpcache.Response, body []byte, took time.Duration) *understudy.Page {
	kept := a.Kept()
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

// keep stores a page, unless more writes to its URI were answered than when the exchange
// entered. A page that could not be stored says why.
func (c *Cache) keep(r *reading, p *understudy.Page, written int) {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	switch {
	case p.NotStored != "":
		return
	case c.under[r.exchange.Target.Key].written != written:
		p.NotStored = "a write came meanwhile"
		return
	}
	err := c.pages.Keep(p)
	if err == nil && p.Key != r.exchange.Target.Key {
		err = c.list(r, p)
	}
	if err != nil {
		p.NotStored = "it could not be saved"
	}
}

// list puts the fields that an answer depends on into the index of its URI.
func (c *Cache) list(r *reading, p *understudy.Page) error {
	fields, _ := c.storedOf(p).response.Vary()
	set := strings.Join(fields, ",")
	base, err := c.load(context.Background(), r.exchange.Target.Key)
	if err != nil {
		return err
	}
	in, ok := readIndex(base)
	if !ok { // answers of an index before this one are not looked for: a write may have come since
		in.since = p.At.UnixNano() - 1
	}
	if len(in.sets) > 0 && in.sets[0] == set {
		return nil
	}
	in.sets = append([]string{set}, slices.DeleteFunc(in.sets, func(s string) bool { return s == set })...)
	in.sets = in.sets[:min(len(in.sets), mostSets)]
	return c.pages.Keep(in.page(r.exchange.Target.Key, c.now()))
}

// forgetTime bounds how long the store may take to forget a page.
const forgetTime = 10 * time.Second

// Invalidate has nothing count that is stored of a URI now, or is being fetched. An index goes,
// too: the next one looks for nothing from before it. When the store fails, what was stored of
// the source until then does not count, until this process ends. It goes on when the caller has
// left.
func (c *Cache) Invalidate(ctx context.Context, key understudy.Key) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTime)
	defer cancel()
	c.keeping.Lock()
	defer c.keeping.Unlock()
	c.sources[key.Source].ended.Add(1)
	if u := c.under[key]; u != nil {
		u.written++
	}
	_, err := c.pages.Load(ctx, key)
	if errors.Is(err, understudy.ErrNotFound) {
		return
	}
	if err := c.pages.Forget(ctx, key); err != nil {
		c.sources[key.Source].lost.Store(c.now().UnixNano())
		c.log.Error("mirror: what a write changed is still stored; until a restart nothing counts that was stored of the source before",
			"key", key.String(), "error", err)
	}
}

// enter notes an exchange of a URI, and says how many writes to it were answered.
func (c *Cache) enter(key understudy.Key) (written int) {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	u := c.under[key]
	if u == nil {
		u = &underway{}
		c.under[key] = u
	}
	u.count++
	return u.written
}

// exit ends what enter began.
func (c *Cache) exit(key understudy.Key) {
	c.keeping.Lock()
	defer c.keeping.Unlock()
	u := c.under[key]
	if u.count--; u.count == 0 {
		delete(c.under, key)
	}
}
