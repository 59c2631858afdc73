// Try: two pages of a list in every style, and what is found out of lists that are otherwise.

package specs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
)

// styles are ways to go on, as a spec writes them.
var styles = map[string]string{
	"body":        "{style: body, next: links.next, tokens: [from], size: n, default_size: 10}",
	"header":      "{style: header, tokens: [from], size: n, default_size: 10}",
	"cursor":      "{style: cursor, next: more, cursor: after, size: n, default_size: 10}",
	"token":       "{style: token, next: token, cursor: from, size: n, default_size: 10}",
	"tokenheader": "{style: token, next: 'header:X-Next', cursor: from, size: n, default_size: 10}",
	"number":      "{style: number, page: page, first_page: 1, total: total, size: n, default_size: 10}",
	"offset":      "{style: offset, page: from, next: more, size: n, default_size: 10}",
	"noheader":    "{style: number, page: page, first_page: 1, next: 'header:X-Next-Page', total: total, size: n, default_size: 10}",
	"nototal":     "{style: number, page: page, first_page: 1, total: count, next: more, size: n, default_size: 10}",
	"none":        "{style: none}",
	"capped":      "{style: none, size: n, max_size: 10}",
}

// shelf is an API whose lists are at /STYLE, of so many rows, with something wrong.
type shelf struct {
	rows  int
	wrong string
}

func (s *shelf) row(i int) map[string]any {
	row := map[string]any{"id": fmt.Sprintf("b%03d", i), "made": fmt.Sprintf("2024-01-%02dT00:00:00Z", 28-i%28), "title": "T"}
	if s.wrong == "clock" {
		row["made"] = "yesterday"
	}
	return row
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	style, id, one := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case styles[style] == "", r.Header.Get("Authorization") != "Bearer key":
		http.Error(w, `{"message":"no"}`, http.StatusNotFound)
		return
	case one:
		i, _ := strconv.Atoi(strings.TrimPrefix(id, "b"))
		row := s.row(i)
		switch s.wrong {
		case "record":
			row["title"] = "another"
		case "other":
			row = s.row(i + 1)
		}
		_ = json.NewEncoder(w).Encode(row)
		return
	}
	q := r.URL.Query()
	n, err := strconv.Atoi(q.Get("n"))
	alone := style == "none" || style == "capped"
	if err != nil || alone {
		n = 10
	}
	from, _ := strconv.Atoi(strings.TrimPrefix(q.Get("from"), "t"))
	if page, err := strconv.Atoi(q.Get("page")); err == nil {
		from = (page - 1) * n
	}
	if after := strings.TrimPrefix(q.Get("after"), "b"); after != "" {
		from, _ = strconv.Atoi(after)
		from++
	}
	if s.wrong == "repeats" && from > 0 {
		from--
	}
	to := min(from+n, s.rows)
	rows := []any{}
	for i := from; i < to; i++ {
		rows = append(rows, s.row(i))
	}
	body := map[string]any{"rows": rows}
	more := !alone || s.wrong == "more"
	if goes := to < s.rows && s.wrong != "ends"; goes && more {
		link := fmt.Sprintf("/%s?from=t%d&n=%d", style, to, n)
		body["more"], body["token"], body["links"] = true, fmt.Sprint("t", to), map[string]any{"next": link}
		w.Header().Set("Link", "<"+link+`>; rel="next"`)
		w.Header().Set("X-Next", fmt.Sprint("t", to))
	}
	if s.wrong == "ends" {
		body["more"] = false // an absent one has the page behind asked for
	}
	if body["total"] = s.rows; s.wrong == "ends" || !more {
		body["total"] = to
	}
	if s.wrong == "silent" {
		delete(body, "total")
	}
	if s.wrong == "shared" {
		rows[1].(map[string]any)["id"] = "b000"
	}
	_ = json.NewEncoder(w).Encode(body)
}

// tried is what Try prints of one style.
func (s *shelf) tried(t *testing.T, style string) (line string, err error) {
	t.Helper()
	srv := httptest.NewServer(s)
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "shelf.yaml")
	text := fmt.Sprintf(`
name: shelf
hosts: [{url: "https://shelf.example"}]
auth: {style: bearer}
paging: %s
kinds:
  - name: books
    id: [id]
    clock: made
    lists: [{path: /%s, key: rows}]
    instances: [{path: "/%s/{book}", id: [book]}]
    fields: [{name: id}, {name: made, type: iso8601}, {name: title}]
`, styles[style], style, style)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = Try(t.Context(), Trial{Spec: file, Upstream: srv.URL, As: Caller{Secret: understudy.NewSecret("key")}, Rate: 10_000}, &out)
	lines := strings.Split(out.String(), "\n")
	if len(lines) < 3 {
		t.Fatalf("%s: %v", style, err)
	}
	return regexp.MustCompile(` {2,}`).ReplaceAllString(lines[1]+lines[2], "|"), err
}

