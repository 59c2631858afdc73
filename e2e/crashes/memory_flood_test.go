// Memory: clients that ask for much and read none of it do not take more than the limit.

package crashes

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// TestUnreadAnswersKeepTheMemoryLimit has 100 connections ask for 16 lists of 1,000 records each and read
// nothing: pipelined, as HTTP/2 streams in tunnels, and in batches. An honest reader is answered meanwhile.
func TestUnreadAnswersKeepTheMemoryLimit(t *testing.T) {
	if !sample.IsFullRun() {
		t.Skip("takes two minutes; a part of make prove")
	}
	const connections, lists = 100, 16
	for name, flood := range map[string]func(*flooded, *testing.T) (end func()){
		"pipelined": (*flooded).pipelined, "streams": (*flooded).streams, "batches": (*flooded).batches,
	} {
		t.Run(name, func(t *testing.T) {
			f := &flooded{connections: connections, lists: lists}
			f.start(t)
			before := peakOf(t, f.server.Process())
			var clients sync.WaitGroup
			closers := make(chan func(), connections)
			for range connections {
				clients.Go(func() { closers <- flood(f, t) })
			}
			clients.Wait()
			for range 50 {
				r, err := rig.Ask(http.MethodGet, rig.Account+":"+rig.DemoToken, f.server.URL("twilio")+f.path(), "")
				if err != nil || r.Status != http.StatusOK {
					t.Fatalf("who reads: %d, %v", r.Status, err)
				}
			}
			peak := peakOf(t, f.server.Process())
			for range connections {
				(<-closers)()
			}
			t.Logf("resident at most %d MiB under a limit of %d MiB, %d MiB before", peak>>20, floodLimit>>20, before>>20)
			if peak > floodLimit/100*115 {
				t.Errorf("%d MiB are more than 15 %% above the limit", peak>>20)
			}
		})
	}
}

const floodLimit = 192 << 20

// flooded is a server under the smallest memory limit that holds lists of messages.
type flooded struct {
	connections, lists int
	server             *binary.Server
	asked              atomic.Int64
	tunnelled          rig.Tunnels
}

func (f *flooded) start(t *testing.T) {
	dir := t.TempDir()
	up := rig.StartAPI(t, "--latency", "0s", "--records", "6000", "--epoch", time.Now().UTC().Format(time.RFC3339)).URL("slowapi")
	for name, text := range map[string]string{
		"twilio.token": rig.APIToken, "demo.secret": rig.DemoToken,
		"understudy.yml": fmt.Sprintf(`data: ./data
viewer: {listen: "127.0.0.1:0", sign_in: none, role: all}
connect: {listen: "127.0.0.1:0"}
limits: {memory: 192MiB}
log: {access: access.log}
sources:
  twilio: {spec: twilio, upstream: %q, user: %s, secret: "file:twilio.token", listen: "127.0.0.1:0", rate: 2000, sync: [messages]}
credentials:
  - {name: demo, source: twilio, user: %[2]s, secret: "file:demo.secret", role: support}
roles:
  support: {twilio: {"*": see, phone: last4, body: see}}
`, up, rig.Account),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.server = rig.Start(t, dir, "serve")
	f.tunnelled = rig.Tunnels{Server: f.server, Dir: dir}
	rig.AwaitFor(t, 2*time.Minute, func() string { return rig.Incomplete(t, f.server.URL("viewer"), time.Time{}, "messages") })
}

// path returns a list of up to 1,000 records, most times another.
func (f *flooded) path() string {
	return rig.Base + fmt.Sprintf("/Messages.json?PageSize=%d", 1000-(f.asked.Add(1)%400))
}

// pipelined sends all requests at once on one connection.
func (f *flooded) pipelined(t *testing.T) func() {
	c, err := net.Dial("tcp", strings.TrimPrefix(f.server.URL("twilio"), "http://"))
	if err != nil {
		t.Error(err)
		return func() {}
	}
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	r, _ := http.NewRequest(http.MethodGet, f.server.URL("twilio"), nil)
	r.SetBasicAuth(rig.Account, rig.DemoToken)
	for range f.lists {
		_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\n\r\n", f.path(), r.Host, r.Header.Get("Authorization"))
	}
	_, _ = io.ReadFull(c, make([]byte, 1))
	return func() { _ = c.Close() }
}

// streams asks in one HTTP/2 connection in a tunnel, and reads no body.
func (f *flooded) streams(t *testing.T) func() {
	inTunnel, _ := f.tunnelled.Client(t).Transport.(*http.Transport)
	transport := &http.Transport{Proxy: inTunnel.Proxy, TLSClientConfig: &tls.Config{RootCAs: inTunnel.TLSClientConfig.RootCAs},
		ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerConnection: 64 << 10, MaxReceiveBufferPerStream: 64 << 10, StrictMaxConcurrentRequests: true}}
	client := &http.Client{Transport: transport}
	var streams sync.WaitGroup
	bodies := make(chan io.Closer, f.lists)
	for range f.lists {
		streams.Go(func() {
			r, _ := http.NewRequest(http.MethodGet, "https://api.twilio.com"+f.path(), nil)
			r.SetBasicAuth(rig.Account, rig.DemoToken)
			a, err := client.Do(r)
			if err != nil {
				return // it was cut
			}
			if a.ProtoMajor != 2 {
				t.Errorf("spoke %s", a.Proto)
			}
			bodies <- a.Body
		})
	}
	streams.Wait()
	return func() {
		close(bodies)
		for body := range bodies {
			_ = body.Close()
		}
		transport.CloseIdleConnections()
	}
}

// batches asks for all lists in one batch.
func (f *flooded) batches(t *testing.T) func() {
	type one struct {
		Path string `json:"path"`
	}
	var in struct {
		Requests []one `json:"requests"`
	}
	for range f.lists {
		in.Requests = append(in.Requests, one{f.path()})
	}
	body, _ := json.Marshal(in)
	at, _ := url.Parse(f.server.URL("twilio") + "/-/batch")
	c, err := net.Dial("tcp", at.Host)
	if err != nil {
		t.Error(err)
		return func() {}
	}
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	r, _ := http.NewRequest(http.MethodPost, at.String(), bytes.NewReader(body))
	r.SetBasicAuth(rig.Account, rig.DemoToken)
	_ = r.Write(c)
	_, _ = io.ReadFull(c, make([]byte, 1))
	return func() { _ = c.Close() }
}
