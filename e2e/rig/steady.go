// Steady: clients of net/http that ask servers with TLS without a pause.

package rig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Steady is a few clients that ask without a pause. net/http repeats a GET of its own accord if its connection, which was used before, ends
// without a byte of the answer, or if HTTP/2 says that the server did not begin it. Every other loss fails the test.
type Steady struct {
	t       *testing.T
	roots   *x509.CertPool
	clients sync.WaitGroup
	ctx     context.Context
	stop    func()

	Answers atomic.Int64
}

// NewSteady returns no clients yet. They will trust the servers in some folders, which have the setting tls: self.
func NewSteady(t *testing.T, dirs ...string) *Steady {
	t.Helper()
	s := &Steady{t: t, roots: x509.NewCertPool()}
	for _, dir := range dirs {
		cmd := exec.CommandContext(t.Context(), Program, "cert")
		cmd.Dir = dir
		own, err := cmd.Output()
		if err != nil || !s.roots.AppendCertsFromPEM(own) {
			t.Fatalf("understudy cert prints %q: %v", own, err)
		}
	}
	s.ctx, s.stop = context.WithCancel(t.Context())
	t.Cleanup(s.Stop)
	return s
}

// Client returns a client that speaks one version of HTTP and keeps its connections.
func (s *Steady) Client(version int) *http.Client {
	client := s.newClient(version)
	s.t.Cleanup(client.CloseIdleConnections)
	return client
}

func (s *Steady) newClient(version int) *http.Client {
	return &http.Client{Timeout: Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots},
		ForceAttemptHTTP2: version == 2, DisableCompression: true}}
}

// newTime is how long a restart waits for the request on a new connection.
const newTime = time.Second

// Start starts a client that asks for one URL after the other until Stop. Without a client, each request has a new one.
func (s *Steady) Start(name string, version int, client *http.Client, url func(n int) string) {
	s.clients.Go(func() {
		for n := 0; s.ctx.Err() == nil && !s.t.Failed(); n++ {
			with := client
			if with == nil {
				with = s.newClient(version)
			}
			began := time.Now()
			err := s.ask(with, version, url(n))
			if err != nil && client == nil && time.Since(began) > newTime {
				s.t.Logf("%s, request %d: it took %v, and is asked again: %v", name, n, time.Since(began), err)
				err = s.ask(with, version, url(n))
			}
			if err != nil {
				s.t.Errorf("%s, request %d: %v", name, n, err)
			}
			if client == nil {
				with.CloseIdleConnections()
			}
		}
	})
}

func (s *Steady) ask(client *http.Client, version int, url string) error {
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.SetBasicAuth(Account, DemoToken)
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != 200 || resp.ProtoMajor != version {
		return fmt.Errorf("%s over %s, %.300s: %v", resp.Status, resp.Proto, body, err)
	}
	s.Answers.Add(1)
	return nil
}

// Await waits for more answers.
func (s *Steady) Await(more int64) {
	s.t.Helper()
	before := s.Answers.Load()
	Await(s.t, func() string {
		if s.Answers.Load() < before+more && !s.t.Failed() {
			return "the clients get no answers"
		}
		return ""
	})
}

// Stop ends the clients when their last request is answered.
func (s *Steady) Stop() {
	s.stop()
	s.clients.Wait()
}