func TestTryFollowsEveryStyle(t *testing.T) {
	for style := range styles {
		two, halves := "2|10+10", "2|2+2"
		repeats, ends := "b009 is on the first page and on the second", "n=2 gives 2 of 4 rows and no next page"
		if style == "capped" || style == "noheader" || style == "nototal" {
			continue // judged by tests of their own
		}
		if style == "none" {
			two, halves, repeats, ends = "1|10", "1|4", "", ""
		}
		for _, one := range []struct {
			name  string
			s     shelf
			want  string
			wrong string
		}{
			{"two pages", shelf{rows: 25}, "books|" + two + "|", ""},
			{"two halves", shelf{rows: 4}, "books|" + halves + "|4 of 4, newest first|as its row|ok|/" + style, ""},
			{"repeats", shelf{rows: 25, wrong: "repeats"}, "", repeats},
			{"ends early", shelf{rows: 4, wrong: "ends"}, "", ends},
			{"no times", shelf{rows: 25, wrong: "clock"}, "", "no row has a time in made"},
			{"a record differs", shelf{rows: 25, wrong: "record"}, "", "differs from its row in title; give the instance its own shape"},
			{"another record", shelf{rows: 25, wrong: "other"}, "", "shows another record than b000"},
		} {
			line, err := one.s.tried(t, style)
			checktest.Contains(t, line, one.want, "%s, %s: line; %v", style, one.name, err)
			checktest.Contains(t, line, one.wrong, "%s, %s: line; %v", style, one.name, err)
			checktest.Equal(t, (one.wrong == ""), (err == nil), `%s, %s: (one.wrong == "")`, style, one.name)
		}
	}
}

// A list of one page whose answer says that there is more is not as the spec says.
func TestTryFailsWhereTheAnswerSaysThatThereIsMore(t *testing.T) {
	line, err := (&shelf{rows: 25, wrong: "more"}).tried(t, "none")
	if err == nil || !strings.Contains(err.Error(), "1 of 1 lists differ from the spec") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(line, "the answer says that there is more") {
		t.Errorf("it says %s", line)
	}
}

// One page by the spec that has as many rows as a page may have proves no end.
func TestTryFailsWhereTheOnlyPageIsFull(t *testing.T) {
	for rows, want := range map[int]string{25: "the page is full (10 rows)", 9: "one page as the spec says; it accepts n"} {
		line, err := (&shelf{rows: rows, wrong: "silent"}).tried(t, "capped")
		if full := rows > 9; (err != nil) != full || !strings.Contains(line, want) {
			t.Errorf("%d rows: %v: %s", rows, err, line)
		}
	}
}

// An id that several rows of a page have is none.
func TestTryFailsWhereRowsShareAnID(t *testing.T) {
	line, err := (&shelf{rows: 9, wrong: "shared"}).tried(t, "header")
	if err == nil || !strings.Contains(line, "different rows have the id b000") {
		t.Errorf("%v: %s", err, line)
	}
}

// A place that the spec names and no page has is not as the spec says, also where pages are counted
// without it.
func TestTryFailsWhereNoPageHasWhatTheSpecNames(t *testing.T) {
	for style, place := range map[string]string{"noheader": "header:X-Next-Page", "nototal": "count"} {
		for _, rows := range []int{25, 4} {
			line, err := (&shelf{rows: rows}).tried(t, style)
			if err == nil || !strings.Contains(line, "no page had "+place+", which the spec names") {
				t.Errorf("%s, %d rows: %v: %s", style, rows, err, line)
			}
		}
		if line, err := (&shelf{}).tried(t, style); err != nil {
			t.Errorf("%s without rows: %v: %s", style, err, line)
		}
	}
}

