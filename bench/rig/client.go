// Way: a timed HTTP client to one address.

package rig

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Client sends requests to one address as one caller and keeps its connections. It requests gzip and unpacks it,
// as the official SDK does.
type Client struct {
	Base, User, Password string
	Client               *http.Client
}

// NewClient returns a client. It does not check certificates, because the servers are children of the bench.
func NewClient(base, user, password string) *Client {
	return &Client{base, user, password, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
}

// Close closes the idle connections.
func (w *Client) Close() { w.Client.CloseIdleConnections() }

// Answer is an answer that was read completely.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	Took   time.Duration // from before the request was sent to the last byte
}

// Get sends one GET request. Each extra header has the form "Name: value".
func (w *Client) Get(ctx context.Context, uri string, headers ...string) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Base+uri, nil)
	if err != nil {
		return Answer{}, err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	return w.do(req)
}

// Page sends one GET request. It returns an error if the status is not 200.
func (w *Client) Page(ctx context.Context, uri string) (Answer, error) {
	a, err := w.Get(ctx, uri)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %.200s", uri, a.Status, a.Body)
	}
	return a, err
}

// Post sends a JSON body. It returns an error if the status is not 200.
func (w *Client) Post(ctx context.Context, uri, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Base+uri, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	a, err := w.do(req)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %.200s", uri, a.Status, a.Body)
	}
	return err
}

func (w *Client) do(req *http.Request) (Answer, error) {
	if w.User != "" {
		req.SetBasicAuth(w.User, w.Password)
	}
	began := time.Now()
	resp, err := w.Client.Do(req)
	if err != nil {
		return Answer{Took: time.Since(began)}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, body, time.Since(began)}, err
}

// Next returns the address of the next page, or "" if this page is the last.
func (a Answer) Next() (string, error) {
	const name = `"next_page_uri":`
	i := bytes.Index(a.Body, []byte(name))
	if i < 0 {
		return "", errors.New("the answer has no next_page_uri")
	}
	var uri *string
	if err := json.NewDecoder(bytes.NewReader(a.Body[i+len(name):])).Decode(&uri); err != nil || uri == nil {
		return "", err
	}
	return *uri, nil
}

var upstreamTime = regexp.MustCompile(`\bupstream;dur=([0-9.]+)`)

// Upstream returns the upstream's own time for the answer, from the field Server-Timing.
func (a Answer) Upstream() (time.Duration, error) {
	m := upstreamTime.FindStringSubmatch(a.Header.Get("Server-Timing"))
	if m == nil {
		return 0, fmt.Errorf("no upstream time in Server-Timing %q", a.Header.Get("Server-Timing"))
	}
	v, err := strconv.ParseFloat(m[1], 64)
	return time.Duration(v * float64(time.Millisecond)), err
}

// Waited reports whether the answer waited for a request to the upstream.
func (a Answer) Waited() bool { return strings.Contains(a.Header.Get("Cache-Status"), "fwd=") }

// Walk reads the pages of a list from uri on, at most the given number, and calls each with every page. It returns
// the number of pages.
func (w *Client) Walk(ctx context.Context, uri string, pages int, each func(Answer)) (int, error) {
	n := 0
	for uri != "" && n < pages {
		a, err := w.Page(ctx, uri)
		if err != nil {
			return n, fmt.Errorf("page %d of the walk: %w", n+1, err)
		}
		n++
		if each != nil {
			each(a)
		}
		if uri, err = a.Next(); err != nil {
			return n, err
		}
	}
	return n, nil
}
