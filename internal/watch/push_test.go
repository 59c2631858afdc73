// Watches that notify the browsers and devices of their owner.

package watch

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/push"
)

// openScreens lets the watches of a rig notify devices through a server that stands for APNs. What it receives is
// received by the rig's receiver.
func openScreens(r *rig) *push.Book {
	r.Helper()
	server := httptest.NewUnstartedServer(r.receiver)
	server.EnableHTTP2 = true
	server.StartTLS()
	r.Cleanup(server.Close)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	checktest.MustNoError(r, err, "make a key")
	der, err := x509.MarshalPKCS8PrivateKey(key)
	checktest.MustNoError(r, err, "encode the key")
	apns, err := push.NewAPNs(push.APNsOptions{Server: server.URL, Team: "TEAM567890", KeyID: "KEY4567890", Topic: "com.example.desk",
		Key: understudy.NewSecret(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))), Now: r.options.Now,
		TLS: &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}})
	checktest.MustNoError(r, err, "make a client")
	b, err := push.Open(r.Context(), r.store.KV, r.options.Now)
	checktest.MustNoError(r, err, "open the receivers")
	b.SetPolicy(push.Policy{APNs: apns})
	p := *r.book.policy.Load()
	p.Push = b
	r.book.SetPolicy(p)
	return b
}

// push makes a watch that notifies the desk's devices.
func (r *rig) push(text string) (id string) {
	r.Helper()
	r.save("push", text)
	id, err := r.book.Make(r.Context(), r.desk(), "push", Destination{Channel: Push})
	checktest.MustNoError(r, err, "make a watch")
	return id
}

const token = "00112233445566778899aabbccddeeff"

func TestNotificationSaysWhatTheOwnersRoleSees(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.book.Make(t.Context(), r.desk(), "x", Destination{Channel: Push})
	checktest.Contains(t, fmt.Sprint(err), "push.contact", "without a setting")
	b := openScreens(r)
	if err := r.book.policy.Load().checkDestination(Destination{Channel: Push, To: "https://evil.example"}); err == nil {
		t.Error("a notification to an address is permitted")
	}
	checktest.MustNoError(t, b.Add(t.Context(), understudy.Owner{Name: "desk", Source: "twilio"}, push.Receiver{Device: token}), "add")
	id := r.push("status:failed")
	r.put(message(1, "inbound", "failed"), message(2, "outbound-api", "failed"))
	all := r.told()
	checktest.MustEqual(t, len(all), 1, "notifications")
	checktest.Equal(t, all[0].path, "/3/device/"+token, "the device")
	checktest.Equal(t, all[0].header.Get("Apns-Collapse-Id"), id, "the collapse id")
	for _, has := range []string{"“push” has a new match", "SM" + strings.Repeat("0", 31) + "1"} {
		checktest.Contains(t, all[0].body, has, "the notification")
	}
	// The role does not see the text of the message, sees four digits of a number, and does not find what was sent.
	for _, hidden := range []string{"marker", "15551230001", "SM" + strings.Repeat("0", 31) + "2"} {
		checktest.Lacks(t, all[0].body, hidden, "the notification")
	}
}

func TestDeviceThatIsGoneFailsTheWatchInWords(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := openScreens(r)
	checktest.MustNoError(t, b.Add(t.Context(), understudy.Owner{Name: "desk", Source: "twilio"}, push.Receiver{Device: token}), "add")
	id := r.push("status:failed")
	r.put(message(1, "inbound", "failed"))
	r.receiver.answers = []int{http.StatusGone}
	checktest.True(t, r.round() != nil, "a device that is gone is an error")
	left, err := b.List(t.Context(), understudy.Owner{Name: "desk", Source: "twilio"})
	checktest.NoError(t, err, "list")
	checktest.Equal(t, len(left), 0, "devices left")
	checktest.True(t, r.round() != nil, "nobody receives the message")
	checktest.Contains(t, r.status(id).Log[0].Said, "switch them on under Notifications", "the log")
	// A device that is added later receives what waits, once.
	r.receiver.take()
	checktest.MustNoError(t, b.Add(t.Context(), understudy.Owner{Name: "desk", Source: "twilio"}, push.Receiver{Device: token}), "add")
	checktest.Equal(t, len(r.told()), 1, "notifications")
	checktest.Equal(t, len(r.told()), 0, "notifications of what was sent")
}
