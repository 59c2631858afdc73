// Records: found where they are, named, dated, and final or not.

package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

// callsPage is a page of calls as twilio-like upstreams write it: about 2 KB a
// row with all nine subresources.
func callsPage(rows int) []byte {
	var b bytes.Buffer
	const list = "/2010-04-01/Accounts/AC00000000000000000000000000000001/Calls"
	fmt.Fprintf(&b, `{"end": %d, "first_page_uri": "%s.json?PageSize=50&Page=0", "next_page_uri": "%s.json?PageSize=50&Page=1&`+
		`PageToken=PACA1", "page": 0, "calls": [`, rows-1, list, list)
	for i := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		uri := fmt.Sprintf("%s/CA%032x", list, i)
		fmt.Fprintf(&b, `{"sid": "CA%032x", "date_created": "Fri, 18 Oct 2019 17:00:00 +0000", "date_updated": "Fri, 18 Oct 2019 17:01:00 `+
			`+0000", "parent_call_sid": null, "account_sid": "AC00000000000000000000000000000001", "to": "+13051416799", "to_formatted": "(305) `+
			`141-6799", "from": "+13051913581", "from_formatted": "(305) 191-3581", "phone_number_sid": "PN%032x", "status": "completed", `+
			`"start_time": "Fri, 18 Oct 2019 17:00:%02d +0000", "end_time": "Fri, 18 Oct 2019 17:03:00 +0000", "duration": "4", "price": `+
			`"-0.200", "price_unit": "USD", "direction": "inbound", "answered_by": "machine_start", "api_version": "2010-04-01", `+
			`"forwarded_from": null, "group_sid": null, "caller_name": "Ren\u00e9e \ud83d\ude00 \"Q\"", "queue_time": "1000", "trunk_sid": null, `+
			`"uri": "%s.json", "subresource_uris": {`, i, i, i%60, uri)
		for j, sub := range []string{"notifications", "recordings", "payments", "events", "siprec", "streams", "transcriptions",
			"user_defined_message_subscriptions", "user_defined_messages"} {
			if j > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, `"%s": "%s/%s.json"`, sub, uri, sub)
		}
		b.WriteString("}}")
	}
	fmt.Fprintf(&b, `], "page_size": 50, "previous_page_uri": null, "start": 0, "uri": "%s.json?PageSize=50&Page=0"}`, list)
	return b.Bytes()
}

