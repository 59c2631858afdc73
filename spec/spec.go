// This file declares Spec, the description of one API. The yaml tags are the names in a spec file.

// Package spec describes an API: its hosts, kinds of records, lists, paging and errors, read from a file. It
// also tells what a single request means for that API.
package spec

import (
	"time"

	"understudy/spec/auth"
)

// Spec describes an API: hosts, kinds, shapes, paths, paging, filters and field classes. Package upstream reads
// it from a YAML file and compiles it. After Compile it never changes and is safe for concurrent use.
type Spec struct {
	Name  string `yaml:"name"`
	Title string `yaml:"title"`
	Docs  string `yaml:"docs"`
	Port  int    `yaml:"port"` // the default number of the drop-in port
	Hosts []Host `yaml:"hosts"`
	Auth  Auth   `yaml:"auth"`
	// Headers are the header fields that have a meaning for this API.
	Headers Headers `yaml:"headers"`
	// Limits says how the API reports that it accepts no more requests for a while.
	Limits Limits `yaml:"limits"`
	Paging Paging `yaml:"paging"`
	// Pagings are further ways in which this API splits lists into pages, by name. A list refers to one of them
	// by its name.
	Pagings map[string]*Paging `yaml:"pagings"`
	Errors  Errors             `yaml:"errors"`
	// Vars says what fills a path variable that a request leaves open. The value "user" stands for the source's user.
	Vars map[string]string `yaml:"vars"`
	// VarFields maps a path variable to the field that contains its value, for kinds that have the field. The
	// field's link says which kind the variable names.
	VarFields map[string]string `yaml:"shown"`
	// Roots are the records under which most lists are found, such as accounts or repositories.
	Roots Roots `yaml:"roots"`
	// CompleteLists says that every list without filters contains, from the first page to the last, all records of its
	// kind or, for a list under a record, all that belong to this record. If false, a list may leave records out. If nil,
	// this is not known, and a list of one page may have more.
	CompleteLists *bool `yaml:"whole_lists"`
	// AbsoluteURLs are names of fields whose values may be absolute URLs of the API. Names are patterns with *,
	// and match at any depth of any answer.
	AbsoluteURLs []string `yaml:"absolute"`
	// ContentType is the media type of answers made from records; default application/json.
	ContentType string `yaml:"content_type"`
	// PassThrough are paths (with {Variables}) whose GET requests always go upstream, and GraphQL is the path
	// of GraphQL requests, which do too. Only callers that may see everything can use them, because the spec
	// does not say what the answers contain.
	PassThrough []string `yaml:"passes"`
	GraphQL     string   `yaml:"graphql"`
	// Aliases are other beginnings of paths, and what they stand for: GitHub's own servers have /api/v3 before their paths.
	Aliases map[string]string `yaml:"aliases"`
	// Quirks says what the API does with list requests that are slightly wrong.
	Quirks Quirks  `yaml:"odd"`
	Kinds  []*Kind `yaml:"kinds"`
	Hook   Hook    `yaml:"hook"`
	// Snippets are sample programs that point clients to a drop-in port, one per client.
	Snippets []Snippet `yaml:"connect"`
	// Searches are predefined searches for people.
	Searches []*Search `yaml:"searches"`

	generic          bool
	passThrough      []Template
	routes           routes
	kinds            map[string]*Kind
	credentialParams []string // the query parameters that carry credentials
}

// Auth says how requests carry a credential.
type Auth = auth.Auth

// Host is one host of the API and the path prefixes that it serves.
type Host struct {
	URL      string   `yaml:"url"`
	Prefixes []string `yaml:"prefixes"`
}

// Hook says how the API calls back after an event. Understudy uses a callback only as a hint to fetch again,
// never as data.
type Hook struct {
	// Style is url-form-hmac-sha1: a signature of the URL and the sorted form, with the source's secret as key,
	// in base64. If it is empty, the API does not call back.
	Style  string   `yaml:"style"`
	Header string   `yaml:"header"` // the header field that contains the signature
	IDs    []string `yaml:"ids"`    // the parameters that may name a record; the prefix of the id says which kind
}

