// Askers of the soak: each asks over a connection of its own, and compares every answer.

package faults

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"understudy/e2e/rig"
)

// asker is one of them, for one goroutine.
type asker struct {
	*soak
	line   *line
	chance *rand.Rand
	most   int // requests at once
	sent   []question
	out    []byte
	plain  map[uint64]uint64 // of compressed bodies, by their sums: the sums of what is in them
	tags   map[string]tag    // what an ETag was seen with
	last   map[form]string   // the ETag last seen
}

// tag is what an ETag stands for.
type tag struct {
	sum    uint64 // of the body without compression
	length int    // of the body with it
}

// form is one form of an answer.
type form struct {
	of     *truth
	as     *login
	coding string
}

// question is a request that was sent.
type question struct {
	form
	method         string
	match          string // If-None-Match
	known          tag    // what that stands for
	policy         int64
	written, began int64
}

// kept bounds what a client remembers of bodies and tags.
const kept = 5000

func (s *soak) asker(most int, chance *rand.Rand) *asker {
	return &asker{soak: s, line: &line{host: strings.TrimPrefix(s.server.URL("twilio"), "http://")}, most: most, chance: chance,
		plain: map[uint64]uint64{}, tags: map[string]tag{}, last: map[form]string{}}
}

// run asks until there are enough answers.
func (c *asker) run(ctx context.Context, stop context.CancelFunc) {
	defer stop()
	defer c.line.close()
	for ctx.Err() == nil && c.wrong.Load() < 10 {
		c.sent, c.out = c.sent[:0], c.out[:0]
		for range 1 + c.chance.IntN(c.most) {
			c.choose()
		}
		if c.answers.Add(int64(c.ask())) >= c.want {
			return
		}
		if c.pause > 0 {
			rig.Pause(ctx, c.pause)
		}
	}
}

// choose writes one more request: most ask for what most ask for.
func (c *asker) choose() {
	n := c.chance.IntN(len(c.truths.keys))
	if c.chance.IntN(5) > 0 {
		n %= 40
	}
	q := question{form: form{c.truths.keys[n], c.all, []string{"", "gzip", "zstd"}[c.chance.IntN(3)]}, method: http.MethodGet}
	switch who := c.chance.IntN(10); {
	case who < 1:
		q.as = c.made.Load()
	case who < 5:
		q.as = c.support
	}
	more := ""
	switch n := c.chance.IntN(200); {
	case n == 0:
		more = "Cache-Control: no-cache"
	case n == 1:
		more = "Prefer: wait=1"
	case n < 6: // some in every second, so that a second of faults refuses some
		q.of, q.as, more = c.unasked(1+c.chance.IntN(1e7)), c.all, "Prefer: wait=1"
	case n < 24 && c.last[q.form] != "":
		q.method = http.MethodHead
	case n < 54:
		q.match = c.last[q.form]
		q.known = c.tags[q.match]
	}
	c.write(q, more)
}

// write writes a request behind the others.
func (c *asker) write(q question, more string) {
	line := func(parts ...string) {
		for _, part := range parts {
			c.out = append(c.out, part...)
		}
		c.out = append(c.out, "\r\n"...)
	}
	line(q.method, " ", q.of.path, " HTTP/1.1")
	line("Host: ", c.line.host)
	line("Authorization: ", q.as.basic)
	if q.coding != "" {
		line("Accept-Encoding: ", q.coding)
	}
	if q.match != "" {
		line("If-None-Match: ", q.match)
	}
	line(more)
	if more != "" {
		line()
	}
	c.sent = append(c.sent, q)
}

// ask sends what was written in one write, compares each answer, and says how many came.
func (c *asker) ask() int {
	for i := range c.sent { // before anything of it can be answered
		q := &c.sent[i]
		q.policy, q.written, q.began = c.policy.Load(), q.of.written.Load(), c.truths.now()
	}
	err := c.line.send(c.out)
	for n := range c.sent {
		if err == nil {
			err = c.line.read(c.sent[n].method == http.MethodHead)
		}
		if err != nil {
			c.bad("%s, answer %d of %d: %v", c.sent[n].of.path, n+1, len(c.sent), err)
			c.line.close()
			return n
		}
		if why := c.judge(&c.sent[n], c.line); why != "" {
			q := &c.sent[n]
			if q.method == http.MethodGet && c.line.status == http.StatusOK {
				if body, err := decoded(c.line.coding, c.line.body); err == nil {
					why += "\n" + c.truths.differs(q.of, body)
				}
			}
			c.bad("%s %s with views %v in %q, If-None-Match %q: %d, age %d, %s: %s", q.method, q.of.path, q.as.views, q.coding, q.match,
				c.line.status, c.line.age, c.line.how, why)
		}
		if c.line.last { // the others are not answered
			c.line.close()
			return n + 1
		}
	}
	return len(c.sent)
}

