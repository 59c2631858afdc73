// Parts of pages: what is held is out at once, the rest comes as it ends.

package page_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/access"
	"understudy/internal/checktest"
	"understudy/internal/viewer/page"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
	"understudy/spec"
)

// gates hold back every fetch whose address contains one of their words, until
// it is opened; an error let through stands for upstream's.
type gates struct {
	fetch func(context.Context, request.Fetch) (*understudy.Page, error)
	open  map[string]chan error
	begun chan string // the words of those that wait
	left  chan string // the words of those whose reader has left
}

func gated(h *viewertest.Fixture, words ...string) *gates {
	g := &gates{open: map[string]chan error{}, begun: make(chan string, 100), left: make(chan string, 100)}
	for _, w := range words {
		g.open[w] = make(chan error, 4)
	}
	h.Mirror.Lock()
	defer h.Mirror.Unlock()
	g.fetch, h.Mirror.Fetch = h.Mirror.Fetch, g.pass
	return g
}

func (g *gates) pass(ctx context.Context, f request.Fetch) (*understudy.Page, error) {
	for word, open := range g.open {
		if !strings.Contains(f.Target.Key.URI, word) {
			continue
		}
		g.begun <- word
		select {
		case err := <-open:
			if err != nil {
				return nil, err
			}
		case <-ctx.Done():
			g.left <- word
			return nil, ctx.Err()
		}
	}
	return g.fetch(ctx, f)
}

// Six lists of a number's page, one of which fails: all are asked for at once,
// and each is on the page as soon as it is there, in whatever order that is.
func TestPartsComeAsTheyEnd(t *testing.T) {
	for _, encoding := range []string{"identity", "gzip"} {
		t.Run(encoding, func(t *testing.T) {
			h := viewertest.Open(t)
			number := h.OwnNumber()
			h.Mirror.Forget()
			titles := map[string]string{
				"/Calls.json?From": "Calls from", "/Calls.json?To": "Calls to", "/Messages.json?From": "Messages from",
				"/Messages.json?To":          "Messages to",
				"/IncomingPhoneNumbers.json": "One of our own numbers", "/Alerts": "Alerts about it",
			}
			order := []string{"/Messages.json?From", "/Alerts", "/Calls.json?To", "/IncomingPhoneNumbers.json", "/Messages.json?To",
				"/Calls.json?From"}
			g := gated(h, order...)
			page := h.Stream("/twilio/number/"+number, encoding)
			for range order {
				<-g.begun // none waits for another
			}
			shell := page.Until("</template>")
			checktest.Equal(t, page.Response.StatusCode, 200, "page.Response.StatusCode")
			checktest.Equal(t, page.Response.Header.Get("X-Accel-Buffering"), "no",
				`page.Response.Header.Get("X-Accel-Buffering")`)
			checktest.Equal(t, page.Response.Header.Get("Content-Encoding"),
				strings.TrimPrefix(encoding, "identity"), `page.Response.Header.Get("Content-Encoding")`)
			for _, part := range []string{"Contact", "Calls from", "Messages to", "Alerts about it"} {
				if !strings.Contains(shell, `<p part="waiting" role="status">`+part+" …</p>") {
					t.Errorf("no place for %s", part)
				}
			}
			for i, word := range order {
				heading := "<h2>" + titles[word] + "</h2>"
				switch word {
				case "/Messages.json?To":
					g.open[word] <- &understudy.UpstreamError{Why: understudy.FailServer, Status: 503}
				default:
					g.open[word] <- nil
				}
				if word == "/Alerts" {
					continue // it needs the others: which records it is to name
				}
				if came := page.Until(heading); i < len(order)-1 && (strings.Contains(came, "<h2>Contact</h2>") || strings.Contains(came, "</html>")) {
					t.Errorf("with %s there is what needs others", titles[word])
				}
			}
			whole := page.Until("</html>\n")
			for _, want := range []string{"<h2>Contact</h2>", "<h2>Alerts about it</h2>",
				"Not loaded: Twilio has not answered (upstream 503), and no stored answer fits this request."} {
				if strings.Count(whole, want) != 1 {
					t.Errorf("%d times %q", strings.Count(whole, want), want)
				}
			}
			if slots, parts := len(regexp.MustCompile(`<slot name="p\d"`).FindAllString(whole, -1)),
				len(regexp.MustCompile(`<div slot="p\d"`).FindAllString(whole, -1)); slots != 7 || parts != 7 {
				t.Errorf("%d parts for %d places", parts, slots)
			}
		})
	}
}

