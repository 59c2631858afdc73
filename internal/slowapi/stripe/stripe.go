// The Stripe API: credentials, accounts, versions, repeated writes and errors.

// Package stripe imitates a part of Stripe's REST API: customers, payments, subscriptions, invoices,
// products and events.
package stripe

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
)

//go:embed shapes
var shapeFiles embed.FS

// apiVersion is the API version of requests that have no header Stripe-Version.
const apiVersion = "2026-08-26.dahlia"

// API answers requests to Stripe's API from one simulated world.
type API struct {
	world        *table.World
	routes       table.Routes
	isSecret     func(token string) bool
	shapes       map[string]*table.Template
	idCount      int // the number of ids that have been generated
	mu           sync.Mutex
	firstAnswers map[string]firstAnswer // the responses to the first writes with an Idempotency-Key, by account and key
}

// firstAnswer is the response to the first write with a certain Idempotency-Key.
type firstAnswer struct {
	hash   [32]byte // the hash of the path and the body
	answer format.Answer
	at     time.Time
}

// The limits for responses that are stored in case a write is repeated.
const (
	maxFirstAnswers = 10_000         // the maximum number of stored responses; when it is reached, all are forgotten
	replayWindow    = 24 * time.Hour // how long a repeated write gets the response to the first
)

// New generates a simulated world that has w.Records customers. isSecret reports whether a secret key is valid.
func New(w *table.World, isSecret func(token string) bool) *table.API {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	w.Begin(names...)
	a := &API{world: w, isSecret: isSecret, shapes: table.ParseAll(shapeFiles, "shapes"), firstAnswers: map[string]firstAnswer{}}
	a.routes = a.paths()
	a.generate()
	a.world.Creators["customers"] = func(now int64) { a.generateCustomer(w.Account, now) }
	a.world.CheckEdit = a.readEdit
	return &table.API{Routes: a.routes, Answer: a.answer, Refuse: a.refusal, Control: a.world.Controls()}
}

// answer answers a request. It is the field Answer of table.API.
func (a *API) answer(r *http.Request, body []byte, unread int, baseURL string) format.Answer {
	if unread != 0 {
		return a.refusal(unread)
	}
	secret, basic, _ := r.BasicAuth()
	if secret == "" || basic != "" {
		secret, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	if !a.isSecret(secret) {
		return a.refusal(http.StatusUnauthorized)
	}
	account := cmp.Or(r.Header.Get("Stripe-Account"), a.world.Account)
	if account != a.world.Account && account != connectedAccount {
		return a.withHeaders(r, refuse(http.StatusForbidden, "invalid_request_error", "account_invalid", "",
			"The provided key does not have access to account '"+account+"' (or that account does not exist)."))
	}
	q := a.routes.Request(r, body, baseURL)
	if q == nil || q.Route.Handlers[q.Method] == nil {
		return a.withHeaders(r, refuse(http.StatusNotFound, "invalid_request_error", "", "",
			"Unrecognized request URL ("+r.Method+": "+r.URL.Path+")."))
	}
	q.Header = r.Header.Clone()
	q.Header.Set("Stripe-Account", account)
	if key := r.Header.Get("Idempotency-Key"); key != "" && q.Method == http.MethodPost {
		return a.withHeaders(r, a.runOnce(q, account+" "+key))
	}
	return a.withHeaders(r, a.world.Run(q, q.Route.Handlers[q.Method]))
}

// runOnce carries out a write. If a write with the same key was carried out before, it returns the stored response instead.
func (a *API) runOnce(q *table.Request, key string) format.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	hash := sha256.Sum256([]byte(q.Path + "\n" + string(q.Body)))
	before, again := a.firstAnswers[key]
	switch {
	case again && a.world.Now().Sub(before.at) < replayWindow && before.hash != hash:
		return refuse(http.StatusBadRequest, "idempotency_error", "", "",
			"Keys for idempotent requests can only be used with the same parameters they were first used with.")
	case again && a.world.Now().Sub(before.at) < replayWindow:
		answer := before.answer
		answer.Header = maps.Clone(answer.Header)
		answer.Header["Idempotent-Replayed"] = "true"
		return answer
	}
	answer := a.world.Run(q, q.Route.Handlers[q.Method])
	if answer.Status < 500 {
		if len(a.firstAnswers) >= maxFirstAnswers {
			clear(a.firstAnswers)
		}
		answer.Header = map[string]string{"Original-Request": a.requestID()}
		a.firstAnswers[key] = firstAnswer{hash, answer, a.world.Now()}
	}
	return answer
}

func (a *API) requestID() string {
	d := fake.Rng(a.world.Now().UnixNano())
	return "req_" + string(d.Hex(nil, 7))
}

// version returns the API version that a request wants.
func version(h http.Header) string {
	return cmp.Or(h.Get("Stripe-Version"), apiVersion)
}

// withHeaders returns the answer with the headers that all of Stripe's responses have.
func (a *API) withHeaders(r *http.Request, answer format.Answer) format.Answer {
	header := map[string]string{"Content-Type": "application/json", "Request-Id": a.requestID(), "Stripe-Version": apiVersion,
		"Cache-Control": "no-cache, no-store", "Vary": "Origin", "Access-Control-Max-Age": "300"}
	if r != nil {
		header["Stripe-Version"] = version(r.Header)
		for _, name := range []string{"Idempotency-Key", "Stripe-Account"} {
			if v := r.Header.Get(name); v != "" {
				header[name] = v
			}
		}
	}
	if answer.Status == http.StatusUnauthorized {
		header["Www-Authenticate"] = `Basic realm="Stripe"`
	}
	maps.Copy(header, answer.Header)
	answer.Header = header
	return answer
}

// refuse returns an error response in Stripe's format. It leaves out code and param if they are empty.
func refuse(status int, sort, code, param, message string) format.Answer {
	in := map[string]string{"type": sort, "message": message}
	if code != "" {
		in["code"], in["doc_url"] = code, "https://stripe.com/docs/error-codes/"+strings.ReplaceAll(code, "_", "-")
	}
	if param != "" {
		in["param"] = param
	}
	raw, _ := json.Marshal(map[string]any{"error": in}) // encoding cannot fail, because all values are strings
	return format.Answer{Status: status, Body: raw}
}

// newUnknownParam returns the error response for a parameter that Stripe does not know.
func newUnknownParam(name string) format.Answer {
	return refuse(http.StatusBadRequest, "invalid_request_error", "parameter_unknown", name, "Received unknown parameter: "+name)
}

// newMissingRecord returns the error response for a record that does not exist. The status is 404 if the path names the record.
func newMissingRecord(status int, one, id, param string) format.Answer {
	return refuse(status, "invalid_request_error", "resource_missing", param, "No such "+one+": '"+id+"'")
}

// refusal returns Stripe's error response for a status.
func (a *API) refusal(status int) format.Answer {
	sort, code, message := "invalid_request_error", "", http.StatusText(status)
	switch {
	case status == http.StatusUnauthorized:
		message = "Invalid API Key provided."
	case status == http.StatusTooManyRequests:
		code, message = "rate_limit", "Request rate limit exceeded. Learn more about rate limits here https://stripe.com/docs/rate-limits."
	case status >= 500:
		sort = "api_error"
	}
	return a.withHeaders(nil, refuse(status, sort, code, "", message))
}
