// Key: the canonical name of one upstream request.

package understudy

import (
	"strings"
)

// Key identifies one upstream request. Two requests that must get the same bytes have equal keys. These
// differences do not change the key: the order of parameters, an explicit default page size, and the encoding
// of a name or value. The spelling of values does: a bare, an empty and an absent parameter give three keys,
// and so do two spellings of one date. Keys can be compared with ==. The upstream request uses exactly URI.
//
// Header fields that are part of the request follow URI after a space, encoded as a query:
// "/v1/customers?limit=10 Stripe-Account=acct_1". A URI itself never contains a space.
type Key struct {
	Source string
	URI    string // "/2010-04-01/Accounts/AC…/Calls.json?PageSize=50"
}

// IsZero reports whether the key is empty.
func (k Key) IsZero() bool { return k.URI == "" }

// String returns source and URI, such as "twilio /2010-04-01/…", for logs and errors.
func (k Key) String() string { return k.Source + " " + k.URI }

// RequestURI returns path and query, without the header fields.
func (k Key) RequestURI() string {
	uri, _, _ := strings.Cut(k.URI, " ")
	return uri
}

// Header returns the header fields of the key as a query, or "" if there are none.
func (k Key) Header() string {
	_, fields, _ := strings.Cut(k.URI, " ")
	return fields
}

// WithHeader returns the key with these header fields, encoded as a query. An empty key stays empty.
func (k Key) WithHeader(header string) Key {
	if header != "" && !k.IsZero() {
		k.URI = k.RequestURI() + " " + header
	}
	return k
}

// Path returns the URI without its query.
func (k Key) Path() string {
	path, _, _ := strings.Cut(k.RequestURI(), "?")
	return path
}

// Query returns the raw query of the URI.
func (k Key) Query() string {
	_, query, _ := strings.Cut(k.RequestURI(), "?")
	return query
}

// OwnAsOf is the query parameter that asks for the data as it was known at a time (see ParseInstant).
const OwnAsOf = OwnPrefix + "as_of"

// Query parameters for lists made from records. OwnOrder "asc" returns the oldest records first. OwnSince
// returns records that appeared or changed after the change with that number. OwnText returns records that
// contain some words.
const (
	OwnOrder = OwnPrefix + "order"
	OwnSince = OwnPrefix + "since"
	OwnText  = OwnPrefix + "q"
)

// OwnPrefix begins the names of Understudy's own query parameters. They are removed before a key is made and
// are never sent upstream.
const OwnPrefix = "understudy."
