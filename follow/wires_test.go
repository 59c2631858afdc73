// Wires: servers that answer over any of them and then send nothing, and refusals by Connect.

package follow

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/kit/frame"
)

// newAnswer returns the response to a request over any wire but pages. Its stream begins with place 7 unless isSilent is set, and
// lasts until the client goes.
func newAnswer(r *http.Request, isSilent bool) *http.Response {
	kind, first := "", ""
	const start = `{"type":"start","cursor":"7"}`
	switch {
	case r.Header.Get("Upgrade") == answers[WebSocket]:
		kind, first = answers[WebSocket], text(start)
	case r.Header.Get("Upgrade") == answers[Frames]:
		kind, first = answers[Frames], string(frame.Append(nil, []byte(start)))
	case r.Method == http.MethodPost:
		kind, first = answers[Connect], envelope(0, `{"cursor":"7","start":{}}`)
	default:
		kind, first = r.Header.Get("Accept"), "id: 7\n\n"
	}
	in, out := io.Pipe()
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Request: r}
	if r.Header.Get("Upgrade") == "" { // otherwise only the client ends the stream, as with http.Transport
		context.AfterFunc(r.Context(), func() { _ = out.CloseWithError(r.Context().Err()) })
	} else {
		resp.StatusCode = http.StatusSwitchingProtocols
		resp.Header = http.Header{"Upgrade": {kind}, "Sec-Websocket-Accept": {acceptKey(r.Header.Get("Sec-WebSocket-Key"))}}
	}
	if isSilent {
		first = ""
	}
	resp.Body = &duplex{io.MultiReader(strings.NewReader(first), in), &bytes.Buffer{}, in}
	return resp
}

// duplex is the body of a response after an upgrade.
type duplex struct {
	io.Reader
	*bytes.Buffer // what the client writes
	io.Closer
}

func (d *duplex) Read(b []byte) (int, error) { return d.Reader.Read(b) }

// envelope returns an envelope of Connect.
func envelope(flags byte, content string) string {
	return string(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(content)))) + content
}

// silent is a server that answers with a stream over which nothing comes.
type silent struct{ trips int }

func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.trips++
	return newAnswer(r, true), nil
}

func TestSilenceEndsTheConnectionOfEachWire(t *testing.T) {
	t.Parallel()
	for wire := range answers {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
			defer cancel()
			s := &silent{}
			lost := 0
			err := Receive(ctx, Options{URL: newURL(), Wire: Wire(wire), HTTP: &http.Client{Transport: s}, OnLost: func(err error, _ time.Duration) {
				lost++
				checktest.Contains(t, err.Error(), "nothing came for 45s", "wire %d: lost", wire)
			}}, nil)
			checktest.True(t, errors.Is(err, context.DeadlineExceeded), "wire %d: %v", wire, err)
			checktest.Equal(t, lost, 2, "wire %d: connections lost", wire)
			checktest.Equal(t, s.trips, 3, "wire %d: attempts", wire)
		})
	}
}

func TestUnknownWireIsRefused(t *testing.T) {
	t.Parallel()
	err := Receive(t.Context(), Options{URL: "http://127.0.0.1", Wire: Connect + 1}, nil)
	checktest.MustTrue(t, err != nil, "no error")
	checktest.Contains(t, err.Error(), "there is no wire 5", "the error")
}

// A proxy that removes the header Upgrade makes of each upgrade a stream of events, which does not end.
func TestStreamInPlaceOfAnUpgradeIsRefused(t *testing.T) {
	t.Parallel()
	for _, wire := range []Wire{WebSocket, Frames} {
		s := &script{turns: []func(http.ResponseWriter, *http.Request){func(w http.ResponseWriter, r *http.Request) {
			says("id: 7\n\n")(w, r)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}}}
		_, err := run(t, s, Options{Wire: wire}, nil)
		checktest.True(t, errors.Is(err, errType), "wire %d: %v", wire, err)
	}
}

// upgrades is a server that upgrades each connection and sends the next of its texts.
type upgrades []string

func (u *upgrades) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := newAnswer(r, true)
	resp.Body = &duplex{strings.NewReader((*u)[0]), &bytes.Buffer{}, resp.Body}
	*u = (*u)[1:]
	return resp, nil
}

