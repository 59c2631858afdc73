// Answers: status and body, the errors, the envelopes of pages, and JSON as Twilio writes it.
package slowapi

import (
	"net/http"
	"strconv"
)

// answer is what a request gets, before faults and compression.
type answer struct {
	status int
	body   []byte
	header map[string]string
	// content, when not nil, stands in place of the body.
	content *content
	plain   bool // never compressed
}

// refusal is an error in Twilio's shape.
type refusal struct {
	status, code int
	message      string
	header       map[string]string
}

func refuse(status, code int, message string) *refusal {
	return &refusal{status: status, code: code, message: message}
}

// invalid refuses a parameter.
func invalid(message string) *refusal { return refuse(http.StatusBadRequest, 20001, message) }

// notFound names the path nobody found.
func notFound(path string) *refusal {
	return refuse(http.StatusNotFound, 20404, "The requested resource "+path+" was not found")
}

// refusalFor is the error Twilio gives with a status.
func refusalFor(status int) *refusal {
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
	return refuse(status, code, message)
}

// answer renders the refusal.
func (r *refusal) answer() answer {
	var o object
	o.open()
	o.number("code", int64(r.code))
	o.text("message", r.message)
	o.text("more_info", "https://www.twilio.com/docs/errors/"+strconv.Itoa(r.code))
	o.number("status", int64(r.status))
	o.close()
	return answer{status: r.status, body: o.b, header: r.header}
}

// Where paths of the API begin.
const (
	apiVersion = "2010-04-01"
	version    = "/" + apiVersion
)

// monitorVersion begins its paths.
const monitorVersion = "/v1"
