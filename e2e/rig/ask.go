// Requests, and their answers.

package rig

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Reply is an answer, read to its end.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Client follows no redirects and asks for no compression.
var Client = &http.Client{
	Timeout:       Patience,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
}

// Ask sends one request. The user is "name:password" or empty, and the headers come in pairs of name and value. A page
// of the viewer is awaited whole, so that it has its status; a header Prefer says otherwise.
func Ask(method, user, url, body string, headers ...string) (Reply, error) {
	return AskBy(Client, method, user, url, body, headers...)
}

// AskBy does what Ask does, with a client.
func AskBy(client *http.Client, method, user, url, body string, headers ...string) (Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return Reply{}, err
	}
	if name, password, ok := strings.Cut(user, ":"); ok {
		req.SetBasicAuth(name, password)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if path := req.URL.Path; path == "/" || slices.ContainsFunc([]string{"/twilio/", "/github/", "/search"}, func(part string) bool {
		return strings.HasPrefix(path, part)
	}) {
		req.Header.Set("Prefer", "wait=15")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return Reply{}, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return Reply{Status: resp.StatusCode, Header: resp.Header, Body: got}, err
}

// Get sends a GET request as Ask does. An error ends the test.
func Get(t testing.TB, user, url string, headers ...string) Reply {
	t.Helper()
	r, err := Ask(http.MethodGet, user, url, "", headers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Decode returns the body as it was before it was compressed.
func (r Reply) Decode() ([]byte, error) {
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "":
		return r.Body, nil
	case "gzip":
		zr, err := gzip.NewReader(bytes.NewReader(r.Body))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(zr)
	default:
		return nil, fmt.Errorf("nobody asked for the encoding %q", encoding)
	}
}
