package paging

import (
	"net/http"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/kit/jsonspan"
)

// answered is one answer, and what the list goes on with: a parameter, "" at the end,
// or what the error says.
type answered struct {
	ask, body, header string
	want, why         string
	open              string // the kind of the open that the list ends
}

// follow checks where each answer leads. Rows are under "rows", their ids plain values.
func follow(t *testing.T, r Rules, cases []answered) {
	t.Helper()
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		body := []byte(c.body)
		doc, err := jsonspan.Parse(body)
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		a := &Answer{Header: http.Header{}, Body: body, Doc: doc}
		if a.Query, err = understudy.ParseQuery(c.ask); err != nil {
			t.Fatal(err)
		}
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			a.Header.Set(name, value)
		}
		rows, ok := jsonspan.Find(body, doc, "rows")
		if !ok {
			rows = doc
		}
		jsonspan.VisitElements(body, rows, func(v jsonspan.Value) bool {
			a.Rows = append(a.Rows, understudy.Row{ID: jsonspan.Text(body, v)})
			return true
		})
		a.Count = len(a.Rows)
		step, err := r.FindNext(a)
		got := ""
		if step.Param.Name != "" {
			got = step.Param.Name + "=" + step.Param.Value
		}
		if c.why != "" {
			checktest.MustTrue(t, err != nil, "%s ?%s %s: err is nil; got %q", c.body, c.ask, c.header, got)
			checktest.Contains(t, err.Error(), c.why, "%s ?%s %s: err.Error(); got %q", c.body, c.ask, c.header, got)
			checktest.Equal(t, step, (Step{}), "%s ?%s %s: step; got %q; %v", c.body, c.ask, c.header, got, err)
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%s ?%s %s: %q %v, want %q", c.body, c.ask, c.header, got, err, c.want)
		}
		if step.Open.Kind != c.open {
			t.Errorf("%s ?%s %s: open %v, want %q", c.body, c.ask, c.header, step.Open, c.open)
		}
	}
}

// refused checks what rules say of themselves.
func refused(t *testing.T, cases map[string]Rules) {
	t.Helper()
	for why, r := range cases {
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%+v: %v, want %q", r, err, why)
		}
	}
}

// Where a style leads on in a header, a page made from records has it too.
func TestNextHeader(t *testing.T) {
	const link = "https://api.example/things?size=5&page=3&after=t%2B1"
	for want, r := range map[string]Rules{
		"Link: <" + link + `>; rel="next"`: {Style: "header"},
		"X-Next: t+1":                      {Style: "token", Next: "header:X-Next", Cursor: "after"},
		"X-Next-Page: 3":                   {Style: "number", Next: "header:X-Next-Page", Page: "page"},
		"X-More: true":                     {Style: "cursor", Next: "header:X-More", Cursor: "after"},
		": ":                               {Style: "token", Next: "next", Cursor: "after"},
	} {
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		name, value := r.NextHeader(link)
		if name+": "+value != want || r.HasNextInHeader() != (name != "") {
			t.Errorf("%q: %q, in a header %v, want %q", name, value, r.HasNextInHeader(), want)
		}
	}
}

// Whatever an answer says, no style panics, and one that leads on says by what.
func FuzzAfter(f *testing.F) {
	f.Add(uint8(0), "page=2&size=3", `{"rows":[1,2,3],"next":"t","more":true,"total":9}`, "5")
	f.Add(uint8(3), "page=9223372036854775807", `{"rows":[1],"total":"9e99"}`, "false")
	f.Add(uint8(5), "size=-1&page=", `{"next":{"a":1}}`, "")
	all := []Rules{
		{Style: "body", Next: "next"}, {Style: "header"}, {Style: "cursor", Next: "more", Cursor: "after", Back: "before"},
		{Style: "token", Next: "next", More: "more", Cursor: "after"}, {Style: "token", Next: "header:X-Next", Cursor: "after"},
		{Style: "number", Page: "page", Size: "size", Max: 3}, {Style: "number", Page: "page", Size: "size", Total: "total", Default: 3},
		{Style: "offset", Page: "page", Size: "size", Total: "header:X-Next"}, {Style: "offset", Page: "page", Next: "more"}, {},
	}
	for i := range all {
		if err := all[i].Check(); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, ask, text, header string) {
		body := []byte(text)
		doc, err := jsonspan.Parse(body)
		query, bad := understudy.ParseQuery(ask)
		if err != nil || bad != nil {
			return
		}
		r := &all[int(which)%len(all)]
		a := &Answer{Query: query, Header: http.Header{"X-Next": {header}, "Link": {header}}, Body: body, Doc: doc, Count: len(text) % 4}
		for range a.Count {
			a.Rows = append(a.Rows, understudy.Row{ID: "x"})
		}
		step, err := r.FindNext(a)
		if err != nil && step != (Step{}) {
			t.Fatalf("both %+v and %v", step, err)
		}
		if step.Param.Name != "" && (step.Param.Value == "" || !r.IsPosition(step.Param.Name)) {
			t.Fatalf("leads on by %+v", step.Param)
		}
	})
}
