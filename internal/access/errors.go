// This file makes error responses in upstream's format. They are made from the spec and never from upstream's text.

package access

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"understudy/kit/jsonspan"
	"understudy/spec"
)

// The names under which a spec keeps its error codes and messages.
const (
	Unauthorized = "unauthorized"
	Forbidden    = "forbidden"
	NotFound     = "not_found"
	Method       = "method"
	Invalid      = "invalid"
	Limited      = "limited"
	Server       = "server"
)

// Failure is an error response, before it is written in the format of a spec.
type Failure struct {
	Word    string // the name of the error in the spec's codes and messages
	Status  int
	Code    string // the error code as JSON; "" means the spec's code for Word or else Status
	Message string // the message; "" means the spec's message for Word or else the usual text of the status
	Path    string // replaces {path} in the spec's message
}

// plainTemplate is the error format of a spec that defines none.
const plainTemplate = `{"code":{code},"message":{message},"status":{status}}`

// Error returns the body and content type of a failure in the spec's format.
func Error(s *spec.Spec, f Failure) (body []byte, contentType string) {
	template, contentType := s.Errors.Template, s.Errors.ContentType
	template = cmp.Or(template, plainTemplate)
	contentType = cmp.Or(contentType, "application/json")
	f.Code = cmp.Or(f.Code, s.Errors.Code(f.Word), strconv.Itoa(f.Status))
	return fill(template, f.Code, f.Status, message(s, f)), contentType
}

// message returns the message of a failure: its own, the spec's, or the usual text of the status.
func message(s *spec.Spec, f Failure) string {
	text := s.Errors.Messages[f.Word]
	switch {
	case f.Message != "":
		return f.Message
	case text == "" || f.Path == "" && strings.Contains(text, "{path}"):
		return http.StatusText(f.Status)
	}
	return strings.ReplaceAll(text, "{path}", f.Path)
}

// fill replaces the placeholders of a template in one pass, so that braces inside a value are never read as a placeholder.
func fill(template, code string, status int, message string) []byte {
	out := make([]byte, 0, len(template)+len(message)+32)
	for {
		before, rest, found := strings.Cut(template, "{")
		out = append(out, before...)
		if !found {
			return out
		}
		word, after, closed := strings.Cut(rest, "}")
		switch {
		case closed && word == "code":
			out = append(out, code...)
		case closed && word == "status":
			out = strconv.AppendInt(out, int64(status), 10)
		case closed && word == "message":
			out = jsonspan.Quote(out, message)
		default:
			out = append(out, '{')
			after = rest
		}
		template = after
	}
}

// errorWord returns the spec's name for the error of a status that upstream sent.
func errorWord(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return Unauthorized
	case status == http.StatusForbidden:
		return Forbidden
	case status == http.StatusNotFound || status == http.StatusGone:
		return NotFound
	case status == http.StatusMethodNotAllowed:
		return Method
	case status == http.StatusTooManyRequests:
		return Limited
	case status >= 500:
		return Server
	}
	return Invalid
}

// errorShape says where the error bodies of a source contain the error code.
type errorShape struct {
	code   string // the dotted name of the code's field; "" if error bodies have no code
	errors *spec.Errors
}

// codeProbe is a code written into a template to find out where the code is in the body.
const codeProbe = "918273645"

// newErrorShape finds the place of the code in the error bodies of a spec.
func newErrorShape(s *spec.Spec) errorShape {
	body := fill(s.Errors.Template, codeProbe, 0, "")
	doc, err := jsonspan.Parse(body)
	if err != nil {
		return errorShape{}
	}
	return errorShape{findProbe(body, doc, ""), &s.Errors}
}

// findProbe returns the dotted name of the field whose value is probe, or "".
func findProbe(body []byte, v jsonspan.Value, prefix string) (place string) {
	jsonspan.VisitMembers(body, v, func(name []byte, v jsonspan.Value) bool {
		dotted := prefix + jsonspan.Name(name)
		if v.Kind == jsonspan.Number && string(v.Bytes(body)) == codeProbe {
			place = dotted
		} else {
			place = findProbe(body, v, dotted+".")
		}
		return place == ""
	})
	return place
}

// ErrorCode returns the code in the body of an upstream error. It returns "" if there is none or the spec does
// not know it. Every caller that gets the error may see the code.
func (g *Gate) ErrorCode(source string, body []byte) string {
	code := g.views.errors[g.specs[source]].read(body)
	if word, err := strconv.Unquote(code); err == nil {
		return word
	}
	return code
}

// read returns the code in an error body from upstream, as JSON. It returns "" if the spec does not know the
// code. No other part of the body may be shown.
func (e errorShape) read(body []byte) string {
	doc, err := jsonspan.Parse(body)
	if err != nil || e.code == "" {
		return ""
	}
	v, _ := jsonspan.Find(body, doc, e.code)
	return e.errors.UpstreamCode(body, v)
}
