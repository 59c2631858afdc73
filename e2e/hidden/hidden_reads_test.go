// Hidden reads: what the store reads for a hidden value and for one that never was.

package hidden

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// reads are the store's counters of what was read.
func (f *few) reads() (n struct{ Rows, Index, Blocks int64 }) {
	f.Helper()
	var stats struct {
		Store struct {
			Read *struct{ Rows, Index, Blocks int64 }
		}
	}
	stats.Store.Read = &n
	if err := json.Unmarshal(rig.Get(f.T, f.all, f.web+"/-/stats").Body, &stats); err != nil {
		f.Fatal(err)
	}
	return n
}

// written has something written to the store: what was answered before is not answered again.
func (f *few) written() {
	f.Helper()
	r, err := rig.Ask("POST", f.all, f.web+"/-/search/saved", `{"name":"one","q":"kind:calls"}`, "Content-Type", "application/json")
	if err != nil || r.Status != http.StatusNoContent {
		f.Fatalf("%d %v", r.Status, err)
	}
}

// reading is what one request of a caller has the store read.
func (f *few) reading(who string, a asking) string {
	f.Helper()
	f.written()
	before := f.reads()
	status, _, _ := f.say(who, a)
	after := f.reads()
	return fmt.Sprintf("%d: %d rows, %d of indexes, %d blocks", status, after.Rows-before.Rows, after.Index-before.Index, after.Blocks-before.Blocks)
}

// TestHiddenValuesTakeAsLongAsUnknownOnes times 200 pairs of each question. It is a part of
// make prove: on a machine that does much else its medians say nothing.
func TestHiddenValuesTakeAsLongAsUnknownOnes(t *testing.T) {
	records := sample.CountFrom("PROVE_HIDDEN", 0)
	if records == 0 {
		t.Skip("timed by make prove; PROVE_HIDDEN says how many records")
	}
	f := newFewOf(t, strconv.Itoa(records), "calls", "messages", "recordings", "conferences")
	search := func(query string) func(string) string {
		return func(value string) string { return f.web + "/-/search?q=" + url.QueryEscape(query+value) }
	}
	list := func(query string) func(string) string {
		return func(value string) string {
			return f.dropIn + rig.Base + "/Calls.json?" + query + url.QueryEscape(value)
		}
	}
	calls, messages := f.ids["calls"], f.ids["messages"]
	for _, q := range []struct {
		ask    func(value string) string
		hidden []string
	}{
		{search("kind:calls to:"), f.numbers}, {search("kind:calls number:"), f.numbers}, {search("kind:calls id:"), calls},
		{search("kind:messages id:"), messages}, {list("To="), f.numbers}, {list("PageToken=PA"), calls},
		{func(id string) string { return f.dropIn + rig.Base + "/Calls/" + id + ".json?" }, calls},
	} {
		chance := rand.New(rand.NewPCG(1, 2))
		f.alikeInTime(q.ask(""), func() [2]string {
			value := q.hidden[chance.IntN(len(q.hidden))]
			return [2]string{q.ask(unlike(chance, value)), q.ask(value)}
		})
	}
	failed, canceled := search("kind:messages status:")("failed"), search("kind:messages status:")("canceled")
	f.alikeInTime(failed, func() [2]string { return [2]string{canceled, failed} })
}

// unlike returns a value of the form of another that no record has: an id with other hexadecimal digits,
// a number with other last ones.
func unlike(chance *rand.Rand, value string) string {
	digits, from := "0123456789abcdef", 2
	if value[0] == '+' {
		digits, from = "0123456789", len(value)-6
	}
	b := []byte(value)
	for i := from; i < len(b); i++ {
		b[i] = digits[chance.IntN(len(digits))]
	}
	return string(b)
}

// alikeInTime wants two ways to take as long: addresses about what was never there and about
// what is hidden. Chance fails one comparison in a hundred, so that one that fails is made again.
func (f *few) alikeInTime(what string, draw func() [2]string) {
	f.Helper()
	if why := f.apart(what, draw); why != "" {
		f.Logf("%s: %s; once more", what, why)
		if why = f.apart(what, draw); why != "" {
			f.Errorf("%s: %s", what, why)
		}
	}
}

