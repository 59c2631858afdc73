// Following: resuming, refusals, gaps, silence.

package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/kit/accesslog"
)

// script is a server that answers each connection with the next of its lines.
type script struct {
	mu    sync.Mutex
	turns []func(w http.ResponseWriter, r *http.Request)
	asked []string // Last-Event-ID and query of each
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Header.Get("Last-Event-ID")+"?"+r.URL.RawQuery)
	if len(s.turns) == 0 {
		s.mu.Unlock()
		http.Error(w, `{"error":"no more"}`, http.StatusForbidden)
		return
	}
	turn := s.turns[0]
	s.turns = s.turns[1:]
	s.mu.Unlock()
	turn(w, r)
}

// says answers with a stream.
func says(body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
	}
}

func refuses(status int, headers ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		http.Error(w, `{"error":"so it is"}`, status)
	}
}

// numbered is an event with a number.
func numbered(n int) string {
	return fmt.Sprintf("id: %d\ndata: {\"n\":%d,\"kind\":\"calls\",\"id\":\"CA%d\",\"what\":\"came\"}\n\n", n, n, n)
}

func sealed(cursor string) string {
	return fmt.Sprintf("id: %s\ndata: {\"kind\":\"calls\",\"id\":\"CA\",\"what\":\"came\",\"cursor\":%q}\n\n", cursor, cursor)
}

// run follows until the script is over.
func run(t testing.TB, s *script, o Options, f func(Change) error) ([]string, error) {
	t.Helper()
	server := httptest.NewServer(s)
	defer server.Close()
	o.URL, o.MinPause, o.MaxPause, o.HTTP = server.URL, time.Millisecond, 2*time.Millisecond, server.Client()
	var got []string
	err := Receive(t.Context(), o, func(ch Change) error {
		if f != nil {
			if err := f(ch); err != nil {
				return err
			}
		}
		got = append(got, ch.Cursor)
		return nil
	})
	return got, err
}

func TestResumes(t *testing.T) {
	t.Parallel()
	s := &script{turns: []func(http.ResponseWriter, *http.Request){
		says("retry: 1\nid: 7\n\n" + numbered(8) + ":\n\n" + numbered(9) + "id: 10\ndata: {\"n\":10,"),
		refuses(503), refuses(429, "Retry-After", "0"),
		says("retry: 1\nid: 9\n\n" + numbered(10)),
		says(""), // cut before its first word
		says("id: 10\n\n"),
	}}
	got, err := run(t, s, Options{Source: "twilio"}, nil)
	var refused *StatusError
	checktest.MustTrue(t, errors.As(err, &refused), "at last: errors.As(err, &refused) is false")
	checktest.Equal(t, refused.Status, 403, "at last: refused.Status; %v", err)
	checktest.Equal(t, refused.Text, "no more", "at last: refused.Text; %v", err)
	if !slices.Equal(got, []string{"8", "9", "10"}) {
		t.Errorf("saw %q", got)
	}
	want := []string{"?source=twilio", "9?source=twilio", "9?source=twilio", "9?source=twilio", "10?source=twilio", "10?source=twilio",
		"10?source=twilio"}
	if !slices.Equal(s.asked, want) {
		t.Errorf("asked %q, want %q", s.asked, want)
	}
}

// A server that was started again has another address and another secret.
func TestAsksWhere(t *testing.T) {
	t.Parallel()
	var secrets []string
	knows := func(secret string, then func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			secrets = append(secrets, r.Header.Get("Authorization"))
			if r.Header.Get("Authorization") != "Bearer "+secret {
				then = refuses(401)
			}
			then(w, r)
		}
	}
	first := httptest.NewServer(&script{turns: []func(http.ResponseWriter, *http.Request){knows("a", says("id: 7\n\n"+numbered(8))),
		refuses(503)}})
	defer first.Close()
	second := httptest.NewServer(&script{turns: []func(http.ResponseWriter, *http.Request){
		knows("b", nil), knows("b", says("id: 8\n\n"+numbered(9))), knows("c", nil), knows("c", nil),
	}})
	defer second.Close()
	turns := [][2]string{{first.URL, "a"}, {first.URL, "a"}, {"", ""}, {second.URL, "a"}, {second.URL, "b"}, {second.URL, "b"},
		{second.URL, "b"}}
	var lost, got []string
	err := Receive(t.Context(), Options{
		MinPause: time.Millisecond, MaxPause: 2 * time.Millisecond,
		Locate: func(context.Context) (string, string, error) {
			turn := turns[0]
			turns = turns[1:]
			if turn[0] == "" {
				return "", "", errors.New("it does not run")
			}
			return turn[0], turn[1], nil
		},
		OnLost: func(err error, _ time.Duration) { lost = append(lost, err.Error()) },
	}, func(ch Change) error { got = append(got, ch.Cursor); return nil })
	var refused *StatusError
	checktest.MustTrue(t, errors.As(err, &refused), "a secret that stays wrong: errors.As(err, &refused) is false")
	checktest.Equal(t, refused.Status, 401, "a secret that stays wrong: refused.Status; %v", err)
	checktest.Equal(t, len(turns), 0, "a secret that stays wrong: len(turns); %v", err)
	checktest.True(t, slices.Equal(got, []string{"8", "9"}), "saw: got is %v", got)
	checktest.True(t, slices.Equal(secrets, []string{"Bearer a", "Bearer a", "Bearer b", "Bearer b"}),
		"saw: secrets is %v; got %q", secrets, got)
	checktest.True(t, slices.Contains(lost, "it does not run"), "saw: lost is %v; got %q", lost, got)
}

