// Ends of exports: why a file lacks what its list has.

package list_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/viewer/viewertest"
	"understudy/request"
)

// An export is complete where the end of its list is proven, and nowhere else.
func TestExportsSayCompleteOfProvenEnds(t *testing.T) {
	h := viewertest.Open(t)
	h.Get("/twilio/calls?PageSize=20", viewertest.All)
	var pages []understudy.Query // what each page says of the end
	h.Mirror.Change = func(a request.Request, answer *request.Response) (*request.Response, error) {
		if a.Local != nil {
			return nil, fmt.Errorf("mirror: %w: nobody has walked it", understudy.ErrNotMirrored)
		}
		page, turned := *answer.Page, *answer
		page.Next, page.Header = understudy.Key{}, pages[0].String()
		if pages = pages[1:]; len(pages) > 0 {
			page.Next = understudy.Key{Source: page.Key.Source, URI: page.Key.Path() + "?PageSize=20"}
		}
		turned.Page = &page
		return &turned, nil
	}
	end := func(kind, why string, total int64) understudy.Query {
		return understudy.EndFields(understudy.OpenEnd{Kind: kind, Why: why}, total, 0, "")
	}
	for _, c := range []struct {
		pages []understudy.Query
		want  string
	}{
		{[]understudy.Query{nil}, `"count":50,"complete":true}`},
		{[]understudy.Query{end(understudy.OpenRefuted, "the answer says that there is more", 0)}, `"why":"the answer says that there is more"}`},
		{[]understudy.Query{end(understudy.OpenUnlinked, "the page is full", 0)}, `"complete":false,"why":"the page is full"}`},
		{[]understudy.Query{end(understudy.OpenShort, "a short page", 0)}, `"complete":false,"why":"a short page"}`},
		{[]understudy.Query{end(understudy.OpenSilent, "says nothing", 0)}, `"complete":false,"why":"says nothing"}`},
		{[]understudy.Query{end(understudy.OpenUnseen, "next was in no answer", 0)}, `"complete":false,"why":"next was in no answer"}`},
		{[]understudy.Query{nil, end(understudy.OpenUnseen, "next was in no answer", 0)}, `"complete":true}`},
		{[]understudy.Query{nil, end(understudy.OpenUnseen, "next was in no answer", 170)},
			`"complete":false,"why":"upstream announced 170 rows and returned 70"}`},
		{[]understudy.Query{end("", "", 51)}, `"complete":false,"why":"upstream announced 51 rows and returned 50"}`},
		{[]understudy.Query{end("", "", 70), nil}, `"complete":true}`},
		{[]understudy.Query{understudy.EndFields(understudy.OpenEnd{}, 0, 3, ""), nil},
			`"complete":false,"why":"upstream announced 3 pages and returned 2"}`},
	} {
		pages = c.pages
		status, body, _ := h.Get("/twilio/calls.json?understudy.columns=sid", viewertest.All)
		if status != 200 || !strings.HasSuffix(body, c.want+"\n") {
			t.Errorf("%v: %d …%s, want %s", c.pages, status, body[max(0, len(body)-150):], c.want)
		}
	}
}

