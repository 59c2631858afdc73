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
type Key struct {
	Source string
	URI    string // "/2010-04-01/Accounts/AC…/Calls.json?PageSize=50"
}

// Zero reports whether there is no key.
func (k Key) Zero() bool { return k.URI == "" }

// String is "twilio /2010-04-01/…", for logs and errors.
func (k Key) String() string { return k.Source + " " + k.URI }

// Path is the URI less its query.
func (k Key) Path() string {
	path, _, _ := strings.Cut(k.URI, "?")
	return path
}

// Query is the raw query of the URI.
func (k Key) Query() string {
	_, query, _ := strings.Cut(k.URI, "?")
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
