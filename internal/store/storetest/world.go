// A small world of calls in the form of Twilio's (REST API 2010-04-01, Calls
// resource), made here so that the suite depends on nothing it might test.

package storetest

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"understudy"
)

// Source is the name of the source the worlds belong to.
const Source = "twilio"

// Account is the account the calls belong to.
const Account = "AC00000000000000000000000000000001"

// Epoch is when a world's newest call began.
var Epoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// World is n calls, newest first. A call is a function of the seed, its index
// and how often it was changed.
type World struct {
	Seed    uint64
	N       int
	Changed map[int]int // by index: how many steps it has taken
	Gone    map[int]bool
}

// NewWorld makes a world of n calls.
func NewWorld(seed uint64, n int) *World {
	return &World{Seed: seed, N: n, Changed: map[int]int{}, Gone: map[int]bool{}}
}

// ID is the id of the call at an index. Index 0 is the newest; calls that come
// later have negative ones.
func (w *World) ID(i int) string { return "CA" + w.hex(i, 1) }

func (w *World) hex(i int, salt uint64) string {
	r := rand.New(rand.NewPCG(w.Seed^salt<<32, uint64(int64(i))))
	var raw [16]byte
	for j := range raw {
		raw[j] = byte(r.Uint32())
	}
	return hex.EncodeToString(raw[:])
}

var subresources = []string{"notifications", "recordings", "payments", "events", "siprec", "streams", "transcriptions",
	"user_defined_message_subscriptions", "user_defined_messages"}

var subpaths = []string{"Notifications", "Recordings", "Payments", "Events", "Siprec", "Streams", "Transcriptions",
	"UserDefinedMessageSubscriptions", "UserDefinedMessages"}

// Person is the number of one of the world's people.
func (w *World) Person(n int) string {
	r := rand.New(rand.NewPCG(w.Seed+7, uint64(n)))
	return fmt.Sprintf("+1%03d%03d%04d", 201+r.IntN(700), 200+r.IntN(700), r.IntN(10_000))
}

// AppendCall appends the JSON of the call at an index.
func (w *World) AppendCall(dst []byte, i int) []byte {
	r := rand.New(rand.NewPCG(w.Seed, uint64(int64(i))))
	id := w.ID(i)
	start := Epoch.Add(-time.Duration(i) * 37 * time.Second)
	length := r.IntN(900)
	end := start.Add(time.Duration(length) * time.Second)
	own, person := "+1415555010"+strconv.Itoa(r.IntN(8)), w.Person(r.IntN(2000))
	from, to, direction := person, own, "inbound"
	if r.IntN(2) == 0 {
		from, to, direction = own, person, "outbound-api"
	}
	text := func(name, value string) {
		dst = append(append(append(append(append(dst, '"'), name...), `":"`...), value...), `",`...)
	}
	date := func(name string, t time.Time) {
		dst = append(append(append(dst, '"'), name...), `":"`...)
		dst = append(t.UTC().AppendFormat(dst, time.RFC1123Z), `",`...)
	}
	steps := w.Changed[i]
	dst = append(dst, '{')
	text("sid", id)
	date("date_created", start.Add(-time.Second))
	date("date_updated", end.Add(time.Duration(steps)*time.Minute))
	if r.IntN(5) == 0 {
		text("parent_call_sid", "CA"+w.hex(i, 2))
	} else {
		dst = append(dst, `"parent_call_sid":null,`...)
	}
	text("account_sid", Account)
	text("to", to)
	text("to_formatted", formatted(to))
	text("from", from)
	text("from_formatted", formatted(from))
	text("phone_number_sid", "PN"+w.hex(int(own[len(own)-1]), 3))
	text("status", [...]string{"completed", "completed", "completed", "completed", "busy", "no-answer", "failed"}[r.IntN(7)])
	date("start_time", start)
	date("end_time", end)
	text("duration", strconv.Itoa(length+steps))
	text("price", fmt.Sprintf("-%d.%05d", steps, length/60*850+850))
	text("price_unit", "USD")
	text("direction", direction)
	dst = append(dst, `"answered_by":null,"api_version":"2010-04-01","forwarded_from":null,"group_sid":null,"caller_name":null,`+
		`"queue_time":"0","trunk_sid":null,`...)
	uri := "/2010-04-01/Accounts/" + Account + "/Calls/" + id
	text("uri", uri+".json")
	dst = append(dst, `"subresource_uris":{`...)
	for j, name := range subresources {
		if j > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(append(append(append(append(dst, '"'), name...), `":"`...), uri...), '/'), subpaths[j]...), `.json"`...)
	}
	return append(dst, `}}`...)
}

