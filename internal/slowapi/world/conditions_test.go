// Tests of lists: every record once, whatever happens meanwhile, and the URIs.
package world_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/slowapitest"
)

func TestWalkSeesEachRecordOnce(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 250})
	for list, want := range map[string]int{"/Calls.json": 250, "/Messages.json": 500, "/IncomingPhoneNumbers.json": 8} {
		var first []string
		for _, size := range []int{27, 1000} {
			got := r.Walk(fmt.Sprintf("%s%s?PageSize=%d", root, list, size), nil).SIDs()
			distinct := slices.Clone(got)
			slices.Sort(distinct)
			if len(slices.Compact(distinct)) != want || len(got) != want {
				t.Errorf("%s by %d: %d records, want %d distinct", list, size, len(got), want)
			}
			if first == nil {
				first = got
			} else if !slices.Equal(first, got) {
				t.Errorf("%s by %d: another order than by 27", list, size)
			}
		}
	}
}

func TestWalkWhileRecordsComeAndGo(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 300})
	before := r.Walk(root+"/Calls.json?PageSize=1000", nil).SIDs()
	turn := 0
	got := r.Walk(root+"/Calls.json?PageSize=20", func() {
		turn++
		r.Control("/-/advance", `{"calls":7,"seconds":30}`, 200)
		r.Write("POST", root+"/Calls.json", url.Values{"To": {"+15005550006"}, "From": {"+15005550001"}}, 201)
		// The last record seen goes, and with it the one the token names.
		r.Write("DELETE", root+"/Calls/"+before[turn*20-1]+".json", nil, 204)
	}).SIDs()
	if !slices.Equal(got, before) {
		t.Errorf("the walk saw %d records, want the %d of its beginning in their order", len(got), len(before))
	}
}

func TestPagesPointAtEachOther(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 100})
	base := root + "/Calls.json?PageSize=30&Page="
	p0 := r.Page(root + "/Calls.json?PageSize=30")
	p1 := r.Page(*p0.Next)
	p2 := r.Page(*p1.Next)
	p3 := r.Page(*p2.Next)
	last := func(p slowapitest.Page) string { return p.Records.SIDs()[len(p.Records)-1] }

	if p0.Previous != nil || p3.Next != nil {
		t.Error("the first page has a previous one or the last a next one")
	}
	if want := base + "1&PageToken=PA" + last(p0); *p0.Next != want || p1.URI != want {
		t.Errorf("next %s, uri %s, want %s", *p0.Next, p1.URI, want)
	}
	if want := base + "1&PageToken=PB" + p2.Records.SIDs()[0]; *p2.Previous != want {
		t.Errorf("previous %s, want %s", *p2.Previous, want)
	}
	for i, p := range []slowapitest.Page{p0, p1, p2, p3} {
		start, n := int64(30*i), int64(len(p.Records))
		checktest.Equal(t, p.First, base+"0", "page %d: p.First", i)
		checktest.Equal(t, p.Page, int64(i), "page %d: p.Page", i)
		checktest.Equal(t, p.Size, 30, "page %d: p.Size", i)
		checktest.Equal(t, p.Start, start, "page %d: p.Start", i)
		checktest.Equal(t, p.End, start+n-1, "page %d: p.End", i)
	}
	if back := r.Page(*p2.Previous); !slices.Equal(back.Records.SIDs(), p1.Records.SIDs()) || back.Page != 1 {
		t.Error("the previous page of the third is not the second")
	}
	if back := r.Page(*p1.Previous); !slices.Equal(back.Records.SIDs(), p0.Records.SIDs()) || back.URI != base+"0" {
		t.Error("the previous page of the second is not the first")
	}
	if plain := r.Page(base + "2"); !slices.Equal(plain.Records.SIDs(), p2.Records.SIDs()) {
		t.Error("Page=2 without a token is not the third page")
	}
	empty := r.Page(base + "4")
	checktest.MustEqual(t, len(empty.Records), 0, "past the end: len(empty.Records)")
	checktest.Equal(t, empty.Start, 0, "past the end: empty.Start")
	checktest.Equal(t, empty.End, 0, "past the end: empty.End")
	checktest.MustTrue(t, empty.Next == nil, "past the end: empty.Next is %v", empty.Next)
	checktest.True(t, empty.Previous == nil, "past the end: empty.Previous is %v", empty.Previous)
}

func TestPageWithoutTokenSkipsTheDeleted(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 60})
	all := r.Walk(root+"/Calls.json", nil).SIDs()
	for _, at := range []int{0, 3, 4, 9, 10, 11, 59} {
		r.Write("DELETE", root+"/Calls/"+all[at]+".json", nil, 204)
	}
	left := slices.DeleteFunc(slices.Clone(all), func(sid string) bool {
		return slices.Contains([]int{0, 3, 4, 9, 10, 11, 59}, slices.Index(all, sid))
	})
	for page := range 7 {
		got := r.Page(fmt.Sprintf("%s/Calls.json?PageSize=9&Page=%d", root, page)).Records.SIDs()
		want := left[min(page*9, len(left)):min(page*9+9, len(left))]
		if !slices.Equal(got, want) {
			t.Errorf("page %d: %v, want %v", page, got, want)
		}
	}
}

