// A test request with a credential, sent in the same way as a program sends it.

package programs

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy/internal/viewer/page"
	"understudy/spec"
)

// tryTimeout is the maximum time of a test request.
const tryTimeout = 20 * time.Second

// tryResult is the result of a test request.
type tryResult struct {
	Request string
	Status  string // the status of the response, such as "200 OK"
	Tone    string
	Words   string // where the response came from and its age, in words
	Took    string
	Bytes   string
	Text    string // the body of an error response; empty if the request succeeded
}

// tryCredential sends a test request to the drop-in frontend, with the user and the secret from the form.
func tryCredential(q *page.Exchange) error {
	name := q.R.PathValue("name")
	c, _, err := find(q, name)
	if err != nil {
		return err
	}
	user, secret := q.R.PostFormValue("user"), q.R.PostFormValue("secret")
	t, dropIn := newestTarget(q, c), q.V.Options.Programs.DropIn[c.Source]
	if t == nil || dropIn == nil || secret == "" {
		return page.NewBadRequest("There is nothing to try", "Enter the secret of a credential whose role can see a list.", nil)
	}
	if err := writeAudit(q, "try", name); err != nil {
		return err
	}
	var p credentialPage
	taken, err := q.V.ByName[c.Source].Spec.Auth.ParseAccepted()
	if err != nil {
		return err
	}
	if p.Tried, err = ask(q, dropIn, t, func(r *http.Request) { taken[0].Sign(r, user, secret) }); err != nil {
		return err
	}
	if q.R.PostFormValue("shown") != "" { // the page still shows the secret of a new credential, so it must show it again
		p.User, p.Secret = user, secret
	}
	return showCredential(q, name, p)
}

// ask sends a request with a credential to the drop-in frontend. The request has the IP address of the reader.
func ask(q *page.Exchange, dropIn http.Handler, t *spec.Target, sign func(*http.Request)) (*tryResult, error) {
	ctx, cancel := context.WithTimeout(q.Ctx, tryTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Key.URI, nil)
	if err != nil {
		return nil, fmt.Errorf("viewer: try %s: %w", t.Key, err)
	}
	sign(r)
	r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), q.R.RemoteAddr
	w := &answer{header: http.Header{}, status: http.StatusOK}
	began := q.V.Options.Now()
	dropIn.ServeHTTP(w, r)
	out := &tryResult{Request: "GET " + t.Key.URI, Took: page.FormatMillis(q.V.Options.Now().Sub(began)),
		Bytes: page.Thousands(w.size) + " bytes",
		Tone:  "good", Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), Words: originText(w.header)}
	if w.status >= http.StatusBadRequest {
		out.Tone, out.Text = "bad", strings.ToValidUTF8(string(w.start), "?")
	}
	return out, nil
}

// originText returns where a response came from (RFC 9211) and its age (RFC 9111, 5.1), in words.
func originText(h http.Header) string {
	status, age := h.Get("Cache-Status"), h.Get("Age")
	var how string
	switch {
	case status == "":
		return ""
	case strings.Contains(status, "composed"):
		how = "assembled from records"
	case strings.Contains(status, "; hit"):
		how = "cached"
	case strings.Contains(status, "fwd="):
		how = "fetched from the API"
	}
	if seconds, err := strconv.Atoi(age); err == nil && seconds > 0 {
		return how + ", " + age + " s old"
	}
	return how + ", less than a second old"
}

// answer is an http.ResponseWriter that stores the status, the header and the beginning of the body.
type answer struct {
	header http.Header
	status int
	begun  bool
	size   int64
	start  []byte
}

// maxKeptBytes is the number of bytes that are stored of a body.
const maxKeptBytes = 2 << 10

// Header returns the header of the response.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader stores the status.
func (a *answer) WriteHeader(status int) {
	if !a.begun && status >= http.StatusOK {
		a.status, a.begun = status, true
	}
}

// Write stores the beginning of the body and drops the rest.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.size += int64(len(p))
	a.start = append(a.start, p[:min(len(p), maxKeptBytes-len(a.start))]...)
	return len(p), nil
}
