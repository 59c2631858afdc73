// Hidden rows: a role that may find some records alone learns of no other, by
// any way in.

package hidden

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/spec"
	"understudy/upstream"
)

// few is a server with a role that finds inbound calls and delivered messages
// alone, and what it must not learn of.
type few struct {
	*testing.T
	dropIn, web string
	spec        *spec.Spec
	all, few    string              // credentials
	ids         map[string][]string // hidden ids by kind
	number      string              // of hidden records alone
	numbers     []string            // all such
	hidden      map[string]string   // one hidden id of each kind
	marks       []string
}

const neverNumber = "+19995550000"

// never is an id of a kind that never was.
func never(like string) string { return like[:2] + strings.Repeat("0f", 16) }

func newFew(t *testing.T) *few { return newFewOf(t, "200") }

// newFewOf starts newFew's server with so many calls, and syncs these kinds; without any, all.
func newFewOf(t *testing.T, records string, kinds ...string) *few {
	t.Helper()
	if kinds == nil {
		kinds = rig.KindsWithIDs(t)
	}
	up := rig.StartAPI(t, "--latency", "0s", "--records", records, "--epoch", time.Now().UTC().Format(time.RFC3339)).URL("slowapi")
	house := startNarrow(t, narrow{
		upstream: up, name: "few", source: "sync: [" + strings.Join(kinds, ", ") + "]",
		mirror: "{newest: 10m, older: 10m}", sees: `"*": see`,
		masks: `"*": see, phone: last4, body: hide, calls.status: hide`,
		allow: `["POST /2010-04-01/Accounts/*/Calls/*", "DELETE /2010-04-01/Accounts/*/Calls/*", "POST /2010-04-01/Accounts/*/Messages/*", "DELETE /2010-04-01/Accounts/*/Messages/*", "POST /2010-04-01/Accounts/*/Calls/*/Recordings.json"]`,
	})
	sp, err := upstream.ReadBuiltIn("twilio")
	if err != nil {
		t.Fatal(err)
	}
	f := &few{T: t, dropIn: house.URL("twilio"), web: house.URL("viewer"), spec: sp, all: rig.Account + ":" + rig.DemoToken, few: "few:" + rig.MaskedToken, ids: map[string][]string{}, hidden: map[string]string{}}
	rig.AwaitFor(t, 15*time.Minute, func() string { return rig.Incomplete(t, f.web, time.Time{}, kinds...) })
	f.learn()
	return f
}

// learn reads as role all what the other must not know.
func (f *few) learn() {
	f.Helper()
	open, shut := map[string]bool{}, map[string]bool{} // numbers
	under := map[string]bool{}                         // hidden ids
	shown := map[string]bool{}                         // named by what may be found
	for _, at := range []struct{ kind, path, parent string }{{"calls", "/Calls.json", ""}, {"messages", "/Messages.json", ""}, {"recordings", "/Recordings.json", "call_sid"}, {"conferences", "/Conferences.json", ""}} {
		var rows []map[string]any
		for next := rig.Base + at.path + "?PageSize=1000"; next != ""; {
			var page map[string]json.RawMessage
			var some []map[string]any
			if err := json.Unmarshal(rig.Get(f.T, f.all, f.dropIn+next).Body, &page); err != nil {
				f.Fatal(err)
			}
			if err := json.Unmarshal(page[at.kind], &some); err != nil {
				f.Fatal(err)
			}
			rows, next = append(rows, some...), ""
			if err := json.Unmarshal(page["next_page_uri"], &next); err != nil {
				f.Fatal(err)
			}
		}
		for _, r := range rows {
			id := r["sid"].(string)
			parent, _ := r[at.parent].(string)
			may := at.kind == "calls" && r["direction"] == "inbound" || at.kind == "messages" && r["status"] == "delivered" || at.kind == "recordings" && !under[parent] || at.kind == "conferences"
			for _, name := range []string{"from", "to"} {
				if n, ok := r[name].(string); ok && may {
					open[n] = true
				} else if ok {
					shut[n] = true
				}
			}
			if may {
				for _, v := range r {
					if text, ok := v.(string); ok {
						shown[text] = true
					}
				}
				continue
			}
			under[id] = true
			f.ids[at.kind] = append(f.ids[at.kind], id)
			if at.kind == "recordings" && f.hidden["calls"] == "" {
				f.hidden["calls"], f.hidden["recordings"] = parent, id
			}
		}
	}
	for n := range shut {
		if !open[n] && !shown[n] && strings.HasPrefix(n, "+") {
			f.numbers = append(f.numbers, n)
		}
	}
	if slices.Sort(f.numbers); len(f.numbers) > 0 {
		f.number = f.numbers[0]
	}
	f.hidden["messages"] = f.ids["messages"][0]
	for _, ids := range f.ids {
		for _, id := range ids {
			if !shown[id] {
				f.marks = append(f.marks, id)
			}
		}
	}
	checktest.MustTrue(f, f.number != "", "the world has too little that is hidden: f.number is empty")
	checktest.MustTrue(f, f.hidden["recordings"] != "",
		`the world has too little that is hidden: f.hidden["recordings"] is empty`)
	checktest.MustTrue(f, len(f.marks) >= 100,
		"the world has too little that is hidden: len(f.marks) is %v, want >= 100", len(f.marks))
}