func TestMessagesOfUpgradesAreEvents(t *testing.T) {
	t.Parallel()
	join := func(content string) string { return string(frame.Append(nil, []byte(content))) }
	for _, c := range []struct {
		wire                          Wire
		join                          func(string) string
		damaged, tooLong, lost, ended string
	}{
		{WebSocket, text, "\xff\xff", "\x81\x7f\x00\x00\x00\x00\x00\x10\x00\x01", "reserved bit", errLong.Error()},
		{Frames, join, strings.Replace(join("abc"), "abc", "abd", 1), "", "checksum", "is not a change"},
		{Frames, join, "\x00\x00\x00\x00\x00\x10\x00\x01", "", "too long", "is not a change"}, // the length may be what is damaged
	} {
		change := func(n int) string {
			return c.join(fmt.Sprintf(`{"type":"change","cursor":"%d","change":{"n":%d,"kind":"calls"},"new":1}`, n, n))
		}
		s := &upgrades{
			c.join(`{"type":"start","cursor":"7"}`) + change(8) + c.join(`{"type":"heartbeat"}`) +
				c.join(`{"type":"new","change":{"n":12}}`) + c.join("null") + change(9)[:20],
			change(8) + change(9) + c.join(`{"type":"end","cursor":"9","reason":"it stops"}`),
			c.damaged,
			change(10) + c.tooLong + c.join("[]"),
		}
		var got, lost []string
		err := Receive(t.Context(), Options{URL: newURL(), Wire: c.wire, HTTP: &http.Client{Transport: s}, MinPause: 1, MaxPause: 1,
			OnLost: func(err error, _ time.Duration) { lost = append(lost, err.Error()) },
		}, func(ch Change) error { got = append(got, ch.Cursor); return nil })
		checktest.Equal(t, strings.Join(got, " "), "8 9 10", "wire %d: cursors", c.wire)
		checktest.Contains(t, fmt.Sprint(err), c.ended, "wire %d: the end", c.wire)
		checktest.MustEqual(t, len(lost), 3, "wire %d: connections lost", c.wire)
		checktest.Equal(t, lost[1], "the server ended the stream", "wire %d: lost", c.wire)
		checktest.Contains(t, lost[2], c.lost, "wire %d: lost", c.wire)
	}
}

// calls answers with envelopes.
func calls(envelopes ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", answers[Connect])
		_, _ = io.WriteString(w, strings.Join(envelopes, ""))
	}
}

func TestConnectErrorsAreThoseOfStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code   string
		status int
		isLost bool
	}{
		{"invalid_argument", 400, false}, {"failed_precondition", 400, false}, {"out_of_range", 400, false}, {"unauthenticated", 401, false},
		{"permission_denied", 403, false}, {"not_found", 404, false}, {"resource_exhausted", 429, true}, {"unimplemented", 501, true},
		{"unavailable", 503, true}, {"deadline_exceeded", 504, true}, {"internal", 500, true}, {"", 500, true}, {"new", 500, true},
	} {
		var lost error
		end := envelope(endFlag, fmt.Sprintf(`{"error":{"code":%q,"message":"so it is"}}`, c.code))
		_, err := run(t, &script{turns: []func(http.ResponseWriter, *http.Request){calls(end)}}, Options{Wire: Connect,
			OnLost: func(err error, _ time.Duration) { lost = err }}, nil)
		checktest.Equal(t, lost != nil, c.isLost, "%s: whether there is another attempt", c.code)
		if c.isLost {
			err = lost
		}
		refused, ok := errors.AsType[*StatusError](err)
		checktest.MustTrue(t, ok, "%s: %v", c.code, err)
		checktest.Equal(t, refused.Status, c.status, "%s: status", c.code)
		checktest.Equal(t, refused.Text, "so it is", "%s: text", c.code)
		checktest.True(t, refused.RequestID != "", "%s: the request has no id", c.code)
	}
}