// judge says what is wrong with an answer, and counts it.
func (c *asker) judge(q *question, l *line) string {
	received := c.truths.now()
	ending, ended := q.as.ending.Load(), q.as.ended.Load()
	switch {
	case l.status == http.StatusUnauthorized || l.status == http.StatusForbidden && ending > 0 || l.status == http.StatusTooManyRequests && ended > 0:
		if ending == 0 || received < ending {
			return "the credential is good"
		}
		c.ended.Add(1)
		return ""
	case ended > 0 && q.began > ended:
		return fmt.Sprintf("the credential ended %v before the request began", time.Duration(q.began-ended))
	case l.status != http.StatusOK && l.status != http.StatusNotModified && l.status != http.StatusNotFound:
		return c.refusal(q, l)
	}
	s := &shown{status: l.status, age: l.age, began: q.began, received: received, written: q.written,
		excused: bytes.Contains(l.how, saysStale), views: c.views(q)}
	why := ""
	switch {
	case l.status == http.StatusNotModified:
		if q.match == "" || formTag.Replace(string(l.tag)) != formTag.Replace(q.match) { // any form names the version
			return fmt.Sprintf("the ETag is %s", l.tag)
		}
		s.status, s.sum = http.StatusOK, q.known.sum
	case q.method == http.MethodHead:
		known, ok := c.tags[string(l.tag)]
		switch {
		case l.status == http.StatusNotFound:
			s.views = []int{1} // there is no body to compare
		case !ok: // nothing is known of it, so it counts for nothing
			c.answers.Add(-1)
			return ""
		case known.length != l.length:
			return fmt.Sprintf("its length is %d, and with that ETag it was %d", l.length, known.length)
		}
		s.sum = known.sum
	default:
		if s.sum, why = c.sum(q, l); why != "" {
			return why
		}
	}
	if why := c.truths.judge(q.of, s); why != "" {
		return why
	}
	c.count(q, l, s)
	if l.age > soakFresh && !bytes.Contains(l.how, saysFetched) && !isStale(l.how) {
		return "it is not said to be stale"
	}
	return ""
}

// What a Cache-Status says.
var (
	saysFetched = []byte("fwd=")
	saysPast    = []byte("ttl=-")
	saysStale   = []byte(`detail="stale`)
)

func isStale(how []byte) bool { return bytes.Contains(how, saysPast) || bytes.Contains(how, saysStale) }

// views are the views that the role may have had.
func (c *asker) views(q *question) []int {
	switch now := c.policy.Load(); {
	case q.as.views != nil:
		return q.as.views
	case now == q.policy && now >= 0:
		return []int{1 + int(now%maskedViews)}
	}
	return []int{1, 2}
}

// sum is that of a body, as it is without compression.
func (c *asker) sum(q *question, l *line) (uint64, string) {
	if l.coding != "" && l.coding != q.coding {
		return 0, "its coding is " + l.coding
	}
	sum := maphash.Bytes(c.truths.seed, l.body)
	if l.coding != "" {
		known, ok := c.plain[sum]
		if !ok {
			body, err := decoded(l.coding, l.body)
			if err != nil {
				return 0, err.Error()
			}
			if len(c.plain) > kept {
				clear(c.plain)
			}
			known = maphash.Bytes(c.truths.seed, body)
			c.plain[sum] = known
		}
		sum = known
	}
	if l.status != http.StatusOK {
		return sum, ""
	}
	if known, ok := c.tags[string(l.tag)]; ok {
		if known.sum != sum || known.length != len(l.body) {
			return 0, fmt.Sprintf("the ETag %s was seen with another body", l.tag)
		}
		c.last[q.form] = string(l.tag)
		return sum, ""
	}
	switch {
	case len(l.tag) == 0:
		return 0, "it has no ETag"
	case q.of.known.Load() == forever: // nobody asks for it again
		return sum, ""
	}
	if len(c.tags) > kept || len(c.last) > kept {
		clear(c.tags)
		clear(c.last)
	}
	c.last[q.form] = string(l.tag)
	c.tags[c.last[q.form]] = tag{sum, len(l.body)}
	return sum, ""
}

// formTag is the end of the ETag of a compressed form.
var formTag = strings.NewReplacer("-gzip", "", "-zstd", "")

func decoded(coding string, body []byte) ([]byte, error) {
	switch coding {
	case "":
		return body, nil
	case "zstd":
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return r.DecodeAll(body, nil)
	}
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// count counts a right answer.
func (c *asker) count(q *question, l *line, s *shown) {
	c.right.Add(1)
	switch {
	case bytes.Contains(l.how, saysFetched):
		c.cold.Add(1)
	case isStale(l.how):
		c.stale.Add(1)
	}
	if s.views[0] > 0 {
		c.masked.Add(1)
	}
	if q.method == http.MethodHead || l.status == http.StatusNotModified {
		c.bare.Add(1)
	}
	if s.excused && s.written > s.received-(s.age+1)*int64(time.Second) {
		c.overtaken.Add(1)
	}
}

// refusal says what is wrong with a refusal.
func (c *asker) refusal(q *question, l *line) string {
	var shape struct {
		Code, Status int
		Message      string
	}
	err := json.Unmarshal(l.body, &shape)
	right := q.method == http.MethodHead || err == nil && shape.Code != 0 && shape.Message != "" && shape.Status == l.status
	known := l.status == 429 || l.status == 500 || l.status == 502 || l.status == 503 || l.status == 504
	if !right || !known || l.status == 503 && !l.retry {
		return fmt.Sprintf("%.300s (Retry-After: %v, %v)", l.body, l.retry, err)
	}
	c.refused.Add(1)
	return ""
}