func formatted(e164 string) string {
	return "(" + e164[2:5] + ") " + e164[5:8] + "-" + e164[8:]
}

// Path is the path of the list of calls.
const Path = "/2010-04-01/Accounts/" + Account + "/Calls.json"

// URI returns the canonical URI of page n of the list at a page size. If the page is not the first, its token
// names the call before it.
func (w *World) URI(size, n, before int) string {
	uri := Path + "?PageSize=" + strconv.Itoa(size)
	if n > 0 {
		uri += "&Page=" + strconv.Itoa(n) + "&PageToken=PA" + w.ID(before)
	}
	return uri
}

// List returns page n of the list at a page size, beginning with the call at an index, and the index after the
// page. It takes changed and deleted calls into account. at is the time of the fetch.
func (w *World) List(size, n, from int, at time.Time) (p *understudy.Page, next int) {
	var on []int
	i := from
	for ; i < w.N && len(on) < size; i++ {
		if !w.Gone[i] {
			on = append(on, i)
		}
	}
	uri := w.URI(size, n, from-1)
	p = &understudy.Page{Key: understudy.Key{Source: Source, URI: uri}, Kind: "calls", Shape: "calls", List: true, Status: 200,
		ContentType: "application/json; charset=utf-8", At: at, Took: time.Second}
	body := make([]byte, 0, 400+2200*len(on))
	body = fmt.Appendf(body, `{"first_page_uri":"%s?PageSize=%d&Page=0","end":%d,"calls":[`, Path, size, n*size+len(on)-1)
	for j, call := range on {
		if j > 0 {
			body = append(body, ", "...)
		}
		start := len(body)
		body = w.AppendCall(body, call)
		p.Rows = append(p.Rows, understudy.Row{ID: w.ID(call), Start: start, End: len(body), Clock: Epoch.Unix() - int64(call)*37,
			Final: call%10 != 0})
	}
	if i < w.N {
		p.Next = understudy.Key{Source: Source, URI: w.URI(size, n+1, i-1)}
		body = fmt.Appendf(body, `],"previous_page_uri":null,"uri":"%s","page_size":%d,"start":%d,"next_page_uri":"%s","page":%d}`, uri, size,
			n*size, p.Next.URI, n)
	} else {
		body = fmt.Appendf(body, `],"previous_page_uri":null,"uri":"%s","page_size":%d,"start":%d,"next_page_uri":null,"page":%d}`, uri, size,
			n*size, n)
	}
	p.Body = body
	p.Sum = sum(body)
	return p, i
}

// Pages returns the pages of a walk, with nothing shared but the world.
func Pages(w *World, size int, when time.Time) []*understudy.Page {
	var pages []*understudy.Page
	for n, from := 0, 0; from < w.N; n++ {
		p, next := w.List(size, n, from, when.Add(time.Duration(n)*time.Millisecond))
		pages, from = append(pages, p), next
	}
	return pages
}

// Filled returns the path of a closed store with some pages.
func Filled(t *testing.T) (path string, pages []*understudy.Page) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a folder", "under % study?.db")
	db := OpenAt(t, path)
	pages = Pages(NewWorld(1, 600), 50, Epoch)
	for _, p := range pages {
		if _, err := db.Save(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path, pages
}