// apart compares two ways by 200 pairs, whose order alternates. Their medians have to differ by
// less than 5 %, half of the pairs by less than 50 us, and a sign test has to say with p > 0.01
// that they are the same. Where an answer takes tens of milliseconds 200 pairs do not tell 50 us:
// then the bound is how well they tell the median difference, by the 99 % interval of its rank.
func (f *few) apart(what string, draw func() [2]string) (why string) {
	f.Helper()
	const pairs = 200
	var times [2][]time.Duration
	var differences []time.Duration
	slower := 0
	for i := range pairs + 20 {
		urls := draw()
		var pair [2]time.Duration
		for j := range 2 {
			way := (i + j) % 2
			pair[way] = f.took(urls[way])
		}
		if i < 20 { // the first ones warm up
			continue
		}
		for way := range pair {
			times[way] = append(times[way], pair[way])
		}
		differences = append(differences, pair[1]-pair[0])
		if pair[1] > pair[0] {
			slower++
		}
	}
	slices.Sort(times[0])
	slices.Sort(times[1])
	never, hidden := times[0][pairs/2], times[1][pairs/2]
	slices.Sort(differences)
	const rank = 18 // 2.576 standard deviations of the rank of the median
	bound := max(50*time.Microsecond, (differences[pairs/2+rank]-differences[pairs/2-rank])/2)
	apart := differences[pairs/2].Abs()
	z := (float64(slower) - pairs/2) / math.Sqrt(pairs/4)
	f.Logf("hidden %v, never %v, apart by %v of %v, z %.1f: %s", hidden, never, apart, bound, z, what)
	switch {
	case apart >= bound:
		return fmt.Sprintf("half of the pairs are %v apart", apart)
	case (hidden - never).Abs() >= never/20:
		return fmt.Sprintf("the medians are %v and %v", hidden, never)
	case math.Abs(z) > 2.576:
		return fmt.Sprintf("slower in %d of %d pairs", slower, pairs)
	}
	return ""
}

// took returns how long an answer takes.
func (f *few) took(url string) time.Duration {
	f.Helper()
	f.written()
	began := time.Now()
	r, err := rig.Ask("GET", f.few, url, "", "Cache-Control", "only-if-cached")
	took := time.Since(began)
	if err != nil || strings.Contains(string(r.Body), `"sid":`) {
		f.Fatalf("%s: %v, %.200s", url, err, r.Body)
	}
	return took
}

