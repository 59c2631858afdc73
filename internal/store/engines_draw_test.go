// Random words of all scripts, records and pages.

package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"understudy"
	"understudy/internal/store/storetest"
)

// thing is a record as its upstream has it.
type thing struct {
	source, kind, id string
	created, clock   int64 // in Unix seconds; clock 0 is null
	parent           string
	deleted          bool
}

// thingKinds are the kinds of random records. Nothing is known of the fields of the last.
var thingKinds = []struct{ source, kind, path string }{
	{"twilio", "calls", storetest.Path}, {"twilio", "calls", storetest.Path},
	{"twilio", "messages", strings.Replace(storetest.Path, "Calls", "Messages", 1)},
	{"items", "items", "/v1/items"}, {"plain", "things", "/things"},
}

// letters are the letters of every script of Unicode, by its name. Of each there are few, so that words share beginnings.
var letters = sync.OnceValue(func() (all [][]rune) {
	for _, name := range slices.Sorted(maps.Keys(unicode.Scripts)) {
		all = append(all, readLetters(unicode.Scripts[name]))
	}
	all = append(all, []rune("👍👩💻🇩🇪🏽😀🎉"),
		[]rune("한국어국어안녕"), []rune("東京都会議室日本語"), []rune("محمدأحمدسلام"), []rune("שלוםבית"))
	return all
})

// readLetters returns the first letters of a table.
func readLetters(t *unicode.RangeTable) (some []rune) {
	add := func(lo, hi, stride rune) {
		for r := lo; r <= hi && len(some) < 40; r += stride {
			some = append(some, r)
		}
	}
	for _, r := range t.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range t.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return some
}

// drawWord returns a word of any script, sometimes with marks, joiners or letters of another script.
func drawWord(rng *rand.Rand) string {
	if rng.IntN(3) == 0 {
		return pick(rng, pick(rng, storetest.Alphabets))
	}
	all := letters()
	script := pick(rng, all)
	var word []rune
	for range 1 + rng.IntN(6) {
		switch rng.IntN(20) {
		case 0:
			word = append(word, pick(rng, []rune("\u0301\u0308\u064e\u05b8\u093c\u200d\u200c\ufe0f\u00ad")))
		case 1:
			word = append(word, pick(rng, pick(rng, all)))
		default:
			word = append(word, pick(rng, script))
		}
	}
	return string(word)
}

func pick[T any](rng *rand.Rand, of []T) T { return of[rng.IntN(len(of))] }

// drawWords returns a text of at most so many words.
func (e *engines) drawWords(most int) string {
	var all []string
	for range e.rng.IntN(most + 1) {
		all = append(all, pick(e.rng, e.vocabulary))
	}
	return strings.Join(all, pick(e.rng, []string{" ", " ", " ", "-", ", ", "", "\n", "\x00"}))
}

// quote returns a text as a JSON string. It keeps broken UTF-8, and rarely breaks the string.
func (e *engines) quote(text string) string {
	b := []byte{'"'}
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	broken := e.rng.IntN(60)
	if e.writer != nil {
		broken = -1
	}
	switch broken {
	case 0:
		b = append(b, `\ud83d`...) // half of a pair
	case 1:
		b = append(b, "\xe6\x9d"...)
	case 2:
		b = append(b, 0)
	}
	return string(append(b, '"'))
}

// people are phone numbers and addresses of people.
var people = []string{"+14155550100", "(415) 555-0100", "+4915550001234", "whatsapp:+4915550001234", "client:anna", "+18005550199", ""}

// body returns a record's body with random values.
func (e *engines) body(x *thing) string {
	date := func(unix int64) string {
		if unix == 0 {
			return "null"
		}
		return `"` + time.Unix(unix, 0).UTC().Format(time.RFC1123Z) + `"`
	}
	var b strings.Builder
	add := func(name, value string) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q: %s", name, value)
	}
	status := e.quote(pick(e.rng, []string{"completed", "busy", "failed", "queued", "sent", e.drawWords(1)}))
	switch x.kind {
	case "calls":
		add("sid", e.quote(x.id))
		add("date_created", date(x.created))
		add("start_time", date(x.clock))
		add("end_time", pick(e.rng, []string{"null", date(x.created + e.rng.Int64N(9000))}))
		add("caller_name", e.quote(e.drawWords(3)))
		add("parent_call_sid", e.quote(x.parent))
	case "messages":
		add("sid", e.quote(x.id))
		add("date_created", date(x.created))
		add("date_sent", date(x.clock))
		text := e.drawWords(pick(e.rng, []int{0, 8, 8, 60}))
		if e.writer != nil {
			// An empty body takes back what was said. Until another writer's job erases it, other shapes of the message show it.
			text += "said"
		}
		add("body", e.quote(text))
		add("error_message", e.quote(e.drawWords(3)))
		add("direction", pick(e.rng, []string{`"inbound"`, "null", "7", "true", `{"a": "deep words"}`}))
	default:
		add("id", e.quote(x.id))
		at := "null"
		if x.clock != 0 {
			at = `"` + time.Unix(x.clock, 0).UTC().Format(time.RFC3339) + `"`
		}
		add("at", at)
	}
	if x.source == "twilio" {
		add("from", e.quote(pick(e.rng, people)))
		if to := pick(e.rng, people); e.writer == nil {
			add("to", e.quote(to))
		} else {
			add("to", e.quote(e.writer.address()))
		}
		add("status", status)
	}
	add("unheard", e.quote(e.drawWords(4)))
	return "{" + b.String() + "}"
}

