// From: a spec is drafted from an OpenAPI document, or from the answers of an API's lists.

// Package specs does the work of the spec commands: it drafts a spec for an API, and compares a spec with an API.
package specs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/cmd/understudy/terminal"
	"understudy/internal/infer"
	"understudy/internal/openapi"
	"understudy/internal/smallfile"
	"understudy/kit/retry"
	"understudy/spec"
	"understudy/upstream"
)

// Caller is the credential with which requests are sent to an API. The zero value sends requests without a credential.
type Caller struct {
	Auth    string // how the credential is sent, as in a spec; "" means basic if there is a user, otherwise bearer
	User    string
	Secret  understudy.Secret
	Headers map[string]string // the header fields that every request must have

	Progress *terminal.Progress // shows the number of requests; may be nil
}

// ReadHeaders parses header fields in the form NAME: VALUE.
func ReadHeaders(texts []string) (map[string]string, error) {
	send := map[string]string{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, ":")
		send[name] = strings.TrimSpace(value)
		if !ok || value == "" {
			return nil, fmt.Errorf("--header %q: write NAME: VALUE", text)
		}
	}
	h := spec.Headers{}
	if err := h.Add(send, nil); err != nil {
		return nil, fmt.Errorf("--header: %w", err)
	}
	return h.Send, nil
}

// style returns how the credential is sent, in the words of a spec.
func (c Caller) style() string {
	switch {
	case c.Auth != "" || c.Secret.IsEmpty():
		return cmp.Or(c.Auth, "none")
	case c.User != "":
		return "basic"
	}
	return "bearer"
}

// The limits of a request to the API: its maximum time, how long the API may ask us to wait, and how often.
const (
	askTimeout = 30 * time.Second
	maxWait    = 90 * time.Second
	maxWaits   = 3
)

// Draw drafts a spec and writes it to out. It uses an OpenAPI document in a file or at a URL, or the answers of lists
// at several URLs. If paths is not empty, other lists of the document are left out. It writes what is uncertain to
// doubts. The draft is always a valid spec.
func Draw(ctx context.Context, what, paths []string, as Caller, out, doubts io.Writer) error {
	draft, err := drawSpec(ctx, what, paths, as)
	as.Progress.End()
	if err != nil {
		return err
	}
	if len(draft.YAML) > upstream.MaxSpec {
		return fmt.Errorf("a spec file with its %d lists is longer than %d KiB; name the lists that you need with --path, which may be repeated",
			len(draft.Lists), upstream.MaxSpec>>10)
	}
	if _, err := upstream.ReadSpec("the draft", draft.YAML); err != nil {
		return fmt.Errorf("the spec file made from this document is not valid: %s", understudy.PlainText(err))
	}
	if _, err := out.Write(draft.YAML); err != nil {
		return err
	}
	for _, one := range draft.Unsure {
		if _, err := fmt.Fprintln(doubts, "doubt:", terminal.Printable(one)); err != nil {
			return err
		}
	}
	return nil
}

// drawDocument drafts a spec from an OpenAPI document. A large document can take minutes, so it returns as soon as ctx ends.
func drawDocument(ctx context.Context, doc *openapi.Document, name string, paths []string) (*infer.Draft, error) {
	var draft *infer.Draft
	drawn := make(chan error, 1)
	go func() {
		var err error
		draft, err = infer.DrawFromDocument(doc, name, paths...)
		drawn <- err
	}()
	select {
	case err := <-drawn:
		if err != nil || ctx.Err() == nil {
			return draft, err
		}
	case <-ctx.Done():
	}
	return nil, fmt.Errorf("no spec file was made from %s: %w", understudy.Clip(name), ctx.Err())
}

// drawSpec reads the OpenAPI document or the lists, and drafts the spec. It treats the answer of a URL as a document
// if it looks like one.
func drawSpec(ctx context.Context, what, paths []string, as Caller) (*infer.Draft, error) {
	if !strings.HasPrefix(what[0], "http://") && !strings.HasPrefix(what[0], "https://") {
		if len(what) > 1 {
			return nil, errors.New("name one document, or the URLs of an API's lists")
		}
		data, err := readFile(what[0])
		if err != nil {
			return nil, err
		}
		beside, err := os.OpenRoot(filepath.Dir(what[0]))
		if err != nil {
			return nil, err
		}
		defer beside.Close()
		doc, err := openapi.ReadFiles(data, filepath.Base(what[0]), beside.ReadFile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what[0], err)
		}
		return drawDocument(ctx, doc, what[0], paths)
	}
	first, err := as.ask(ctx, what[0])
	switch {
	case err != nil:
		return nil, err
	case first.Status != http.StatusOK:
		return nil, fmt.Errorf("%s: status %d%s", understudy.Clip(what[0]), first.Status, as.refusalHint(first))
	case isPage(first):
		return nil, fmt.Errorf("%s: it is an HTML page; give the address of the document itself, or of a list of the API",
			understudy.Clip(what[0]))
	}
	doc, err := as.readDocument(ctx, what[0], first)
	if isDocument := doc != nil || !errors.Is(err, openapi.ErrNoDocument); isDocument && len(what) == 1 {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", understudy.Clip(what[0]), err)
		}
		return drawDocument(ctx, doc, what[0], paths)
	}
	if len(paths) > 0 {
		return nil, errors.New("--path works only with a document; remove it, because each URL is a list")
	}
	return infer.DrawFromAnswers(ctx, what, infer.LiveAPI{Ask: as.ask, Auth: as.style(), User: as.User, Headers: as.Headers})
}