// Errors describes the error bodies of the API. Template contains {code}, {status} and {message}. Values are
// JSON-encoded when they are filled in, texts with their quotes.
type Errors struct {
	ContentType string `yaml:"content_type"`
	Template    string `yaml:"template"`
	// Codes maps Understudy's error words to codes of the API. The words are unauthorized, forbidden, not_found, method,
	// invalid, limited, server, and for parameters date, bool, retention, range, size, size_above, page, token.
	Codes map[string]string `yaml:"codes"` // each code is a whole number or a word
	// The texts of errors, by Understudy's error words; {path} stands for the path of the request
	Messages map[string]string `yaml:"messages"`
	// Bodies are conditions on the body of an answer with a good status. If any of them is true, the answer is
	// an error. Field names are dotted.
	Bodies []State `yaml:"bodies"`
	// Link is the URL of the page that explains an error code, with {code} in it. Meanings maps codes to short
	// explanations. Both are for people.
	Link     string            `yaml:"link"`
	Meanings map[string]string `yaml:"meanings"`
}

// Field types, as a spec file writes them.
const (
	TypeText    = "text"
	TypeInt     = "int"     // a JSON number, or digits in a string
	TypeDecimal = "decimal" // a JSON number, or a number in a string
	TypeBool    = "bool"
	TypeRFC2822 = "rfc2822" // a date and time such as Fri, 18 Oct 2019 17:00:00 +0000
	TypeISO     = "iso8601"
	TypeEpoch   = "epoch"    // a time in Unix seconds; decimals and digits in a string are accepted
	TypeMillis  = "epoch_ms" // a time in Unix milliseconds
	TypeDate    = "date"     // a date such as 2006-01-02
	TypeSelect  = "select"
	TypeMap     = "map"  // a JSON object; the names of its fields are written with dots, such as address.city
	TypeCode    = "code" // an error code of the API (Errors.Meanings): a JSON number or digits in a string
	// A latitude from -90 to 90, or a longitude from -180 to 180, in degrees: a JSON number, or a number in a string
	TypeLatitude, TypeLongitude = "latitude", "longitude"
	TypeMedia                   = "media" // the content of a record, declared as a field so that roles can have a rule for it
)

// AnyKind is the Link of a field that may name a record of any kind.
const AnyKind = "*"

// Field classes, for which the rules of roles can be written. "" is the class of a plain field.
const (
	ClassPhone  = "phone"
	ClassBody   = "body"
	ClassPrice  = "price"
	ClassURL    = "url"
	ClassName   = "name"
	ClassSecret = "secret" // a field that is emptied in package upstream, so that no role and no frontend sees it
)

// How people see the value of a field (Field.Show). "" shows the value as it is.
const (
	ShowSeconds   = "seconds"      // a length of time in seconds: 1386 is shown as 23:06
	ShowMillis    = "milliseconds" // a length of time in milliseconds: 1858 is shown as 1.86 s
	ShowCost      = "cost"         // a price that the API writes as a negative number
	ShowMinor     = "minor"        // a price in the smallest unit of its currency: 1099 usd is shown as $10.99
	ShowForm      = "form"         // form-encoded text (application/x-www-form-urlencoded)
	ShowDirection = "direction"    // a word that begins with "in" or "out"; tables show an arrow
)

// Field is a field of a kind or of a list's envelope. Name is dotted for a field inside an object
// ("subresource_uris.media").
type Field struct {
	Name  string `yaml:"name"`
	Title string `yaml:"title"`
	Type  string `yaml:"type"`  // the type of the value, one of the Type constants; default text
	Class string `yaml:"class"` // the class of the field, one of the Class constants; default plain
	// DerivedFrom names the field whose value this field repeats in another form. If that field is hidden or masked, so is
	// this field, and lists cannot be filtered by it.
	DerivedFrom string `yaml:"from"`
	// Unit names the field with the unit of this number, such as a currency. Numbers with different units are
	// never added up.
	Unit string `yaml:"unit"`
	// Show is one of the Show constants: how people see the value if its type does not say so. It changes only
	// pages, never an answer.
	Show string `yaml:"show"`
	// SMS marks the text of a short message. Short messages are billed by segments, so pages explain how many segments a
	// text has.
	SMS bool `yaml:"sms"`
	// Reveals names a field whose length or content can be guessed from this field. Unless a rule names this field, a role
	// sees it no more completely than the field in Reveals.
	Reveals string `yaml:"tells"`
	// Redacts marks a field that the upstream empties in order to withdraw its text. Stored versions in which
	// it was not empty are then deleted.
	Redacts bool   `yaml:"redacts"`
	Link    string `yaml:"link"` // the kind of the record that the value names; AnyKind means that the id's prefix says which kind
	// AbsoluteURL marks a value that may be an absolute URL of the API. Its scheme and host are replaced by the
	// source's public URL.
	AbsoluteURL bool `yaml:"absolute"`
	// Sample is the interval at which the number is read and stored as a series (1h); "" means never. Only for
	// kinds that exist once per source.
	Sample string `yaml:"sample"`

	sampleInterval time.Duration
	rootPath       string // the path of a root's record, with variables; "" if the value is a member of the record
}

