// Fuzzing of what decides where the next request goes.

package upstream

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"understudy/kit/jsonspan"
	"understudy/spec"
)

// Whatever a page says of the next one: its key is a list of the same kind and
// source, another than the page itself, in its canonical form, and is asked
// for at the source's own host.
func FuzzNextKey(f *testing.F) {
	var specs []*spec.Spec
	var sources []*spec.Source
	for _, s := range []*spec.Spec{builtInSpec(f, "twilio"), specFile(f, "shelf"), specFile(f, "links")} {
		specs = append(specs, s)
		sources = append(sources, &spec.Source{Name: "s", Spec: s, User: account, PublicURL: "https://cache.example/stand-in"})
	}
	lists := []struct {
		spec int
		path string
	}{{0, callsPath}, {0, "/v1/Alerts"}, {0, "/2010-04-01/Accounts/" + account + "/AvailablePhoneNumbers.json"}, {1, "/v3/main/books"},
		{2, "/events"}}
	for _, link := range []string{
		callsPath + "?PageSize=50&Page=1&PageToken=PACA1", "https://monitor.twilio.com/v1/Alerts?Page=1",
		"https://cache.example/stand-in/v1/Alerts?PageToken=x",
		"http://10.0.0.1:4116/twilio/v1/Alerts?Page=2", "//evil.example/v1/Alerts?Page=1", "https://evil.example/v1/Alerts?Page=1", "?Page=2",
		"Calls.json?Page=3",
		"../Calls.json?Page=1", "/v1/%2e%2e/Alerts", "/v1/Alerts?Page=%zz", "/v1/Alerts#x?y", "javascript:alert(1)", "https:", "://",
		"\\/v1\\/Alerts", "/v1/Alerts?understudy.x=1",
		`</events?page=2>; rel="next"`, `<https://evil.example/events?page=9>;rel=next`, "book-9", "a&b=c", "\x00", "\xff",
	} {
		for i := range lists {
			f.Add(uint8(i), "Page=1", link)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, query, link string) {
		l := lists[int(which)%len(lists)]
		sp, source := specs[l.spec], sources[l.spec]
		target, err := sp.Resolve(source.Name, l.path, query)
		if err != nil || target.List == nil {
			return
		}
		text, _ := json.Marshal(link)
		body := []byte(`{"calls":[],"alerts":[],"countries":[],"next_page_uri":` + string(text) + `,"meta":{"next_page_url":` + string(text) +
			`},"data":{"items":[{"id":` + string(text) + `}]},"paging":{"more":true}}`)
		if target.List.Key == "" {
			body = []byte(`[]`)
		}
		doc, err := jsonspan.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		const base = "http://10.0.0.1:4116/twilio"
		at := newOrigins(source, base)
		p, beside := newPlan(sp, target.Kind), envelopePaths(target.List.Key, sp.PagingOf(target.List).Envelope)
		body, doc = redaction{p.secrets, beside, p.absolute[target.List], nil, p.next[target.List], at}.clean(body, doc)
		if err := jsonspan.CheckLossless(body); err != nil {
			t.Fatalf("%q: the body became %s: %v", link, body, err)
		}
		found := readList(p, target.List, sp.PagingOf(target.List), body, doc, 0)
		list := spec.ListAnswer{
			Target: target, Header: http.Header{"Link": {link}}, Body: body, Doc: doc, Next: found.next, Rows: found.rows,
			Count: found.count, Local: at.localPath,
		}
		key, _, err := list.FindNextPage()
		if err != nil || key.IsZero() {
			if !key.IsZero() {
				t.Fatalf("%q: both %v and %v", link, key, err)
			}
			return
		}
		path, query, _ := strings.Cut(key.URI, "?")
		next, err := sp.Resolve(key.Source, path, query)
		switch {
		case err != nil || next.Key != key:
			t.Fatalf("%q: %v is not canonical: %v, %v", link, key, next, err)
		case key == target.Key || key.Source != source.Name || next.Kind != target.Kind || next.List == nil:
			t.Fatalf("%q: %v after %v", link, key, target.Key)
		case len(next.OwnParams) > 0:
			t.Fatalf("%q: %v has parameters of ours", link, key)
		}
		if to, err := sp.BuildURL(key, base); err != nil || !strings.HasPrefix(to, base+"/") {
			t.Fatalf("%q is asked at %s: %v", link, to, err)
		}
	})
}
