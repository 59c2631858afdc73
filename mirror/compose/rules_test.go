// Rules: what is composed for whom, and when upstream must be asked.

package compose_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/query"
	"understudy/mirror/compose"
	"understudy/mirror/compose/composetest"
	"understudy/request"
)

// page composes with options, as a caller with a store would.
func (r *rig) page(target string, o compose.Options) (*understudy.Page, error) {
	r.t.Helper()
	aim, err := r.src.Spec.ResolveLink("twilio", target)
	if err != nil {
		r.t.Fatal(err)
	}
	l, err := compose.New(r.src, aim, o)
	if err != nil {
		return nil, err
	}
	if err := l.Fill(r.t.Context(), r.world); err != nil {
		return nil, err
	}
	return l.BuildPage(epoch)
}

// ids walks a list by its next links to the end, and back from there by the
// previous ones.
func (r *rig) ids(target string, o compose.Options) (there, back []string) {
	r.t.Helper()
	var last *understudy.Page
	for n := 0; target != "" && n < 1000; n++ {
		p, err := r.page(target, o)
		if err != nil {
			r.t.Fatalf("%s: %v", target, err)
		}
		for _, row := range p.Rows {
			there = append(there, row.ID)
		}
		last, target = p, composetest.Text(p.Body, "next_page_uri")
	}
	for n := 0; last != nil && n < 1000; n++ {
		for _, row := range slices.Backward(last.Rows) {
			back = append(back, row.ID)
		}
		if target = composetest.Text(last.Body, "previous_page_uri"); target == "" {
			break
		}
		p, err := r.page(target, o)
		if err != nil {
			r.t.Fatalf("%s: %v", target, err)
		}
		last = p
	}
	slices.Reverse(back)
	return there, back
}

func TestWishes(t *testing.T) {
	r := newRig(t, 1, nil)
	all := r.world.Present("calls")
	usual, back := r.ids(root+"/Calls.json?PageSize=7", compose.Options{})
	if !slices.Equal(usual, all) || !slices.Equal(back, all) {
		t.Fatalf("%d of %d calls, %d on the way back", len(usual), len(all), len(back))
	}
	up, back := r.ids(root+"/Calls.json?PageSize=7&understudy.order=asc", compose.Options{Local: &request.LocalQuery{OldestFirst: true}})
	slices.Reverse(up)
	slices.Reverse(back)
	if !slices.Equal(up, all) || !slices.Equal(back, all) {
		t.Errorf("upwards %d of %d, %d on the way back", len(up), len(all), len(back))
	}
	odd := func(rec *understudy.Record) bool { return rec.ID[len(rec.ID)-1]%2 == 1 }
	some, back := r.ids(root+"/Calls.json?PageSize=5", compose.Options{Local: &request.LocalQuery{CanFind: odd}})
	want := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return id[len(id)-1]%2 != 1 })
	checktest.True(t, slices.Equal(some, want), "who may find some finds: some is %v, want %v", some, want)
	checktest.True(t, slices.Equal(back, want), "who may find some finds: back is %v, want %v", back, want)
	checktest.True(t, len(want) != len(all), "who may find some finds: len(want) is %v", len(want))
	aim, _ := r.src.Spec.ResolveLink("twilio", root+"/Calls.json?Status=busy")
	text := &query.Text{Op: query.TextWord, Words: []string{"hello"}}
	l, err := compose.New(r.src, aim, compose.Options{Local: &request.LocalQuery{Since: 7, Text: text}})
	q := l.Seek()
	checktest.MustNoError(t, err, "")
	checktest.Equal(t, q.Since, 7, "q.Since")
	checktest.Equal(t, q.Text, text, "q.Text")
	checktest.Equal(t, q.Limit, 0, "q.Limit")
	checktest.Equal(t, q.ExpectedRows, 51, "q.ExpectedRows")
	checktest.MustEqual(t, len(q.Predicates), 1, "len(q.Predicates)")
	checktest.Equal(t, q.Predicates[0].Field, "status", "q.Predicates[0].Field")
}

