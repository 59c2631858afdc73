// Key: the canonical name of one upstream request.

package understudy

import (
	"strings"
)

// Key names one upstream request: two requests that must get the same bytes have equal
// keys. Parameter order, a missing or explicit default page size and different
// encodings of one name and value do not matter. Spelling matters: bare, empty and
// absent are three keys, as are two spellings of a date. Keys can be compared with ==.
// Upstream is asked for exactly URI.
//
// Behind a space URI has the header fields that are part of the question, as a query:
// "/v1/customers?limit=10 Stripe-Account=acct_1". No URI has a space.
type Key struct {
	Source string
	URI    string // "/2010-04-01/Accounts/AC…/Calls.json?PageSize=50"
}

// Zero reports whether there is no key.
func (k Key) Zero() bool { return k.URI == "" }

// String is "twilio /2010-04-01/…", for logs and errors.
func (k Key) String() string { return k.Source + " " + k.URI }

// Asked is the URI without the header fields: path and query.
func (k Key) Asked() string {
	uri, _, _ := strings.Cut(k.URI, " ")
	return uri
}

// Header is the query of the header fields that are part of the key; "" for none.
func (k Key) Header() string {
	_, fields, _ := strings.Cut(k.URI, " ")
	return fields
}

// With is the key with a query of header fields; that of no page stays so.
func (k Key) With(header string) Key {
	if header != "" && !k.Zero() {
		k.URI = k.Asked() + " " + header
	}
	return k
}

// Path is the URI less its query.
func (k Key) Path() string {
	path, _, _ := strings.Cut(k.Asked(), "?")
	return path
}

// Query is the raw query of the URI.
func (k Key) Query() string {
	_, query, _ := strings.Cut(k.Asked(), "?")
	return query
}

// OwnAsOf asks for what was known at a time (see ParseInstant).
const OwnAsOf = OwnPrefix + "as_of"

// What is asked of lists made from records: OwnOrder "asc" for the oldest first,
// OwnSince for what came or changed after a change's number, OwnText for what
// has some words.
const (
	OwnOrder = OwnPrefix + "order"
	OwnSince = OwnPrefix + "since"
	OwnText  = OwnPrefix + "q"
)

// OwnPrefix begins Understudy's own query parameters; they are taken off
// before a key is made and never sent upstream.
const OwnPrefix = "understudy."