func TestHiddenValuesReadAsMuchAsUnknownOnes(t *testing.T) {
	t.Parallel()
	f := newFew(t)
	never := []string{never("CA"), never("RE"), never(f.hidden["messages"]), neverNumber}
	hidden := f.about(f.hidden["calls"], f.hidden["recordings"], f.hidden["messages"], f.number, nil)
	unknown := f.about(never[0], never[1], never[2], never[3], nil)
	ask := func(query string) asking {
		return asking{web: true, method: "GET", path: "/-/search?q=" + url.QueryEscape(query)}
	}
	pairs := [][2]asking{}
	run := sample.OneIn(t, 24)
	for i := range hidden {
		fresh := !slices.Contains(hidden[i].headers, "no-cache")
		if hidden[i].method == "GET" && fresh && run() {
			pairs = append(pairs, [2]asking{hidden[i], unknown[i]})
		}
	}
	for _, pair := range [][2]string{
		{"kind:calls direction:outbound-api", "kind:calls direction:outbound-xyz"}, {"kind:messages status:failed", "kind:messages status:canceled"},
		{"kind:messages status:failed,sent", "kind:messages status:canceled,scheduled"}, {"kind:calls to:" + f.number, "kind:calls to:" + neverNumber},
		{strings.TrimLeft(f.number, "+"), strings.TrimLeft(neverNumber, "+")},
		{"number:" + f.number, "number:" + neverNumber}, {"kind:calls id:" + f.hidden["calls"], "kind:calls id:" + never[0]},
		{"kind:calls id:" + f.hidden["calls"] + " status:busy", "kind:calls id:" + never[0] + " status:busy"},
		{"kind:messages sid:" + f.hidden["messages"], "kind:messages sid:" + never[2]},
	} {
		pairs = append(pairs, [2]asking{ask(pair[0]), ask(pair[1])})
		for _, more := range []string{"&facets=true", "&sort=rank", "&sort=oldest", "&sum=count&by=direction"} {
			one, other := ask(pair[0]), ask(pair[1])
			one.path += more
			other.path += more
			pairs = append(pairs, [2]asking{one, other})
		}
	}
	agent := func(tool string, arguments map[string]any) asking {
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call",
			"params": map[string]any{"name": tool, "arguments": arguments}})
		if err != nil {
			t.Fatal(err)
		}
		return asking{web: true, method: "POST", path: "/-/mcp", body: string(body),
			headers: []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}}
	}
	for tool, arguments := range map[string][2]map[string]any{
		"get":     {{"kind": "calls", "id": f.hidden["calls"]}, {"kind": "calls", "id": never[0]}},
		"history": {{"kind": "messages", "id": f.hidden["messages"]}, {"kind": "messages", "id": never[2]}},
		"search":  {{"query": "kind:calls to:" + f.number}, {"query": "kind:calls to:" + neverNumber}},
		"sums":    {{"query": "number:" + f.number, "by": []string{"kind"}}, {"query": "number:" + neverNumber, "by": []string{"kind"}}},
		"list": {{"kind": "calls", "filters": map[string]string{"To": f.number}},
			{"kind": "calls", "filters": map[string]string{"To": neverNumber}}},
	} {
		pairs = append(pairs, [2]asking{agent(tool, arguments[0]), agent(tool, arguments[1])})
	}
	f.readAlike(f.few, pairs)
	var page struct{ Messages []struct{ Body, To string } }
	if err := json.Unmarshal(rig.Get(t, f.all, f.dropIn+rig.Base+"/Messages.json?PageSize=20").Body, &page); err != nil {
		t.Fatal(err)
	}
	some, word := page.Messages[0], ""
	for _, w := range strings.FieldsFunc(some.Body, func(r rune) bool { return r < 'a' || r > 'z' }) {
		_, _, found := f.say("masks:"+rig.MaskedToken, ask(w))
		if len(w) > 3 && strings.Contains(found, `"hits":[]`) { // it stands in hidden texts alone
			word = w
		}
	}
	if word == "" {
		t.Fatalf("no word of %q is hidden", some.Body)
	}
	masks := [][2]asking{}
	for _, pair := range [][2]string{
		{"kind:messages " + word, "kind:messages qzxvwqj"}, {word, "qzxvwqj"}, {"kind:messages " + some.To[4:9], "kind:messages 90909"},
		{"kind:calls busy", "kind:calls qzxvwqj"}, {"kind:messages to:" + some.To, "kind:messages to:" + neverNumber},
	} {
		for _, more := range []string{"", "&facets=true", "&sum=count&by=kind"} {
			one, other := ask(pair[0]), ask(pair[1])
			one.path += more
			other.path += more
			masks = append(masks, [2]asking{one, other})
		}
		masks = append(masks, [2]asking{agent("search", map[string]any{"query": pair[0]}), agent("search", map[string]any{"query": pair[1]})})
	}
	f.readAlike("masks:"+rig.MaskedToken, masks)
}

// readAlike compares what the two requests of each pair, about something hidden from the
// caller and about nothing, have the store read.
func (f *few) readAlike(who string, pairs [][2]asking) {
	f.Helper()
	for _, pair := range pairs {
		one, other := f.reading(who, pair[0]), f.reading(who, pair[1])
		for tries := 0; tries < 20 && one != other; tries++ { // on a busy machine something else often reads a row meanwhile
			one, other = f.reading(who, pair[0]), f.reading(who, pair[1])
		}
		if one != other {
			f.Errorf("%s %s\nhidden %s\nnever  %s", pair[0].path, pair[0].body, one, other)
		}
	}
}