func document1(t testing.TB, body []byte) jsonspan.Value {
	t.Helper()
	doc, err := jsonspan.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestReadCalls(t *testing.T) {
	s := builtInSpec(t, "twilio")
	k := s.Kind("calls")
	body := callsPage(50)
	f := readList(newPlan(s, k), k.Lists[0], &s.Paging, body, document1(t, body), 50)
	if f.why != "" || len(f.rows) != 50 {
		t.Fatalf("%d rows: %s", len(f.rows), f.why)
	}
	var want struct{ Calls []json.RawMessage }
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	for i, row := range f.rows {
		if string(body[row.Start:row.End]) != string(want.Calls[i]) {
			t.Fatalf("row %d is %s", i, body[row.Start:row.End])
		}
		at := time.Date(2019, 10, 18, 17, 0, i, 0, time.UTC).Unix()
		checktest.MustEqual(t, row.ID, fmt.Sprintf("CA%032x", i), "row: row.ID")
		checktest.MustTrue(t, row.Final, "row: row.Final is false")
		checktest.MustEqual(t, row.Clock, at, "row: row.Clock")
	}
	if got := jsonspan.Text(body, f.next); !strings.HasSuffix(got, "PageToken=PACA1") {
		t.Errorf("next is %q", got)
	}
}

func TestReadList(t *testing.T) {
	twilio, shelf, links := builtInSpec(t, "twilio"), specFile(t, "shelf"), specFile(t, "links")
	for _, c := range []struct {
		spec *spec.Spec
		kind string
		body string
		rows string // id clock final, …
		why  string
		next string
	}{
		{twilio, "calls", `{"calls":[]}`, "", "", ""},
		{twilio, "calls", `{"calls":[{"sid":"CA1","status":"completed","price":null,"start_time":null}],"next_page_uri":null}`, "CA1 0 false", "",
			"null"},
		{twilio, "calls", `{"calls":[{"sid":"CA1","status":"completed"}]}`, "CA1 0 false", "", ""},
		{twilio, "calls", `{"calls":[{"price":"1","status":"c\u006fmpleted","s\u0069d":"CA1"}]}`, "CA1 0 true", "", ""},
		{twilio, "calls", `{"calls":[{"sid":"CA1","status":"busy"},{"sid":"CA2","status":"queued","start_time":"Fri, 8 Oct 2019 17:00:00 ` +
			`+0200"}]}`, "CA1 0 true, CA2 1570546800 false", "", ""},
		{twilio, "calls", `{"calls":[{"sid":"CA1"}],"calls":[{"sid":"CA2"}]}`, "CA2 0 false", "", ""},
		{twilio, "calls", `{"messages":[{"sid":"CA1"}]}`, "", `no records under "calls"`, ""},
		{twilio, "calls", `{"calls":null}`, "", "", ""},
		{twilio, "calls", `{"calls":null,"next_page_uri":null,"page":3}`, "", "", "null"},
		{twilio, "calls", `{"calls":null,"message":"not allowed"}`, "", `no records under "calls"`, ""},
		{twilio, "calls", `{"calls":null,"meta":{"error":{"code":7}}}`, "", `no records under "calls"`, ""},
		{twilio, "calls", `{"calls":null,"success":false}`, "", `no records under "calls"`, ""},
		{twilio, "calls", `{"calls":null,"code":0,"message":"ok","errors":[]}`, "", "", ""},
		{twilio, "calls", `{}`, "", `no records under "calls"`, ""},
		{twilio, "calls", `{"calls":{"sid":"CA1"}}`, "", `no records under "calls"`, ""},
		{twilio, "calls", `[{"sid":"CA1"}]`, "", `no records under "calls"`, ""},
		{twilio, "calls", `"calls"`, "", `no records under "calls"`, ""},
		{twilio, "calls", `{"calls":[{"sid":"CA1"},{}]}`, "", "a record without sid", ""},
		{twilio, "calls", `{"calls":[{"sid":"` + strings.Repeat("x", maxID+1) + `"}]}`, "", "a record whose sid is longer than 512 bytes", ""},
		{twilio, "calls", `{"calls":[` + strings.Repeat(`{"sid":"CA1"},`, maxRows) + `{"sid":"CA2"}]}`, "", "more than 50000 records in one page",
			""},
		{twilio, "calls", `{"calls":[{"sid":""}]}`, "", "a record without sid", ""},
		{twilio, "calls", `{"calls":[{"sid":null}]}`, "", "a record without sid", ""},
		{twilio, "calls", `{"calls":[{"sid":{"a":1}}]}`, "", "a record without sid", ""},
		{twilio, "calls", `{"calls":[{"sid":"CA1"},7]}`, "", "a record is not an object", ""},
		{shelf, "books", `{"paging":{"more":true},"data":{"items":[{"id":7,"bought":1570000000.5,"state":"sold"},{"id":"8",` +
			`"bought":"1570000001","lost":true},{"id":9,"state":"sold","bought":null}]}}`,
			"7 1570000000 true, 8 1570000001 true, 9 0 false", "", "true"},
		{shelf, "books", `{"data":{"items":null}}`, "", "", ""},
		{shelf, "books", `{"paging":{"more":false}}`, "", "", "false"},
		{shelf, "books", `{"paging":{"more":false},"hint":"busy"}`, "", `no records under "data.items"`, "false"},
		{shelf, "books", `{"paging":{"reason":"busy"}}`, "", `no records under "data.items"`, ""},
		{shelf, "books", `{"data":[]}`, "", `no records under "data.items"`, ""},
		{shelf, "loans", `[{"reader":"r1","copy":{"number":3},"day":"2024-02-29"}]`, "r1~3 1709164800 false", "", ""},
		{shelf, "loans", `[{"reader":"r1","copy":{}}]`, "", "a record without copy.number", ""},
		{shelf, "loans", `[{"reader":"r1","copy":7}]`, "", "a record without copy.number", ""},
		{shelf, "loans", `[{"reader":"r~1","copy":{"number":3}}]`, "", `a record whose reader contains "~"`, ""},
		{shelf, "loans", `null`, "", "", ""},
		{shelf, "loans", `{}`, "", "no records: the body is not an array", ""},
		{shelf, "totals", `{"totals":[1,{"a":2}]}`, "", "", ""},
		{links, "events", `[{"id":"a","at":"2024-02-29T12:00:00.25+01:00"},{"id":"b","at":"2024-02-29 12:00:00"},{"id":"c","at":"soon"},` +
			`{"id":"d","at":5}]`,
			"a 1709204400 false, b 1709208000 false, c 0 false, d 0 false", "", ""},
	} {
		k := c.spec.Kind(c.kind)
		body := []byte(c.body)
		f := readList(newPlan(c.spec, k), k.Lists[0], &c.spec.Paging, body, document1(t, body), 0)
		var rows []string
		for _, r := range f.rows {
			rows = append(rows, fmt.Sprintf("%s %d %v", r.ID, r.Clock, r.Final))
		}
		got := strings.Join(rows, ", ")
		checktest.Equal(t, got, c.rows, "got")
		checktest.Equal(t, f.why, c.why, "f.why; got %q", got)
		checktest.Equal(t, string(f.next.Bytes(body)), c.next, "string(f.next.Bytes(body)); got %q", got)
	}
}

func TestReadOne(t *testing.T) {
	s := specFile(t, "shelf")
	p := newPlan(s, s.Kind("books"))
	for body, want := range map[string]string{
		` {"id":12,"state":"new"} `: "12",
		`[{"id":12}]`:               "no record: the body is not an object",
		`{"title":"x"}`:             "a record without id",
	} {
		f := readRecord(p, "", []byte(body), document1(t, []byte(body)))
		if got := f.why; len(f.rows) == 1 {
			if got = f.rows[0].ID; body[f.rows[0].Start:f.rows[0].End] != strings.TrimSpace(body) {
				t.Errorf("%s: the record is %s", body, body[f.rows[0].Start:f.rows[0].End])
			}
			if got != want {
				t.Errorf("%s: id %s, want %s", body, got, want)
			}
		} else if got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	for body, want := range map[string]string{
		`{"data":{"book":{"id":1},"book":{"id":12}}}`: `{"id":12}`,
		`{"data":{"book":[{"id":12}]}}`:               `no record under "data.book"`,
		`{"data":null}`:                               `no record under "data.book"`,
		`{"id":12}`:                                   `no record under "data.book"`,
	} {
		f := readRecord(p, "data.book", []byte(body), document1(t, []byte(body)))
		got := f.why
		if len(f.rows) == 1 {
			got = body[f.rows[0].Start:f.rows[0].End]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	totals := readRecord(newPlan(s, s.Kind("totals")), "", []byte(`{}`), document1(t, []byte(`{}`)))
	if totals.why != "" || len(totals.rows) != 0 {
		t.Errorf("a kind without an id: %+v", totals)
	}
}

func TestReadListAllocatesIDsOnly(t *testing.T) {
	s := builtInSpec(t, "twilio")
	k := s.Kind("calls")
	p, body := newPlan(s, k), callsPage(50)
	doc := document1(t, body)
	got := testing.AllocsPerRun(20, func() { readList(p, k.Lists[0], &s.Paging, body, doc, 50) })
	if got > 52 { // fifty ids and the rows
		t.Errorf("%v allocations", got)
	}
}

// The whole of what a page costs here: is it a document, is it faithful, are
// there secrets, where are its records, what comes next, its sum.
func BenchmarkPage(b *testing.B) {
	s := builtInSpec(b, "twilio")
	c, err := New(Options{Source: &spec.Source{Name: "twilio", Spec: s, User: "AC00000000000000000000000000000001"},
		Secret: understudy.NewSecret("slowapitoken")})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	t, err := s.Resolve("twilio", "/2010-04-01/Accounts/AC00000000000000000000000000000001/Calls.json", "")
	if err != nil {
		b.Fatal(err)
	}
	a := &answer{status: 200, header: map[string][]string{"Content-Type": {"application/json;charset=utf-8"}}, body: callsPage(50)}
	b.SetBytes(int64(len(a.body)))
	b.ReportAllocs()
	for b.Loop() {
		page, err := c.pages.makePage(t, a)
		checktest.MustNoError(b, err, "page %v", page)
		checktest.MustEqual(b, len(page.Rows), 50, "len(page.Rows)")
		checktest.MustTrue(b, !page.Next.IsZero(), "page.Next.IsZero() is true")
	}
}

func BenchmarkReadList(b *testing.B) {
	s := builtInSpec(b, "twilio")
	k := s.Kind("calls")
	p, body := newPlan(s, k), callsPage(50)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		doc, err := jsonspan.Parse(body)
		if err != nil || jsonspan.CheckLossless(body) != nil {
			b.Fatal(err)
		}
		if f := readList(p, k.Lists[0], &s.Paging, body, doc, 50); len(f.rows) != 50 {
			b.Fatal(f.why)
		}
	}
}

// fuzzRecords feeds bodies to the whole page builder.
func fuzzRecords(f *testing.F, s *spec.Spec, user string, paths []string, seeds ...string) {
	c, err := New(Options{Source: &spec.Source{Name: "x", Spec: s, User: user}, Secret: understudy.NewSecret("slowapitoken")})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { c.Close() })
	for i, seed := range seeds {
		f.Add(uint8(i), uint16(200), "application/json", []byte(seed))
	}
	f.Add(uint8(0), uint16(404), "application/json; charset=utf-16", []byte("\xff\xfe{\x00}\x00"))
	f.Fuzz(func(t *testing.T, which uint8, status uint16, contentType string, body []byte) {
		target, err := s.Resolve("x", paths[int(which)%len(paths)], "")
		if err != nil {
			t.Fatal(err)
		}
		given := bytes.Clone(body)
		a := &answer{status: int(status), header: map[string][]string{"Content-Type": {contentType}, "Link": {contentType}}, body: body}
		page, failure := c.pages.judge(target, a)
		if !bytes.Equal(given, body) {
			t.Fatal("the body given was changed")
		}
		if (page == nil) == (failure == nil) {
			t.Fatalf("page %v, failure %v", page, failure)
		}
		if page == nil {
			return
		}
		if len(page.Rows) > 0 && (page.NotStored != "" && !target.IsWidened() || !json.Valid(page.Body)) {
			t.Fatalf("rows of a page not stored: %q", page.NotStored)
		}
		last := 0
		for _, r := range page.Rows {
			checktest.MustTrue(t, r.Start >= last, "row: r.Start is %v", r.Start)
			checktest.MustTrue(t, r.End > r.Start, "row: r.End is %v", r.End)
			checktest.MustTrue(t, r.End <= len(page.Body), "row: r.End is %v", r.End)
			checktest.MustTrue(t, r.ID != "", "row: r.ID is empty")
			checktest.MustTrue(t, json.Valid(page.Body[r.Start:r.End]),
				"row: json.Valid(page.Body[r.Start:r.End]) is false")
			checktest.MustEqual(t, page.Body[r.Start], '{', "row: page.Body[r.Start]")
			last = r.End
		}
		if bytes.Contains(page.Body, []byte("slowapitoken")) {
			t.Fatalf("our credential is in %q", page.Body)
		}
		if json.Valid(page.Body) {
			checkEmptied(t, c, target, page)
		}
	})
}

// checkEmptied looks for secrets the way a reader with encoding/json would.
func checkEmptied(t *testing.T, c *Client, target *spec.Target, page *understudy.Page) {
	secrets := c.pages.secrets
	if target.Kind != nil && page.Status < 300 {
		secrets = c.pages.plans[target.Kind].secrets
	}
	for _, s := range secrets {
		if len(s) != 1 {
			continue
		}
		var doc any
		if err := json.Unmarshal(page.Body, &doc); err != nil {
			return
		}
		var visit func(v any)
		visit = func(v any) {
			switch v := v.(type) {
			case []any:
				for _, e := range v {
					visit(e)
				}
			case map[string]any:
				for name, e := range v {
					if name == string(s) && e != nil && e != "" {
						t.Fatalf("%s is %v in %s", name, e, page.Body)
					}
					visit(e)
				}
			}
		}
		visit(doc)
	}
}

func FuzzRecordsBody(f *testing.F) {
	fuzzRecords(f, builtInSpec(f, "twilio"), "AC1",
		[]string{"/2010-04-01/Accounts/AC1/Calls.json", "/2010-04-01/Accounts.json", "/2010-04-01/Accounts/AC1/Messages/SM1.json", "/other"},
		string(callsPage(2)), `{"accounts":[{"sid":"AC1","auth_token":"slowapitoken","x":{"auth\u005ftoken":["y"]}}],`+
			`"next_page_uri":"//x/2010-04-01/Accounts.json?Page=1"}`,
		`{"sid":"SM1","body":"\ud83d\ude00","date_sent":"Fri, 18 Oct 2019 17:00:00 +0000"}`, "\ufeff{}")
}

func FuzzRecordsCursor(f *testing.F) {
	fuzzRecords(f, specFile(f, "shelf"), "main",
		[]string{"/v3/main/books", "/v3/main/loans", "/v3/main/books/7", "/v3/main/totals"},
		`{"paging":{"more":true,"session":"s"},"data":{"items":[{"id":7,"bought":1,"pin":"1234","vault":{"code":9}}]}}`,
		`[{"reader":"r","copy":{"number":1}}]`, `{"id":7}`, `{"totals":[]}`)
}
