// Refusals: the error responses of upstream to requests that it does not accept.

package compose

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Refusal is upstream's own answer to a request that it refuses.
type Refusal struct {
	Status      int
	ContentType string
	Body        []byte // the body of the response, in the format of the spec's template
	Message     string // the part of the body that is written for people
}

// Error returns a text such as "upstream refuses this request (400): Invalid date value."
func (r *Refusal) Error() string {
	return fmt.Sprintf("upstream refuses this request (%d): %s", r.Status, r.Message)
}

// Page returns the refusal as upstream's answer to the request for a target. at becomes the time of the page.
func (r *Refusal) Page(t *spec.Target, at time.Time) *understudy.Page {
	p := &understudy.Page{Key: t.Key, Status: r.Status, ContentType: r.ContentType, Body: r.Body, At: at, Sum: checksum(r.Body)}
	if t.Kind != nil {
		p.Kind, p.Shape, p.List = t.Kind.Name, t.Shape(), t.List != nil
	}
	return p
}

// refuse returns upstream's refusal of a parameter. word is a name in the spec's errors: date, bool, retention,
// range, size, size_above, page or token. The status is 400. If the spec has no error code for the word, it uses the
// code for "invalid". If the spec has no message, refuse returns ErrInvalid.
func (l *listRequest) refuse(word string) error {
	return buildRefusal(l.target, word, http.StatusBadRequest)
}

// RefuseNotFound returns upstream's 404 response for a record that does not exist, as a *Refusal. If the spec does
// not describe the response, it returns ErrInvalid.
func RefuseNotFound(t *spec.Target) error { return buildRefusal(t, "not_found", http.StatusNotFound) }

// buildRefusal returns the refusal for a word in the spec's errors.
func buildRefusal(t *spec.Target, word string, status int) error {
	e := &t.Spec.Errors
	message, ok := e.Messages[word]
	if !ok || e.Template == "" {
		return fmt.Errorf("%w: the spec does not say how upstream answers an invalid %s", understudy.ErrInvalid,
			strings.ReplaceAll(word, "_", " "))
	}
	code := e.Code(word, "invalid")
	code = cmp.Or(code, "0")
	message = strings.ReplaceAll(message, "{path}", t.Key.Path())
	body := strings.NewReplacer(
		"{code}", code,
		"{status}", strconv.Itoa(status),
		"{message}", string(jsonspan.Quote(nil, message)),
	).Replace(e.Template)
	return &Refusal{Status: status, ContentType: e.ContentType, Body: []byte(body), Message: message}
}
