// Web Push: the example of RFC 8291 by its own receiver, keys that no browser made, and addresses that are not permitted.

package push

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store"
	"understudy/internal/store/storetest"
)

// browser is a subscription, its push service, and what it received.
type browser struct {
	*testing.T
	server *httptest.Server
	key    *ecdh.PrivateKey
	auth   []byte

	mu       sync.Mutex
	now      time.Time
	status   int // of the answers; 0 is 201
	received []string
	headers  []http.Header
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	checktest.MustNoError(t, err, "make a key")
	b := &browser{T: t, key: key, auth: make([]byte, 16), now: epoch}
	_, _ = rand.Read(b.auth)
	b.server = httptest.NewServer(b)
	t.Cleanup(b.server.Close)
	return b
}

func (b *browser) receiver() Receiver {
	return Receiver{Name: "Desk", Endpoint: b.server.URL + "/send/1",
		P256dh: encodeBase64(b.key.PublicKey().Bytes()), Auth: encodeBase64(b.auth)}
}

func (b *browser) answer(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = status
}

// open decrypts a message as RFC 8291 says, written apart from seal.
func (b *browser) open(body []byte) (string, error) {
	if len(body) < 86+17 || body[20] != 65 {
		return "", errors.New("no header")
	}
	sender, err := ecdh.P256().NewPublicKey(body[21:86])
	if err != nil {
		return "", err
	}
	shared, err := b.key.ECDH(sender)
	if err != nil {
		return "", err
	}
	extract := func(secret, salt []byte, info string, n int) []byte {
		key, _ := hkdf.Extract(sha256.New, secret, salt)
		out, _ := hkdf.Expand(sha256.New, key, info, n)
		return out
	}
	input := extract(shared, b.auth, "WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(body[21:86]), 32)
	block, err := aes.NewCipher(extract(input, body[:16], "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		return "", err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return "", err
	}
	plain, err := aead.Open(nil, extract(input, body[:16], "Content-Encoding: nonce\x00", 12), body[86:], nil)
	return strings.TrimSuffix(string(plain), "\x02"), err
}

func (b *browser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status != 0 {
		w.WriteHeader(b.status)
		return
	}
	if err := b.checkSender(r); err != nil {
		b.Error(err)
		w.WriteHeader(http.StatusForbidden)
		return
	}
	plain, err := b.open(body)
	if err != nil {
		b.Errorf("decrypt: %v", err)
	}
	b.received, b.headers = append(b.received, plain), append(b.headers, r.Header)
	w.WriteHeader(http.StatusCreated)
}

// checkSender checks the token of RFC 8292.
func (b *browser) checkSender(r *http.Request) error {
	token, public, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "vapid t="), ", k=")
	point, err := base64.RawURLEncoding.DecodeString(public)
	parts := strings.Split(token, ".")
	if !ok || len(parts) != 3 {
		return fmt.Errorf("no token: %q", r.Header.Get("Authorization"))
	}
	key, err2 := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if len(signature) != 64 || !ecdsa.Verify(key, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return errors.New("the signature is wrong")
	}
	raw, _ := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	if err := json.Unmarshal(raw, &claims); err != nil {
		return err
	}
	left := time.Unix(claims.Exp, 0).Sub(b.now)
	if claims.Aud != b.server.URL || claims.Sub != "mailto:desk@example.com" {
		return fmt.Errorf("claims %s", raw)
	}
	if left <= 0 || left > 24*time.Hour {
		return fmt.Errorf("the token is valid for %s", left)
	}
	return nil
}

// openBook opens a book on a store of its own whose settings permit the browsers of the test.
func openBook(t *testing.T, now func() time.Time, change func(*Policy)) *Book {
	t.Helper()
	db := storetest.Open(t, store.Options{})
	b, err := Open(t.Context(), db.KV, now)
	checktest.MustNoError(t, err, "open the receivers")
	p := Policy{Contact: "mailto:desk@example.com", AllowPrivate: true}
	change(&p)
	b.SetPolicy(p)
	return b
}

var ann, bob = understudy.Owner{Name: "ann", Role: "support"}, understudy.Owner{Name: "bob"}

func listed(t *testing.T, b *Book, of understudy.Owner) []Receiver {
	t.Helper()
	all, err := b.List(t.Context(), of)
	checktest.MustNoError(t, err, "list")
	return all
}

