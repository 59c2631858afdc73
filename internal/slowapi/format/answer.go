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

// Refuse returns an error in Twilio's shape, with a status and Twilio's code.
func Refuse(status, code int, message string) *Answer {
	body := fmt.Appendf(nil, `{"code":%d,"message":%s,"more_info":"https://www.twilio.com/docs/errors/%d","status":%d}`, code, quote(message),
		code, status)
	return &Answer{Status: status, Body: body}
}

// Invalid refuses a parameter.
func Invalid(message string) *Answer { return Refuse(http.StatusBadRequest, 20001, message) }

// NotFound is the error of a path that does not exist.
func NotFound(path string) *Answer {
	return Refuse(http.StatusNotFound, 20404, "The requested resource "+path+" was not found")
}

// RefusalFor is the error Twilio gives with a status.
func RefusalFor(status int) *Answer {
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

// Where paths of the API begin.
const (
	ApiVersion = "2010-04-01"
	Version    = "/" + ApiVersion
)

// MonitorVersion begins its paths.
const MonitorVersion = "/v1"