// H2: under a rule that no index knows no index is asked for a filter, but for the
// clock's; the list is the same.
func TestFiltersAreNotToldUnderARuleNoIndexKnows(t *testing.T) {
	r := newRig(t, 1, nil)
	odd := func(rec *understudy.Record) bool { return rec.ID[len(rec.ID)-1]%2 == 1 }
	for target, fields := range map[string]string{
		"/Calls.json?PageSize=5&Status=completed":                          "status ",
		"/Calls.json?PageSize=5&To=%2B15005550006&StartTime%3E=2026-01-01": "to start_time ",
	} {
		asked := func(w *request.LocalQuery) (all string) {
			aim, err := r.src.Spec.ResolveLink("twilio", root+target)
			if err != nil {
				t.Fatal(err)
			}
			l, err := compose.New(r.src, aim, compose.Options{Local: w})
			if err != nil {
				t.Fatal(err)
			}
			for _, term := range l.Seek().Predicates {
				all += term.Field + " "
			}
			return all
		}
		if got := asked(&request.LocalQuery{CanFind: odd}); got != fields {
			t.Errorf("%s asks an index for %q, want %q", target, got, fields)
		}
		{
			got := asked(&request.LocalQuery{CanFind: odd, NoIndex: true})
			checktest.Lacks(t, got, "status", "got")
			checktest.Lacks(t, got, "to ", "got")
			checktest.True(t, !(strings.Contains(fields, "start_time") && got != "start_time "),
				`strings.Contains(fields, "start_time") && got != "start_time "; got is %q`, got)
		}
		some, back := r.ids(root+target, compose.Options{Local: &request.LocalQuery{CanFind: odd}})
		scanned, scannedBack := r.ids(root+target, compose.Options{Local: &request.LocalQuery{CanFind: odd, NoIndex: true}})
		if !slices.Equal(some, scanned) || !slices.Equal(back, scannedBack) {
			t.Errorf("%s: %d and %d records, by a scan %d and %d", target, len(some), len(back), len(scanned), len(scannedBack))
		}
	}
}

// unasked is a store that must not be asked.
type unasked struct{ *testing.T }

func (u unasked) Seek(context.Context, query.RecordQuery, func(query.Hit) bool) error {
	u.Error("records are looked through")
	return nil
}

func (u unasked) FindPlace(context.Context, string, string, string) (query.OrderKey, error) {
	u.Error("a record is looked up")
	return 0, understudy.ErrNotFound
}

// What nothing can be is an empty page at once.
func TestNothingIsNotLookedFor(t *testing.T) {
	r := newRig(t, 1, nil)
	for _, target := range []string{"/Calls.json?PageSize=2", "/Calls.json?PageSize=2&Page=1&PageToken=PB" + r.world.Present("calls")[3]} {
		aim, err := r.src.Spec.ResolveLink("twilio", root+target)
		if err != nil {
			t.Fatal(err)
		}
		none := &request.LocalQuery{Text: &query.Text{Op: query.TextNone}, CanFind: func(*understudy.Record) bool { return true }}
		l, err := compose.New(r.src, aim, compose.Options{FindRecord: r.world.Held, Local: none})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Fill(t.Context(), unasked{t}); err != nil {
			t.Fatal(err)
		}
		{
			p, err := l.BuildPage(epoch)
			checktest.MustNoError(t, err, "%s", target)
			checktest.MustTrue(t, len(p.Rows) <= 0, "%s: len(p.Rows) is %v, want <= 0", target, len(p.Rows))
			checktest.True(t, p.Next.IsZero(), "%s: p.Next.IsZero() is false", target)
			checktest.Equal(t, composetest.Text(p.Body, "next_page_uri"), "",
				`%s: composetest.Text(p.Body, "next_page_uri")`, target)
		}
	}
}

