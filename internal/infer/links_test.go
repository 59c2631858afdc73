package infer_test

import (
	"slices"
	"strings"
	"testing"
)

// TestLinksBesideTheNextAreAddresses draws a list whose schema shows the links of its first page alone:
// those of later pages are addresses of the API, too.
func TestLinksBesideTheNextAreAddresses(t *testing.T) {
	document := strings.Replace(listing(`{"type":"object","properties":{"id":{"type":"string"}}}`, ""), `"properties":{"things"`,
		`"properties":{"links":{"type":"object","properties":{"pages":{"anyOf":[
		{"type":"object","properties":{"next":{"type":"string"},"last":{"type":"string"}}},
		{"type":"object","properties":{"first":{"type":"string"},"prev":{"type":"string"}}}]}}},"things"`, 1)
	drawn := drafted(t, document)
	if got := strings.Join(drawnSpec(t, drawn).AbsoluteURLs, " "); got != "first last next prev previous" {
		t.Errorf("lists that do not name their links have %q rewritten", got)
	}
	draft := string(drawn.YAML)
	for _, name := range []string{"first", "prev", "next", "last"} {
		if !strings.Contains(draft, "{name: links.pages."+name+", absolute: true}") {
			t.Errorf("links.pages.%s is not rewritten:\n%s", name, draft)
		}
	}
}

// TestOnlyLinksOfTheDocumentStandInTheEnvelope draws lists whose next link has another name, or an object of its own: no other
// links are made up beside it.
func TestOnlyLinksOfTheDocumentStandInTheEnvelope(t *testing.T) {
	object := func(name, members string) string {
		return `"` + name + `":{"type":"object","properties":{` + members + `}}`
	}
	const link = `{"type":"string","format":"uri"}`
	for members, want := range map[string]string{
		`"next":` + link:            "next",
		`"@odata.nextLink":` + link: "@odata.nextLink",
		object("_links", object("next", `"href":`+link)+","+object("prev", `"href":`+link)): "_links _links.next _links.next.href " +
			"_links.prev _links.prev.href",
		object("paging", `"next_url":`+link):         "paging paging.next_url",
		object("next", `"next":`+link):               "next next.next",
		object("links", `"next":`+link+`,"x":`+link): "links links.next links.x links.first links.prev links.previous links.last",
	} {
		sp := drawnSpec(t, drafted(t, paged(members, parameter("limit", "integer"))))
		var got []string
		for _, f := range sp.Paging.Envelope {
			got = append(got, f.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: the envelope has %q, want %q", members, got, want)
		}
		if name := sp.Paging.Next; strings.HasPrefix(name, "@") && !slices.Contains(sp.AbsoluteURLs, name) {
			t.Errorf("lists that do not name the link %s have %q rewritten", name, sp.AbsoluteURLs)
		}
	}
}

// TestLinksOfKnownFormsAreRewritten draws records of HAL and of JSON:API, whose schemas name no link.
func TestLinksOfKnownFormsAreRewritten(t *testing.T) {
	for media, want := range map[string]string{
		`"application/json"`:         "",
		`"application/hal+json"`:     "href",
		`"application/vnd.api+json"`: "first last next prev previous related self",
	} {
		members := `"id":{"type":"string"}`
		if want == "href" {
			members += `,"_links":{"type":"object","additionalProperties":{"type":"object"}}`
		}
		document := listing(`{"type":"object","properties":{`+members+`}}`, "")
		sp := drawnSpec(t, drafted(t, strings.ReplaceAll(document, `"application/json"`, media)))
		if got := strings.Join(sp.AbsoluteURLs, " "); got != want {
			t.Errorf("%s: rewritten are %q, want %q", media, got, want)
		}
	}
}

// TestASwitchWidensOnlyByItsName draws switches that are off by default. One that by its name shows more
// records leaves the list never whole; another is no parameter that the spec names. Off, one that says more
// beside the records means nothing.
func TestASwitchWidensOnlyByItsName(t *testing.T) {
	for name, more := range map[string]bool{
		"include_deleted": true, "includeArchived": true, "with_trashed": true, "show_system": true, "archived": true, "all": true,
		"total": false, "include_totals": false, "include_count": false, "count": false, "pretty": false, "sort_ascending": false,
	} {
		document := strings.Replace(listing(`{"type":"object","properties":{"id":{"type":"string"}}}`, ""), `"get":{`,
			`"get":{"parameters":[{"name":"`+name+`","in":"query","schema":{"type":"boolean","default":false}}],`, 1)
		sp := drawnSpec(t, drafted(t, document))
		on, err := sp.Resolve("x", "/things", name+"=true")
		if err != nil {
			t.Fatal(err)
		}
		if on.IsWidened() != more {
			t.Errorf("%s=true widens: %v, want %v", name, on.IsWidened(), more)
		}
		if got := on.UnknownParam(); (got == "") != more {
			t.Errorf("%s=true: the spec does not name %q", name, got)
		}
		off, err := sp.Resolve("x", "/things", name+"=false")
		if err != nil {
			t.Fatal(err)
		}
		if aside := strings.Contains(name, "total") || strings.Contains(name, "count"); aside != (len(off.Query) == 0) {
			t.Errorf("%s=false is asked for with %v", name, off.Query)
		}
		if _, whole := on.List.UnfilteredQuery(); whole == more {
			t.Errorf("%s: a list without it may be whole: %v", name, whole)
		}
	}
}