func TestResumesSealed(t *testing.T) {
	t.Parallel()
	s := &script{turns: []func(http.ResponseWriter, *http.Request){
		says("id: a\n\n" + sealed("b") + sealed("c") + "id: d\n:\n\n"), says("id: d\n\n" + sealed("e")),
	}}
	got, _ := run(t, s, Options{After: "a", Kinds: []string{"calls"}}, nil)
	if !slices.Equal(got, []string{"b", "c", "e"}) || !slices.Equal(s.asked, []string{"a?kind=calls", "d?kind=calls", "e?kind=calls"}) {
		t.Errorf("saw %q, asked %q", got, s.asked)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		after, kind, stream string
		want                string // "": fine
	}{
		{"3", "", "id: 3\n\n" + numbered(4) + numbered(5), ""},
		{"3", "", numbered(5), "change 5 was sent, but 4 is missing"},
		{"3", "", numbered(3) + numbered(4), ""},
		{"3", "", "id: 4\n\n", "change 4 was sent, but"},
		{"3", "", "id: 2\n\n" + numbered(3) + numbered(4), ""},
		{"3", "", numbered(4) + numbered(4) + numbered(5), ""},
		{"3", "", numbered(4) + numbered(4) + numbered(6), "but 5 is missing"},
		{"", "", "id: 8\n\n" + numbered(10), "but 9 is missing"},
		{"", "", numbered(8) + numbered(10), "but 9 is missing"},
		{"3", "calls", numbered(9) + "id: 12\n\n" + numbered(13), ""},
		{"3", "calls", numbered(9) + numbered(8), ""},
		{"3", "calls", "id: 12\n\n" + numbered(12), ""},
		{"3", "", "id: 5\ndata: {\"n\":4}\n\n", `has the id "5"`},
		{"3", "", "id: 4\ndata: nonsense\n\n", "is not a change"},
	} {
		o := Options{After: c.after}
		if c.kind != "" {
			o.Kinds = []string{c.kind}
		}
		got, err := run(t, &script{turns: []func(http.ResponseWriter, *http.Request){says(c.stream)}}, o, nil)
		checktest.Equal(t, len(slices.Compact(got)), len(got), "after %q, %q: changes passed: %q", c.after, c.stream, got)
		want := c.want
		if want == "" {
			want = "no more" // it was followed to the script's end
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("after %q, %q: %v, want %q", c.after, c.stream, err, want)
		}
	}
}

func TestCallbackMovesThePlace(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk full")
	turns := []func(http.ResponseWriter, *http.Request){says(numbered(1) + numbered(2) + numbered(3))}
	s := &script{turns: turns}
	got, err := run(t, s, Options{After: "0"}, func(ch Change) error {
		if ch.N == 2 {
			return broken
		}
		return nil
	})
	if err != broken || !slices.Equal(got, []string{"1"}) {
		t.Errorf("saw %q, %v", got, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 404, 405} {
		_, err := run(t, &script{turns: []func(http.ResponseWriter, *http.Request){refuses(status)}}, Options{}, nil)
		var refused *StatusError
		checktest.MustTrue(t, errors.As(err, &refused), "%d: errors.As(err, &refused) is false", status)
		checktest.Equal(t, refused.Status, status, "%d: refused.Status; %v", status, err)
		checktest.Equal(t, refused.Text, "so it is", "%d: refused.Text; %v", status, err)
	}
	html := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<p>hello")
	}
	if _, err := run(t, &script{turns: []func(http.ResponseWriter, *http.Request){html}}, Options{}, nil); err == nil ||
		!strings.Contains(err.Error(), `it is "text/html", not "text/event-stream"`) {
		t.Errorf("a web page: %v", err)
	}
	for _, address := range []string{"", "127.0.0.1:4114", "ftp://x", "http://"} {
		if err := Receive(t.Context(), Options{URL: address}, nil); err == nil {
			t.Errorf("%q is taken for an address", address)
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	var got []string
	s := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		refuses(400)(w, r)
	})
	server := httptest.NewServer(s)
	defer server.Close()
	for _, o := range []Options{{}, {User: "me", Secret: "secret"}, {Secret: "token"}} {
		o.URL = server.URL
		_ = Receive(t.Context(), o, nil)
	}
	if want := []string{"", "Basic bWU6c2VjcmV0", "Bearer token"}; !slices.Equal(got, want) {
		t.Errorf("credentials %q", got)
	}
}

func TestSilenceAndBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s := &silent{}
		var pauses []time.Duration
		began := time.Now()
		err := Receive(ctx, Options{URL: newURL(), HTTP: &http.Client{Transport: s}, OnLost: func(err error, pause time.Duration) {
			if !strings.Contains(err.Error(), "nothing came for 45s") {
				t.Errorf("lost: %v", err)
			}
			pauses = append(pauses, pause)
		}}, nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour {
			t.Errorf("it ended with %v after %v", err, time.Since(began))
		}
		low := 0
		for i, pause := range pauses {
			most := min(200*time.Millisecond<<min(i, 10), 30*time.Second)
			checktest.True(t, pause <= most, "pause %d is %v, want at most %v", i, pause, most)
			if pause < most/2 {
				low++
			}
		}
		checktest.True(t, low > 0, "no pause of %d is in the lower half", len(pauses))
		checktest.True(t, len(pauses) >= 40, "%d pauses", len(pauses))
		checktest.True(t, s.trips == len(pauses) || s.trips == len(pauses)+1, "%d pauses, %d attempts", len(pauses), s.trips)
	})
}

// The server sends a sealed cursor again over a new connection.
func TestSealedChangeIsPassedOnce(t *testing.T) {
	t.Parallel()
	s := &script{turns: []func(http.ResponseWriter, *http.Request){
		says("id: a\n\n" + sealed("b") + sealed("c")), says("id: a\n\n" + sealed("b") + sealed("c") + sealed("d")),
	}}
	got, _ := run(t, s, Options{After: "a"}, nil)
	checktest.Equal(t, strings.Join(got, " "), "b c d", "cursors")
}

// Each attempt has an id, and a refusal names it.
func TestEachRequestHasAnID(t *testing.T) {
	t.Parallel()
	var ids []string
	note := func(then func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			ids = append(ids, r.Header.Get("X-Request-Id"))
			then(w, r)
		}
	}
	_, err := run(t, &script{turns: []func(http.ResponseWriter, *http.Request){note(says("")), note(refuses(503)), note(refuses(403))}},
		Options{}, nil)
	refused, _ := errors.AsType[*StatusError](err)
	checktest.MustEqual(t, len(ids), 3, "requests")
	checktest.MustTrue(t, refused != nil, "the error is %v", err)
	checktest.Equal(t, refused.RequestID, ids[2], "id of the refusal")
	for i, id := range ids {
		checktest.True(t, accesslog.IsValidID(id), "%q is no id for the log", id)
		checktest.True(t, !accesslog.CanContainPhoneNumber(id), "%q may be a phone number", id)
		checktest.True(t, !slices.Contains(ids[:i], id), "%q is the id of two requests", id)
	}
}

// answer is a server whose response is always the same page.
type answer []byte

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(a)),
		Request: r}, nil
}

func FuzzPage(f *testing.F) {
	for _, seed := range []string{`{"changes":[],"next":"4.a"}`, `{"changes":[{"n":4,"id":"CA"}],"next":"4.a"}`, `{"changes":[3],"next":"x"}`,
		`{"changes":[{"cursor":"x"}],"next":"y"}`, `{}`, `[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		passed := 0
		err := Receive(ctx, Options{URL: newURL(), Wire: Pages, HTTP: &http.Client{Transport: answer(body)},
			MinPause: time.Millisecond, MaxPause: time.Millisecond}, func(ch Change) error {
			checktest.MustTrue(t, ch.Cursor != "", "a change without a position in %q", body)
			if passed++; passed > 100 {
				return io.EOF
			}
			return nil
		})
		checktest.True(t, err != nil, "the end of %q has no error", body)
	})
}