// What is asked of us alone stands behind everything in links.
func TestLinksKeepWhatIsAskedOfUs(t *testing.T) {
	r := newRig(t, 1, nil)
	p, err := r.page(root+"/Calls.json?understudy.order=asc&PageSize=2&Page=1&To",
		compose.Options{Local: &request.LocalQuery{OldestFirst: true}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"first_page_uri": "/Calls.json?To&PageSize=2&Page=0&understudy.order=asc", "uri": "/Calls.json?To&PageSize=2&Page=1&understudy.order=asc",
		"next_page_uri": "&understudy.order=asc", "previous_page_uri": "&understudy.order=asc",
	} {
		if got := composetest.Text(p.Body, name); !strings.HasSuffix(got, want) {
			t.Errorf("%s is %s", name, got)
		}
	}
}

// Records handed in newest first alone make the same pages.
func TestDownward(t *testing.T) {
	r := newRig(t, 3, nil)
	o := compose.Options{FindRecord: r.world.Held, NewestFirstOnly: true}
	down, back := r.ids(root+"/Messages.json?PageSize=50", o)
	if all := r.world.Present("messages"); !slices.Equal(down, all) || !slices.Equal(back, all) {
		t.Errorf("%d and %d of %d messages", len(down), len(back), len(all))
	}
	if _, err := r.page(root+"/Calls.json?understudy.order=asc", compose.Options{NewestFirstOnly: true,
		Local: &request.LocalQuery{OldestFirst: true}}); !errors.Is(err, understudy.ErrInvalid) {
		t.Errorf("the oldest first from records that come newest first: %v", err)
	}
	for range requests() / 4 {
		req := r.draw.Request()
		got, err := r.page(req.Target, o)
		o.NewestFirstOnly = false
		want, wantErr := r.page(req.Target, o)
		o.NewestFirstOnly = true
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got.Body, want.Body) {
			t.Fatalf("%s: %v, %v", req.Target, err, wantErr)
		}
	}
}

// Tokens of records whose id has two parts are our own, and made only for who
// can go on with them.
func TestOwnTokens(t *testing.T) {
	r := newRig(t, 1, nil)
	var path string
	for _, id := range r.world.Present("participants") {
		room, _, _ := strings.Cut(id, "~")
		path = root + "/Conferences/" + room + "/Participants.json?PageSize=1"
	}
	o := compose.Options{FindRecord: r.world.Held}
	if _, err := r.page(path, o); !errors.Is(err, understudy.ErrInvalid) || !strings.Contains(err.Error(), "tokens") {
		t.Errorf("a token of which nobody knows the form: %v", err)
	}
	if _, err := r.page(path+"&PageToken=PACP00000000000000000000000000000001", o); !errors.Is(err, understudy.ErrInvalid) ||
		!strings.Contains(err.Error(), "only upstream can read") {
		t.Errorf("upstream's own token: %v", err)
	}
	o.OwnTokens = true
	there, back := r.ids(path, o)
	checktest.MustTrue(t, len(there) >= 2, "there: len(there) is %v, want >= 2", len(there))
	checktest.True(t, slices.Equal(there, back), "there: there is %v, want %v", there, back)
	checktest.True(t, slices.IsSortedFunc(there, func(a, b string) int { return strings.Compare(a[:34], b[:34]) }),
		"there: slices.IsSortedFunc(there, func(a, b string) int { return st… is false")
}

