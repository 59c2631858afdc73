// Planting: an upstream in which every string is a marker, and which roles may see each.

package markers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"understudy"
	"understudy/e2e/rig"
	"understudy/internal/sample"
	"understudy/spec"
)

// fate says which roles may see a marker. The role all sees all but the last;
// support and desk see some.
type fate string

const (
	plain    fate = "plain"
	prices   fate = "price"
	phones   fate = "phone"
	bodies   fate = "body"
	unnamed  fate = "unnamed" // the spec does not name it
	nobodies fate = "nobody"  // a secret, or not part of an answer
)

// marker is one planted text.
type marker struct {
	fate  fate
	place string // "calls.from of CA…", for a failure's sentence
	aside bool   // the marker need not be seen in any response
}

// garden is the upstream. Markers are texts of a form nothing else has; those
// in number fields are numbers of which the first eleven digits are the marker.
type garden struct {
	spec   *spec.Spec
	url    string // its address, which no response may contain
	secret string // the credential the server sends to upstream; upstream repeats it
	seed   uint64 // of what goes by chance
	few    bool   // a part of the requests also in `make prove`
	sparse bool   // of each route the first request and few others

	mu      sync.Mutex
	n       int
	markers map[string]marker
	bodies  map[string][]byte // by path and page: the same request gets the same bytes
	records map[string]string // by kind and id: a record is the same in its list and alone
	asked   []string          // "METHOD path?query"
	aside   bool              // what is made now is shown in part only: a list of a record on that record's page
	making  string            // the request whose answer is made now
}

var textMarker = regexp.MustCompile(`(?i)zqm[0-9]{6}x`)

// How number markers begin, and how many digits they have.
const (
	numberStart  = "99977"
	numberLength = 11
)

// mark makes a new text marker.
func (g *garden) mark(f fate, place string) string {
	g.n++
	m := fmt.Sprintf("zqm%06dx", g.n)
	g.markers[m] = marker{f, strings.TrimSpace(place + " " + g.making), g.aside}
	return m
}

// number makes a new number with a marker in it.
func (g *garden) number(f fate, place string) string {
	g.n++
	m := fmt.Sprintf(numberStart+"%06d", g.n)
	g.markers[m] = marker{f, strings.TrimSpace(place + " " + g.making), g.aside}
	return fmt.Sprintf("+%s%04d", m, g.n%9000+1000)
}

// found are the markers in what was sent: as written, and with everything but
// digits taken off, for numbers that are shown in groups.
func (g *garden) found(sent []byte) map[string]marker {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string]marker{}
	for _, m := range textMarker.FindAll(sent, -1) {
		if known, ok := g.markers[strings.ToLower(string(m))]; ok {
			all[strings.ToLower(string(m))] = known
		}
	}
	if bytes.Contains(sent, []byte(g.basic())) {
		all[g.basic()] = marker{nobodies, "the Authorization header sent upstream", true}
	}
	if bytes.Contains(sent, []byte(g.url)) {
		all[g.url] = marker{nobodies, "upstream's own address", true}
	}
	digits := bytes.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, sent)
	for at := 0; ; at++ { // matches may overlap by chance
		next := bytes.Index(digits[at:], []byte(numberStart))
		if at += next; next < 0 || at+numberLength > len(digits) {
			break
		}
		m := string(digits[at : at+numberLength])
		if known, ok := g.markers[m]; ok {
			all[m] = known
		}
	}
	return all
}

// Kinds of records a kind is planted with.
const (
	texts   = iota // a text marker in every field
	numbers        // numbers where numbers belong, real dates and states elsewhere
	odd            // fields of unexpected types, duplicate names, escaped names
	variants
)

// What upstream answers instead of a record to some ids and filters: troubles
// are about the request, outages about upstream itself.
var (
	troubles = []int{400, 404, 410, 206}
	outages  = []int{429, 500, 503, 200, 302, 403}
)

// id is the n-th id of a kind. Of a composite one all but the last part are
// those of one parent.
func (g *garden) id(k *spec.Kind, n int) string {
	parts := make([]string, len(k.ID))
	for i, name := range k.ID {
		of := k
		if f := k.Field(name); f.Link != "" {
			of = g.spec.Kind(f.Link)
		}
		parts[i] = numbered(of, n)
		if i < len(k.ID)-1 {
			parts[i] = parentID(of)
		}
	}
	return k.JoinID(parts)
}

func numbered(k *spec.Kind, n int) string {
	return fmt.Sprintf("%s%032x", k.Prefixes[0], 0xabc0000+n)
}

// parentID is the record whose lists are asked for.
func parentID(k *spec.Kind) string { return numbered(k, 0x500) }

// troubleID is the id upstream answers a status for; 200 is HTML, 206 a
// document no store can hold faithfully.
func (g *garden) troubleID(k *spec.Kind, status int) string { return g.id(k, 0xd000+status) }