// asking is one request.
type asking struct {
	web                bool
	method, path, body string
	headers            []string
}

// about are requests that name a call, a recording, a message and a number.
func (f *few) about(call, recording, message, number string, tags []string) (all []asking) {
	q := url.QueryEscape
	add := func(web bool, paths ...string) {
		for _, p := range paths {
			all = append(all, asking{web: web, method: "GET", path: p})
		}
	}
	for _, query := range []string{"To=" + q(number), "From=" + q(number), "ParentCallSid=" + call, "Status=completed&To=" + q(number), "PageSize=2&Page=1&PageToken=PA" + call,
		"understudy.since=1", "understudy.q=" + call, "understudy.q=" + q("sid:"+call), "understudy.q=-" + call, "understudy.q=" + q("to:"+number), "understudy.q=" + q("number:"+number), "understudy.q=" + q("NOT number:"+number),
		"understudy.as_of=" + q(time.Now().UTC().Add(-time.Second).Format(time.RFC3339)) + "&To=" + q(number), "understudy.order=asc&To=" + q(number)} {
		add(false, rig.Base+"/Calls.json?"+query)
	}
	for _, query := range []string{"To=" + q(number), "From=" + q(number), "PageSize=2&Page=1&PageToken=PA" + message, "understudy.q=" + message, "understudy.q=" + q("to:"+number)} {
		add(false, rig.Base+"/Messages.json?"+query)
	}
	add(false, rig.Base+"/Recordings.json?CallSid="+call, rig.Base+"/Recordings.json?PageToken=PA"+recording+"&Page=1&PageSize=5", rig.Base+"/Conferences.json?FriendlyName="+call, rig.Base+"/Notifications.json?MessageDate=2026-01-01", rig.Version+"/../v1/Alerts?ResourceSid="+call, "/v1/Alerts?ResourceSid="+call, "/v1/Events?ResourceSid="+call)
	for _, p := range []string{"/Calls/" + call + ".json", "/Calls/" + call + "/Recordings.json", "/Calls/" + call + "/Events.json", "/Calls/" + call + "/Notifications.json", "/Calls/" + call + "/Recordings/" + recording + ".json", "/Recordings/" + recording + ".json", "/Recordings/" + recording + ".mp3", "/Recordings/" + recording + ".wav?Download=true", "/Recordings/" + recording, "/Messages/" + message + ".json", "/Messages/" + message + "/Media.json", "/Messages/" + message + "/Media/ME00000000000000000000000000000000.json", "/Messages/" + message + "/Feedback.json", "/Calls/" + call + "/Nobody.json"} {
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
			all = append(all, asking{method: method, path: rig.Base + p, body: map[bool]string{true: "Status=completed"}[method == "POST"]})
		}
		for _, h := range [][]string{{"Cache-Control", "only-if-cached"}, {"Cache-Control", "no-cache"}, {"If-None-Match", "*"}, {"Range", "bytes=0-9"}, {"If-Match", `"x"`}, {"If-Modified-Since", "Sat, 01 Jan 2050 00:00:00 GMT"}, {"Prefer", "wait=1"}, {"Accept-Encoding", "gzip"}} {
			all = append(all, asking{method: "GET", path: rig.Base + p, headers: h})
		}
		for _, tag := range tags {
			all = append(all, asking{method: "GET", path: rig.Base + p, headers: []string{"If-None-Match", tag}}, asking{method: "GET", path: rig.Base + p, headers: []string{"If-Match", tag}}, asking{method: "GET", path: rig.Base + p, headers: []string{"If-Range", tag, "Range", "bytes=0-1"}})
		}
		add(false, rig.Base+p+"?understudy.as_of="+q(time.Now().UTC().Format(time.RFC3339)))
	}
	for _, text := range []string{call, recording, message, "sid:" + call, "id:" + call, "-" + call, "-sid:" + call, "NOT id:" + message, number, "number:" + number, "-number:" + number, "to:" + number, "call_sid:" + call, "kind:calls sid:" + call, "id:" + call[:12] + "*", "kind:messages OR " + call} {
		for _, more := range []string{"", "&facets=true", "&sort=rank&facets=true", "&sort=oldest&limit=3", "&format=jsonl", "&format=xml"} {
			add(true, "/-/search?q="+q(text)+more)
		}
		add(true, "/search?q="+q(text), "/search.json?q="+q(text), "/twilio/calls?understudy.q="+q(text))
		for _, form := range []string{".json", ".csv", ".jsonl"} {
			add(true, "/twilio/calls"+form+"?understudy.q="+q(text), "/search"+form+"?q="+q(text))
		}
	}
	for _, form := range []string{"", ".json", ".csv", ".jsonl"} {
		add(true, "/twilio/calls"+form+"?To="+q(number), "/twilio/messages"+form+"?From="+q(number), "/twilio/recordings"+form+"?CallSid="+call, "/twilio/number/"+q(number)+form, "/twilio/calls"+form+"?To="+q(number), "/twilio/call_events"+form+"?CallSid="+call)
	}
	for _, one := range []string{"/twilio/calls/" + call, "/twilio/recordings/" + recording, "/twilio/messages/" + message} {
		add(true, one, one+".json", one+"?understudy.as_of="+q(time.Now().UTC().Format(time.RFC3339)), one+"?understudy.versions=5", one+"?compare=2026-01-01T00:00:00Z..2050-01-01T00:00:00Z")
		all = append(all, asking{web: true, method: "HEAD", path: one})
	}
	add(true, "/-/feed.json?source=twilio&after=0&kind=calls", "/-/feed.json?source=twilio&kind=calls&id="+call, "/twilio/number/"+q(number)+"/"+q("+15005550006"))
	for _, path := range []string{"/-/erase", "/-/purge"} {
		all = append(all, asking{web: true, method: "POST", path: path, body: "source=twilio&number=" + q(number)})
	}
	return all
}