// The lists under a record that is held come after it, in their places.
func TestRecordBeforeItsLists(t *testing.T) {
	h := viewertest.Open(t)
	call := h.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	h.Page("/twilio/calls/"+call, viewertest.All)
	h.Mirror.Lock()
	for key := range h.Mirror.Pages {
		if strings.Contains(key.URI, "/Notifications") {
			delete(h.Mirror.Pages, key)
		}
	}
	h.Mirror.Unlock()
	g := gated(h, "/Notifications.json")
	page := h.Stream("/twilio/calls/"+call, "gzip")
	if shell := page.Until("Raw JSON"); strings.Contains(shell, "<h2>Notifications</h2>") || !strings.Contains(shell, call) {
		t.Error("the record waits for its lists")
	}
	g.open["/Notifications.json"] <- nil
	page.Until("<h2>Notifications</h2>")
	page.Until("</html>\n")
}

// A record that is not held is asked for beside the lists under it: the page takes
// one latency (1). One that is not there ends what was asked about it.
func TestRecordBesideItsLists(t *testing.T) {
	h := viewertest.Open(t)
	call := h.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	for _, c := range []struct {
		err  error
		want string
	}{{nil, "<h2>Notifications</h2>"}, {understudy.ErrNotFound, "There is no such call"}} {
		h.Mirror.Forget()
		words := []string{"/Calls/" + call + ".json", "/Notifications.json", "/Recordings.json"}
		g := gated(h, words...)
		page := h.Stream("/twilio/calls/"+call, "identity")
		for range words {
			<-g.begun // none waits for another
		}
		g.open[words[0]] <- c.err
		if c.err == nil {
			g.open[words[1]] <- nil
			g.open[words[2]] <- nil
		} else {
			<-g.left
			<-g.left
		}
		if body := page.Until("</html>\n"); !strings.Contains(body, c.want) || c.err != nil && strings.Contains(body, "<h2>Notifications</h2>") {
			t.Errorf("%v: %s", c.err, body)
		}
		h.Mirror.Lock()
		h.Mirror.Fetch = g.fetch
		h.Mirror.Unlock()
	}
}

// A list that the record counts waits for the record: of most messages upstream is
// not asked for media at all.
func TestCountedListWaitsForItsRecord(t *testing.T) {
	h := viewertest.Open(t)
	for message, want := range map[string]bool{h.FirstID("/twilio/messages", `SM[0-9a-f]{32}`): false, h.MessageWithMedia(): true} {
		h.Mirror.Forget()
		path := "/Messages/" + message
		g := gated(h, path+".json", path+"/Media.json")
		page := h.Stream("/twilio/messages/"+message, "identity")
		page.Until("</template>")
		if began := <-g.begun; began != path+".json" || len(g.begun) > 0 {
			t.Errorf("asked: %s and %d more", began, len(g.begun))
		}
		g.open[path+".json"] <- nil
		g.open[path+"/Media.json"] <- nil
		if body := page.Until("</html>\n"); !strings.Contains(body, ">Media</h2>") || (len(g.begun) > 0) != want {
			t.Errorf("%s: upstream was asked %d times for its media:\n%s", message, len(g.begun), body)
		}
		h.Mirror.Lock()
		h.Mirror.Fetch = g.fetch
		h.Mirror.Unlock()
	}
}

// A role that may not find every record of a kind waits for the record: of one that
// is hidden from it nothing more is asked than the record itself.
func TestHiddenRecordHasNoListsAsked(t *testing.T) {
	h := viewertest.Open(t, func(o *page.Options) {
		gate, err := access.NewWith(access.Options{
			Specs: map[string]*spec.Spec{"twilio": o.Sources[0].Spec}, Roles: viewertest.Roles, Now: o.Now,
			Rows: map[string]map[string]access.RowRules{"support": {"twilio": {"calls": {Age: time.Second}}}},
		})
		viewertest.Must(t, err)
		o.Gate = gate
	})
	call := h.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	h.Mirror.Forget()
	words := []string{"/Calls/" + call + ".json", "/Calls/" + call + "/"}
	g := gated(h, words...)
	page := h.StreamAs(viewertest.Support, "/twilio/calls/"+call, "identity")
	page.Until("</template>")
	g.open[words[0]] <- nil
	if body := page.Until("</html>\n"); !strings.Contains(body, "There is no such call") {
		t.Error(body)
	}
	if began := <-g.begun; began != words[0] || len(g.begun) > 0 {
		t.Errorf("asked: %s and %d more", began, len(g.begun))
	}
}

