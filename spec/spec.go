// Spec: what one API looks like. The yaml tags are the names in a spec file.

// Package spec says what an API looks like: its hosts, kinds of records, lists, paging
// and errors, read from a file; and what one request means under it.
package spec

import (
	"time"

	"understudy/spec/auth"
)

// Spec says what an API looks like: hosts, kinds, shapes, paths, paging, filters, field
// classes. Package upstream reads it from a YAML file and compiles it. After Compile it
// never changes and is safe for concurrent use.
type Spec struct {
	Name  string `yaml:"name"`
	Title string `yaml:"title"`
	Docs  string `yaml:"docs"`
	Port  int    `yaml:"port"` // default drop-in port
	Hosts []Host `yaml:"hosts"`
	Auth  Auth   `yaml:"auth"`
	// Headers are the header fields that mean something to this API.
	Headers Headers `yaml:"headers"`
	// Limits says how it tells that it takes no more requests for a while.
	Limits Limits `yaml:"limits"`
	Paging Paging `yaml:"paging"`
	// Pagings are other ways in which this API cuts lists, by name; a list names its own.
	Pagings map[string]*Paging `yaml:"pagings"`
	Errors  Errors             `yaml:"errors"`
	// Vars says what fills a path variable that a request leaves open: "user" is the
	// source's user.
	Vars map[string]string `yaml:"vars"`
	// Shown says which field of a record shows a path variable, for kinds that
	// have such a field; the field's link says what the variable names.
	Shown map[string]string `yaml:"shown"`
	// Roots are the records under which most lists lie: accounts, repositories.
	Roots Roots `yaml:"roots"`
	// WholeLists: every list without filters shows all records of its kind (below its
	// record) from its first page to its last; false: a list may leave some out. nil: it is
	// not known, and a list of one page may have more.
	WholeLists *bool `yaml:"whole_lists"`
	// Absolute are names (patterns with *) of fields of any answer, at any depth, whose values may
	// be absolute URLs of the API.
	Absolute []string `yaml:"absolute"`
	// ContentType is what answers made from records are said to be; default application/json.
	ContentType string `yaml:"content_type"`
	// Passes are paths (with {Variables}) of GETs, and GraphQL the path of GraphQL requests,
	// that upstream answers each time, to callers who see everything: nothing says what
	// they show.
	Passes  []string `yaml:"passes"`
	GraphQL string   `yaml:"graphql"`
	// Quirks says what the API does with list requests that are not quite right.
	Quirks Quirks  `yaml:"odd"`
	Kinds  []*Kind `yaml:"kinds"`
	Hook   Hook    `yaml:"hook"`
	// Connect are the lines that point clients at a drop-in port, one entry a client.
	Connect []Snippet `yaml:"connect"`
	// Searches are ready for people to open.
	Searches []*Search `yaml:"searches"`

	generic bool
	passes  []Template
	routes  routes
	kinds   map[string]*Kind
	keys    []string // the parameters of queries that carry credentials
}

// Auth says how requests carry a credential.
type Auth = auth.Auth

// Host is one of the API's hosts and the path prefixes that belong to it.
type Host struct {
	URL      string   `yaml:"url"`
	Prefixes []string `yaml:"prefixes"`
}

// Hook says how the API calls back after an event. A call is a hint to fetch again,
// never data.
type Hook struct {
	// Style is url-form-hmac-sha1, the URL and the sorted form, keyed by the source's
	// secret, in base64; "": it does not call.
	Style  string   `yaml:"style"`
	Header string   `yaml:"header"` // where the signature stands
	IDs    []string `yaml:"ids"`    // parameters that may name a record; its prefix says of which kind
}

// Errors says what upstream's error bodies look like. Template holds {code},
// {status} and {message}; the values are JSON-escaped when they are put in, a text with
// its quotes.
type Errors struct {
	ContentType string `yaml:"content_type"`
	Template    string `yaml:"template"`
	// Codes are by our word: unauthorized, forbidden, not_found, method, invalid,
	// limited, server; or of a parameter: date, bool,
	// retention, range, size, size_above, page, token.
	Codes    map[string]string `yaml:"codes"`    // a whole number, or a word
	Messages map[string]string `yaml:"messages"` // by the same words; {path} is the request's path
	// Bodies are conditions on the body of an answer with a good status that is an error all
	// the same: one of them holds. The fields are dotted.
	Bodies []State `yaml:"bodies"`
	// Link is the page that explains an error code, {code} in it. Meanings explain a code
	// in few words. Both are for people.
	Link     string            `yaml:"link"`
	Meanings map[string]string `yaml:"meanings"`
}

