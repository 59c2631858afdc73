// Stripe: the API as a whole: credentials, accounts, versions, repeated writes.

// Package stripe is a made-up part of Stripe's REST API: customers, payments,
// subscriptions, invoices, products and events.
package stripe

import (
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
var files embed.FS

// apiVersion is the version of answers to requests that name none.
const apiVersion = "2026-08-26.dahlia"

// API is Stripe's API over one world.
type API struct {
	world  *table.World
	routes table.Routes
	knows  func(token string) bool
	shapes map[string]*table.Template
	made   int // ids
	mu     sync.Mutex
	first  map[string]first // answers to writes, by account and Idempotency-Key
}

// first is the answer to the first write with a key.
type first struct {
	asked  [32]byte // the hash of what was asked
	answer format.Answer
	at     time.Time
}

// Bounds of the answers that are kept for repeated writes.
const (
	maxFirst = 10_000
	keptFor  = 24 * time.Hour
)

// New makes a world of so many customers. knows tells whether a secret is the account's.
func New(w *table.World, knows func(token string) bool) *table.API {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	w.Begin(names...)
	a := &API{world: w, knows: knows, shapes: table.ParseAll(files, "shapes"), first: map[string]first{}}
	a.routes = a.paths()
	a.seed()
	a.world.Creators["customers"] = func(now int64) { a.customer(w.Account, now) }
	a.world.CheckEdit = a.edit
	return &table.API{Routes: a.routes, Answer: a.answer, Refuse: a.refusal, Control: a.world.Controls()}
}

// answer answers one request.
func (a *API) answer(r *http.Request, body []byte, unread int, here string) format.Answer {
	if unread != 0 {
		return a.refusal(unread)
	}
	secret, basic, _ := r.BasicAuth()
	if secret == "" || basic != "" {
		secret, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	if !a.knows(secret) {
		return a.refusal(http.StatusUnauthorized)
	}
	account := r.Header.Get("Stripe-Account")
	if account == "" {
		account = a.world.Account
	}
	if account != a.world.Account && account != connected {
		return a.signed(r, refuse(http.StatusForbidden, "invalid_request_error", "account_invalid", "",
			"The provided key does not have access to account '"+account+"' (or that account does not exist)."))
	}
	q := a.routes.Request(r, body, here)
	if q == nil || q.Route.Handlers[q.Method] == nil {
		return a.signed(r, refuse(http.StatusNotFound, "invalid_request_error", "", "",
			"Unrecognized request URL ("+r.Method+": "+r.URL.Path+")."))
	}
	q.Header = r.Header.Clone()
	q.Header.Set("Stripe-Account", account)
	if key := r.Header.Get("Idempotency-Key"); key != "" && q.Method == http.MethodPost {
		return a.signed(r, a.once(q, account+" "+key))
	}
	return a.signed(r, a.world.Run(q, q.Route.Handlers[q.Method]))
}

// once does a write, or gives the answer of the first write with its key.
func (a *API) once(q *table.Request, key string) format.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := sha256.Sum256([]byte(q.Path + "\n" + string(q.Body)))
	before, again := a.first[key]
	switch {
	case again && a.world.Now().Sub(before.at) < keptFor && before.asked != asked:
		return refuse(http.StatusBadRequest, "idempotency_error", "", "",
			"Keys for idempotent requests can only be used with the same parameters they were first used with.")
	case again && a.world.Now().Sub(before.at) < keptFor:
		answer := before.answer
		answer.Header = maps.Clone(answer.Header)
		answer.Header["Idempotent-Replayed"] = "true"
		return answer
	}
	answer := a.world.Run(q, q.Route.Handlers[q.Method])
	if answer.Status < 500 {
		if len(a.first) >= maxFirst {
			clear(a.first)
		}
		answer.Header = map[string]string{"Original-Request": a.requestID()}
		a.first[key] = first{asked, answer, a.world.Now()}
	}
	return answer
}

func (a *API) requestID() string {
	d := fake.Rng(a.world.Now().UnixNano())
	return "req_" + string(d.Hex(nil, 7))
}

// version is the version a request wants.
func version(h http.Header) string {
	if v := h.Get("Stripe-Version"); v != "" {
		return v
	}
	return apiVersion
}

// signed adds what every answer of Stripe carries.
func (a *API) signed(r *http.Request, answer format.Answer) format.Answer {
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

// refuse is an error in Stripe's form; "" leaves a member out.
func refuse(status int, sort, code, param, message string) format.Answer {
	in := map[string]string{"type": sort, "message": message}
	if code != "" {
		in["code"], in["doc_url"] = code, "https://stripe.com/docs/error-codes/"+strings.ReplaceAll(code, "_", "-")
	}
	if param != "" {
		in["param"] = param
	}
	raw, _ := json.Marshal(map[string]any{"error": in}) // of texts: never fails
	return format.Answer{Status: status, Body: raw}
}

// unknown is the error of a parameter that is none.
func unknown(name string) format.Answer {
	return refuse(http.StatusBadRequest, "invalid_request_error", "parameter_unknown", name, "Received unknown parameter: "+name)
}

// missing is the error of a record that is not there. In a path the status is 404.
func missing(status int, one, id, param string) format.Answer {
	return refuse(status, "invalid_request_error", "resource_missing", param, "No such "+one+": '"+id+"'")
}

// refusal is Stripe's error for a status.
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
	return a.signed(nil, refuse(status, sort, code, "", message))
}