// A page in pieces sets the session of its contents before its first byte: a
// part that comes later may show them.
func TestPiecesHaveASession(t *testing.T) {
	h := viewertest.Open(t, func(o *page.Options) { o.Media = viewertest.NoMedia{} })
	call := "/twilio/calls/" + h.FirstID("/twilio/calls?Status=completed", `CA[0-9a-f]{32}`)
	g := gated(h, "/Notifications.json")
	body := h.Stream(call, "identity")
	body.Until("Raw JSON")
	if cookie := body.Response.Header.Get("Set-Cookie"); !strings.HasPrefix(cookie, page.SessionCookie+"=") {
		t.Errorf("no session: %q", cookie)
	}
	g.open["/Notifications.json"] <- nil
	body.Until("</html>\n")
}

// A page whose own record has to be fetched begins without it; what upstream
// says then is in its place, and the status is out already.
func TestPageBeforeItsRecord(t *testing.T) {
	for name, c := range map[string]struct {
		path, gate, heading string
		err                 error
	}{
		"a record": {"/twilio/calls/CA" + strings.Repeat("0", 32), "/Calls/CA" + strings.Repeat("0", 32) + ".json", "There is no such call",
			nil},
		"a list": {"/twilio/calls?Status=busy", "/Calls.json", "<h1>Calls</h1>", nil},
		"an outage": {"/twilio/calls?Status=busy", "/Calls.json", "Twilio is not answering",
			&understudy.UpstreamError{Why: understudy.FailServer, Status: 503}},
		"conversation": {"/twilio/number/+15550000001/+15550000002", "/Messages.json", "<b>Nothing here.</b>", nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := viewertest.Open(t)
			g := gated(h, c.gate)
			page := h.Stream(c.path, "identity")
			shell := page.Until("</template>")
			if page.Response.StatusCode != 200 || strings.Contains(shell, c.heading) {
				t.Errorf("%d before the record has come", page.Response.StatusCode)
			}
			for range cap(g.open[c.gate]) { // a conversation has two
				g.open[c.gate] <- c.err
			}
			page.Until(c.heading)
			page.Until("</html>\n")
		})
	}
}

// Who prefers to wait has the whole page, with the status of what it shows.
func TestPreferWait(t *testing.T) {
	h := viewertest.Open(t)
	path := "/twilio/calls/CA" + strings.Repeat("0", 32)
	status, body, head := h.Get(path, viewertest.Browser{Token: "alltoken", Headers: map[string]string{"Prefer": "respond-async, wait=20"}})
	checktest.Equal(t, status, 404, "status")
	checktest.Lacks(t, body, "<template", "body")
	checktest.Equal(t, head.Get("Preference-Applied"), "wait=20", `head.Get("Preference-Applied")`)
	checktest.True(t, head.Get("Content-Length") != "", `head.Get("Content-Length") is empty`)
}

// A reader who leaves ends every read behind the page.
func TestReaderLeavesParts(t *testing.T) {
	h := viewertest.Open(t)
	number := h.OwnNumber()
	h.Mirror.Forget()
	words := []string{"/Calls.json?From", "/Calls.json?To", "/Messages.json?From", "/Messages.json?To"}
	g := gated(h, words...)
	page := h.Stream("/twilio/number/"+number, "gzip")
	page.Until("</template>")
	for range words {
		<-g.begun
	}
	page.Leave()
	for range words {
		<-g.left
	}
}

// The home page is there before it is known how its sources do.
func TestHomeBeforeItsSources(t *testing.T) {
	known := make(chan struct{})
	h := viewertest.Open(t, func(o *page.Options) {
		o.Snapshot = func(ctx context.Context, source string) page.Snapshot {
			select {
			case <-known:
			case <-ctx.Done():
			}
			return viewertest.Snapshot(ctx, source)
		}
	})
	page := h.Stream("/", "gzip")
	if shell := page.Until("</template>"); !strings.Contains(shell, "Twilio …</p>") {
		t.Error("the home page waits for its source")
	}
	close(known)
	page.Until(`<h2 id="source-twilio">`)
	page.Until("</html>\n")
}