// A list that the API does not give, or that wants a parameter, is counted and is no fault of
// the spec. Where it gives none, that is one.
func TestTryCountsWhatIsRefused(t *testing.T) {
	var wanted string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/closed":
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/locked":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/later":
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, "{}")
		case strings.HasPrefix(r.URL.Path, "/loans/") && r.URL.Path != "/loans/l1":
			w.WriteHeader(http.StatusNotFound) // it is below another shelf
		case r.URL.Path == "/loans/l1":
			fmt.Fprint(w, `{"id":"l1"}`)
		default:
			wanted = r.URL.Query().Get("of")
			fmt.Fprint(w, `[{"id":"l1"}]`)
		}
	}))
	defer srv.Close()
	try := func(lists string, vars map[string]string) (string, error) {
		file := filepath.Join(t.TempDir(), "x.yaml")
		text := "name: x\nhosts: [{url: \"https://x.example\"}]\nauth: {style: none}\nkinds:\n  - {name: loans, id: [id], lists: [" + lists +
			"], instances: [{path: \"/loans/of/{shelf}/{loan}\", id: [loan]}, {path: \"/loans/{loan}\", id: [loan]}], fields: [{name: id}]}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := Try(t.Context(), Trial{Spec: file, Upstream: srv.URL, Rate: 1000, Vars: vars}, &out)
		return out.String(), err
	}
	const all = `{path: /all}, {path: /closed}, {path: /later}, {path: /some, filters: [{name: of, required: true}]}`
	out, err := try(all, map[string]string{"shelf": "s1"})
	checktest.MustNoError(t, err, "out %s", out)
	checktest.Contains(t, out, "1 lists tried, 0 differ from the spec, 2 refused, 1 left out", "out")
	checktest.Contains(t, out, "it needs the parameter of; add --var of=VALUE", "out")
	checktest.Contains(t, out, "as its row", "out")
	out, err = try(all, map[string]string{"of": "a&b"})
	checktest.MustNoError(t, err, "out %s", out)
	checktest.Equal(t, wanted, "a&b", "wanted; out %s", out)
	checktest.Contains(t, out, "2 lists tried", "out")
	out, err = try("{path: /locked}, {path: /closed}, {path: /later}", nil)
	if err == nil || !strings.Contains(err.Error(), "refused all 3 lists") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTrySaysWhatIsWrong(t *testing.T) {
	trial := func(spec, upstream string) error {
		return Try(t.Context(), Trial{Spec: spec, Upstream: upstream, Rate: 1000}, &strings.Builder{})
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("name: x\nkindz: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(t.TempDir(), "deep.yaml")
	if err := os.WriteFile(deep, []byte("name: x\nhosts: [{url: \"https://x.example\"}]\nauth: {style: none}\nkinds:\n  - {name: books, "+
		"lists: [{path: \"/shelves/{shelf}/books\"}], fields: [{name: id}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct{ spec, upstream, want string }{
		{"nowhere.yaml", "", "nowhere.yaml: no such file"},
		{"gitub", "", "github"},
		{bad, "", "bad.yaml:2: "},
		{"github", "not a url", "upstream"},
		{deep, "http://127.0.0.1:1", "no list could be tried; add the path variables"},
	} {
		if err := trial(one.spec, one.upstream); err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s %s: %v, want %q", one.spec, one.upstream, err, one.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Try(ctx, Trial{Spec: "stripe", Upstream: "http://127.0.0.1:1", Rate: 1000}, &strings.Builder{}); err == nil {
		t.Error("a run that was called off has no error")
	}
	for _, text := range []string{"x", "=1", "x="} {
		if _, err := ReadVars([]string{text}); err == nil {
			t.Errorf("--var %s is taken", text)
		}
	}
}

// A record in an envelope is compared with its row, and the envelope with what the spec says.
func TestTryComparesTheEnvelopeOfARecord(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/drops":
			fmt.Fprint(w, `{"drops":[{"id":1,"name":"a"}]}`)
		default:
			fmt.Fprint(w, `{"ok":true,"drop":{"id":1,"name":"a"}}`)
		}
	}))
	defer srv.Close()
	for answer, want := range map[string]string{
		``: "/drops/{id} has other data around its record; give the instance an answer",
		`, answer: '{"drop":{record},"ok":true}'`: "as its row  ok",
	} {
		file := filepath.Join(t.TempDir(), "x.yaml")
		text := "name: x\nhosts: [{url: \"https://x.example\"}]\nauth: {style: none}\nkinds:\n  - {name: drops, id: [id], " +
			"lists: [{path: /drops, key: drops}], instances: [{path: \"/drops/{id}\", id: [id], key: drop" + answer +
			"}], fields: [{name: id, type: int}, {name: name}]}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		_ = Try(t.Context(), Trial{Spec: file, Upstream: srv.URL, Rate: 1000}, &out)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q: want %q in\n%s", answer, want, out.String())
		}
	}
}