func TestWhenUpstreamMustBeAsked(t *testing.T) {
	r := newRig(t, 1, nil)
	call, sub := r.world.Present("calls")[0], r.world.Present("accounts")[0]
	if sub == account {
		sub = r.world.Present("accounts")[1]
	}
	other := "/2010-04-01/Accounts/" + sub
	held := compose.Options{FindRecord: r.world.Held}
	for _, c := range []struct {
		target, want string
		o            compose.Options
	}{
		{root + "/Calls/" + call + "/Recordings.json", "is not stored", compose.Options{}},
		{root + "/Calls/CA00000000000000000000000000000000/Recordings.json", "is not stored", held},
		{other + "/Calls/" + call + "/Recordings.json", "does not say that it belongs to", held},
		{other + "/Calls.json", "is not stored", compose.Options{}},
		{"/2010-04-01/Accounts/AC00000000000000000000000000000099/Calls.json", "is not stored", held},
		{other + "/Keys.json", "do not contain their AccountSid", held},
		{root + "/Keys.json?PageToken=PASK00000000000000000000000000000001", "the owner of the record", held},
		{root + "/Recordings.json?IncludeSoftDeleted=true", "adds are not stored", held},
		{"/v1/Alerts?StartDate=2026-05-20", "depends on the current time", held},
		{root + "/Calls.json?PageToken=PACA00000000000000000000000000000001", "names an unknown record", held},
		{root + "/Calls.json?Status=busy&Nonsense", `"Nonsense"`, held},
		{root + "/Usage/Records.json", "whole pages", held},
	} {
		var refused *compose.Refusal
		{
			_, err := r.page(c.target, c.o)
			checktest.True(t, errors.Is(err, understudy.ErrInvalid), "%s: err is %v, want understudy.ErrInvalid",
				c.target, err)
			checktest.True(t, !errors.As(err, &refused), "%s: errors.As(err, &refused) is true", c.target)
			checktest.Contains(t, err.Error(), c.want, "%s: err.Error()", c.target)
		}
	}
	for _, target := range []string{root + "/Keys.json", root + "/Recordings.json?IncludeSoftDeleted=false", other + "/Calls.json", root +
		"/Calls/" + call + "/Recordings.json"} {
		if _, err := r.page(target, compose.Options{FindRecord: r.world.Held}); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// A refusal whose text the spec does not give is upstream's to say; one that it
// gives can be answered as a page.
func TestRefusals(t *testing.T) {
	mute := sp(t, replace(`(?m)^    (date|token|size|size_above|page|bool|range|retention): .*\n`, ""))
	r := newRig(t, 1, mute)
	for _, params := range []string{"StartTime=soon", "PageToken=X", "PageSize=0", "Page=x"} {
		var refused *compose.Refusal
		if _, err := r.page(root+"/Calls.json?"+params, compose.Options{}); !errors.Is(err, understudy.ErrInvalid) || errors.As(err, &refused) {
			t.Errorf("%s: %v", params, err)
		}
	}
	r = newRig(t, 1, nil)
	aim, _ := r.src.Spec.ResolveLink("twilio", root+"/Calls.json?StartTime=soon")
	_, err := compose.New(r.src, aim, compose.Options{})
	var refused *compose.Refusal
	if !errors.As(err, &refused) || errors.Is(err, understudy.ErrInvalid) {
		t.Fatal(err)
	}
	p := refused.Page(aim, epoch)
	status, body := r.send("GET", aim.Key.URI, "")
	checktest.Equal(t, p.Status, status, "p.Status")
	checktest.True(t, bytes.Equal(p.Body, body), "p.Body is %q, want %q", p.Body, body)
	checktest.Equal(t, p.ContentType, "application/json", "p.ContentType")
	checktest.Equal(t, p.Key, aim.Key, "p.Key")
	checktest.Equal(t, p.At, epoch, "p.At")
	checktest.True(t, p.Sum != [16]byte{}, "p.Sum is %v", p.Sum)
	checktest.True(t, p.List, "p.List is false")
	checktest.Equal(t, p.Kind, "calls", "p.Kind")
	l, err := compose.New(r.src, must(r.src.Spec.ResolveLink("twilio", root+"/Calls.json?PageToken=PACA1")), compose.Options{})
	checktest.MustNoError(t, err, "")
	checktest.MustTrue(t, errors.As(l.RefuseToken(), &refused), "errors.As(l.RefuseToken(), &refused) is false")
	checktest.Equal(t, refused.Message, "Page token is invalid.", "refused.Message")
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Rows that would take too much memory are cut into a shorter page.
func TestAPageIsBounded(t *testing.T) {
	r := newRig(t, 1, nil)
	l, err := compose.New(r.src, must(r.src.Spec.ResolveLink("twilio", "/2010-04-01/Accounts.json?PageSize=1000")), compose.Options{})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"sid":"AC1","friendly_name":"` + strings.Repeat("x", compose.MaxBytes/4) + `"}`)
	for i := range 10 {
		if !l.Take(query.Hit{Record: &understudy.Record{ID: "AC" + string(rune('0'+i)), Body: body}, Order: query.OrderKey(100 - i)}) {
			break
		}
	}
	p, err := l.BuildPage(time.Time{})
	checktest.MustNoError(t, err, "")
	checktest.MustEqual(t, len(p.Rows), 3, "len(p.Rows)")
	checktest.Contains(t, p.Next.URI, "PageToken=PAAC2", "p.Next.URI")
}
