// Way: a timed HTTP client to one address.

package main

import (
	"bytes"
	"context"
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

// Client asks one address as one caller, over connections it keeps. It asks for
// gzip and unpacks it, as the official SDK does.
type Client struct {
	base, user, password string
	client               *http.Client
}

func NewClient(base, user, password string) *Client {
	return &Client{base, user, password, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}}}
}

// close gives the connections back.
func (w *Client) close() { w.client.CloseIdleConnections() }

// answer is one answer, read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration // from before the request was sent to the last byte
}

// get asks once. Extra headers are written "Name: value".
func (w *Client) get(ctx context.Context, uri string, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+uri, nil)
	if err != nil {
		return answer{}, err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	return w.do(req)
}

// page asks once and wants 200.
func (w *Client) page(ctx context.Context, uri string) (answer, error) {
	a, err := w.get(ctx, uri)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %.200s", uri, a.status, a.body)
	}
	return a, err
}

// post sends a JSON body and wants 200.
func (w *Client) post(ctx context.Context, uri, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+uri, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	a, err := w.do(req)
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("%s: status %d: %.200s", uri, a.status, a.body)
	}
	return err
}

func (w *Client) do(req *http.Request) (answer, error) {
	if w.user != "" {
		req.SetBasicAuth(w.user, w.password)
	}
	began := time.Now()
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{took: time.Since(began)}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, body, time.Since(began)}, err
}

// next is the address of the page after this one, "" after the last.
func (a answer) next() (string, error) {
	const name = `"next_page_uri":`
	i := bytes.Index(a.body, []byte(name))
	if i < 0 {
		return "", errors.New("the answer has no next_page_uri")
	}
	var uri *string
	if err := json.NewDecoder(bytes.NewReader(a.body[i+len(name):])).Decode(&uri); err != nil || uri == nil {
		return "", err
	}
	return *uri, nil
}

var upstreamTime = regexp.MustCompile(`\bupstream;dur=([0-9.]+)`)

// upstream is upstream's own time for the answer as Server-Timing tells it.
func (a answer) upstream() (time.Duration, error) {
	m := upstreamTime.FindStringSubmatch(a.header.Get("Server-Timing"))
	if m == nil {
		return 0, fmt.Errorf("no upstream time in Server-Timing %q", a.header.Get("Server-Timing"))
	}
	v, err := strconv.ParseFloat(m[1], 64)
	return time.Duration(v * float64(time.Millisecond)), err
}

// waited reports whether upstream was asked for this answer before it came.
func (a answer) waited() bool { return strings.Contains(a.header.Get("Cache-Status"), "fwd=") }

// walk follows a list from uri for at most so many pages, and tells each.
func (w *Client) walk(ctx context.Context, uri string, pages int, each func(answer)) (int, error) {
	n := 0
	for uri != "" && n < pages {
		a, err := w.page(ctx, uri)
		if err != nil {
			return n, fmt.Errorf("page %d of the walk: %w", n+1, err)
		}
		n++
		if each != nil {
			each(a)
		}
		if uri, err = a.next(); err != nil {
			return n, err
		}
	}
	return n, nil
}