// An export of a page whose records are not all told apart is not complete, and says why without an
// id or a number: a role with row rules gets the same words.
func TestAnExportOfRecordsWithoutAnIDOfTheirOwnIsNotComplete(t *testing.T) {
	h := viewertest.Open(t)
	h.Get("/twilio/calls?PageSize=20", viewertest.All)
	var change func(p *understudy.Page)
	h.Mirror.Change = func(a request.Request, answer *request.Response) (*request.Response, error) {
		if a.Local != nil {
			return nil, fmt.Errorf("mirror: %w: nobody has walked it", understudy.ErrNotMirrored)
		}
		page, turned := *answer.Page, *answer
		page.Next, page.Header, page.Rows = understudy.Key{}, "", slices.Clone(page.Rows)
		change(&page)
		turned.Page = &page
		return &turned, nil
	}
	const again = "/2010-04-01/Accounts/" + viewertest.Account + "/Calls.json?PageSize=20"
	const left = `"complete":false,"why":"records without an id, or that cannot be read, are left out; check the id field in the spec"}`
	for name, c := range map[string]struct {
		change func(p *understudy.Page)
		want   string
	}{
		"ids of their own": {func(*understudy.Page) {}, `"complete":true}`},
		"a record without an id": {func(p *understudy.Page) {
			p.Rows, p.NotStored = nil, "a record without sid"
		}, left},
		"a kind without an id": {func(p *understudy.Page) { p.Rows = nil }, left},
		"a body that is no list": {func(p *understudy.Page) {
			p.Rows, p.Body, p.NotStored = nil, []byte(`{"calls":"\xff"`), "invalid UTF-8"
		}, `"message":"This answer can't be shown","status":503}`},
		"no records": {func(p *understudy.Page) {
			p.Rows, p.Body = nil, []byte(`{"calls":[]}`)
		}, `"complete":true}`},
		"an id of two records": {func(p *understudy.Page) {
			p.Rows[1].ID = p.Rows[0].ID
		}, `"complete":false,"why":"several records on one page have the same id; check the id field in the spec"}`},
		"one record twice": {func(p *understudy.Page) {
			p.Rows[1] = p.Rows[0]
		}, `"complete":true}`},
		"a record of two pages that differs": {func(p *understudy.Page) {
			if p.Rows[0].Record, p.Rows[0].Version = 1, 2; p.Key.URI != again {
				p.Next, p.Rows[0].Version = understudy.Key{Source: p.Key.Source, URI: again}, 1
			}
		}, `"why":"one id appeared twice with different contents: the record changed, or several records share the id; export again"}`},
		"a record of two pages that is the same": {func(p *understudy.Page) {
			if p.Rows[0].Record, p.Rows[0].Version = 1, 1; p.Key.URI != again {
				p.Next = understudy.Key{Source: p.Key.Source, URI: again}
			}
		}, `"complete":true}`},
	} {
		change = c.change
		_, body, _ := h.Get("/twilio/calls.json?understudy.columns=sid", viewertest.All)
		if !strings.HasSuffix(body, c.want+"\n") {
			t.Errorf("%s: …%s, want %s", name, body[max(0, len(body)-150):], c.want)
		}
	}
}

// An export says why it ends before its list: of an earlier moment, of a list that records cannot make, and
// without a word of what is hidden to a role that may not count it.
func TestAnExportSaysWhyItsNextPageIsMissing(t *testing.T) {
	h := viewertest.Open(t)
	for name, c := range map[string]struct {
		path   string
		unmade error
		want   string
	}{
		"then": {"?understudy.as_of=2026-05-24T00%3A00%3A00Z&", nil, "the next page of the list was not stored at that time"},
		"a filter": {"?", fmt.Errorf("mirror: %w: the filter is not of records", understudy.ErrInvalid),
			"requests only the first page from upstream; the list can't be built from stored records"},
		"not walked": {"?", fmt.Errorf("mirror: %w: calls: the last walk is too long ago", understudy.ErrNotMirrored),
			"the list can't be built from stored records yet: calls: the last walk is too long ago"},
	} {
		onlyHeld(h, 1)
		held := h.Mirror.Change
		h.Mirror.Change = func(a request.Request, answer *request.Response) (*request.Response, error) {
			if a.Local != nil {
				return nil, c.unmade
			}
			return held(a, answer)
		}
		status, body, _ := h.Get("/twilio/calls.json"+c.path+"PageSize=20&understudy.columns=sid", viewertest.All)
		if status != 200 || !strings.Contains(body, c.want+`"}`) {
			t.Errorf("%s: %d, ends %.300s", name, status, body[max(0, len(body)-300):])
		}
	}
}
