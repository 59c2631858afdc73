// Matrix: every fault of upstream is tested on both frontends, with and without
// a held page. The response is a good one or a clear error of the right shape.
// A bad response is not stored. The next good response ends the error.

package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"understudy/e2e/binary"
	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

// misfortune is one fault.
type misfortune struct {
	name string
	// rule is for the simulated API; strike does what it cannot.
	rule   string
	strike func(*wire, *faultCase)
	// cold is how an answer may end when nothing is held.
	cold []int
	// told says that upstream's answer is a good one all the same, told as it
	// is; detail is then part of Cache-Status.
	told   bool
	detail string
}

func misfortunes() []misfortune {
	rule := func(text string) string { return `{"match":"/2010-04-01",` + text + `}` }
	down := []int{http.StatusServiceUnavailable}
	return []misfortune{
		{name: "500", rule: rule(`"status":500`), cold: []int{500, 503}},
		{name: "429", rule: rule(`"status":429,"retry_after":1`), cold: []int{429, 503}},
		{name: "connect refused", strike: func(w *wire, _ *faultCase) { w.refuse() }, cold: down},
		{name: "connect timeout", strike: func(w *wire, _ *faultCase) { w.silence() }, cold: down},
		{name: "first-byte timeout", rule: rule(`"delay_ms":20000`), cold: down},
		{name: "stall mid-body", rule: rule(`"stall_after":300`), cold: down},
		{name: "reset mid-body", rule: rule(`"truncate":300,"reset":true`), cold: down},
		{name: "truncated gzip", rule: rule(`"gzip_cut":120`), cold: down},
		{name: "wrong length", rule: rule(`"length":10`), cold: down},
		{name: "invalid JSON", rule: rule(`"body":"{\"calls\":[{]}"`), cold: down},
		{name: "HTML", rule: rule(`"content_type":"text/html","body":"<html><h1>Bad Gateway</h1></html>"`), cold: down},
		{name: "empty 200", rule: rule(`"body":""`), cold: down},
		{name: "100 MB body", rule: rule(`"pad_mb":100`), cold: down},
		{name: "redirect loop", rule: rule(`"redirect":"loop"`), cold: down},
		{name: "invalid UTF-8", strike: forgeWith(func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"api_version":"2010-04-01"`), []byte("\"api_version\":\"2010-\xff4-01\""), 1)
		}), cold: []int{200}, told: true, detail: "not stored"},
		{name: "a record twice", strike: forgeWith(func(b []byte) []byte {
			start, end := bytes.Index(b, []byte("[{"))+1, bytes.Index(b, []byte("},{"))+1
			return slices.Concat(b[:end], []byte(","), b[start:end], b[end:])
		}), cold: []int{200}, told: true},
	}
}

// faultCase is one fault's own server.
type faultCase struct {
	misfortune
	up, through, viewer string
	good                map[string][]byte // direct answers by path
	before              []byte            // of supersededPath, before the write; the mirror may have refilled it since
	bad                 map[string][]byte // what upstream answers during the fault, if it is known
}

// The paths of a scene: one that was not read before, one that is held and stale,
// and one that a write has superseded.
const (
	coldPath       = rig.Base + "/Calls.json?PageSize=7"
	coldForPeople  = rig.Base + "/Calls.json?PageSize=9"
	heldPath       = rig.Base + "/Calls.json?PageSize=11"
	supersededPath = rig.Base + "/Messages.json?PageSize=11"
)

func forgeWith(change func([]byte) []byte) func(*wire, *faultCase) {
	return func(w *wire, s *faultCase) {
		s.bad = map[string][]byte{}
		for path, body := range s.good {
			s.bad[path] = change(bytes.Clone(body))
		}
		w.forge(func(target string) []byte {
			body := s.bad[target]
			head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", len(body))
			return append([]byte(head), body...)
		})
	}
}

// column is one cell of every row.
type column struct {
	name  string
	check func(t *testing.T, s *faultCase) string // what it saw, in a word
}

func TestFaultMatrix(t *testing.T) {
	columns := []column{
		{"program cold", func(t *testing.T, s *faultCase) string { return s.program(t, rig.DemoToken, coldPath, false) }},
		{"held", func(t *testing.T, s *faultCase) string { return s.program(t, rig.DemoToken, heldPath, true) }},
		{"held, waits", func(t *testing.T, s *faultCase) string { return s.program(t, strictToken, heldPath, true) }},
		{"superseded", func(t *testing.T, s *faultCase) string { return s.program(t, rig.DemoToken, supersededPath, true) }},
		{"person cold", func(t *testing.T, s *faultCase) string { return s.person(t, "/twilio/calls?PageSize=9", false) }},
		{"held", func(t *testing.T, s *faultCase) string { return s.person(t, "/twilio/calls?PageSize=11", true) }},
		{"superseded", func(t *testing.T, s *faultCase) string { return s.person(t, "/twilio/messages?PageSize=11", true) }},
	}
	rows := misfortunes()
	cells := make([][]string, len(rows))
	var mu sync.Mutex
	t.Run("rows", func(t *testing.T) {
		for i, m := range rows {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				seen := suffer(t, m, columns)
				mu.Lock()
				defer mu.Unlock()
				cells[i] = seen
			})
		}
	})
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "fault")
	for _, c := range columns {
		fmt.Fprint(w, "\t", c.name)
	}
	fmt.Fprint(w, "\thealed\n")
	for i, m := range rows {
		fmt.Fprint(w, m.name, "\t", strings.Join(cells[i], "\t"), "\n")
	}
	_ = w.Flush()
	t.Log("\n" + table.String())
}

// strictToken opens a credential that wants everything as fresh as upstream.
const strictToken = "understudystricttoken"

// suffer runs one row.
func suffer(t *testing.T, m misfortune, columns []column) []string {
	up := rig.StartAPI(t, "--records", "200", "--latency", "1ms").URL("slowapi")
	wire := newWire(t, up)
	house, dir := rig.StartServer(t, rig.Settings{
		Upstream: wire.url(), Mirror: "{newest: 1ms, older: 1ms, stale: 1h, wait: 700ms, try: 1s}",
		Source: "max_body: 4MiB, timeouts: {connect: 300ms, first_byte: 300ms, stall: 300ms, total: 1s}",
		More:   fmt.Sprintf("  - {name: strict, source: twilio, user: %s, secret: \"cmd:printf %s\", role: all, max_stale: 0s}\n", rig.Account, strictToken),
	})
	s := &faultCase{misfortune: m, up: up, through: house.URL("twilio"), viewer: house.URL("viewer"), good: map[string][]byte{}}
	user := rig.Account + ":" + rig.DemoToken
	if r, err := rig.Ask(http.MethodPost, user, s.through+rig.Base+"/Messages.json", "To=%2B15005550001&From=%2B15005550006&Body=first"); err != nil || r.Status != 201 {
		t.Fatalf("a message: %d %s %v", r.Status, r.Body, err)
	}
	for _, path := range []string{heldPath, supersededPath} {
		if r := rig.Get(t, user, s.through+path); r.Status != 200 {
			t.Fatalf("%s: %d %s", path, r.Status, r.Body)
		}
	}
	s.before = rig.Get(t, user, s.through+supersededPath).Body
	if r, err := rig.Ask(http.MethodPost, user, s.through+rig.Base+"/Messages.json", "To=%2B15005550001&From=%2B15005550006&Body=second"); err != nil || r.Status != 201 {
		t.Fatalf("a message: %d %s %v", r.Status, r.Body, err)
	}
	for _, path := range []string{coldPath, coldForPeople, heldPath, supersededPath} {
		s.good[path] = rig.Get(t, rig.Account+":"+rig.APIToken, up+path).Body
	}
	if m.strike != nil {
		m.strike(wire, s)
	} else {
		rig.Control(t, up, "/-/faults", `{"rules":[`+m.rule+`]}`)
	}
	var seen []string
	for _, c := range columns {
		seen = append(seen, c.check(t, s))
	}
	wire.heal()
	rig.Control(t, up, "/-/faults", `{"rules":[]}`)
	return append(seen, s.healed(t, house, dir))
}

// program asks as a program does.
func (s *faultCase) program(t *testing.T, token, path string, held bool) string {
	t.Helper()
	r := rig.Get(t, rig.Account+":"+token, s.through+path)
	status := r.Header.Get("Cache-Status")
	switch {
	case s.told && r.Status == 200 && bytes.Equal(r.Body, s.bad[path]) && strings.Contains(status, s.detail):
		return "200 as told"
	case held && r.Status == 200 && (bytes.Equal(r.Body, s.good[path]) || path == supersededPath && bytes.Equal(r.Body, s.before)) && strings.Contains(status, "hit; ttl=-"):
		return "200 stale"
	case held || !slices.Contains(s.cold, r.Status):
		t.Errorf("program, %s: %d, Cache-Status %q\n%.300s\n%s", path, r.Status, status, r.Body, rig.FirstDifference(s.good[path], r.Body))
		return "WRONG"
	}
	s.clearError(t, path, r)
	return fmt.Sprint(r.Status)
}

// clearError checks an error's shape and that it tells nothing of ours.
func (s *faultCase) clearError(t *testing.T, path string, r rig.Reply) {
	t.Helper()
	var e struct {
		Code     int
		Message  string
		MoreInfo string `json:"more_info"`
		Status   int
	}
	err := json.Unmarshal(r.Body, &e)
	checktest.MustNoError(t, err, "program, %s", path)
	checktest.True(t, e.Code != 0, "program, %s: e.Code is 0", path)
	checktest.True(t, e.Message != "", "program, %s: e.Message is empty", path)
	checktest.True(t, e.MoreInfo != "", "program, %s: e.MoreInfo is empty", path)
	checktest.Equal(t, e.Status, r.Status, "program, %s: e.Status", path)
	if r.Status == http.StatusServiceUnavailable && r.Header.Get("Retry-After") == "" {
		t.Errorf("program, %s: 503 without Retry-After", path)
	}
	s.discreet(t, path, r)
}

func (s *faultCase) discreet(t *testing.T, path string, r rig.Reply) {
	t.Helper()
	for _, word := range []string{"panic", "goroutine", rig.APIToken, ".go:", "dial tcp"} {
		if body := bytes.ReplaceAll(r.Body, []byte(s.viewer), nil); bytes.Contains(body, []byte(word)) {
			t.Errorf("%s: the answer speaks of %q:\n%.600s", path, word, body)
		}
	}
}

// person asks as a browser does.
func (s *faultCase) person(t *testing.T, path string, held bool) string {
	t.Helper()
	r := rig.Get(t, rig.Account+":"+rig.DemoToken, s.viewer+path, "Accept", "text/html")
	s.discreet(t, path, r)
	rows := bytes.Count(r.Body, []byte("<tr"))
	switch {
	case r.Status == 200 && rows > 9 && held:
		return "200"
	case r.Status == 200 && rows > 7 && s.told:
		return "200 as told"
	case held || r.Status != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || !bytes.Contains(r.Body, []byte("</html>")):
		t.Errorf("person, %s: %d, %d rows\n%.600s", path, r.Status, rows, r.Body)
		return "WRONG"
	}
	return fmt.Sprint(r.Status)
}

// healed waits until every path answers what upstream has, and looks into the store.
func (s *faultCase) healed(t *testing.T, house *binary.Server, dir string) string {
	t.Helper()
	for path, want := range s.good {
		rig.Await(t, func() string {
			r := rig.Get(t, rig.Account+":"+strictToken, s.through+path)
			if r.Status != 200 || !bytes.Equal(r.Body, want) {
				return fmt.Sprintf("%s is still %d, %s", path, r.Status, r.Header.Get("Cache-Status"))
			}
			return ""
		})
	}
	if err := house.Stop(); err != nil {
		t.Errorf("the house ends: %v", err)
	}
	verify := exec.Command(rig.Program, "store", "verify")
	verify.Dir = dir
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("store verify: %v\n%s", err, out)
	}
	return "yes"
}
