// Askers of a generic source: each draws requests and sends them, one by one or several at once.

package vendors

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"understudy/e2e/rig"
)

// genericAsker is one client.
type genericAsker struct {
	*genericAnswers
	sender
	chance *rand.Rand
	tags   map[string]string // last seen, by path and language
}

// genericRequest is a request, and its answer.
type genericRequest struct {
	*http.Request
	thing int
	floor int64 // no version before is shown
	began time.Time
	resp  *http.Response // nil: none came
	body  string
	err   error
}

// act does one thing: mostly it asks.
func (a *genericAsker) act() {
	n := a.chance.IntN(len(a.origin.things))
	switch a.chance.IntN(200) {
	case 0:
		a.purge(n)
		return
	case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
		a.write(n)
		return
	}
	all := make([]*genericRequest, 1+a.chance.IntN(a.most()))
	for i := range all {
		all[i] = a.draw()
	}
	a.send(all)
	broken := false
	for _, q := range all {
		t, h := a.origin.things[q.thing], q.Header
		switch {
		case broken:
			a.behind.Add(1)
		case q.resp != nil && broke(q.err) &&
			(t.neverStored || h.Get("Range") != "" || h.Get("Authorization") != "" && a.secret == "" && !t.shared):
			a.broken.Add(1) // what is not stored passes as it comes
			broken = true
		case q.err != nil:
			a.bad(q, q.err.Error())
		default:
			if why := a.judge(q); why != "" {
				a.bad(q, why)
			}
		}
	}
}

// broke reports whether a body broke off.
func broke(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		err != nil && strings.Contains(err.Error(), "stream error") // of HTTP/2
}

// request asks for a thing, or changes it.
func (a *genericAsker) request(method string, n int) *genericRequest {
	t := a.origin.things[n]
	req, err := http.NewRequest(method, a.at+t.path, nil)
	if err != nil {
		panic(err) // its parts are all right
	}
	if a.secret != "" {
		req.Header.Set("Authorization", "Bearer "+a.secret)
	}
	req.Header.Set("Accept-Language", []string{"de", "en", "fr"}[a.chance.IntN(3)])
	return &genericRequest{Request: req, thing: n, floor: t.floor.Load(), began: time.Now()}
}

// draw is some read.
func (a *genericAsker) draw() *genericRequest {
	q := a.request([]string{http.MethodGet, http.MethodHead}[a.chance.IntN(10)/9], a.chance.IntN(len(a.origin.things)))
	h := q.Header
	if a.secret == "" && a.chance.IntN(4) == 0 {
		h.Set("Authorization", fmt.Sprintf("Bearer c%d", a.chance.IntN(3)))
	}
	switch tag := a.tags[q.URL.Path+h.Get("Accept-Language")]; a.chance.IntN(20) {
	case 0:
		h.Set("Cache-Control", "no-cache")
	case 1:
		h.Set("Cache-Control", "max-age=0")
	case 2:
		h.Set("Cache-Control", "only-if-cached")
	case 3, 4, 5:
		q.Method = http.MethodGet
		h.Set("Range", fmt.Sprintf("bytes=%d-%d", 1+a.chance.IntN(5), 6+a.chance.IntN(2000)))
	case 6, 7, 8, 9:
		if tag != "" {
			h.Set("If-None-Match", tag)
		}
	}
	return q
}

// write changes a thing, by its own path or by one whose answer names it.
func (a *genericAsker) write(n int) {
	q, name := a.request(http.MethodPost, n), strconv.FormatInt(a.writes.Add(1), 10)
	own := a.chance.IntN(3) > 0
	if !own {
		q.URL.Path = fmt.Sprintf("/made/%d", n)
	}
	q.Header.Set("X-Write", name)
	a.send([]*genericRequest{q})
	switch {
	case q.err != nil || q.resp.StatusCode >= 300 && q.resp.StatusCode < 500:
		a.bad(q, fmt.Sprint(q.err))
		return
	case q.resp.StatusCode < 300:
		a.acknowledged.Add(1)
	case strings.TrimSpace(q.body) == originError || !own:
		return
	}
	a.origin.mu.Lock()
	version := a.origin.applied[name] // 0: it did not come there
	a.origin.mu.Unlock()
	a.origin.things[n].atLeast(version)
}

// purge has what is held of a thing forgotten.
func (a *genericAsker) purge(n int) {
	t := a.origin.things[n]
	version := t.version()
	r, err := rig.Ask(http.MethodPost, "", a.orders+"/-/purge", fmt.Sprintf(`{"source":"web","what":%q}`, t.path),
		"Authorization", "Bearer "+a.token, "Content-Type", "application/json")
	if err != nil || r.Status != http.StatusOK {
		a.Errorf("purge %s: %d %s %v", t.path, r.Status, r.Body, err)
	}
	a.purged.Add(1)
	t.atLeast(version)
}

// sender sends requests and takes their answers.
type sender interface {
	most() int // at once
	send([]*genericRequest)
	close()
}

// plainSender sends one at a time.
type plainSender struct{ client *http.Client }

func (plainSender) most() int { return 1 }

func (s plainSender) close() { s.client.CloseIdleConnections() }

func (s plainSender) send(all []*genericRequest) {
	for _, q := range all {
		if q.resp, q.err = s.client.Do(q.Request); q.err == nil {
			q.read()
		}
	}
}

// read takes the body.
func (q *genericRequest) read() {
	body, err := io.ReadAll(q.resp.Body)
	_ = q.resp.Body.Close() // it was read
	q.body, q.err = string(body), err
}

// pipeline sends several over one connection, and reads their answers then.
type pipeline struct {
	host string
	conn net.Conn
	in   *bufio.Reader
}

func (*pipeline) most() int { return 8 }

func (p *pipeline) close() {
	if p.conn != nil {
		_ = p.conn.Close()
		p.conn = nil
	}
}

func (p *pipeline) send(all []*genericRequest) {
	var err error
	if p.conn == nil {
		if p.conn, err = net.DialTimeout("tcp", p.host, rig.Patience); err == nil {
			p.in = bufio.NewReader(p.conn)
		}
	}
	if err == nil {
		_ = p.conn.SetDeadline(time.Now().Add(rig.Patience))
		out := bufio.NewWriterSize(p.conn, 64<<10)
		for _, q := range all {
			err = errors.Join(err, q.Write(out))
		}
		err = errors.Join(err, out.Flush())
	}
	for _, q := range all {
		if q.err = err; err != nil {
			continue
		}
		if q.resp, q.err = http.ReadResponse(p.in, q.Request); q.err == nil {
			q.read()
		}
		if err = q.err; err != nil || q.resp.Close {
			p.close()
		}
	}
}
