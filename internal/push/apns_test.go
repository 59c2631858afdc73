// APNs: a server of the test's own that checks what Apple checks, and one that reads the frames themselves.

package push

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"understudy"
	"understudy/internal/checktest"
)

var epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const device = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// apple is a server that answers as APNs does.
type apple struct {
	*testing.T
	server *httptest.Server
	key    *ecdsa.PrivateKey
	secret understudy.Secret

	mu          sync.Mutex
	now         time.Time
	tokens      map[string]bool
	ids         map[string]int
	payloads    []string
	answers     []func(http.ResponseWriter) // the next answers; then 200
	connections map[string]bool
}

func newApple(t *testing.T) *apple {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	checktest.MustNoError(t, err, "make a key")
	der, err := x509.MarshalPKCS8PrivateKey(key)
	checktest.MustNoError(t, err, "encode the key")
	f := &apple{T: t, key: key, now: epoch, tokens: map[string]bool{}, ids: map[string]int{}, connections: map[string]bool{},
		secret: understudy.NewSecret(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))}
	f.server = httptest.NewUnstartedServer(f)
	f.server.EnableHTTP2 = true
	f.server.StartTLS()
	t.Cleanup(f.server.Close)
	return f
}

func (f *apple) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// pass lets time pass.
func (f *apple) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