// say asks, and leaves out of the answer what differs each time and the names.
func (f *few) say(who string, a asking, names ...string) (status int, head, body string) {
	f.Helper()
	at := f.dropIn
	if a.web {
		at = f.web
	}
	r, err := rig.Ask(a.method, who, at+a.path, a.body, a.headers...)
	if err != nil {
		f.Fatalf("%s %s: %v", a.method, a.path, err)
	}
	text, err := r.Decode()
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"Date", "X-Request-Id", "Set-Cookie", "Server-Timing", "X-Ratelimit-Used", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
		r.Header.Del(name)
	}
	if r.Status == http.StatusOK { // what is there says how old it is, and its tag is of the query it repeats
		r.Header.Del("Age")
		r.Header.Set("Cache-Status", ages.ReplaceAllString(r.Header.Get("Cache-Status"), "$1=N"))
		r.Header.Del("ETag")
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
		r.Header.Del("Content-Length") // the page says how long it took
		text = took.ReplaceAll(text, nil)
	}
	return r.Status, alike(fmt.Sprint(r.Header), names...), alike(string(sealed.ReplaceAll(text, []byte("SEALED"))), names...)
}

var (
	ages   = regexp.MustCompile(`(ttl|newest|walked)=-?[0-9]+`)
	took   = regexp.MustCompile(`<b>[0-9.]+ (ms|µs|s)</b>`)
	filed  = regexp.MustCompile(`[0-9]{8}T[0-9]{6}Z`)
	sealed = regexp.MustCompile(`[-_A-Za-z0-9]{150,}|"(cursor|next)":"[-_A-Za-z0-9]+"`) // a cursor is another one each time
)

// alike takes the names that were asked for out of an answer, in every length
// they are shown in.
func alike(text string, names ...string) string {
	text = filed.ReplaceAllString(text, "FILED")
	for _, n := range names {
		for _, form := range []string{n, url.QueryEscape(n), strings.TrimPrefix(n, "+")} {
			text = strings.ReplaceAll(text, form, "NAME")
		}
		if n[0] == '+' { // as people read it
			text = strings.NewReplacer("\u00a0", " ").Replace(text)
			text = strings.ReplaceAll(text, "1 "+n[2:5]+" "+n[5:8]+" "+n[8:], "NAME")
		}
		for end := len(n) - 1; end > 6 && n[0] > '9'; end-- {
			text = strings.ReplaceAll(text, n[:end], "NAME")
		}
	}
	return text
}

