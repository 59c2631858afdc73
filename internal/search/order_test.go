// Orders other than that of places, cursors while records arrive, and cursors
// of others.

package search

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/kit/jsonspan"
	"understudy/spec"
)

func TestSortByAField(t *testing.T) {
	r := newRig(t, true)
	all := r.views("all")
	for _, c := range []struct {
		sort    string
		kinds   []string
		compare func(a, b string) int
	}{
		{"duration", []string{"calls"}, number},
		{"-duration", []string{"calls", "recordings"}, func(a, b string) int { return number(b, a) }},
		{"price", []string{"calls", "messages"}, number},
		{"-price", nil, func(a, b string) int { return number(b, a) }},
		{"status", nil, strings.Compare},
		{"-date_created", nil, func(a, b string) int {
			return cmp.Compare(spec.Unix(spec.TypeRFC2822, []byte(b)), spec.Unix(spec.TypeRFC2822, []byte(a)))
		}},
	} {
		field := strings.TrimPrefix(c.sort, "-")
		var want []seen
		for _, s := range all {
			if len(c.kinds) == 0 || slices.Contains(c.kinds, s.kind.Name) {
				want = append(want, s)
			}
		}
		slices.SortStableFunc(want, func(a, b seen) int {
			x, y := a.fields[field], b.fields[field]
			switch {
			case x == "" && y == "":
				return 0
			case x == "":
				return 1
			case y == "":
				return -1
			}
			return c.compare(x, y)
		})
		var names []string
		for _, s := range want {
			names = append(names, s.name)
		}
		got := r.all("all", query.SearchRequest{Sort: c.sort, Kinds: c.kinds, Limit: 300})
		if !slices.Equal(got, names) {
			t.Errorf("sort=%s: %d found, %d meant: %s", c.sort, len(got), len(names), apart(got, names))
		}
	}
}

func number(a, b string) int {
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	return cmp.Compare(x, y)
}

// The newest matches alone are put in order, and the answer says so.
func TestWindow(t *testing.T) {
	r := newRig(t, true)
	r.s = r.with(func(o *Options) { o.Limits.MaxSorted = 50 })
	out, err := r.s.Find(t.Context(), as("all"), query.SearchRequest{Text: "kind:calls", Sort: "duration", Limit: 10})
	checktest.MustNoError(t, err, "out %+v", out)
	checktest.MustEqual(t, out.Window, 50, "out.Window")
	checktest.MustTrue(t, out.More, "out.More is false")
	checktest.MustEqual(t, len(out.Notes), 1, "len(out.Notes)")
	checktest.MustContains(t, out.Notes[0], "newest 50", "out.Notes[0]")
	newest := r.all("all", query.SearchRequest{Text: "kind:calls", Limit: 50})[:50]
	got := r.all("all", query.SearchRequest{Text: "kind:calls", Sort: "duration", Limit: 7})
	slices.Sort(newest)
	slices.Sort(got)
	if !slices.Equal(got, newest) {
		t.Errorf("other records than the newest: %s", apart(got, newest))
	}
}

func TestRank(t *testing.T) {
	r := newRig(t, false)
	body := func(i int, text string) string {
		return fmt.Sprintf(`{"sid":"SM%032x","date_created":"Mon, 01 Jun 2026 10:00:%02d +0000","date_sent":"Mon, 01 Jun 2026 10:00:%02d `+
			`+0000","body":%q,"status":"sent","from":"+15550100%03d"}`, i, i, i, text, i)
	}
	r.put("Messages", body(1, "invoice"), body(2, "the invoice is late, says the long letter about the invoice that came by mail"),
		body(3, "invoices"), body(4, "nothing"))
	got := r.all("all", query.SearchRequest{Text: "invoice*", Sort: "rank", Limit: 1})
	want := []string{"messages/" + fmt.Sprintf("SM%032x", 1), "messages/" + fmt.Sprintf("SM%032x", 3), "messages/" + fmt.Sprintf("SM%032x", 2)}
	if !slices.Equal(got, want) {
		t.Errorf("ranked %q", got)
	}
}

