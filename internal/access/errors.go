// Errors in upstream's shape, made from the spec and never from upstream's text.

package access

import (
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
	Code    int    // 0: the spec's code for Word, else Status
	Message string // "": the spec's message for Word, else the status's usual words
	Path    string // stands for {path} in the spec's message
}

// plainTemplate is the shape of errors where a spec says nothing.
const plainTemplate = `{"code":{code},"message":{message},"status":{status}}`

// Error is the body and content type of a failure in the spec's shape.
func Error(s *spec.Spec, f Failure) (body []byte, contentType string) {
	template, contentType := s.Errors.Template, s.Errors.ContentType
	if template == "" {
		template = plainTemplate
	}
	if contentType == "" {
		contentType = "application/json"
	}
	if f.Code == 0 {
		f.Code = s.Errors.Codes[f.Word]
	}
	if f.Code == 0 {
		f.Code = f.Status
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
func fill(template string, code, status int, message string) []byte {
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
			out = strconv.AppendInt(out, int64(code), 10)
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

// errorShape is where a spec's errors keep their numeric code; "" = nowhere.
type errorShape struct{ code string }

// probe is a placeholder code, used to find where the code is in the body.
const probe = 918273645

func newErrorShape(s *spec.Spec) errorShape {
	body := fill(s.Errors.Template, probe, 0, "")
	doc, err := jsonspan.Document(body)
	if err != nil {
		return errorShape{}
	}
	return errorShape{findProbe(body, doc, "")}
}

func findProbe(body []byte, v jsonspan.Value, prefix string) (place string) {
	jsonspan.Members(body, v, func(name []byte, v jsonspan.Value) bool {
		dotted := prefix + jsonspan.Name(name)
		if v.Kind == jsonspan.Number && string(v.Of(body)) == strconv.Itoa(probe) {
			place = dotted
		} else {
			place = findProbe(body, v, dotted+".")
		}
		return place == ""
	})
	return place
}

// ErrorCode returns the numeric code in the body of an error of a source's upstream,
// 0 when there is none of plausible size. Every caller that gets the error may know it.
func (g *Gate) ErrorCode(source string, body []byte) int {
	return g.views.errors[g.specs[source]].read(body)
}

// read returns the numeric code in an error body from upstream, or 0 if the body
// has no code of plausible size. Nothing else of the body may be repeated.
func (e errorShape) read(body []byte) int {
	doc, err := jsonspan.Document(body)
	if err != nil || e.code == "" {
		return 0
	}
	v, ok := jsonspan.Find(body, doc, e.code)
	if !ok || v.Kind != jsonspan.Number || v.End-v.Start > 6 {
		return 0
	}
	code, err := strconv.Atoi(string(v.Of(body)))
	if err != nil || code < 0 {
		return 0
	}
	return code
}
