// The wires of the feed, with programs of other people: grpcurl, and a WebSocket through TLS.

package operation

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/protobuf/proto"

	"understudy/e2e/rig"
	"understudy/follow/feedpb"
	"understudy/internal/checktest"
	"understudy/kit/frame"
)

// grpcurl calls the gRPC service with the .proto file that the product publishes.
func grpcurl(t *testing.T, tool string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool, append([]string{"-import-path", "../../follow/feedpb", "-proto", "feed.proto", "-max-time", "30"}, args...)...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	_ = cmd.Run() // its error is in what it prints
	return out.String(), problem.String()
}

func TestWiresOfTheFeed(t *testing.T) {
	t.Parallel()
	tool := filepath.Join(t.TempDir(), "grpcurl")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", tool, "github.com/fullstorydev/grpcurl/cmd/grpcurl")
	build.Dir = "../../tools"
	out, err := build.CombinedOutput()
	checktest.MustNoError(t, err, "grpcurl: %s", out)
	up := rig.StartAPI(t, "--latency", "1ms", "--records", "200").URL("slowapi")
	for _, secure := range []bool{false, true} {
		settings := rig.Settings{Upstream: up, Role: "all", Mirror: "{newest: 1h, older: 1h, settled_age: 1h}"}
		if secure {
			settings.Store = "tls: self\n"
		}
		house, dir := rig.StartServer(t, settings)
		client, file, flags := http.DefaultClient, "", []string{"-plaintext"}
		if secure {
			own, ok := understudyIn(t, dir, "cert")
			checktest.MustTrue(t, ok, "understudy cert: %s", own)
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(own))
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
			t.Cleanup(transport.CloseIdleConnections)
			client, file = &http.Client{Transport: transport}, filepath.Join(t.TempDir(), "own.crt")
			checktest.MustNoError(t, os.WriteFile(file, []byte(own), 0o600), "write")
			flags = []string{"-cacert", file}
		}
		get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, house.URL("twilio")+rig.Base+"/Calls.json?PageSize=20", nil)
		checktest.MustNoError(t, err, "request")
		get.SetBasicAuth(rig.Account, rig.DemoToken)
		resp, err := client.Do(get)
		checktest.MustNoError(t, err, "a list")
		_ = resp.Body.Close()

		address := house.URL("viewer")[strings.Index(house.URL("viewer"), "://")+3:]
		basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(rig.Account+":"+rig.DemoToken))
		call := append(flags, "-H", "authorization: "+basic, "-d", `{"after":"0","limit":20}`, address, "understudy.feed.v1.FeedService/Follow")
		printed, problem := grpcurl(t, tool, call...)
		checktest.Equal(t, strings.Count(printed, `"WHAT_CAME"`), 20, "changes; grpcurl says %s", problem)
		_, problem = grpcurl(t, tool, append(flags, "-H", "authorization: Basic eDp5", address, "understudy.feed.v1.FeedService/Follow")...)
		checktest.Contains(t, problem, "Unauthenticated", "a wrong credential")

		conn, _, err := websocket.Dial(t.Context(), house.URL("viewer")+"/-/feed?after=0&limit=20", &websocket.DialOptions{HTTPClient: client,
			HTTPHeader: http.Header{"Authorization": {basic}}})
		checktest.MustNoError(t, err, "a WebSocket")
		count := 0
		for {
			_, text, err := conn.Read(t.Context())
			if err != nil {
				checktest.Equal(t, websocket.CloseStatus(err), websocket.StatusNormalClosure, "the end: %v", err)
				break
			}
			var m struct{ Type string }
			checktest.NoError(t, json.Unmarshal(text, &m), "%s", text)
			if m.Type == "change" {
				count++
			}
		}
		checktest.Equal(t, count, 20, "changes over the WebSocket")

		countFrames(t, address, basic, client)

		open, _, err := websocket.Dial(t.Context(), house.URL("viewer")+"/-/feed?after=now", &websocket.DialOptions{HTTPClient: client,
			HTTPHeader: http.Header{"Authorization": {basic}}})
		checktest.MustNoError(t, err, "a WebSocket that stays open")
		began := time.Now()
		stopped := make(chan error, 1)
		go func() { stopped <- house.Stop() }()
		last := ""
		for {
			_, text, err := open.Read(t.Context())
			if err != nil {
				break
			}
			last = string(text)
		}
		checktest.NoError(t, <-stopped, "stop")
		checktest.Contains(t, last, `"type":"end"`, "the last message of a server that stops")
		checktest.True(t, time.Since(began) < 20*time.Second, "the stop took %v", time.Since(began))
	}
}

// countFrames follows the feed by frames, over TLS if the client has certificates.
func countFrames(t *testing.T, address, basic string, client *http.Client) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	checktest.MustNoError(t, err, "dial")
	defer conn.Close()
	if transport, isSecure := client.Transport.(*http.Transport); isSecure {
		conn = tls.Client(conn, &tls.Config{RootCAs: transport.TLSClientConfig.RootCAs, ServerName: "127.0.0.1"})
	}
	checktest.MustNoError(t, conn.SetDeadline(time.Now().Add(rig.Patience)), "deadline")
	_, err = fmt.Fprintf(conn, "GET /-/feed?after=0&limit=20 HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\nConnection: Upgrade\r\n"+
		"Upgrade: understudy-frames\r\nAccept: application/protobuf\r\n\r\n", address, basic)
	checktest.MustNoError(t, err, "a request for frames")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	checktest.MustNoError(t, err, "the answer")
	checktest.MustEqual(t, resp.StatusCode, http.StatusSwitchingProtocols, "the status")
	changes := 0
	for r := frame.NewReader(in, 64<<10); ; {
		content, err := r.Next()
		if err == io.EOF {
			break
		}
		checktest.MustNoError(t, err, "after %d changes", changes)
		var m feedpb.FollowResponse
		checktest.MustNoError(t, proto.Unmarshal(content, &m), "the message %x", content)
		if m.GetChange() != nil {
			changes++
		}
	}
	checktest.Equal(t, changes, 20, "changes in frames")
}