// put saves one page of a list with these records, newest first as upstream
// would: the last one given comes first.
func (r *rig) put(list string, bodies ...string) {
	r.Helper()
	target, err := r.spec.Resolve("twilio", "/2010-04-01/Accounts/"+account+"/"+list+".json", "")
	if err != nil {
		r.Fatal(err)
	}
	var b bytes.Buffer
	b.WriteString(`{"` + target.List.Key + `":[`)
	p := &understudy.Page{Key: target.Key, Kind: target.Kind.Name, Shape: target.List.Shape, List: true, Status: 200,
		ContentType: "application/json", At: epoch.Add(r.later)}
	for i := len(bodies) - 1; i >= 0; i-- {
		if b.Len() > len(target.List.Key)+6 {
			b.WriteByte(',')
		}
		start := b.Len()
		b.WriteString(bodies[i])
		doc, err := jsonspan.Parse([]byte(bodies[i]))
		if err != nil {
			r.Fatal(err)
		}
		value := func(name string) []byte {
			v, ok := jsonspan.Find([]byte(bodies[i]), doc, name)
			if !ok || v.Kind != jsonspan.String {
				return nil
			}
			return []byte(jsonspan.Text([]byte(bodies[i]), v))
		}
		p.Rows = append(p.Rows, understudy.Row{
			ID: string(value("sid")), Start: start, End: b.Len(), Clock: spec.Unix(spec.TypeRFC2822, value(target.Kind.Clock)),
		})
	}
	b.WriteString(`]}`)
	p.Body = b.Bytes()
	if _, err := r.store.Save(r.Context(), p); err != nil {
		r.Fatal(err)
	}
}

// A walk sees every record that was there when it began, once, whatever comes
// in between.
func TestCursorDuringArrivals(t *testing.T) {
	r := newRig(t, true)
	for _, sort := range []string{"", "oldest", "duration", "rank"} {
		before := r.all("all", query.SearchRequest{Text: "kind:calls", Limit: 500})
		a := query.SearchRequest{Text: "kind:calls", Sort: sort, Limit: 60}
		got := map[string]int{}
		for n := 0; ; n++ {
			out, err := r.s.Find(t.Context(), as("all"), a)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range out.Hits {
				got["calls/"+h.ID]++
			}
			if a.Cursor = out.Next; a.Cursor == "" {
				break
			}
			at := epoch.Add(time.Duration(len(sort)*100+n) * time.Minute).Format(time.RFC1123Z)
			r.put("Calls", fmt.Sprintf(`{"sid":"CA%032x","date_created":%q,"start_time":%q,"status":"completed","duration":"5"}`,
				len(sort)*1000+n+1<<40, at, at))
		}
		for _, name := range before {
			if got[name] != 1 {
				t.Errorf("sort=%q: %s was seen %d times", sort, name, got[name])
			}
		}
		for name, n := range got {
			if n > 1 {
				t.Errorf("sort=%q: %s was seen %d times", sort, name, n)
			}
		}
	}
}

