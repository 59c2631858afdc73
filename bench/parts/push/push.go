// Package push is a part of the bench: notifications to a server that stands for Apple's push service, over real TLS and
// HTTP/2 in one process.
package push

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"understudy"
	"understudy/bench/rig"
	"understudy/internal/push"
)

const (
	pushes  = 10_000
	senders = 64
	device  = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
)

// Measure sends 10,000 notifications at once and counts the connections and the provider tokens.
func Measure(ctx context.Context, r *rig.Run) error {
	n := r.Size(pushes, 200)
	var connections, tokens sync.Map
	var ids sync.Map
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		connections.Store(req.RemoteAddr, true)
		tokens.Store(req.Header.Get("Authorization"), true)
		if _, twice := ids.LoadOrStore(req.Header.Get("Apns-Id"), true); twice {
			w.WriteHeader(http.StatusConflict)
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	client, err := push.NewAPNs(push.APNsOptions{Server: server.URL, Team: "TEAM567890", KeyID: "KEY4567890", Topic: "com.example.desk",
		Key: understudy.NewSecret(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))), Now: time.Now,
		TLS: &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}})
	if err != nil {
		return err
	}
	defer client.Close()
	payload := []byte(`{"aps":{"alert":{"title":"“Failed messages” has a new match","body":"message SM00000000000000000000000000000001"}}}`)
	var next atomic.Int64
	errs := make([]error, senders)
	var group sync.WaitGroup
	started := time.Now()
	for s := range senders {
		group.Go(func() {
			for i := next.Add(1); i <= int64(n) && errs[s] == nil; i = next.Add(1) {
				errs[s] = client.Push(ctx, device, fmt.Sprintf("00000000-0000-8000-8000-%012x", i), "watch", payload)
			}
		})
	}
	group.Wait()
	took := time.Since(started)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	count := func(m *sync.Map) (n int) {
		m.Range(func(any, any) bool { n++; return true })
		return n
	}
	r.Say("%d pushes by %d senders in %.2f s; %d connections, %d provider tokens", n, senders, took.Seconds(), count(&connections), count(&tokens))
	r.AtLeast("pushes a second", float64(n)/took.Seconds(), 2000, "")
	r.AtMost("connections", float64(count(&connections)), 2, "")
	return nil
}