// fill puts ids into a path template.
func (g *garden) fill(path string, names []string, id string) string {
	parts := strings.Split(id, spec.IDSeparator)
	return pathVariable.ReplaceAllStringFunc(path, func(v string) string {
		name := strings.Trim(v, "{}")
		if i := slices.Index(names, name); i >= 0 {
			return parts[i]
		}
		return g.variable(name)
	})
}

// variable is what stands for a path variable that does not name the record.
func (g *garden) variable(name string) string {
	if g.spec.Vars[name] == "user" {
		return rig.Account
	}
	for _, k := range g.spec.Kinds {
		if strings.EqualFold(strings.ReplaceAll(k.Singular, " ", "")+"Sid", name) {
			return parentID(k)
		}
	}
	return "US"
}

// object writes a JSON object in order; names may come twice.
type object struct{ b []byte }

func (o *object) raw(name, value string) {
	o.b = append(o.b, map[bool]string{true: "{", false: ","}[len(o.b) == 0]...)
	o.b = append(append(append(append(o.b, '"'), name...), `":`...), value...)
}

func (o *object) text(name, value string) {
	quoted, _ := json.Marshal(value)
	o.raw(name, string(quoted))
}

func (o *object) done() string {
	if len(o.b) == 0 {
		return "{}"
	}
	return string(o.b) + "}"
}

// fateOf returns which roles of the test may see a field. A field that tells of a
// text has the fate of the text. URLs may hold numbers and have the fate of numbers.
func fateOf(f *spec.Field) fate {
	if f.Reveals != "" {
		return bodies
	}
	switch f.Class {
	case spec.ClassSecret:
		return nobodies
	case spec.ClassPhone, spec.ClassURL:
		return phones
	case spec.ClassBody:
		return bodies
	case spec.ClassPrice:
		return prices
	}
	return plain
}

// record is one record of a kind.
func (g *garden) record(k *spec.Kind, id string, variant int) string {
	name := k.Name + " " + id
	if g.aside || len(k.ID) == 0 {
		return g.newRecord(k, id, variant)
	}
	if g.records[name] == "" {
		g.records[name] = g.newRecord(k, id, variant)
	}
	return g.records[name]
}