// A record is found by its own time, however long after it was first seen that
// was set, and by no other.
func TestTimesSetLater(t *testing.T) {
	r := newRig(t, true)
	const id = "SM0000000000000000000000000000beef"
	made, sent := epoch.Add(time.Hour), epoch.AddDate(0, 0, 30)
	put := func(sent string) {
		r.put("Messages", fmt.Sprintf(`{"sid":%q,"date_created":%q,"date_sent":%s,"status":"scheduled","body":"zanzibar"}`, id,
			made.Format(time.RFC1123Z), sent))
	}
	look := func(text string) (found bool) {
		return slices.Contains(r.all("all", query.SearchRequest{Text: text, Limit: 100}), "messages/"+id)
	}
	madeOn, sentOn := "date:"+made.Format(time.DateOnly), "date:"+sent.Format(time.DateOnly)
	put("null")
	checktest.True(t, look(madeOn),
		"a message that is not sent yet is not found by when it was made: look(madeOn) is false")
	checktest.True(t, !look(sentOn),
		"a message that is not sent yet is not found by when it was made: look(sentOn) is true")
	checktest.True(t, look("age<1h "+madeOn),
		`a message that is not sent yet is not found by when it was made: look("age<1h "+madeOn) is false`)
	checktest.True(t, !look("date_sent>2020"),
		`a message that is not sent yet is not found by when it was made: look("date_sent>2020") is true`)
	put(strconv.Quote(sent.Format(time.RFC1123Z)))
	for text, want := range map[string]bool{
		madeOn: false, sentOn: true, "zanzibar " + sentOn: true, "kind:messages,calls " + sentOn: true, "date_sent:" +
			sent.Format(time.DateOnly): true,
		"date_sent>" + made.AddDate(0, 0, 29).Format(time.DateOnly): true, "date:.." + made.Format(time.DateOnly) + " zanzibar": false,
		"date_created:" + made.Format(time.DateOnly): true,
		"(" + sentOn + " OR status:failed) zanzibar": true, "-" + sentOn + " zanzibar": false,
	} {
		if look(text) != want {
			t.Errorf("%s: found %v, want %v", text, !want, want)
		}
	}
}

func TestCursorsAreOfOneSearch(t *testing.T) {
	r := newRig(t, true)
	a := query.SearchRequest{Text: "kind:calls", Limit: 5}
	out, err := r.s.Find(t.Context(), as("open"), a)
	if err != nil || out.Next == "" {
		t.Fatalf("%v", err)
	}
	again, err := r.s.Find(t.Context(), as("open"), a)
	checktest.MustNoError(t, err, "two cursors of one place")
	checktest.True(t, again.Next != out.Next, "two cursors of one place: again.Next is %v", again.Next)
	checktest.Equal(t, len(again.Next), len(out.Next), "two cursors of one place: len(again.Next)")
	for name, change := range map[string]func(a *query.SearchRequest, role *string){
		"another role": func(_ *query.SearchRequest, role *string) { *role = "all" },
		"another text": func(a *query.SearchRequest, _ *string) { a.Text = "kind:messages" },
		"another sort": func(a *query.SearchRequest, _ *string) { a.Sort = "oldest" },
		"kinds":        func(a *query.SearchRequest, _ *string) { a.Kinds = []string{"calls"} },
		"one bit": func(a *query.SearchRequest, _ *string) {
			b := []byte(a.Cursor)
			b[20] ^= 1
			a.Cursor = string(b)
		},
		"cut":  func(a *query.SearchRequest, _ *string) { a.Cursor = a.Cursor[:30] },
		"long": func(a *query.SearchRequest, _ *string) { a.Cursor = strings.Repeat("A", 10_000) },
	} {
		role, b := "open", a
		b.Cursor = out.Next
		change(&b, &role)
		if _, err := r.s.Find(t.Context(), as(role), b); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A search that looks at too much says so, goes on from there, and tells how
// much only to who sees everything.
func TestPart(t *testing.T) {
	r := newRig(t, true)
	for _, role := range []string{"all", "support"} {
		r.s = r.with(func(o *Options) { o.Limits.MaxRecords = 70 })
		a := query.SearchRequest{Text: "kind:calls -status:completed", Limit: 50}
		out, err := r.s.Find(t.Context(), as(role), a)
		checktest.MustNoError(t, err, "%s; out %+v", role, out)
		checktest.MustTrue(t, out.Partial, "%s: out.Partial is false", role)
		checktest.MustTrue(t, out.Next != "", "%s: out.Next is empty", role)
		checktest.MustEqual(t, len(out.Notes), 1, "%s: len(out.Notes)", role)
		if told := strings.Contains(out.Notes[0], "newest 70"); told != (role == "all") {
			t.Errorf("%s: %q", role, out.Notes)
		}
		got := r.all(role, a)
		r.s = r.with(func(*Options) {})
		if want := r.all(role, a); !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s: in parts %d, at once %d", role, len(got), len(want))
		}
	}
}