func TestEveryReceiverOfAPersonGetsAMessageOnce(t *testing.T) {
	one, two, other, f := newBrowser(t), newBrowser(t), newBrowser(t), newApple(t)
	now := epoch
	b := openBook(t, func() time.Time { return now }, func(p *Policy) {
		for _, of := range []*browser{one, two, other} {
			p.Hosts = append(p.Hosts, strings.TrimPrefix(of.server.URL, "http://"))
		}
		p.APNs = f.client()
	})
	for _, r := range []Receiver{one.receiver(), two.receiver(), {Name: "Phone", Device: strings.ToUpper(device)}} {
		checktest.MustNoError(t, b.Add(t.Context(), ann, r), "add")
	}
	checktest.MustNoError(t, b.Add(t.Context(), bob, other.receiver()), "add")
	m := Message{ID: "msg_1", Title: "Two <new> matches", Body: "call 1\ncall 2", URL: "https://desk.example.com/-/watches/a", Tag: "a"}
	two.answer(http.StatusServiceUnavailable)
	_, _, err := b.Send(t.Context(), listed(t, b, ann), m)
	checktest.True(t, err != nil, "a service that does not answer is an error")
	two.answer(0)
	for range 2 { // the second is what a job does that ended before its result was stored
		_, _, err = b.Send(t.Context(), listed(t, b, ann), m)
		checktest.NoError(t, err, "send")
	}
	want := `{"aps":{"alert":{"body":"call 1\ncall 2","title":"Two <new> matches"},"sound":"default","thread-id":"a"},` +
		`"url":"https://desk.example.com/-/watches/a"}`
	for _, of := range []*browser{one, two} {
		if len(of.received) != 1 || of.received[0] != want {
			t.Errorf("received %q, want once %s", of.received, want)
		}
	}
	if len(other.received) != 0 {
		t.Errorf("another person's browser received %q", other.received)
	}
	if len(f.payloads) != 1 || !strings.Contains(f.payloads[0], `"title":"Two <new> matches"`) {
		t.Errorf("the device received %q", f.payloads)
	}
	for name, want := range map[string]string{"Ttl": "86400", "Topic": "a", "Content-Encoding": "aes128gcm"} {
		checktest.Equal(t, one.headers[0].Get(name), want, "%s", name)
	}
}

func TestReceiversThatAreGoneAreRemoved(t *testing.T) {
	for _, status := range []int{http.StatusGone, http.StatusNotFound} {
		one := newBrowser(t)
		b := openBook(t, func() time.Time { return epoch }, func(p *Policy) {
			p.Hosts = []string{strings.TrimPrefix(one.server.URL, "http://")}
		})
		checktest.MustNoError(t, b.Add(t.Context(), ann, one.receiver()), "add")
		one.answer(status)
		_, _, err := b.Send(t.Context(), listed(t, b, ann), Message{ID: "1"})
		checktest.True(t, err != nil, "nobody received the message")
		if n := len(listed(t, b, ann)); n != 0 {
			t.Errorf("%d: %d receivers are left", status, n)
		}
		_, _, err = b.Send(t.Context(), listed(t, b, ann), Message{ID: "1"})
		checktest.True(t, errors.Is(err, errNone), "the error is %v", err)
	}
	f := newApple(t)
	f.answers = append(f.answers, func(w http.ResponseWriter) { w.WriteHeader(http.StatusGone) })
	b := openBook(t, f.clock, func(p *Policy) { p.APNs = f.client() })
	checktest.MustNoError(t, b.Add(t.Context(), ann, Receiver{Device: device}), "add")
	_, _, err := b.Send(t.Context(), listed(t, b, ann), Message{ID: "1"})
	checktest.True(t, err != nil, "nobody received the message")
	checktest.Equal(t, len(listed(t, b, ann)), 0, "devices left")
}

// A dead receiver delays the messages of the living ones for an hour, not for ever.
func TestReceiverThatFailsDelaysOthersForAnHour(t *testing.T) {
	one, two := newBrowser(t), newBrowser(t)
	now := epoch
	b := openBook(t, func() time.Time { return now }, func(p *Policy) {
		p.Hosts = []string{strings.TrimPrefix(one.server.URL, "http://"), strings.TrimPrefix(two.server.URL, "http://")}
	})
	checktest.MustNoError(t, b.Add(t.Context(), ann, one.receiver()), "add")
	checktest.MustNoError(t, b.Add(t.Context(), ann, two.receiver()), "add")
	two.answer(http.StatusTooManyRequests)
	_, _, err := b.Send(t.Context(), listed(t, b, ann), Message{ID: "1"})
	checktest.True(t, err != nil, "one of two failed")
	now = now.Add(time.Hour)
	one.now = now
	_, _, err = b.Send(t.Context(), listed(t, b, ann), Message{ID: "2"})
	checktest.NoError(t, err, "after an hour")
	checktest.Equal(t, len(one.received), 2, "messages")
}

