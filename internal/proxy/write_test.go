// Writes: passed on once, or refused without a byte read.

package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/kit/jsonhttp"
	"understudy/request"
)

// counted is a body that counts how often it is read.
type counted struct {
	io.Reader
	reads int
}

func (c *counted) Read(p []byte) (int, error) {
	c.reads++
	return c.Reader.Read(p)
}

func TestWrite(t *testing.T) {
	b := newBed(t)
	created := page("messages", false, 201, oneMessage)
	created.Key = understudy.Key{}
	b.script.write = func(context.Context, request.Write) (*request.Response, error) {
		return &request.Response{Page: created, Stored: true, UpstreamTime: 300 * time.Millisecond}, nil
	}
	for secret, want := range map[string]string{demo: oneMessage, masked: oneMasked} {
		b.script.passed = nil
		r := httptest.NewRequest("POST", root+"/Messages.json?understudy.x=1", strings.NewReader("To=%2B1&Body=hi"))
		w := b.send(r, secret, "Content-Type", "application/x-www-form-urlencoded", "If-None-Match", "*")
		if w.Code != 201 || w.Body.String() != want {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if len(b.script.passed) != 1 {
			t.Fatalf("passed on %d times", len(b.script.passed))
		}
		p := b.script.passed[0]
		checktest.Equal(t, p.Method, "POST", "passed on: p.Method")
		checktest.Equal(t, string(p.Body), "To=%2B1&Body=hi", "passed on: string(p.Body)")
		checktest.Equal(t, p.ContentType, "application/x-www-form-urlencoded", "passed on: p.ContentType")
		checktest.Lacks(t, p.Target.Key.URI, "understudy", "passed on: p.Target.Key.URI")
		if got := w.Header().Get("Cache-Status"); got != "understudy; fwd=method; stored" {
			t.Errorf("Cache-Status %q", got)
		}
		if w.Header().Get("Age") != "" || w.Header().Get("Etag") != "" {
			t.Errorf("headers %v", w.Header())
		}
	}
}

// listing keeps what it is told, and lists everything.
type listing struct{ all []understudy.AuditEntry }

func (l *listing) MustList(understudy.Caller, understudy.Action) bool { return true }

func (l *listing) RecordAction(ctx context.Context, e understudy.AuditEntry) error {
	l.all = append(l.all, e)
	return nil
}

// A write that makes a record has a second entry with the record's id, whatever the role sees
// of it; one that is refused, or changes a record, has none.
func TestWhatAWriteMadeIsListed(t *testing.T) {
	b := newBed(t)
	log := &listing{}
	b.Proxy.o.Audit = log
	created := page("messages", false, 201, oneMessage)
	created.Key, created.ID = understudy.Key{}, "SM00000000000000000000000000000009"
	answer := created
	b.script.write = func(context.Context, request.Write) (*request.Response, error) {
		return &request.Response{Page: answer}, nil
	}
	for _, secret := range []string{demo, masked} {
		log.all = nil
		b.send(httptest.NewRequest("POST", root+"/Messages.json", strings.NewReader("To=%2B1")), secret)
		if len(log.all) != 2 {
			t.Fatalf("%+v", log.all)
		}
		sent, made := log.all[0], log.all[1]
		checktest.Equal(t, made.Action, understudy.ActionSend, "made.Action")
		checktest.Equal(t, made.What, understudy.WhatCreated, "made.What")
		checktest.MustEqual(t, len(made.IDs), 1, "len(made.IDs)")
		checktest.Equal(t, made.IDs[0], created.ID, "made.IDs[0]")
		checktest.Equal(t, made.Status, 201, "made.Status")
		checktest.Equal(t, made.Kind, "messages", "made.Kind")
		checktest.True(t, made.IsFollowUp(), "made.IsFollowUp() is false")
		checktest.True(t, made.Request != "", "made.Request is empty")
		checktest.Equal(t, made.Request, sent.Request, "made.Request")
		checktest.True(t, !sent.IsFollowUp(), "sent.IsFollowUp() is true")
	}
	log.all, answer = nil, page("messages", false, 400, `{"code":21211}`)
	b.send(httptest.NewRequest("POST", root+"/Messages.json", strings.NewReader("To=%2B1")), demo)
	answer = created
	b.send(httptest.NewRequest("DELETE", root+"/Messages/SM00000000000000000000000000000009.json", nil), demo)
	checktest.MustEqual(t, len(log.all), 2, "len(log.all)")
	checktest.True(t, !log.all[0].IsFollowUp(), "log.all[0].IsFollowUp() is true")
	checktest.True(t, !log.all[1].IsFollowUp(), "log.all[1].IsFollowUp() is true")
}

func TestWriteWithoutContent(t *testing.T) {
	b := newBed(t)
	b.script.write = func(context.Context, request.Write) (*request.Response, error) {
		return &request.Response{Page: &understudy.Page{Kind: "messages", ID: "SM1", Status: 204}}, nil
	}
	w := b.ask("DELETE", root+"/Messages/SM1.json", masked)
	checktest.Equal(t, w.Code, 204, "w.Code; w.Body %q", w.Body)
	checktest.Equal(t, w.Body.Len(), 0, "w.Body.Len()")
	checktest.Equal(t, w.Header().Get("Content-Length"), "", `w.Header().Get("Content-Length"); w.Body %q`, w.Body)
	checktest.Equal(t, w.Header().Get("Content-Type"), "", `w.Header().Get("Content-Type"); w.Body %q`, w.Body)
}

func TestWriteErrors(t *testing.T) {
	b := newBed(t)
	b.script.write = func(context.Context, request.Write) (*request.Response, error) {
		return nil, fmt.Errorf("upstream: %w", understudy.ErrUnknownOutcome)
	}
	w := b.send(httptest.NewRequest("POST", root+"/Messages.json", strings.NewReader("x")), demo)
	wantShape(t, w.Body.Bytes(), 504, 20500, "outcome unknown")
	if len(b.script.passed) != 1 {
		t.Errorf("passed on %d times", len(b.script.passed))
	}
	quoting := `{"code":21211,"message":"+14155551234 is not valid","status":400}`
	b.script.write = func(context.Context, request.Write) (*request.Response, error) {
		p := page("messages", true, 400, quoting)
		p.Key = understudy.Key{}
		return &request.Response{Page: p}, nil
	}
	if w := b.send(httptest.NewRequest("POST", root+"/Messages.json", strings.NewReader("x")), demo); w.Code != 400 ||
		w.Body.String() != quoting {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w = b.send(httptest.NewRequest("POST", root+"/Messages.json", strings.NewReader("x")), masked)
	wantShape(t, w.Body.Bytes(), 400, 21211, "")
	if strings.Contains(w.Body.String(), "4155551234") {
		t.Errorf("as support: %s", w.Body)
	}
}

// A write has no answer that is held, and its refusal tells of none.
func TestAWriteThatWasNotSentSaysSo(t *testing.T) {
	b := newBed(t)
	for _, test := range []struct {
		err  error
		want string
	}{
		{&understudy.UpstreamError{Why: understudy.FailUnreachable}, "upstream unreachable; nothing was sent"},
		{&understudy.UpstreamError{Why: understudy.FailBusy}, "too many requests wait for upstream; nothing was sent"},
		{&understudy.UpstreamError{Why: understudy.FailCredential, Status: 401}, "upstream 401; nothing was changed there"},
		{understudy.ErrClosed, "upstream unavailable; nothing was sent"},
		{context.DeadlineExceeded, "upstream unavailable; nothing was sent"},
	} {
		b.script.write = func(context.Context, request.Write) (*request.Response, error) {
			return nil, fmt.Errorf("mirror: %w", test.err)
		}
		w := b.send(httptest.NewRequest("POST", root+"/Messages.json", strings.NewReader("x")), demo)
		wantShape(t, w.Body.Bytes(), 503, 20500, test.want)
		if got := w.Header().Get(jsonhttp.ErrorHeader); got != test.want {
			t.Errorf("%v: the header says %q", test.err, got)
		}
	}
}

func TestADoneWriteTheRoleCannotSeeIsNotARefusal(t *testing.T) {
	b := newBed(t)
	b.script.write = func(context.Context, request.Write) (*request.Response, error) {
		return &request.Response{Page: page("messages", false, 201, "<Message>+14155551234</Message>")}, nil
	}
	w := b.send(httptest.NewRequest("POST", root+"/Messages.json", strings.NewReader("x")), masked)
	if w.Code != 201 || w.Body.Len() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	b := newBed(t)
	for name, length := range map[string]int64{"declared": 2000, "not declared": -1} {
		body := &counted{Reader: strings.NewReader(strings.Repeat("x", 2000))}
		r := httptest.NewRequest("POST", root+"/Messages.json", body)
		r.ContentLength = length
		w := b.send(r, demo)
		wantShape(t, w.Body.Bytes(), 413, 20001, "larger than 1024 bytes")
		if len(b.script.passed) != 0 || length > 0 && body.reads > 0 {
			t.Errorf("%s: passed on %d, read %d times", name, len(b.script.passed), body.reads)
		}
	}
}

func TestARefusedWriteIsNotRead(t *testing.T) {
	b := newBed(t)
	for _, test := range []struct{ method, path, secret string }{
		{"POST", "/Messages.json", ""}, {"POST", "/Messages.json", "wrong"}, {"POST", "/Messages.json", reader},
		{"POST", "/Calls.json", demo}, {"PUT", "/Messages.json", demo}, {"FROB", "/Messages.json", demo}, {"POST", "/%zz", demo},
	} {
		body := &counted{Reader: strings.NewReader("To=1")}
		r := httptest.NewRequest("POST", "/", body)
		r.Method, r.RequestURI = test.method, root+test.path
		if w := b.send(r, test.secret); w.Code < 400 || body.reads != 0 {
			t.Errorf("%s %s: %d after %d reads", test.method, test.path, w.Code, body.reads)
		}
	}
}

// A caller that waits to be invited (RFC 9110, 10.1.1) is refused without
// having sent a byte of its body, and invited when it may send it.
func TestExpectContinue(t *testing.T) {
	b := newBed(t)
	b.script.write = func(context.Context, request.Write) (*request.Response, error) {
		return &request.Response{Page: page("messages", false, 201, oneMessage)}, nil
	}
	server := httptest.NewServer(b)
	defer server.Close()
	for secret, want := range map[string]string{"wrong": "HTTP/1.1 401 ", reader: "HTTP/1.1 403 ", demo: "HTTP/1.1 100 "} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequestWithContext(t.Context(), "POST", "/", nil)
		r.SetBasicAuth(account, secret)
		fmt.Fprintf(conn, "POST %s/Messages.json HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
			root, r.Header.Get("Authorization"))
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("%s: %q, %v; want %q", secret, line, err, want)
		}
		_ = conn.Close()
	}
}
