// Errors in upstream's shape, made from the spec and never from upstream's text.

package access

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"understudy/kit/jsonspan"
	"understudy/spec"
)

// The words of a spec's error codes and messages.
const (
	Unauthorized = "unauthorized"
	Forbidden    = "forbidden"
	NotFound     = "not_found"
	Method       = "method"
	Invalid      = "invalid"
	Limited      = "limited"
	Server       = "server"
)

// Failure is one error answer, to be written in a spec's shape.
type Failure struct {
	Word    string // what codes and messages are found by
	Status  int
	Code    string // as JSON; "": the spec's code for Word, else Status
	Message string // "": the spec's message for Word, else the status's usual words
	Path    string // stands for {path} in the spec's message
}

// plainTemplate is the shape of errors where a spec says nothing.
const plainTemplate = `{"code":{code},"message":{message},"status":{status}}`

// Error is the body and content type of a failure in the spec's shape.
func Error(s *spec.Spec, f Failure) (body []byte, contentType string) {
	template, contentType := s.Errors.Template, s.Errors.ContentType
	template = cmp.Or(template, plainTemplate)
	contentType = cmp.Or(contentType, "application/json")
	if f.Code == "" {
		f.Code = s.Errors.Code(f.Word)
	}
	if f.Code == "" {
		f.Code = strconv.Itoa(f.Status)
	}
	return fill(template, f.Code, f.Status, message(s, f)), contentType
}

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

// fill puts values into a template in one pass, so that text in a value never
// counts as a placeholder.
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

// word is the spec's word for a status of upstream's.
func word(status int) string {
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

// errorShape is where a spec's errors keep their code; "" = nowhere.
type errorShape struct {
	code string
	of   *spec.Errors
}

// probe is a placeholder code, used to find where the code is in the body.
const probe = "918273645"

func newErrorShape(s *spec.Spec) errorShape {
	body := fill(s.Errors.Template, probe, 0, "")
	doc, err := jsonspan.Parse(body)
	if err != nil {
		return errorShape{}
	}
	return errorShape{findProbe(body, doc, ""), &s.Errors}
}

func findProbe(body []byte, v jsonspan.Value, prefix string) (place string) {
	jsonspan.VisitMembers(body, v, func(name []byte, v jsonspan.Value) bool {
		dotted := prefix + jsonspan.Name(name)
		if v.Kind == jsonspan.Number && string(v.Bytes(body)) == probe {
			place = dotted
		} else {
			place = findProbe(body, v, dotted+".")
		}
		return place == ""
	})
	return place
}

// ErrorCode is the code in the body of an error of a source's upstream, "" when there is
// none that may be repeated. Every caller that gets the error may know it.
func (g *Gate) ErrorCode(source string, body []byte) string {
	code := g.views.errors[g.specs[source]].read(body)
	if word, err := strconv.Unquote(code); err == nil {
		return word
	}
	return code
}

// read is the code in an error body from upstream, as JSON, or "" if the body has none
// that may be repeated. Nothing else of the body may be.
func (e errorShape) read(body []byte) string {
	doc, err := jsonspan.Parse(body)
	if err != nil || e.code == "" {
		return ""
	}
	v, _ := jsonspan.Find(body, doc, e.code)
	return e.of.UpstreamCode(body, v)
}