func TestHiddenRows(t *testing.T) {
	t.Parallel()
	f := newFew(t)
	var tags []string
	for _, p := range []string{"/Calls/" + f.hidden["calls"] + ".json", "/Recordings/" + f.hidden["recordings"] + ".mp3", "/Messages/" + f.hidden["messages"] + ".json", "/Calls/" + f.hidden["calls"] + "/Recordings.json"} {
		if tag := rig.Get(t, f.all, f.dropIn+rig.Base+p).Header.Get("ETag"); tag != "" {
			tags = append(tags, tag)
		}
	}
	if len(tags) < 3 {
		t.Fatalf("role all learns the tags %v", tags)
	}
	names := []string{f.hidden["calls"], f.hidden["recordings"], f.hidden["messages"], f.number}
	nobody := []string{never("CA"), never("RE"), never("SM"), neverNumber}
	if strings.HasPrefix(names[2], "MM") {
		nobody[2] = never("MM")
	}
	hidden, unknown := f.about(names[0], names[1], names[2], names[3], tags), f.about(nobody[0], nobody[1], nobody[2], nobody[3], tags)
	walked := f.walks()
	f.goesOn(walked)
	names, nobody = append(walked.names(), names...), append(walked.never().names(), nobody...)
	hidden, unknown = append(walked.asks(), hidden...), append(walked.never().asks(), unknown...)
	status := map[string]int{}
	failures := 0
	fail := func(format string, args ...any) {
		if failures++; failures < 40 {
			t.Errorf(format, args...)
		}
	}
	run := sample.OneIn(t, 18)
	for i, a := range hidden {
		if !run() {
			continue
		}
		statusA, headA, bodyA := f.say(f.few, a, names...)
		statusB, headB, bodyB := f.say(f.few, unknown[i], nobody...)
		status[fmt.Sprint(a.web, " ", statusA)]++
		for _, m := range f.marks {
			if strings.Contains(headA+bodyA, m) {
				fail("%s %s %v shows the hidden %s", a.method, a.path, a.headers, m)
				break
			}
		}
		// Parts of a viewer's page that take too long are left out of it. What a
		// busy machine leaves out once, it does not leave out always.
		for tries := 0; a.web && tries < 3 && (statusA != statusB || headA != headB || bodyA != bodyB); tries++ {
			statusA, headA, bodyA = f.say(f.few, a, names...)
			statusB, headB, bodyB = f.say(f.few, unknown[i], nobody...)
		}
		if statusA != statusB || headA != headB {
			fail("%s %s %v\nhidden %d %s\nnever %d %s", a.method, a.path, a.headers, statusA, headA, statusB, headB)
		}
		if bodyA != bodyB {
			fail("%s %s %v\n%s", a.method, a.path, a.headers, rig.FirstDifference([]byte(bodyB), []byte(bodyA)))
		}
	}
	t.Logf("%d questions: %v", len(hidden), status)
	f.nothing()
}

// nothing asks what names no record, and finds none that is hidden.
func (f *few) nothing() {
	f.Helper()
	var plain []asking
	for _, p := range []string{"/", "/index.json", "/search", "/-/stats", "/-/health", "/-/feed.json?source=twilio&after=0&limit=1000", "/-/webhooks", "/-/jobs", "/-/index", "/-/erasures", "/-/search?facets=true&limit=500", "/-/search?format=jsonl", "/-/search?format=xml", "/-/search/saved", "/search?q="} {
		plain = append(plain, asking{web: true, method: "GET", path: p})
	}
	for _, k := range f.spec.Kinds {
		for _, form := range []string{"", ".json", ".csv", ".jsonl"} {
			plain = append(plain, asking{web: true, method: "GET", path: "/twilio/" + k.Name + form}, asking{web: true, method: "GET", path: "/twilio/" + k.Name + form + "?understudy.sort=sid&understudy.q=-zzz"})
		}
		for _, l := range k.Lists {
			if path := strings.ReplaceAll(l.Path, "{AccountSid}", rig.Account); !strings.Contains(path, "{") {
				plain = append(plain, asking{method: "GET", path: path + "?PageSize=1000"}, asking{method: "GET", path: path + "?PageSize=7"}, asking{method: "GET", path: path + "?understudy.q=-zzz"}, asking{method: "GET", path: path + "?understudy.order=asc"})
			}
		}
	}
	good := 0
	for _, a := range plain {
		status, head, body := f.say(f.few, a)
		if status == http.StatusOK {
			good++
		}
		if i := slices.IndexFunc(f.marks, func(m string) bool { return strings.Contains(head+body, m) }); i >= 0 {
			at := strings.Index(body, f.marks[i])
			f.Errorf("%s shows the hidden %s: %s", a.path, f.marks[i], body[max(0, at-1500):min(len(body), at+300)])
		}
		if strings.HasPrefix(a.path, "/-/") && testing.Verbose() {
			f.Logf("%s: %d %.6000s", a.path, status, body)
		}
	}
	if good < 100 {
		f.Errorf("only %d of %d answers are good", good, len(plain))
	}
}