// A kind without an id has rows, and a record that changes between two requests is as its row.
func TestTryReadsARowAgainBeforeItJudges(t *testing.T) {
	delivered, asked := false, 0 // asked is in every answer, and is another in each
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/totals":
			fmt.Fprint(w, `{"totals":[{"n":1},{"n":2},{"n":3}]}`)
			return
		case "/messages/1":
			delivered = true
		}
		asked++
		record := fmt.Sprintf(`{"id":1,"delivered":%v,"asked":%d}`, delivered, asked)
		if r.URL.Path == "/messages" {
			record = "[" + record + "]"
		}
		fmt.Fprint(w, record)
	}))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "x.yaml")
	text := "name: x\nhosts: [{url: \"https://x.example\"}]\nauth: {style: none}\nkinds:\n  - {name: messages, id: [id], " +
		"lists: [{path: /messages}], instances: [{path: \"/messages/{id}\", id: [id]}], " +
		"fields: [{name: id}, {name: delivered}, {name: asked, type: int}]}\n" +
		"  - {name: totals, lists: [{path: /totals, key: totals}], fields: [{name: n}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := Try(t.Context(), Trial{Spec: file, Upstream: srv.URL, Rate: 1000}, &out)
	if err != nil || !strings.Contains(out.String(), "as its row") {
		t.Errorf("a message that was delivered meanwhile: %v\n%s", err, out.String())
	}
	if lines := regexp.MustCompile(` {2,}`).ReplaceAllString(out.String(), "|"); !strings.Contains(lines, "totals|1|3|") {
		t.Errorf("a kind without an id:\n%s", lines)
	}
}

// busy is a list of offsets that gets rows before each request, or that takes no offset. Its rows are {id, state}.
func busy(arrive int, stuck bool) http.Handler {
	first := 1000
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/jobs/") {
			fmt.Fprintf(w, `{"id":%s,"state":"open"}`, strings.TrimPrefix(r.URL.Path, "/jobs/"))
			return
		}
		first += arrive
		from, _ := strconv.Atoi(r.URL.Query().Get("from"))
		if stuck {
			from = 0
		}
		rows := []any{}
		for i := range 5 {
			rows = append(rows, map[string]any{"id": first - from - i, "state": "open"})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"rows": rows, "more": true})
	})
}

// tryJobs is what Try prints of a list of jobs.
func tryJobs(t *testing.T, h http.Handler, filters, instance string) (string, error) {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "x.yaml")
	text := "name: x\nhosts: [{url: \"https://x.example\"}]\nauth: {style: none}\n" +
		"paging: {style: offset, page: from, next: more, size: n, default_size: 5}\nkinds:\n" +
		"  - {name: jobs, id: [id], lists: [{path: /jobs, key: rows, filters: [" + filters + "]}],\n" +
		"     instances: [" + instance + "], fields: [{name: id, type: int}, {name: state}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := Try(t.Context(), Trial{Spec: file, Upstream: srv.URL, Rate: 1000}, &out)
	return out.String(), err
}

// Rows that come between two requests move others to the second page. That is no fault; an offset that does nothing is.
func TestTryForgivesRowsThatCameMeanwhile(t *testing.T) {
	const one = `{path: "/jobs/{id}", id: [id]}`
	for _, c := range []struct {
		arrive int
		stuck  bool
	}{{1, false}, {2, false}, {0, true}, {1, true}} {
		out, err := tryJobs(t, busy(c.arrive, c.stuck), "", one)
		if (err != nil) != c.stuck {
			t.Errorf("%+v: %v\n%s", c, err, out)
		}
		if said := strings.Contains(out, "is on the first page and on the second"); said != c.stuck {
			t.Errorf("%+v: it says so: %v\n%s", c, said, out)
		}
	}
}

// A default that the rows of the list contradict is not as the spec says.
func TestTryComparesDefaultsWithTheRows(t *testing.T) {
	for filter, wrong := range map[string]bool{
		"{name: state, field: state, default: open, none: [all]}":      false,
		"{name: state, field: state, default: closed}":                 true,
		`{name: state, field: state, default: "!open", none: [all]}`:   true,
		`{name: state, field: state, default: "!closed", none: [all]}`: false,
	} {
		out, err := tryJobs(t, busy(0, false), filter, "")
		if (err != nil) != wrong {
			t.Errorf("%s: %v\n%s", filter, err, out)
		}
		if said := strings.Contains(out, "a row whose state is open"); said != wrong {
			t.Errorf("%s: it says so: %v\n%s", filter, said, out)
		}
	}
}

// A record of a shape of its own may have anything around it.
func TestTryTakesWhatIsAroundAShapeOfItsOwn(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/jobs" {
			fmt.Fprint(w, `{"rows":[{"id":1,"state":"open"}],"more":false}`)
			return
		}
		fmt.Fprint(w, `{"data":{"id":1,"state":"open"},"included":[]}`)
	})
	for shape, fine := range map[string]bool{"": false, "shape: alone, ": true} {
		out, err := tryJobs(t, h, "", `{path: "/jobs/{id}", key: data, `+shape+`id: [id]}`)
		if (err == nil) != fine {
			t.Errorf("%q: %v\n%s", shape, err, out)
		}
	}
}