func (g *garden) newRecord(k *spec.Kind, id string, variant int) string {
	o := &object{}
	inner := map[string]*object{}
	parts := strings.Split(id, spec.IDSeparator)
	for _, f := range k.Fields {
		outer, name, dotted := strings.Cut(f.Name, ".")
		switch {
		case f.Type == spec.TypeMedia:
		case dotted:
			if inner[outer] == nil {
				inner[outer] = &object{}
			}
			whose := f
			if f.Class == "" && k.Field(outer) != nil {
				whose = k.Field(outer) // hidden with all that is in it
			}
			inner[outer].text(name, g.mark(fateOf(whose), k.Name+"."+f.Name))
		case f.Type == spec.TypeMap:
			if inner[f.Name] == nil {
				inner[f.Name] = &object{}
			}
		case slices.Contains(k.ID, f.Name):
			o.text(f.Name, parts[slices.Index(k.ID, f.Name)])
		default:
			g.field(o, k, f, variant)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		in := inner[name]
		in.text("x_inside", g.mark(unnamed, k.Name+"."+name+".x_inside"))
		in.raw("x_list", fmt.Sprintf(`[%q,{"y":%q}]`, g.mark(unnamed, "list in "+name), g.mark(unnamed, "object in list in "+name)))
		o.raw(name, in.done())
	}
	g.unknown(o, k.Name)
	return o.done()
}

// field writes one field of a record.
func (g *garden) field(o *object, k *spec.Kind, f *spec.Field, variant int) {
	place := k.Name + "." + f.Name
	switch {
	case variant == texts:
		o.text(f.Name, g.mark(fateOf(f), place))
	case variant == numbers && f.Class == spec.ClassPhone:
		o.text(f.Name, g.number(fateOf(f), place))
	case variant == numbers && f.Type == spec.TypeRFC2822:
		o.text(f.Name, "Mon, 01 Jun 2026 10:00:00 +0000")
	case variant == numbers && f.Type == spec.TypeISO:
		o.text(f.Name, "2026-06-01T10:00:00Z")
	case variant == numbers && f.Type == spec.TypeDate:
		o.text(f.Name, "2026-06-01")
	case variant == numbers && f.Type == spec.TypeCode:
		o.raw(f.Name, "30003")
	case variant == numbers && f.AbsoluteURL:
		o.text(f.Name, g.url+"/"+g.mark(fateOf(f), place))
	case variant == numbers && f.Name == "status":
		o.text(f.Name, "completed")
	case variant == numbers && f.Type == spec.TypeInt:
		o.raw(f.Name, "7")
	case variant == numbers:
		o.text(f.Name, g.mark(fateOf(f), place))
	default:
		g.oddField(o, f, place)
	}
}

// chance is one of n by the seed and a text, whatever was asked for before.
func (g *garden) chance(n uint64, of string) uint64 {
	sum := fnv.New64a()
	fmt.Fprint(sum, g.seed, of)
	return sum.Sum64() % n
}

// some says whether one of many requests of a kind is made: one in n in `make
// test`, all in `make prove`.
func (g *garden) some(n uint64, request string) bool {
	return !g.few && sample.IsFullRun() || g.chance(n, request) == 0
}

// oddField writes a field in an unexpected form.
func (g *garden) oddField(o *object, f *spec.Field, place string) {
	inside := unnamed
	if fateOf(f) == nobodies {
		inside = nobodies
	}
	hidden := func(what string) string { return g.mark(inside, place+" as "+what) }
	own := func(what string) string { return g.mark(fateOf(f), place+" as "+what) }
	switch g.chance(5, place) {
	case 0: // an object: what is in it has no name in the spec
		o.raw(f.Name, fmt.Sprintf(`{"inner":%q,"deep":{"er":[%q]}}`, hidden("object"), hidden("deep object")))
	case 1: // a list of what the field is
		o.raw(f.Name, fmt.Sprintf(`[%q,%q]`, own("list"), own("list")))
	case 2: // twice: readers take the first or the last
		o.text(f.Name, own("first of two"))
		o.text(f.Name, own("second of two"))
	case 3: // a name with an escape in it
		o.raw(fmt.Sprintf(`\u%04x%s`, f.Name[0], f.Name[1:]), fmt.Sprintf("%q", own("escaped name")))
	case 4: // another field that differs in case
		o.text(strings.ToUpper(f.Name), g.mark(unnamed, place+" in upper case"))
		o.text(f.Name, own("beside its upper case"))
	}
}

// basic is the secret as a request carries it.
func (g *garden) basic() string {
	return base64.StdEncoding.EncodeToString([]byte(rig.Account + ":" + g.secret))
}

// unknown adds what no spec names, at every depth.
func (g *garden) unknown(o *object, place string) {
	hide := func(what string) string { return g.mark(unnamed, place+": "+what) }
	o.text("x_new", hide("x_new"))
	o.text("x_echo", "you signed in with "+g.secret)
	o.raw("x_object", fmt.Sprintf(`{"from":%q,"a":{"body":%q,"auth_tokens":[%q,[%q]]}}`, hide("object"), hide("object"), hide("object"), hide("object")))
	o.raw("x_list", fmt.Sprintf(`[%q,{"sid":%q,"to":[{"body":%q}]}]`, hide("list"), hide("list"), hide("list")))
	o.raw("x_empty", `{"":`+fmt.Sprintf("%q", hide("empty name"))+`}`)
}

// list is a list answer: every variant of record, links that lead on, and an
// envelope with more in it than the spec names.
func (g *garden) list(k *spec.Kind, l *spec.List, path string, page int) string {
	o := &object{}
	g.envelope(o, k, l, path, page)
	g.unknown(o, "envelope of "+l.Path)
	var rows []string
	for v := range variants {
		rows = append(rows, g.record(k, g.id(k, page*variants+v), v))
	}
	o.raw(l.Key, "["+strings.Join(rows, ",")+"]")
	return o.done()
}

func (g *garden) envelope(o *object, k *spec.Kind, l *spec.List, path string, page int) {
	paging, inner := g.spec.PagingOf(l), map[string]*object{}
	for _, f := range paging.Envelope {
		at, name := o, f.Name
		if outer, within, dotted := strings.Cut(f.Name, "."); dotted {
			if inner[outer] == nil {
				inner[outer] = &object{}
			}
			at, name = inner[outer], within
		}
		link := func(n int) string {
			to := path + "?PageSize=50&Page=0"
			if n > 0 {
				to = fmt.Sprintf("%s?PageSize=50&Page=%d&PageToken=PA%s", path, n, g.id(k, n*variants-1))
			}
			if f.AbsoluteURL {
				to = g.url + to
			}
			return to
		}
		switch {
		case f.Type == spec.TypeMap:
		case strings.HasPrefix(name, "next_") && page < 1 && paging.Style != "none":
			at.text(name, link(page+1))
		case strings.HasPrefix(name, "next_"), strings.HasPrefix(name, "previous_"):
			at.raw(name, "null")
		case strings.HasPrefix(name, "first_"):
			at.text(name, link(0))
		case name == "uri", name == "url":
			at.text(name, link(page))
		case name == "key":
			at.text(name, l.Key)
		case f.Type == spec.TypeInt:
			at.raw(name, fmt.Sprint(page))
		default:
			at.text(name, g.mark(plain, "envelope."+f.Name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		inner[name].text("x_inside", g.mark(unnamed, "envelope."+name+".x_inside"))
		o.raw(name, inner[name].done())
	}
}

// trouble is an error body full of what support must not read.
func (g *garden) trouble(status int) string {
	return fmt.Sprintf(`{"code":%d,"message":"The number %s is not %s","more_info":%q,"status":%d,"details":{"body":%q,"token":%q}}`,
		20000+status, g.number(unnamed, "error message"), g.mark(unnamed, "error message"), g.mark(unnamed, "error more_info"), status, g.mark(unnamed, "error details"), g.secret)
}

// answer finds or makes the bytes for a target.
func (g *garden) answer(t *spec.Target, r *http.Request) (status int, contentType string, body []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, r.Method+" "+r.URL.RequestURI())
	status, contentType = 200, "application/json; charset=utf-8"
	for _, s := range slices.Concat(troubles, outages) {
		if t.Kind != nil && (t.ID != "" && t.ID == g.troubleID(t.Kind, s) || r.URL.Query().Get("Status") == fmt.Sprint("trouble", s) || r.URL.Query().Get("Origin") == fmt.Sprint("trouble", s)) {
			status = s
		}
	}
	name := fmt.Sprintf("%s %s %s %d", strings.Replace(r.Method, "HEAD", "GET", 1), r.URL.Path, r.URL.Query().Get("Page"), status)
	if body = g.bodies[name]; body == nil {
		g.aside = slices.ContainsFunc(t.Vars, func(v understudy.Param) bool {
			return t.List != nil && v.Value != g.variable(v.Name)
		})
		g.making = name
		defer func() { g.aside, g.making = false, "" }()
		body = []byte(g.body(t, r, status))
		g.bodies[name] = body
	}
	switch {
	case r.Method == http.MethodPost && status == 200:
		status = 201
	case status == 200 && strings.HasPrefix(string(body), "<"):
		contentType = "text/html"
	case status == 206:
		status = 200
	}
	if t.Media != nil && status == http.StatusOK {
		contentType = t.Media.Types[0]
	}
	return status, contentType, body
}

func (g *garden) body(t *spec.Target, r *http.Request, status int) string {
	trouble := t.Kind != nil && t.ID != "" && t.ID == g.troubleID(t.Kind, status)
	switch {
	case t.Kind == nil:
		return g.trouble(404)
	case t.Media != nil && (status == 200 || status == 206):
		return "RIFF" + g.mark(bodies, "the content of "+t.Kind.Name)
	case trouble && status == 200:
		return "<html><body>" + g.mark(nobodies, "an HTML page where JSON belongs") + "</body></html>"
	case trouble && status == 206: // a lone surrogate
		return strings.Replace(g.record(t.Kind, t.ID, texts), `"x_new":"`, `"x_odd":"\ud800","x_new":"`, 1)
	case status != 200:
		return g.trouble(status)
	case t.List != nil && r.Method != http.MethodPost:
		page := 0
		if r.URL.Query().Get("Page") == "1" {
			page = 1
		}
		return g.list(t.Kind, t.List, r.URL.Path, page)
	case t.List != nil:
		return g.record(t.Kind, g.id(t.Kind, 0xfff), texts)
	}
	for n := range 2 * variants {
		if t.ID == g.id(t.Kind, n) {
			return g.record(t.Kind, t.ID, n%variants)
		}
	}
	return g.record(t.Kind, t.ID, texts)
}

// ServeHTTP is the upstream. Its headers hold markers too.
func (g *garden) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, err := g.spec.Resolve("twilio", r.URL.EscapedPath(), r.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	status, contentType, body := g.answer(t, r)
	g.mu.Lock()
	for _, name := range []string{"X-Note", "Etag", "Link", "Warning", "Server", "Content-Disposition", "X-Powered-By"} {
		w.Header().Set("X-Signed-In", "Basic "+g.basic())
		if name == "Etag" && t.Media != nil {
			continue // a content's own is passed on
		}
		w.Header().Set(name, `"`+g.mark(nobodies, "upstream's header "+name)+`"`)
	}
	w.Header().Set("Set-Cookie", "session="+g.mark(nobodies, "upstream's cookie"))
	if status == http.StatusFound {
		w.Header().Set("Location", "/elsewhere/"+g.mark(nobodies, "upstream's Location"))
	}
	g.mu.Unlock()
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// plant starts the upstream.
func plant(t *testing.T, sp *spec.Spec) (*garden, string) {
	t.Helper()
	g := &garden{spec: sp, markers: map[string]marker{}, bodies: map[string][]byte{}, records: map[string]string{}, seed: sample.Seed(t)}
	g.secret = g.mark(nobodies, "the upstream secret")
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.url = server.URL
	return g, server.URL
}

// asks is how many requests came so far.
func (g *garden) asks() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.asked)
}
