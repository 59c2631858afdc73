// What an answer of a generic source shows, compared with what it may show.

package vendors

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"understudy/e2e/rig"
)

// judge says what is wrong with an answer, and counts it.
func (a *genericAsker) judge(q *genericRequest) string {
	t, tag := a.origin.things[q.thing], q.resp.Header.Get("X-Version")
	switch q.resp.StatusCode {
	case http.StatusNotModified:
		tag = q.resp.Header.Get("Etag")
	case http.StatusOK, http.StatusPartialContent:
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if q.Header.Get("Cache-Control") != "only-if-cached" {
			a.refused.Add(1)
		}
		return ""
	default:
		return "nobody would answer so"
	}
	c, err := contentOf(tag)
	if err != nil {
		return err.Error()
	}
	why := c.shownBy(q)
	if why == "" {
		why = a.meant(c, q)
	}
	if why == "" {
		why = a.timely(c, q)
	}
	if why != "" {
		return why
	}
	a.right.Add(1)
	switch {
	case q.resp.StatusCode == http.StatusPartialContent:
		a.parts.Add(1)
	case q.body == "":
		a.bare.Add(1)
	case t.tagged:
		a.tags[t.path+q.Header.Get("Accept-Language")] = tag
	}
	return ""
}

var ofParts = regexp.MustCompile(`^bytes (\d+)-(\d+)/(\d+)$`)

// shownBy says where an answer is not what its tag says.
func (c content) shownBy(q *genericRequest) string {
	want, resp, body := c.body(), q.resp, q.body
	switch {
	case resp.StatusCode == http.StatusNotModified:
		if body != "" || q.Header.Get("If-None-Match") != c.tag() {
			return "that was not asked for"
		}
		return ""
	case q.Method == http.MethodHead:
		if n := resp.ContentLength; body != "" || n >= 0 && n != int64(len(want)) {
			return fmt.Sprintf("%d bytes", n)
		}
		return ""
	case resp.StatusCode == http.StatusPartialContent:
		m := ofParts.FindStringSubmatch(resp.Header.Get("Content-Range"))
		if m == nil || m[3] != strconv.Itoa(len(want)) {
			return fmt.Sprintf("a part of %d bytes", len(want))
		}
		first, _ := strconv.Atoi(m[1])
		last, _ := strconv.Atoi(m[2])
		want = want[first : last+1]
	}
	if body != want {
		return "the body: " + rig.FirstDifference([]byte(want), []byte(body))
	}
	return ""
}

// meant says whether an answer was made for another request.
func (g *genericAnswers) meant(c content, q *genericRequest) string {
	t, who := g.origin.things[q.thing], strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")
	switch {
	case c.thing != q.thing || t.vary && c.language != q.Header.Get("Accept-Language"):
		return "it was made for another URI or language"
	case c.who != "nobody" && c.who != who && !t.shared:
		return "it was made for another who asks"
	case t.neverStored:
		if _, seen := g.serials.LoadOrStore(c.serial, true); seen {
			return "it was given twice"
		}
	}
	return ""
}

var saysLeft = regexp.MustCompile(`understudy; hit; ttl=(-?\d+)`)

// timely says whether an answer is too old, or older than it says. An Age is whole seconds on the
// way here, and whole seconds since: it may be two seconds short.
func (g *genericAnswers) timely(c content, q *genericRequest) string {
	t, how := g.origin.things[q.thing], q.resp.Header.Get("Cache-Status")
	age, _ := strconv.ParseInt(q.resp.Header.Get("Age"), 10, 64)
	switch {
	case c.version < q.floor:
		return fmt.Sprintf("it is older than version %d, which a write made or which was there when it was purged", q.floor)
	case !t.trueAt(c.version, q.began.Add(-time.Duration(age+2)*time.Second)):
		return "it is older than it says"
	}
	left := saysLeft.FindStringSubmatch(how)
	if left == nil {
		return ""
	}
	g.hits.Add(1)
	if left[1][0] != '-' {
		if age > t.life {
			return "it is not fresh"
		}
		return ""
	}
	g.stale.Add(1)
	switch {
	case strings.Contains(how, `detail="stale: upstream 5`):
		g.excused.Add(1)
		if age > t.life+t.failing+1 {
			return "an error is no excuse"
		}
	case strings.Contains(how, `detail="stale`):
		g.excused.Add(1)
		if !t.cut {
			return "an outage is no excuse"
		}
	case age > t.life+t.stale+1:
		return "nothing excuses it"
	}
	return ""
}