func (f *apple) options() APNsOptions {
	return APNsOptions{Server: f.server.URL, Team: "TEAM567890", KeyID: "KEY4567890", Topic: "com.example.desk", Key: f.secret, Now: f.clock,
		TLS: &tls.Config{RootCAs: f.server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}
}

func (f *apple) client() *APNs {
	f.Helper()
	a, err := NewAPNs(f.options())
	checktest.MustNoError(f, err, "make a client")
	f.Cleanup(a.Close)
	return a
}

// ServeHTTP accepts a push as Apple does: over HTTP/2, with a token of the team that is less than an hour old.
func (f *apple) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	refuse := func(status int, why string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"reason":%q}`, why)
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "bearer ")
	f.connections[r.RemoteAddr], f.tokens[token] = true, true
	f.ids[r.Header.Get("Apns-Id")]++
	switch err := f.checkToken(token); {
	case r.ProtoMajor != 2:
		refuse(http.StatusUpgradeRequired, "HTTP/2")
	case err != nil:
		refuse(http.StatusForbidden, err.Error())
	case r.Header.Get("Apns-Topic") != "com.example.desk" || r.Header.Get("Apns-Push-Type") != "alert":
		refuse(http.StatusBadRequest, "MissingTopic")
	case r.URL.Path != "/3/device/"+device:
		refuse(http.StatusBadRequest, "BadDeviceToken")
	case len(f.answers) > 0:
		f.answers[0](w)
		f.answers = f.answers[1:]
	default:
		f.payloads = append(f.payloads, string(body))
		w.Header().Set("Apns-Id", r.Header.Get("Apns-Id"))
	}
}

// checkToken checks a provider token by the standard library alone.
func (f *apple) checkToken(token string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return fmt.Errorf("MissingProviderToken")
	}
	var head, claims map[string]any
	for i, to := range []*map[string]any{&head, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(raw, to) != nil {
			return fmt.Errorf("InvalidProviderToken")
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || len(signature) != 64 {
		return fmt.Errorf("InvalidProviderToken")
	}
	if said := fmt.Sprint(head["alg"], head["kid"], claims["iss"]); said != "ES256KEY4567890TEAM567890" {
		return fmt.Errorf("InvalidProviderToken: %s", said)
	}
	if !ecdsa.Verify(&f.key.PublicKey, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return fmt.Errorf("InvalidProviderToken: signature")
	}
	if age := f.now.Sub(time.Unix(int64(claims["iat"].(float64)), 0)); age >= time.Hour || age < 0 {
		return fmt.Errorf("ExpiredProviderToken")
	}
	return nil
}

func id(n int) string { return fmt.Sprintf("00000000-0000-8000-8000-%012x", n) }

// Apple refuses a new token within 20 minutes and an old one after 60.
func TestProviderTokenIsRefreshedBetween20And60Minutes(t *testing.T) {
	f := newApple(t)
	a := f.client()
	for n := range 12 {
		for range 5 {
			checktest.NoError(t, a.Push(t.Context(), device, id(n), "", []byte(`{}`)), "push")
		}
		f.pass(10 * time.Minute)
	}
	if n := len(f.tokens); n != 3 {
		t.Errorf("%d tokens in two hours, want 3", n)
	}
}

func TestAnswersOfAPNs(t *testing.T) {
	for _, one := range []struct {
		status int
		reason string
		gone   bool
		retry  string
		wait   time.Duration
	}{
		{410, "Unregistered", true, "", 0},
		{400, "BadDeviceToken", true, "", 0},
		{400, "BadTopic", false, "", 0},
		{413, "PayloadTooLarge", false, "", 0},
		{429, "TooManyRequests", false, "7", 7 * time.Second},
		{503, "ServiceUnavailable", false, "30", 30 * time.Second},
		{403, "InvalidProviderToken", false, "", 0},
	} {
		f := newApple(t)
		f.answers = append(f.answers, func(w http.ResponseWriter) {
			if one.retry != "" {
				w.Header().Set("Retry-After", one.retry)
			}
			w.WriteHeader(one.status)
			_, _ = fmt.Fprintf(w, `{"reason":%q}`, one.reason)
		})
		err := f.client().Push(t.Context(), device, id(1), "", []byte(`{}`))
		why, ok := err.(*refusal)
		if !ok {
			t.Errorf("%s: %v is no refusal", one.reason, err)
			continue
		}
		if why.isGone != one.gone || why.answer.Wait != one.wait {
			t.Errorf("%s: gone %v, wait %s", one.reason, why.isGone, why.answer.Wait)
		}
		if f.ids[id(1)] != 1 {
			t.Errorf("%s: sent %d times; only a lost connection is tried again at once", one.reason, f.ids[id(1)])
		}
	}
}

func TestManyPushesShareOneConnection(t *testing.T) {
	f := newApple(t)
	a := f.client()
	var group sync.WaitGroup
	for n := range 50 {
		group.Go(func() {
			for m := range 20 {
				checktest.NoError(t, a.Push(t.Context(), device, id(n*20+m), "all", []byte(`{}`)), "push")
			}
		})
	}
	group.Wait()
	if len(f.connections) > 2 || len(f.ids) != 1000 {
		t.Errorf("%d connections for %d pushes", len(f.connections), len(f.ids))
	}
}

// stallingListener accepts connections whose bytes can be held back in both directions, as a network that lost its route does.
type stallingListener struct {
	net.Listener
	stalled  atomic.Bool // whether connections accepted so far are silent
	accepted atomic.Int64
}

func (l *stallingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.accepted.Add(1)
	l.stalled.Store(false)
	return &stallingConn{Conn: c, silent: &l.stalled, first: l.accepted.Load() == 1}, nil
}

// stallingConn swallows what is written once the first connection is silent.
type stallingConn struct {
	net.Conn
	silent *atomic.Bool
	first  bool
	black  atomic.Bool
}

func (c *stallingConn) Write(b []byte) (int, error) {
	if c.first && (c.black.Load() || c.silent.Load()) {
		c.black.Store(true)
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// The original pinged by hand or not at all; TCP keep-alive does not see a peer that acknowledges bytes and never answers.
func TestBlackHoledConnectionIsNoticedAndItsPushSentOnceMore(t *testing.T) {
	f := newApple(t)
	listener := &stallingListener{}
	var err error
	listener.Listener, err = net.Listen("tcp", "127.0.0.1:0")
	checktest.MustNoError(t, err, "listen")
	server := httptest.NewUnstartedServer(f)
	server.Listener, server.EnableHTTP2 = listener, true
	server.StartTLS()
	t.Cleanup(server.Close)
	o := f.options()
	o.Server, o.Silence, o.PingTimeout = server.URL, 100*time.Millisecond, 100*time.Millisecond
	a, err := NewAPNs(o)
	checktest.MustNoError(t, err, "make a client")
	t.Cleanup(a.Close)
	checktest.NoError(t, a.Push(t.Context(), device, id(1), "", []byte(`{}`)), "the first push")
	listener.stalled.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	checktest.NoError(t, a.Push(ctx, device, id(2), "", []byte(`{}`)), "a push over a dead connection")
	if n := listener.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.ids[id(2)]; n != 2 { // the server read the first request; its answer was lost. Apple drops the second by its id.
		t.Errorf("the push was sent %d times, want 2 with one id", n)
	}
}

// representation is the form in which a field of a header block stands (RFC 7541, 6).
type representation struct {
	name string
	kind string // "indexed", "incremental", "never" or "literal"
}

// readBlock returns the fields of a header block in order.
func readBlock(t *testing.T, decoder *hpack.Decoder, block []byte) []representation {
	t.Helper()
	fields, err := decoder.DecodeFull(block)
	checktest.MustNoError(t, err, "decode the header block")
	var all []representation
	integer := func(bits int) (n int) {
		mask := 1<<bits - 1
		n, block = int(block[0])&mask, block[1:]
		for shift := 0; n >= mask; shift += 7 {
			b := block[0]
			block, n = block[1:], n+int(b&0x7f)<<shift
			if b < 0x80 {
				break
			}
		}
		return n
	}
	text := func() { block = block[integer(7):] }
	for len(block) > 0 {
		kind, bits := "literal", 4
		switch b := block[0]; {
		case b >= 0x80:
			kind, bits = "indexed", 7
		case b >= 0x40:
			kind, bits = "incremental", 6
		case b >= 0x20:
			integer(5) // a change of the table's size
			continue
		case b >= 0x10:
			kind = "never"
		}
		index := integer(bits)
		if kind != "indexed" {
			if index == 0 {
				text()
			}
			text()
		}
		all = append(all, representation{fields[len(all)].Name, kind})
	}
	return all
}

// Apple: :path and authorization are literal fields without indexing. The table of the server must not overflow.
func TestPathAndAuthorizationAreNeverIndexed(t *testing.T) {
	f := newApple(t)
	config := f.server.TLS.Clone()
	config.NextProtos = []string{"h2"}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	checktest.MustNoError(t, err, "listen")
	t.Cleanup(func() { _ = listener.Close() })
	blocks := make(chan []byte, 100)
	go serveFrames(listener, blocks)
	o := f.options()
	o.Server = "https://" + listener.Addr().String()
	a, err := NewAPNs(o)
	checktest.MustNoError(t, err, "make a client")
	t.Cleanup(a.Close)
	decoder := hpack.NewDecoder(4096, nil)
	for n := range 50 {
		checktest.MustNoError(t, a.Push(t.Context(), device, id(n), "watch", []byte(`{}`)), "push")
		seen := map[string]string{}
		for _, r := range readBlock(t, decoder, <-blocks) {
			seen[r.name] = r.kind
			if r.kind == "incremental" {
				t.Fatalf("push %d adds %s to the table", n, r.name)
			}
		}
		for _, name := range []string{":path", "authorization", "apns-id", "apns-expiration", "apns-collapse-id"} {
			if seen[name] != "literal" {
				t.Fatalf("push %d has %s as %q, want a literal without indexing", n, name, seen[name])
			}
		}
	}
}

// serveFrames answers 200 to every stream of one connection, and sends the header blocks as they arrived.
func serveFrames(listener net.Listener, blocks chan<- []byte) {
	c, err := listener.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	if _, err := io.CopyN(io.Discard, c, int64(len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(c, c)
	_ = framer.WriteSettings()
	var ok bytes.Buffer
	_ = hpack.NewEncoder(&ok).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		if h, is := frame.(*http2.HeadersFrame); is {
			blocks <- bytes.Clone(h.HeaderBlockFragment())
		}
		if s, is := frame.(*http2.SettingsFrame); is && !s.IsAck() {
			_ = framer.WriteSettingsAck()
		}
		if d, is := frame.(*http2.DataFrame); is && d.StreamEnded() {
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: d.StreamID, BlockFragment: ok.Bytes(), EndStream: true, EndHeaders: true})
		}
	}
}

func TestKeyOfAppleIsChecked(t *testing.T) {
	f := newApple(t)
	for _, secret := range []string{"", "secretword", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0d29yZA==\n-----END PRIVATE KEY-----\n"} {
		o := f.options()
		o.Key = understudy.NewSecret(secret)
		_, err := NewAPNs(o)
		if err == nil {
			t.Fatalf("the key %q is accepted", secret)
		}
		if strings.Contains(err.Error(), "secretword") || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("the error contains the key: %v", err)
		}
	}
}