// drawID returns an id in the form of its kind, or in none.
func (e *engines) drawID(kind string, n int) string {
	switch e.rng.IntN(12) {
	case 0:
		return fmt.Sprint(e.drawWords(1), n)
	case 1:
		return fmt.Sprint("x\x00\xff'\"", n)
	}
	return fmt.Sprintf("%s%032x", strings.ToUpper(kind[:2]), n*7919)
}

// drawThing returns a record that is there, or a new one.
func (e *engines) drawThing(source, kind string) *thing {
	var of []*thing
	for _, x := range e.things {
		if x.source == source && x.kind == kind && (e.writer == nil || !x.deleted) {
			of = append(of, x)
		}
	}
	if len(of) > 0 && e.rng.IntN(4) > 0 {
		return pick(e.rng, of)
	}
	x := &thing{source: source, kind: kind, id: e.drawID(kind, len(e.things))}
	x.created = e.now.Load() - pick(e.rng, []int64{0, 0, 1, 60, 86_400, 99 * 86_400, 100*86_400 + 5000, 200 * 86_400})
	x.created -= e.rng.Int64N(3)
	if e.rng.IntN(8) > 0 {
		x.clock = x.created + e.rng.Int64N(3)
	}
	if len(of) > 0 && e.rng.IntN(4) == 0 {
		x.parent = pick(e.rng, of).id
	}
	if e.writer != nil {
		e.writer.own(x, len(e.things))
	}
	e.things = append(e.things, x)
	return x
}

// newPage returns a page without rows. Some are of a moment ago, or of a clock that was set back.
func (e *engines) newPage(source, kind, uri string) *understudy.Page {
	late := pick(e.rng, []int64{0, 0, 0, 0, 0, 0, 5, 200, 500, 90_000})
	p := &understudy.Page{Key: understudy.Key{Source: source, URI: uri}, Kind: kind, Status: 200, ContentType: "application/json",
		At: time.Unix(e.now.Load()-late, 0).UTC()}
	if e.writer != nil {
		p.At = time.Unix(e.now.Load()+e.writer.steps, 0).UTC()
	}
	if kind != "" {
		p.Shape = kind
	}
	if e.writer == nil && e.rng.IntN(9) == 0 {
		p.Generation = e.rng.Int64N(5)
	} else {
		p.Generation = 1 << 40
	}
	return p
}

// addRow appends a record to the body of a page.
func (e *engines) addRow(p *understudy.Page, x *thing) {
	at, body := len(p.Body), e.body(x)
	p.Body = append(p.Body, body...)
	p.Rows = append(p.Rows, understudy.Row{ID: x.id, Start: at, End: len(p.Body), Clock: x.clock, Parent: x.parent,
		Final: strings.Contains(body, `"completed"`)})
}

func (e *engines) drawInstance(x *thing) *understudy.Page {
	x.deleted = false
	p := e.newPage(x.source, x.kind, "/one/"+x.id)
	p.ID = x.id
	switch e.rng.IntN(8) {
	case 0:
		p.Key.URI = "" // the answer to a write
	case 1:
		p.Shape = pick(e.rng, e.shapes)
		p.Key.URI += p.Shape
	}
	e.addRow(p, x)
	return p
}

// drawList returns a page of the list of all records of a kind, in the order of their times or rarely in none.
func (e *engines) drawList(source, kind, path string) *understudy.Page {
	for range 1 + e.rng.IntN(9) {
		e.drawThing(source, kind)
	}
	var rows []*thing
	for _, x := range slices.Backward(e.things) {
		if x.source == source && x.kind == kind && !x.deleted {
			rows = append(rows, x)
		}
	}
	slices.SortStableFunc(rows, func(a, b *thing) int { return int(b.created - a.created) })
	from, size := 0, 1+e.rng.IntN(20)
	if len(rows) > 0 && e.rng.IntN(2) == 0 {
		from = e.rng.IntN(len(rows))
	}
	uri := fmt.Sprintf("%s?PageSize=%d", path, size)
	if from > 0 {
		uri += "&Page=1&PageToken=PA" + rows[from-1].id
	}
	p := e.newPage(source, kind, uri)
	p.List = true
	if e.rng.IntN(8) == 0 {
		p.Shape = pick(e.rng, e.shapes)
		p.Key.URI += "&shape=" + p.Shape
	}
	shown := slices.Clone(rows[from:min(from+size, len(rows))])
	if e.writer == nil && e.rng.IntN(8) == 0 {
		e.rng.Shuffle(len(shown), func(i, j int) { shown[i], shown[j] = shown[j], shown[i] })
	}
	p.Body = []byte(`{"rows": [`)
	for i, x := range shown {
		if i > 0 {
			p.Body = append(p.Body, ", "...)
		}
		e.addRow(p, x)
	}
	p.Body = append(p.Body, `], "page": 0}`...)
	if from+size < len(rows) {
		p.Next = understudy.Key{Source: source, URI: fmt.Sprintf("%s?PageSize=%d&Page=1&PageToken=PA%s", path, size, rows[from+size-1].id)}
	}
	return p
}