func TestPageSizeAndPage(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 30})
	same := r.Get(root + "/Calls.json")
	if other := r.Get(root + "/Calls.json?Page=0&Unknown=1&PageSize=50"); string(other) != string(same) {
		t.Error("PageSize=50&Page=0 gives other bytes than neither")
	}
	if p := r.Page(root + "/Calls.json?PageSize=99999"); p.Size != 1000 || !strings.Contains(p.URI, "PageSize=1000&") {
		t.Errorf("PageSize above 1000: %+v", p)
	}
	token := "PA" + r.Page(root + "/Messages.json?PageSize=1").Records.SIDs()[0]
	for _, bad := range []string{
		"PageSize=0", "PageSize=-1", "PageSize=x", "PageSize=1.5", "PageSize=", "Page=-1", "Page=x",
		"PageToken=x", "PageToken=PA", "PageToken=PACAffffffffffffffffffffffffffffffff", "PageToken=" + token,
		"PageToken=PC" + r.Page(root + "/Calls.json?PageSize=1").Records.SIDs()[0],
	} {
		status, body, _ := r.Ask("GET", root+"/Calls.json?"+bad, nil)
		if status != 400 || !strings.Contains(string(body), `"code":20001`) {
			t.Errorf("%s: %d %s", bad, status, body)
		}
	}
}

func TestEchoIsCanonical(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 30})
	for asked, want := range map[string]string{
		"From=%2b1&To=%2B2": "To=%2B2&From=%2B1&",
		"EndTime%3C=2030&StartTime>=2020-01-02&Status=busy": "Status=busy&StartTime%3E=2020-01-02&EndTime%3C=2030&",
		"%54o=a%20b+c~d":                    "To=a%20b%20c~d&",
		"To&From=&x=1":                      "To&From=&",
		"To=1&To=2":                         "To=2&",
		"StartTime=2019-06-11 22:05:25.000": "StartTime=2019-06-11%2022%3A05%3A25.000&",
		"To=%zz":                            "To=%25zz&",
		"To=\"<é":                           "To=%22%3C%C3%A9&",
	} {
		asked = strings.NewReplacer(" ", "%20", "<", "%3C", "\"", "%22").Replace(asked)
		p := r.Page(root + "/Calls.json?" + asked)
		if want := root + "/Calls.json?" + want + "PageSize=50&Page=0"; p.URI != want || p.First != want {
			t.Errorf("%s: echoed %s, want %s", asked, p.URI, want)
		}
	}
	body := string(r.Get(root + "/Calls.json?PageSize=2"))
	at := -1
	for _, name := range []string{"end", "first_page_uri", "next_page_uri", "page", "page_size", "previous_page_uri", "start", "uri",
		"calls"} {
		next := strings.Index(body, `"`+name+`":`)
		if next <= at {
			t.Errorf("%s does not follow the name before it", name)
		}
		at = next
	}
	checktest.True(t, !strings.ContainsAny(body, "\n\t"),
		`not one compact line, or slashes or & are escaped: strings.ContainsAny(body, "\n\t") is true`)
	checktest.Lacks(t, body, `\/`, "not one compact line, or slashes or & are escaped: body")
	checktest.Lacks(t, body, `\u0026`, "not one compact line, or slashes or & are escaped: body")
}

// TestLateRecordsAreFoundByTime moves records long after their creation, where
// windows of time do not look by themselves.
func TestLateRecordsAreFoundByTime(t *testing.T) {
	r := slowapitest.Start(t, slowapi.Options{Records: 1000})
	r.Control("/-/advance", `{"calls":5,"seconds":60}`, 200)
	for range 5 {
		r.Control("/-/advance", fmt.Sprintf(`{"seconds":%d}`, 5*86400), 200)
	}
	for key, field := range map[string]string{"StartTime": "start_time", "EndTime": "end_time"} {
		all := r.Walk(root+"/Calls.json?PageSize=1000", nil)
		for _, after := range []string{"2026-06-02", "2026-06-06T12:01:00Z", "2026-06-11T12:00:00Z"} {
			from, _ := format.ParseDate(after)
			var want []string
			for _, one := range all {
				if one[field] != nil && slowapitest.ParseTime(t, one[field]).Unix() >= from.From {
					want = append(want, one["sid"].(string))
				}
			}
			got := r.Walk(root+"/Calls.json?PageSize=3&"+key+"%3E="+after, nil)
			if !slices.Equal(got.SIDs(), want) || len(want) == 0 {
				t.Errorf("%s>=%s: %d, want %d", key, after, len(got), len(want))
			}
			if len(want) > 3 {
				p := r.Page(root + "/Calls.json?PageSize=3&" + key + "%3E=" + after)
				if back := r.Page(*r.Page(*p.Next).Previous); !slices.Equal(back.Records.SIDs(), want[:3]) {
					t.Errorf("%s>=%s: back to %v, want %v", key, after, back.Records.SIDs(), want[:3])
				}
			}
		}
	}
}