// readDocument reads the OpenAPI document at a URL. It reads files that the document refers to from the same host.
func (c Caller) readDocument(ctx context.Context, address string, first *infer.Answer) (*openapi.Document, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	return openapi.ReadFiles(first.Body, path.Base(at.Path), func(name string) ([]byte, error) {
		file, err := c.ask(ctx, at.ResolveReference(&url.URL{Path: name}).String())
		if err == nil && file.Status != http.StatusOK {
			err = fmt.Errorf("status %d", file.Status)
		}
		if err != nil {
			return nil, err
		}
		return file.Body, nil
	})
}

// refusalHint returns advice about a request that the API refused, or "".
func (c Caller) refusalHint(a *infer.Answer) string {
	switch {
	case a.Status == http.StatusUnauthorized && c.Secret.IsEmpty():
		return ": it needs a credential; add --secret, and --user or --auth if it is not a bearer token"
	case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
		return ": it refuses the credential, which was sent as " + c.style()
	case a.Status == http.StatusBadRequest || a.Status == http.StatusNotAcceptable:
		return ": if it requires a header field, add --header 'NAME: VALUE'"
	}
	return ""
}

// isPage reports whether the answer of a URL is an HTML page.
func isPage(a *infer.Answer) bool {
	begin := bytes.ToLower(bytes.TrimSpace(a.Body[:min(len(a.Body), 500)]))
	return strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") || bytes.HasPrefix(begin, []byte("<!doctype html")) ||
		bytes.HasPrefix(begin, []byte("<html"))
}

// readFile reads an OpenAPI document from a file. It returns an error if the file is HTML.
func readFile(path string) ([]byte, error) {
	f, err := smallfile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readDocumentBytes(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if isPage(&infer.Answer{Body: data}) {
		return nil, fmt.Errorf("%s: it is an HTML page, not an OpenAPI document", path)
	}
	return data, nil
}

// readDocumentBytes reads an OpenAPI document. It returns an error if the document is larger than openapi.MaxSize.
func readDocumentBytes(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, openapi.MaxSize+1))
	if err == nil && len(data) > openapi.MaxSize {
		err = fmt.Errorf("it is larger than %d MiB, the largest document that is read", openapi.MaxSize>>20)
	}
	return data, err
}

// ask sends a GET request. If the API asks us to wait a short time, it waits and sends the request again.
func (c Caller) ask(ctx context.Context, address string) (*infer.Answer, error) {
	for waits := 0; ; waits++ {
		a, err := c.askOnce(ctx, address)
		if err != nil {
			return nil, err
		}
		wait, limited := parseLimit(a)
		if !limited {
			return a, nil
		}
		if wait > maxWait || waits == maxWaits {
			return nil, fmt.Errorf("%s: status %d: it refuses further requests for %s; try again then", understudy.Clip(address), a.Status, wait)
		}
		if err := retry.Wait(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// parseLimit reports whether an answer says that the rate limit is reached. wait is how long the API asks us to wait.
func parseLimit(a *infer.Answer) (wait time.Duration, limited bool) {
	seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
	told := err == nil && seconds >= 0 && seconds < 1e6
	if !told {
		seconds = 5
	}
	limited = a.Status == http.StatusTooManyRequests || told && (a.Status == http.StatusForbidden || a.Status == http.StatusServiceUnavailable)
	return time.Duration(seconds) * time.Second, limited
}

// askOnce sends a GET request. A redirect to another host is an error, because that host would get the credential.
func (c Caller) askOnce(ctx context.Context, address string) (*infer.Answer, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("%q is not a URL", understudy.Clip(address))
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	auth := spec.Auth{Style: c.style()}
	schemes, err := auth.ParseSent()
	if err != nil {
		return nil, fmt.Errorf("--auth: %w", err)
	}
	for name, value := range c.Headers {
		req.Header.Set(name, value)
	}
	for _, s := range schemes {
		s.Sign(req, c.User, c.Secret.Reveal())
	}
	client := http.Client{CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if next.URL.Host != at.Host || next.URL.Scheme != at.Scheme || len(via) > 5 {
			return fmt.Errorf("it redirects to %s://%s; use that address", next.URL.Scheme, next.URL.Host)
		}
		return nil
	}}
	c.Progress.Add(1, "requests")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := readDocumentBytes(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return &infer.Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}
