// From: a spec from an OpenAPI document, or from what an API's lists answer.

// Package specs is the work of the spec commands: it draws a spec, and tries one.
package specs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"understudy"
	"understudy/cmd/understudy/terminal"
	"understudy/internal/infer"
	"understudy/internal/openapi"
	"understudy/spec"
	"understudy/upstream"
)

// Caller is how requests to an API name their caller. The zero Caller names none.
type Caller struct {
	Auth   string // the style, as a spec writes it; "" = basic with a user, else bearer
	User   string
	Secret understudy.Secret
}

// style is how the credential is sent.
func (c Caller) style() string {
	switch {
	case c.Auth != "" || c.Secret.Empty():
		return cmp.Or(c.Auth, "none")
	case c.User != "":
		return "basic"
	}
	return "bearer"
}

// askTime bounds one request.
const askTime = 30 * time.Second

// From draws a spec from a document, which is a file or at a URL, or from the answers of
// lists at URLs. It writes the spec to out and what it doubts to doubts. The spec compiles.
func From(ctx context.Context, what []string, as Caller, out, doubts io.Writer) error {
	draft, err := drawn(ctx, what, as)
	if err != nil {
		return err
	}
	if _, err := upstream.ReadSpec("the draft", draft.YAML); err != nil {
		return fmt.Errorf("the document leads to a spec that does not compile: %s", strings.TrimPrefix(err.Error(), "upstream: "))
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

func drawn(ctx context.Context, what []string, as Caller) (*infer.Draft, error) {
	if !strings.HasPrefix(what[0], "http://") && !strings.HasPrefix(what[0], "https://") {
		if len(what) > 1 {
			return nil, errors.New("one document, or the URLs of an API's lists")
		}
		data, err := readFile(what[0])
		if err != nil {
			return nil, err
		}
		doc, err := openapi.Read(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what[0], err)
		}
		return infer.FromDocument(doc, what[0])
	}
	first, err := as.ask(ctx, what[0])
	if err != nil {
		return nil, err
	}
	doc, err := openapi.Read(first.Body)
	if err == nil && len(what) == 1 {
		return infer.FromDocument(doc, what[0])
	}
	return infer.FromAnswers(ctx, what, as.style(), as.User, as.ask)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return bounded(f)
}

// bounded reads what a document may have at most, and refuses more.
func bounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, openapi.MaxSize+1))
	if err == nil && len(data) > openapi.MaxSize {
		err = fmt.Errorf("larger than %d MiB", openapi.MaxSize>>20)
	}
	return data, err
}

// ask sends one GET. A redirect to another host is not followed: it would get the
// credential.
func (c Caller) ask(ctx context.Context, address string) (*infer.Answer, error) {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("%q is no URL", understudy.Clip(address))
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	auth := spec.Auth{Style: c.style()}
	schemes, err := auth.Sent()
	if err != nil {
		return nil, fmt.Errorf("--auth: %w", err)
	}
	for _, s := range schemes {
		s.Sign(req, c.User, c.Secret.Reveal())
	}
	client := http.Client{CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if next.URL.Host != at.Host || next.URL.Scheme != at.Scheme || len(via) > 5 {
			return fmt.Errorf("it redirects to %s://%s: ask there", next.URL.Scheme, next.URL.Host)
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := bounded(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d", address, resp.StatusCode)
	}
	return &infer.Answer{Header: resp.Header, Body: body}, nil
}
