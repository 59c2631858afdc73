// Package tls is a part of the bench: a page that is held, over TLS by HTTP/1.1 and by HTTP/2, beside nginx with the
// same certificate.
package tls

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"understudy/bench/rig"
)

// clients is how many connections the load has.
const clients = 16

// least is how many times as many requests a second as nginx the product must answer.
const least = 0.9

// server is one of the two that are compared.
type server struct {
	*rig.Child
	address string
}

// Measure measures both servers alternately with the same load, by HTTP/1.1 and then by HTTP/2.
func Measure(ctx context.Context, r *rig.Run) (err error) {
	file := filepath.Join(r.Dir, "tls.pem")
	if err := writeCertificate(file); err != nil {
		return err
	}
	g, err := r.Rig(ctx, rig.Setup{Mirror: "newest: 2h, older: 2h, settled_age: 24h", Extra: fmt.Sprintf("tls: {cert: %q, key: %[1]q}", file)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	uri := rig.Calls + "?PageSize=50"
	plain, zipped, err := rig.Stored(ctx, g, uri)
	if err != nil {
		return err
	}
	bare, err := r.Bare(ctx, plain, zipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Stop()) }()
	all := []server{{g.Serve, g.Serve.Addresses["twilio"] + uri}}
	nginx, err := r.Nginx(ctx, bare.Addresses["bare"], file, true)
	switch {
	case errors.Is(err, rig.ErrNoPeer):
		r.Say("%v: left out, so the target is not judged", err)
	case err != nil:
		return err
	default:
		defer func() { err = errors.Join(err, nginx.Stop()) }()
		all = append(all, server{nginx, nginx.Addresses["nginx"] + uri})
	}
	r.Say("the page: %d bytes, %d gzipped; %d clients with a connection and one request at a time each; access logs to files", len(plain), len(zipped), clients)
	for i, d := range []rig.Driver{r.FindDriver(), findDriver(r)} {
		for _, s := range all {
			if err := check(ctx, s.address, i+1, zipped); err != nil {
				return fmt.Errorf("%s: HTTP/%d: %w", s.address, i+1, err)
			}
		}
		if err := compare(ctx, r, d, all, []string{"HTTP/1.1 with TLS", "HTTP/2"}[i]); err != nil {
			return err
		}
	}
	return nil
}

// compare measures the servers by one version of HTTP.
func compare(ctx context.Context, r *rig.Run, d rig.Driver, all []server, title string) error {
	rows := [][]string{{title + " by " + d.Name + ": requests/s", "CPU us each", "nginx", "CPU us each", "ratio"}}
	var ratios []float64
	for round := range r.Times(9, 2) {
		got := make([]rig.Measured, len(all))
		for i := range all {
			at := (i + round) % len(all)
			m, err := d.Measure(ctx, all[at].Child, rig.Aim(all[at].address, "gzip", clients, r.Long(4*time.Second)))
			if err != nil {
				return fmt.Errorf("%s: %s: %w", title, all[at].address, err)
			}
			got[at] = m
		}
		var row []string
		for _, m := range got {
			row = append(row, fmt.Sprintf("%.0f", m.Rate), fmt.Sprintf("%.1f", float64(m.Each)/1e3))
		}
		if len(got) > 1 {
			ratios = append(ratios, got[0].Rate/got[1].Rate)
			row = append(row, rig.Figure(ratios[round]))
		}
		rows = append(rows, row)
	}
	r.Table(rows)
	if len(ratios) > 0 {
		r.AtLeast("requests a second, lower quartile, "+title, rig.Quantile(ratios, 0.25), least, "of nginx's")
	}
	r.Say("")
	return nil
}

// newTransport returns a transport for one version of HTTP. It does not check certificates, and neither do wrk and h2load.
func newTransport(version int) *http.Transport {
	t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true, Protocols: new(http.Protocols)}
	t.Protocols.SetHTTP1(version == 1)
	t.Protocols.SetHTTP2(version == 2)
	return t
}

// get requests a page once, and returns its body.
func get(ctx context.Context, t *http.Transport, a rig.Target, version int) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, nil)
	if err != nil {
		return nil, err
	}
	a.SetHeaders(req.Header)
	resp, err := t.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != version {
		return nil, fmt.Errorf("answered %q by HTTP/%d", resp.Status, resp.ProtoMajor)
	}
	return io.ReadAll(resp.Body)
}

// check makes sure that a server sends the stored bytes by a version of HTTP.
func check(ctx context.Context, url string, version int, want []byte) error {
	t := newTransport(version)
	defer t.CloseIdleConnections()
	body, err := get(ctx, t, rig.Aim(url, "gzip", 1, 0), version)
	if err == nil && !bytes.Equal(body, want) {
		err = fmt.Errorf("sends %d other bytes", len(body))
	}
	return err
}

// writeCertificate writes a certificate of 127.0.0.1 and its key into one file.
func writeCertificate(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	both := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	return os.WriteFile(file, append(both, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...), 0o600)
}
