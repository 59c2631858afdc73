// Refusal: what upstream itself says no to.

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
	Body        []byte // as upstream writes it; JSON when the spec's template is
	Message     string // what it says, for people
}

// Error is "upstream refuses this (400): Invalid date value."
func (r *Refusal) Error() string {
	return fmt.Sprintf("upstream refuses this (%d): %s", r.Status, r.Message)
}

// Page is the refusal as the answer to a request. at is how old it says it is.
func (r *Refusal) Page(t *spec.Target, at time.Time) *understudy.Page {
	p := &understudy.Page{Key: t.Key, Status: r.Status, ContentType: r.ContentType, Body: r.Body, At: at, Sum: sum(r.Body)}
	if t.Kind != nil {
		p.Kind, p.Shape, p.List = t.Kind.Name, t.Shape(), t.List != nil
	}
	return p
}

// refuse is upstream's refusal of a parameter, under the word of the spec's errors
// that describes it: date, bool, retention, range, size, size_above, page or token.
// Its status is 400; a word without a code has that of invalid. Where the spec does
// not say the message, the list is not composed.
func (l *listRequest) refuse(word string) error {
	return refusal(l.target, word, http.StatusBadRequest)
}

// NotFound is upstream's 404 to a request for a record it does not have: a
// *Refusal, or ErrInvalid when the spec does not say how that looks.
func NotFound(t *spec.Target) error { return refusal(t, "not_found", http.StatusNotFound) }

func refusal(t *spec.Target, word string, status int) error {
	e := &t.Spec.Errors
	message, ok := e.Messages[word]
	if !ok || e.Template == "" {
		return fmt.Errorf("%w: the spec does not say what upstream answers to a bad %s", understudy.ErrInvalid,
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