// Field types, as a spec file writes them.
const (
	TypeText    = "text"
	TypeInt     = "int"     // a JSON number, or digits in a string
	TypeDecimal = "decimal" // a JSON number, or one in a string
	TypeBool    = "bool"
	TypeRFC2822 = "rfc2822" // Fri, 18 Oct 2019 17:00:00 +0000
	TypeISO     = "iso8601"
	TypeEpoch   = "epoch"    // Unix seconds, decimals and digits in a string too
	TypeMillis  = "epoch_ms" // Unix milliseconds
	TypeDate    = "date"     // 2006-01-02
	TypeSelect  = "select"
	TypeMap     = "map"   // an object; its own fields are named with dots
	TypeCode    = "code"  // an error code of the API (Errors.Meanings), a JSON number or digits in a string
	TypeMedia   = "media" // so that roles can have a rule for it
)

// AnyKind is the Link of a field that may name a record of any kind.
const AnyKind = "*"

// Field classes, which roles have rules for; "" is a plain field.
const (
	ClassPhone  = "phone"
	ClassBody   = "body"
	ClassPrice  = "price"
	ClassURL    = "url"
	ClassName   = "name"
	ClassSecret = "secret" // emptied inside upstream, for every role and frontend
)

// What people see of a field (Field.Show); "" is the value as it is.
const (
	ShowSeconds   = "seconds"      // a length of time: 1386 is 23:06
	ShowMillis    = "milliseconds" // the same: 1858 is 1.86 s
	ShowCost      = "cost"         // a price that the API writes as a negative number
	ShowMinor     = "minor"        // a price in the smallest unit of its currency: 1099 usd is $10.99
	ShowForm      = "form"         // form-encoded text (application/x-www-form-urlencoded)
	ShowDirection = "direction"    // a word that begins with "in" or "out": tables show an arrow
)

// Field is one field of a kind or of a list's envelope. Name is dotted for a
// field inside an object ("subresource_uris.media").
type Field struct {
	Name  string `yaml:"name"`
	Title string `yaml:"title"`
	Type  string `yaml:"type"`  // default text
	Class string `yaml:"class"` // default plain
	// From names the field this one is derived from. It is hidden or masked whenever that
	// one is, and then may not be filtered on.
	From string `yaml:"from"`
	// Unit names the field that says in what unit this number is: a currency. Numbers in
	// different units are never added up.
	Unit string `yaml:"unit"`
	// Show says how people see the value, where its type does not: ShowSeconds and the like. It
	// changes pages only, never an answer.
	Show string `yaml:"show"`
	// SMS says that the field is the text of a short message. These are billed by segments:
	// people see how many there are, and why.
	SMS bool `yaml:"sms"`
	// Tells names a field whose length or content this one reveals. It is shown no more
	// fully than that one, unless a rule names it.
	Tells string `yaml:"tells"`
	// Redacts says that upstream empties the field to take back its text. Versions of the
	// record in which it was not empty then go.
	Redacts bool   `yaml:"redacts"`
	Link    string `yaml:"link"` // the kind of the record that the value names; AnyKind: any kind, recognised by its prefix
	// Absolute says that the value may be an absolute URL of the API itself. Its scheme and
	// host are replaced by the source's public URL.
	Absolute bool `yaml:"absolute"`
	// Sample is how often the number is looked at to be kept as a series (1h); "": never.
	// It is for kinds that are one thing of the source.
	Sample string `yaml:"sample"`

	every    time.Duration
	rootPath string // the path of a root's record, with variables; "": the value is a member of the record
}

