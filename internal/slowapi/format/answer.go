// Answers: status and body, and the errors.

// Package format writes answers and reads queries as Twilio does.
package format

import (
	"fmt"
	"net/http"
)

// Answer is what a request gets, before faults and compression.
type Answer struct {
	Status int
	Body   []byte
	Header map[string]string
	// Content, when not nil, stands in place of the body.
	Content *Content
	Plain   bool // never compressed
}

// Refusal is an error in Twilio's shape.
type Refusal struct {
	status, code int
	message      string
	Header       map[string]string
}

// Refuse is an error with a status and Twilio's code.
func Refuse(status, code int, message string) *Refusal {
	return &Refusal{status: status, code: code, message: message}
}

// Invalid refuses a parameter.
func Invalid(message string) *Refusal { return Refuse(http.StatusBadRequest, 20001, message) }

// NotFound is the error of a path that does not exist.
func NotFound(path string) *Refusal {
	return Refuse(http.StatusNotFound, 20404, "The requested resource "+path+" was not found")
}

// RefusalFor is the error Twilio gives with a status.
func RefusalFor(status int) *Refusal {
	message, known := map[int]string{
		http.StatusUnauthorized:        "Authenticate",
		http.StatusTooManyRequests:     "Too Many Requests",
		http.StatusInternalServerError: "An internal server error has occurred",
	}[status]
	if !known {
		message = http.StatusText(status)
	}
	code := 20000 + status
	if status == http.StatusUnauthorized {
		code = 20003
	}
	return Refuse(status, code, message)
}

// Answer renders the refusal.
func (r *Refusal) Answer() Answer {
	body := fmt.Appendf(nil, `{"code":%d,"message":%s,"more_info":"https://www.twilio.com/docs/errors/%d","status":%d}`, r.code,
		quote(r.message), r.code, r.status)
	return Answer{Status: r.status, Body: body, Header: r.Header}
}

// Where paths of the API begin.
const (
	ApiVersion = "2010-04-01"
	Version    = "/" + ApiVersion
)

// MonitorVersion begins its paths.
const MonitorVersion = "/v1"