func TestSubscriptionsAreNotTrusted(t *testing.T) {
	one := newBrowser(t)
	b := openBook(t, func() time.Time { return epoch }, func(p *Policy) { p.AllowPrivate = false })
	good := one.receiver()
	good.Endpoint = "https://fcm.googleapis.com/fcm/send/x"
	checktest.NoError(t, b.check(new(good)), "a subscription of Chrome")
	for says, change := range map[string]func(*Receiver){
		"use https":                func(r *Receiver) { r.Endpoint = "http://fcm.googleapis.com/x" },
		"do not permit":            func(r *Receiver) { r.Endpoint = "https://evil.example/x" },
		"the address is loopback":  func(r *Receiver) { r.Endpoint = "https://127.0.0.1/x" },
		"link-local or metadata":   func(r *Receiver) { r.Endpoint = "https://169.254.169.254/x" },
		"can't contain credential": func(r *Receiver) { r.Endpoint = "https://u:p@fcm.googleapis.com/x" },
		"too long":                 func(r *Receiver) { r.Endpoint += strings.Repeat("x", 500) },
		"keys of the subscription": func(r *Receiver) { r.P256dh = "AAAA" },
		"the keys of":              func(r *Receiver) { r.Auth = "AAAA" },
		"push.apns":                func(r *Receiver) { r.Device = device },
	} {
		r := good
		change(&r)
		if err := b.check(&r); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want an error with %q, got %v", says, err)
		}
	}
	// A host is permitted by its name, and its address is checked when the connection is made.
	b = openBook(t, func() time.Time { return epoch }, func(p *Policy) { p.AllowPrivate, p.Hosts = false, []string{"localhost"} })
	good.Endpoint = "https://localhost/x"
	checktest.MustNoError(t, b.Add(t.Context(), ann, good), "add")
	_, _, err := b.Send(t.Context(), listed(t, b, ann), Message{ID: "1"})
	checktest.True(t, err != nil && strings.Contains(err.Error(), "not permitted"), "connect to this machine: %v", err)
}

func TestReceiversBelongToOnePerson(t *testing.T) {
	one := newBrowser(t)
	b := openBook(t, func() time.Time { return epoch }, func(p *Policy) {
		p.Hosts = []string{strings.TrimPrefix(one.server.URL, "http://")}
	})
	r := one.receiver()
	for n := range maxReceivers {
		r.Endpoint = fmt.Sprintf("%s/send/%d", one.server.URL, n)
		checktest.MustNoError(t, b.Add(t.Context(), bob, r), "add")
	}
	checktest.NoError(t, b.Add(t.Context(), bob, r), "add again")
	r.Endpoint += "0"
	checktest.True(t, errors.Is(b.Add(t.Context(), bob, r), understudy.ErrInvalid), "too many are added")
	checktest.Equal(t, len(listed(t, b, ann)), 0, "receivers of another person")
	id := listed(t, b, bob)[0].ID
	checktest.True(t, errors.Is(b.Remove(t.Context(), ann, id), understudy.ErrNotFound), "another person can remove it")
	checktest.NoError(t, b.Remove(t.Context(), bob, id), "remove")
	checktest.Equal(t, len(listed(t, b, bob)), maxReceivers-1, "receivers after the removal")
}

func TestKeyOfTheServerIsMadeOnce(t *testing.T) {
	db := storetest.Open(t, store.Options{})
	open := func() string {
		b, err := Open(t.Context(), db.KV, time.Now)
		b.SetPolicy(Policy{Contact: "mailto:desk@example.com"})
		checktest.MustNoError(t, err, "open")
		return b.PublicKey()
	}
	first := open()
	checktest.Equal(t, open(), first, "the key after a restart")
	if raw, err := base64.RawURLEncoding.DecodeString(first); err != nil || len(raw) != 65 {
		t.Errorf("the key has %d bytes: %v", len(raw), err)
	}
}

// FuzzReceiver gives any subscription to the check and any text to the writer of notifications.
func FuzzReceiver(f *testing.F) {
	f.Add("https://fcm.googleapis.com/x",
		"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", "BTBZMqHH6r4Tts7J_aSIgg", "", "name")
	f.Add("", "", "", device, "\xff\x00")
	f.Fuzz(func(t *testing.T, endpoint, p256dh, auth, token, text string) {
		b := &Book{}
		b.policy.Store(&Policy{Contact: "mailto:a@example.com", APNs: &APNs{}})
		r := Receiver{Name: text, Endpoint: endpoint, P256dh: p256dh, Auth: auth, Device: token}
		if err := b.check(&r); err == nil && r.Device == "" && !strings.HasPrefix(r.Endpoint, "https://") {
			t.Errorf("%q is permitted", r.Endpoint)
		}
		m := Message{Title: text, Body: strings.Repeat(text, 100), URL: endpoint, Tag: "a"}
		if body := m.encode(500); len(body) > 500 || !json.Valid(body) {
			t.Errorf("%d bytes: %s", len(body), body)
		}
	})
}