// List is a path that lists records of a kind.
type List struct {
	Path    string    `yaml:"path"`
	Key     string    `yaml:"key"`   // the dotted path of the array in the body; "" if the body is the array
	Shape   string    `yaml:"shape"` // the shape of the list's records; default: the kind's name
	Filters []*Filter `yaml:"filters"`
	Title   string    `yaml:"title"`
	Paging  string    `yaml:"paging"` // the name of one of the spec's pagings; "" means the spec's default paging
	// Complete overrides Spec.CompleteLists for this list. nil means the value of the spec. Compile fills it in.
	Complete *bool `yaml:"whole"`
	// FixedValues are the field values that all rows of the list have. They distinguish this list from other lists with
	// the same shape.
	FixedValues map[string]string `yaml:"only"`
	// Rows is for a list under a record: it says how to make its rows from those of a list of all records. nil
	// means that rows come only from this list.
	Rows *RowMapping `yaml:"rows"`
	// Unordered lists do not return the newest rows first, except if a parameter sorts them so. They are stored as pages,
	// and a new record need not be on their first page.
	Unordered bool `yaml:"unordered"`
	// Count is for a list under a record. It is the field of that record with the number of rows. If the number is 0, the
	// list needs no request.
	Count string `yaml:"count"`

	Posted   `yaml:",inline"`
	template Template
}

// Instance is a path that returns one record of a kind.
type Instance struct {
	Path  string   `yaml:"path"`
	Key   string   `yaml:"key"`   // the dotted path of the record in the body; "" if the body is the record
	Shape string   `yaml:"shape"` // the shape of the record; default: the kind's name
	ID    []string `yaml:"id"`    // the path variables that form the record's id, in the kind's id order; for a posted read also parameters
	// Answer is a template of the upstream's answer. {record} stands for the record, {uri} and {url} for links to the
	// answer itself. Default: an object that has only the member Key.
	Answer string `yaml:"answer"`
	// Address is the field with the record's own URL, which has this path. With Address, the path may name the
	// record by something other than its id.
	Address string `yaml:"address"`

	Posted   `yaml:",inline"`
	template Template
}

// Media is a path of a record's content, such as audio or an image. The answer consists of bytes of any type,
// possibly after redirects.
type Media struct {
	Path  string   `yaml:"path"`
	ID    []string `yaml:"id"`    // the path variables that form the record's id, as in Instance; no value may contain a dot
	Field string   `yaml:"field"` // the field of type media for which roles can have rules
	// Types are the allowed media types ("audio/mpeg") or their first halves ("image/"). Content of any other
	// type is only offered for download.
	Types []string `yaml:"types"`

	template Template
}

// Template returns the list's parsed path.
func (l *List) Template() Template { return l.template }

// Template returns the instance's parsed path.
func (in *Instance) Template() Template { return in.template }

// Template returns the parsed media path.
func (m *Media) Template() Template { return m.template }

// IsComplete reports whether the list without filters is known to contain all records of its kind.
func (l *List) IsComplete() bool { return l.Complete != nil && *l.Complete }

// IsPartial reports whether the list without filters is known to leave out records of its kind.
func (l *List) IsPartial() bool { return l.Complete != nil && !*l.Complete }

// Filter returns the list's filter with that name, or nil.
func (l *List) Filter(name string) *Filter {
	for _, f := range l.Filters {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// PagingOf returns how a list is split into pages. A nil list has the spec's default.
func (s *Spec) PagingOf(l *List) *Paging {
	if l != nil && l.Paging != "" {
		return s.Pagings[l.Paging]
	}
	return &s.Paging
}

// NewGeneric returns the compiled spec of a source whose API is not described. style says how requests carry
// the source's credential (Auth).
func NewGeneric(base, style string) (*Spec, error) {
	callers := []string{"basic"}
	if style == "bearer" {
		callers = append(callers, style) // a program that knows only the upstream sends its credential in this style
	}
	s := &Spec{Name: "generic", Title: "HTTP", Port: 4120, Hosts: []Host{{URL: base}}, generic: true,
		Auth: Auth{Style: style, Callers: callers}}
	return s, s.Compile()
}

// IsGeneric reports whether nothing is known about the API except that it uses HTTP. It has no kinds. Requests
// are forwarded unchanged, and answers are stored by the rules of HTTP caches (RFC 9111).
func (s *Spec) IsGeneric() bool { return s.generic }

// Kind returns the kind with that name, or nil.
func (s *Spec) Kind(name string) *Kind { return s.kinds[name] }