// List is one path that lists records of a kind.
type List struct {
	Path    string    `yaml:"path"`
	Key     string    `yaml:"key"`   // dotted path of the array in the body; "" = the body is the array
	Shape   string    `yaml:"shape"` // default: the kind's name
	Filters []*Filter `yaml:"filters"`
	Title   string    `yaml:"title"`
	Paging  string    `yaml:"paging"` // a name in the spec's pagings; "" = the spec's paging
	// Whole is WholeLists of this list alone; nil: as the spec says. Compile fills it in.
	Whole *bool `yaml:"whole"`
	// Only are the field values that all rows of the list have, and that set it apart from
	// other lists of its shape.
	Only map[string]string `yaml:"only"`
	// Rows, for a list under a record, says how its rows are made from those of a list of
	// all records; nil: they come only from this list.
	Rows *RowMapping `yaml:"rows"`
	// Unordered: its rows do not stand newest first, whatever is asked (but by name, or
	// oldest first). Such a list is held as pages, and its newest page tells of no new record.
	Unordered bool `yaml:"unordered"`
	// Count is, for a list under a record, the record's field with the number of rows. With
	// 0 there the list needs no request.
	Count string `yaml:"count"`

	Posted   `yaml:",inline"`
	template Template
}

// Instance is one path that shows a record of a kind.
type Instance struct {
	Path  string   `yaml:"path"`
	Key   string   `yaml:"key"`   // dotted path of the record in the body; "" = the body is the record
	Shape string   `yaml:"shape"` // default: the kind's name
	ID    []string `yaml:"id"`    // the path variables that name the record, in the kind's id order; of a posted read also parameters
	// Answer is an answer as upstream writes it, with {record} for the record, and {uri} and {url} for
	// links to itself; default: an object with Key alone.
	Answer string `yaml:"answer"`
	// Address is the field of a record that has its own address, a URL of this path. With it
	// the path may name the record by something else than its id.
	Address string `yaml:"address"`

	Posted   `yaml:",inline"`
	template Template
}

// Media is one path with the content of a record: audio, an image. The answer is bytes
// of any type, perhaps after redirects.
type Media struct {
	Path  string   `yaml:"path"`
	ID    []string `yaml:"id"`    // the path variables that name the record, as in Instance; none may hold a dot
	Field string   `yaml:"field"` // a field of type media: what roles speak of
	// Types are the types that the content may have, as media types ("audio/mpeg") or their
	// first halves ("image/"). Another type is offered for download only.
	Types []string `yaml:"types"`

	template Template
}

// Template is the list's path, parsed.
func (l *List) Template() Template { return l.template }

// Template is the instance's path, parsed.
func (in *Instance) Template() Template { return in.template }

// Template is the media path, parsed.
func (m *Media) Template() Template { return m.template }

// Shows reports whether the list without filters is known to show all records of its kind.
func (l *List) Shows() bool { return l.Whole != nil && *l.Whole }

// Hides reports whether the list without filters is known to leave records of its kind out.
func (l *List) Hides() bool { return l.Whole != nil && !*l.Whole }

// Filter is the list's filter of that name, nil when there is none.
func (l *List) Filter(name string) *Filter {
	for _, f := range l.Filters {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// PagingOf is how a list is cut into pages. A nil list has the spec's default.
func (s *Spec) PagingOf(l *List) *Paging {
	if l != nil && l.Paging != "" {
		return s.Pagings[l.Paging]
	}
	return &s.Paging
}

// NewGeneric is the compiled spec of a source of which no spec is known. style is how
// requests carry its credential (Auth).
func NewGeneric(base, style string) (*Spec, error) {
	callers := []string{"basic"}
	if style == "bearer" {
		callers = append(callers, style) // what programs send that know upstream alone
	}
	s := &Spec{Name: "generic", Title: "HTTP", Port: 4120, Hosts: []Host{{URL: base}}, generic: true,
		Auth: Auth{Style: style, Callers: callers}}
	return s, s.Compile()
}

// Generic reports whether nothing is known of the API but HTTP. It has no kinds; every request
// is passed on as it came, and its answers are stored by the rules of HTTP caches (RFC 9111).
func (s *Spec) Generic() bool { return s.generic }

// Kind finds a kind by name, or nil.
func (s *Spec) Kind(name string) *Kind { return s.kinds[name] }