func TestConnectContinuesAfterBrokenStreams(t *testing.T) {
	t.Parallel()
	change := func(n int) string {
		return envelope(0, fmt.Sprintf(`{"cursor":"%d.x","change":{"n":"%d","kind":"calls","id":"CA","what":"WHAT_CHANGED","fields":["a"],`+
			`"version":"90","at":"2026-06-01T12:00:00.5Z","new":1}}`, n, n))
	}
	s := &script{turns: []func(http.ResponseWriter, *http.Request){
		calls(envelope(0, `{"cursor":"7.x","start":{}}`), change(8), change(9)[:30]),
		calls(change(9), envelope(0, `{"cursor":"9.x","heartbeat":{}}`), envelope(0, `{"new":{}}`), envelope(1, "compressed")),
		calls(envelope(0, `{"cursor":"9.x","end":{"reason":"it stops"}}`), envelope(endFlag, `{}`)),
		calls(change(10), envelope(endFlag, `nonsense`)),
		calls(envelope(0, `[]`)),
	}}
	var lost []string
	got, err := run(t, s, Options{Wire: Connect, Source: "twilio", OnLost: func(err error, _ time.Duration) {
		lost = append(lost, err.Error())
	}}, func(ch Change) error {
		checktest.Equal(t, ch.What, "changed", "what of change %d", ch.N)
		checktest.Equal(t, ch.Version, int64(90), "version of change %d", ch.N)
		checktest.Equal(t, ch.At.Nanosecond(), 500_000_000, "time of change %d", ch.N)
		return nil
	})
	checktest.Equal(t, strings.Join(got, " "), "8.x 9.x 10.x", "cursors")
	checktest.Contains(t, fmt.Sprint(err), "is not a change", "the end")
	checktest.Equal(t, strings.Join(lost, "; "), "unexpected EOF; the server sent a message with the flags 0x1; the server ended the stream; "+
		"invalid character 'o' in literal null (expecting 'u')", "connections lost")
}

func TestConnectCallsTheProcedureBesideTheFeed(t *testing.T) {
	t.Parallel()
	const want = `{"after":"3","fields":["f"],"kinds":["a","b"],"source":"s"}`
	for _, c := range []struct{ address, at string }{
		{"http://host", "http://host"}, {"http://host/-/feed?source=x", "http://host"}, {"http://host/a", "http://host/a"},
		{"https://host/proxy%20a/-/feed?after=0", "https://host/proxy%20a"},
	} {
		o := Options{URL: c.address, Wire: Connect, After: "3", Source: "s", Kinds: []string{"a", "b"}, Fields: []string{"f"}}
		f, err := newClient(o, nil)
		checktest.MustNoError(t, err, "%s", c.address)
		at, body := f.makeCall(f.at)
		checktest.Equal(t, at.String(), c.at+procedurePath, "address for %s", c.address)
		checktest.Equal(t, string(body[5:]), want, "request for %s", c.address)
		checktest.Equal(t, envelope(0, string(body[5:])), string(body), "envelope for %s", c.address)
	}
	f, err := newClient(Options{URL: "http://host/-/feed?source=x&after=0", Wire: Connect}, nil)
	checktest.MustNoError(t, err, "an address with parameters")
	_, body := f.makeCall(f.at)
	checktest.Equal(t, string(body[5:]), `{"after":"0","fields":null,"kinds":null,"source":"x"}`, "parameters of the address")
}

// readCalls returns the events of envelopes in few words, and how they ended.
func readCalls(t *testing.T, r io.Reader) (events string, err error) {
	in := bufio.NewReader(r)
	for {
		e, err := readCall(in)
		if err != nil {
			return events, err
		}
		checktest.MustTrue(t, len(e.data) <= 8*maxEvent, "an event has %d bytes", len(e.data))
		events += fmt.Sprintf("%q at %q, ", e.data, e.id)
	}
}

func FuzzConnect(f *testing.F) {
	for _, seed := range []string{envelope(0, `{"cursor":"7","start":{}}`) + envelope(endFlag, `{}`), "\x00\xff\xff\xff\xff",
		envelope(0, `{"change":{"n":"7","at":"x"}}`), envelope(endFlag, `{"error":{"code":"unavailable"}}`), "\x01\x00\x00\x00\x00",
		envelope(0, `{"change":{"n":7}}`)[:9],
		envelope(0, `{"cursor":"8","change":{"n":"8","what":"WHAT_CAME","at":"2026-06-01T12:00:00Z","version":"-9"}}`)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, err := readCalls(t, bytes.NewReader(stream))
		bytewise, again := readCalls(t, iotest.OneByteReader(bytes.NewReader(stream)))
		checktest.Equal(t, bytewise, whole, "events of %q, byte by byte", stream)
		checktest.Equal(t, again.Error(), err.Error(), "end of %q, byte by byte", stream)
		more, _ := readCalls(t, io.MultiReader(strings.NewReader(envelope(0, `{"cursor":"7"}`)), bytes.NewReader(stream)))
		checktest.Equal(t, more, `"" at "7", `+whole, "an event, then %q", stream)
	})
}
