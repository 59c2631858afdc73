// Paging: what leads on in answers and documents that spell it in their own way.

package infer_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/infer"
)

// paged is a document with a list of things, of which members stand beside the rows and that
// takes parameters.
func paged(members, params string) string {
	return `{"openapi":"3.1.0","servers":[{"url":"https://api.desk.example"}],"paths":{"/things":{"get":{"parameters":[` + params + `],
		"responses":{"200":{"content":{"application/json":{"schema":{"type":"object","properties":{` + members + `,
		"things":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"}}}}}}}}}}}}}}`
}

func parameter(name, typ string) string {
	return fmt.Sprintf(`{"name":%q,"in":"query","schema":{"type":%q}}`, name, typ)
}

func TestPagingIsDrawnInEverySpelling(t *testing.T) {
	size := parameter("limit", "integer")
	for name, c := range map[string]struct{ members, params, want string }{
		"a number says whether there is more": {`"has_more":{"type":"integer","enum":[0,1]}`, size + "," + parameter("starting_after", "string"),
			"style: cursor"},
		"a letter says whether there is more": {`"more":{"type":"string","enum":["Y","N"]}`, size + "," + parameter("page", "integer"),
			"next: more"},
		"a text of another meaning is no answer": {`"more":{"type":"string","enum":["never","always"]}`,
			size + "," + parameter("page", "integer"), "style: number"},
		"a token may be a number": {`"next_cursor":{"type":"integer"}`, size + "," + parameter("cursor", "integer"), "style: token"},
		"an offset stands beside a link": {`"next":{"type":["string","null"],"format":"uri"}`, size + "," + parameter("offset", "integer"),
			"style: offset"},
		"an offset needs no size":              {`"total":{"type":"integer"}`, parameter("offset", "integer"), "style: offset"},
		"a count with a dot in its name":       {`"@odata.count":{"type":"integer"}`, parameter("$skip", "integer"), `total: "@odata.count"`},
		"links whose parameters nothing names": {`"@odata.nextLink":{"type":"string"}`, size, "$skiptoken"},
	} {
		draft := drafted(t, paged(c.members, c.params))
		if !strings.Contains(string(draft.YAML), c.want) {
			t.Errorf("%s: want %q in the draft:\n%s", name, c.want, draft.YAML)
		}
		if strings.Contains(c.members, "never") && strings.Contains(string(draft.YAML), "next: more") {
			t.Errorf("%s:\n%s", name, draft.YAML)
		}
	}
}

// TestAListThatGoesOnByWordsAloneIsDrawn draws lists of which only descriptions say how they go on.
func TestAListThatGoesOnByWordsAloneIsDrawn(t *testing.T) {
	described := func(name, text string) string {
		return fmt.Sprintf(`{"name":%q,"in":"query","description":%q,"schema":{"type":"string"}}`, name, text)
	}
	older, newer := described("before", "Messages before this message ID"), described("after", "Messages after this message ID")
	for name, c := range map[string]struct{ params, want, doubt string }{
		"the last id":               {newer, "style: cursor # after takes the last id", "until a page has no rows"},
		"the last id in either way": {newer + "," + older, "cursor: before", "if the oldest records come first, write cursor: after"},
		"a user's id":               {described("since", "Users with an ID greater than this ID"), "cursor: since", "until a page has no rows"},
		"a Link header":             {described("after", "A cursor from the `Link` header"), "style: header", "composed from stored records"},
		"a time": {described("after", "Rows created after this time"), "style: none",
			"if a parameter takes the last id, write style: cursor"},
		"a cursor": {described("after", "The cursor id of a page"), "style: none", "treated as one page"},
	} {
		draft := drafted(t, paged(`"kind":{"type":"string"}`, c.params))
		if !strings.Contains(string(draft.YAML), c.want) {
			t.Errorf("%s: want %q in the draft:\n%s", name, c.want, draft.YAML)
		}
		if !hasDoubt(draft, "/things", c.doubt) {
			t.Errorf("%s: want a doubt with %q: %v", name, c.doubt, draft.Unsure)
		}
	}
}

// live draws a spec from a list of 30 things in pages of 10. answer gives what stands beside the
// rows, and where the page begins.
func live(t *testing.T, answer func(query url.Values) (beside string, from int)) string {
	t.Helper()
	ask := func(_ context.Context, address string) (*infer.Answer, error) {
		at, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		if key, one := strings.CutPrefix(at.Path, "/things/T-"); one {
			return &infer.Answer{Status: http.StatusOK, Body: fmt.Appendf(nil, `{"key":"T-%s"}`, key)}, nil
		}
		if at.Path != "/things" {
			return &infer.Answer{Status: http.StatusNotFound, Body: []byte(`{}`)}, nil
		}
		beside, from := answer(at.Query())
		var rows []string
		for i := from; i < min(from+10, 30); i++ {
			rows = append(rows, fmt.Sprintf(`{"key":"T-%d"}`, i))
		}
		return &infer.Answer{Status: http.StatusOK, Body: fmt.Appendf(nil, `{%s"things":[%s]}`, beside, strings.Join(rows, ","))}, nil
	}
	draft, err := infer.DrawFromAnswers(t.Context(), []string{"https://api.desk.example/things"}, infer.LiveAPI{Ask: ask, Auth: "none"})
	if err != nil {
		t.Fatal(err)
	}
	return string(draft.YAML) + "doubts:\n" + strings.Join(draft.Unsure, "\n")
}

// TestAMemberThatAnotherPageContradictsIsLeftOut draws lists whose answers say that there is no more where a page follows,
// by a token and by a number of rows, and one whose answer says rightly that there is more.
func TestAMemberThatAnotherPageContradictsIsLeftOut(t *testing.T) {
	for beside, want := range map[string]bool{
		`"has_more":false,"next_cursor":"t%d",`:    false,
		`"has_more":"N","offset":1%[1]d,`:          false,
		`"has_more":true,"next_cursor":"t%d",`:     true,
		`"has_more":%[1]d,"next_cursor":"t%[1]d",`: true,
	} {
		text := live(t, func(query url.Values) (string, int) {
			from, _ := strconv.Atoi(query.Get("offset") + strings.TrimPrefix(query.Get("cursor"), "t"))
			return fmt.Sprintf(beside, from+10), from
		})
		if said := strings.Contains(text, "more: has_more"); said != want {
			t.Errorf("%s: has_more is drawn: %v, want %v:\n%s", beside, said, want, text)
		}
		if said := strings.Contains(text, "/things: has_more said that no more pages exist"); said == want {
			t.Errorf("%s: a doubt says that it was contradicted: %v, want %v:\n%s", beside, said, !want, text)
		}
	}
}

// TestALinkToAnotherHostNamesItsParameters draws a list through a mirror, whose links have the API's own host.
func TestALinkToAnotherHostNamesItsParameters(t *testing.T) {
	text := live(t, func(query url.Values) (string, int) {
		page, _ := strconv.Atoi(query.Get("page"))
		page = max(page, 1)
		return fmt.Sprintf(`"next":"https://desk.example/v2/things?page=%d",`, page+1), 10 * (page - 1)
	})
	if !strings.Contains(text, "page: page") || strings.Contains(text, "common names") {
		t.Errorf("the parameter of the links is not drawn:\n%s", text)
	}
}

// TestACountIsATotalWhereTwoPagesHaveIt draws lists by page whose answers have a count: of all rows, of the page's, and
// of one that changes.
func TestACountIsATotalWhereTwoPagesHaveIt(t *testing.T) {
	for _, c := range []struct {
		name  string
		count func(page int) int
		want  bool
	}{
		{"of all rows", func(int) int { return 30 }, true},
		{"of the page's rows", func(int) int { return 10 }, false},
		{"of the rows so far", func(page int) int { return 10 * (page + 2) }, false},
	} {
		text := live(t, func(query url.Values) (string, int) {
			page, _ := strconv.Atoi(query.Get("page"))
			page = max(page, 1)
			return fmt.Sprintf(`"count":%d,`, c.count(page)), 10 * (page - 1)
		})
		if got := strings.Contains(text, "total: count"); got != c.want {
			t.Errorf("a count %s is the total: %v, want %v:\n%s", c.name, got, c.want, text)
		}
	}
}

// TestAListBelowARecordHasAVariable draws a list below a ticket, whose rows show the ticket, and one
// below a version of the API.
func TestAListBelowARecordHasAVariable(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/tickets/4999/comments":                                 "/v1/tickets/{ticket_id}/comments",
		"/v1/desk/north/comments":                                   "/v1/desk/{desk_id}/comments",
		"/rest/api/3/comments":                                      "/rest/api/3/comments",
		"/v1/mine/own/comments":                                     "/v1/mine/own/comments",
		"/v1/tickets/018f4e1c-0000-7000-8000-000000000001/comments": "/v1/tickets/{ticket_id}/comments",
	} {
		ask := func(context.Context, string) (*infer.Answer, error) {
			return &infer.Answer{Status: http.StatusOK, Body: []byte(`{"data":[{"id":1,"desk_id":"north"},{"id":2,"desk_id":"north"}]}`)}, nil
		}
		draft, err := infer.DrawFromAnswers(t.Context(), []string{"https://api.desk.example" + path}, infer.LiveAPI{Ask: ask, Auth: "none"})
		if err != nil {
			t.Fatal(err)
		}
		if got := draft.Lists[0].Path; got != want {
			t.Errorf("%s is drawn as %s, want %s", path, got, want)
		}
		if said := hasDoubt(draft, want, "treated as the id"); said != (path != want) {
			t.Errorf("%s: a doubt says that a segment is taken for an id: %v", path, said)
		}
	}
}

// TestFieldsOfFewValuesAreTriedAsFilters draws from an API that selects by status and ignores what it
// does not know.
func TestFieldsOfFewValuesAreTriedAsFilters(t *testing.T) {
	ask := func(_ context.Context, address string) (*infer.Answer, error) {
		at, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		var rows []string
		for i := range 12 {
			status, lane := []string{"open", "closed", "held"}[i%3], []string{"left", "right"}[i%2]
			if only := at.Query().Get("status"); only == "" || only == status {
				rows = append(rows, fmt.Sprintf(`{"id":%d,"status":%q,"lane":%q,"text":"row %d"}`, i, status, lane, i))
			}
		}
		return &infer.Answer{Status: http.StatusOK, Body: fmt.Appendf(nil, `{"data":[%s]}`, strings.Join(rows, ","))}, nil
	}
	draft, err := infer.DrawFromAnswers(t.Context(), []string{"https://api.desk.example/things"}, infer.LiveAPI{Ask: ask, Auth: "none"})
	if err != nil {
		t.Fatal(err)
	}
	l := drawnSpec(t, draft).Kinds[0].Lists[0]
	if f := l.Filter("status"); f == nil || f.Field != "status" {
		t.Errorf("status is no filter: %+v", f)
	}
	if l.Filter("lane") != nil {
		t.Error("lane is a filter, and the API does not know it")
	}
}

// queried is a document with a list of things in an answer with members, which takes parameters.
func queried(params, members string) string {
	text := listing(`{"type":"object","properties":{"id":{"type":"string"},"status":{"type":"string"},"attributes":{"type":"object",
		"properties":{"state":{"type":"string"},"created":{"type":"string","format":"date-time"}}}}}`, "")
	text = strings.Replace(text, `{"get":{`, `{"get":{"parameters":[`+params+`],`, 1)
	return strings.Replace(text, `"properties":{"things"`, `"properties":{`+members+`"things"`, 1)
}

// taken is a parameter of a query.
func taken(name, typ, more string) string {
	return fmt.Sprintf(`{"name":%q,"in":"query","schema":{"type":%q}%s}`, name, typ, more)
}

// TestATextOffsetBesideALinkIsAToken draws a list whose links go on by an offset that is no number.
func TestATextOffsetBesideALinkIsAToken(t *testing.T) {
	draft := drafted(t, queried(taken("offset", "string", "")+","+taken("limit", "integer", ""),
		`"links":{"type":"object","properties":{"next":{"type":"string","format":"uri"}}},`))
	p := drawnSpec(t, draft).Paging
	checktest.Equal(t, p.Style, "body", "the paging is: p.Style")
	checktest.MustEqual(t, len(p.Tokens), 1, "the paging is: len(p.Tokens)")
	checktest.Equal(t, p.Tokens[0], "offset", "the paging is: p.Tokens[0]")
}

// TestACredentialIsNoTokenOfPages draws lists that take the caller's key in a parameter.
func TestACredentialIsNoTokenOfPages(t *testing.T) {
	const next = `"next_token":{"type":"string"},`
	for param, paged := range map[string]bool{
		taken("token", "string", `,"required":true`):                        false,
		taken("token", "string", `,"description":"Authentication token."`):  false,
		taken("access_token", "string", ""):                                 false,
		taken("token", "string", `,"description":"Where the page begins."`): true,
	} {
		draft := drafted(t, queried(param, next))
		sp := drawnSpec(t, draft)
		if (sp.Paging.Style == "token") != paged {
			t.Errorf("%s: the paging is %+v", param, sp.Paging.Rules)
		}
		if said := hasDoubt(draft, "/things", "is a credential, so it is left out"); said == paged {
			t.Errorf("%s: a doubt says that it is a credential: %v", param, said)
		}
		if n := len(sp.Kinds[0].Lists[0].Filters); n > 0 {
			t.Errorf("%s: it is a filter", param)
		}
	}
}

// TestAnAnswerThatSaysMoreIsNoWholeList draws answers that tell of other pages to which no parameter
// leads: a doubt says so, and the list is not made from records.
func TestAnAnswerThatSaysMoreIsNoWholeList(t *testing.T) {
	for members, whole := range map[string]bool{
		`"more":{"type":"boolean"},`:                false,
		`"total":{"type":"integer"},`:               false,
		`"next_cursor":{"type":"string"},`:          false,
		`"next":{"type":"string","nullable":true},`: false,
		``: true,
	} {
		draft := drafted(t, queried("", members))
		sp := drawnSpec(t, draft)
		if (sp.Paging.Template != "") != whole || sp.CompleteLists != nil {
			t.Errorf("%s: the answer is %q, whole_lists %v", members, sp.Paging.Template, sp.CompleteLists)
		}
		if said := hasDoubt(draft, "treated as one page"); said == whole {
			t.Errorf("%s: a doubt says that it is taken as one page: %v", members, said)
		}
	}
}

// TestAnUnspecifiedValueNarrowsNothing draws a filter whose default is the zero of a protocol buffer.
func TestAnUnspecifiedValueNarrowsNothing(t *testing.T) {
	draft := drafted(t, queried(`{"name":"status","in":"query","schema":{"type":"string","default":"STATUS_UNSPECIFIED",
		"enum":["STATUS_UNSPECIFIED","STATUS_READY"]}}`, ""))
	f := drawnSpec(t, draft).Kinds[0].Lists[0].Filter("status")
	checktest.MustTrue(t, f != nil, "the filter is: f is nil")
	checktest.Equal(t, f.Default, "", "the filter is: f.Default")
	checktest.Equal(t, len(f.SelectAll), 1, "the filter is: len(f.SelectAll)")
}

// TestADefaultThatNothingProvesIsAsked draws filters with a default. Where no value takes the default away, upstream is
// asked as the caller wrote, and a doubt says that the list is never whole.
func TestADefaultThatNothingProvesIsAsked(t *testing.T) {
	for choices, want := range map[string]string{`"a","b"`: "/things?status=b", `"a","b","all"`: "/things"} {
		draft := drafted(t, queried(`{"name":"status","in":"query","schema":{"type":"string","default":"b","enum":[`+choices+`]}}`, ""))
		sp := drawnSpec(t, draft)
		asked, err := sp.Resolve("x", "/things", "status=b")
		if err != nil {
			t.Fatal(err)
		}
		if asked.Key.URI != want {
			t.Errorf("%s: upstream is asked for %s, want %s", choices, asked.Key.URI, want)
		}
		plain, err := sp.Resolve("x", "/things", "")
		if err != nil {
			t.Fatal(err)
		}
		if plain.IsWholeList() {
			t.Errorf("%s: the list without the parameter is whole", choices)
		}
		if said := hasDoubt(draft, "without status it shows only b"); said != (want != "/things") {
			t.Errorf("%s: a doubt says so: %v: %q", choices, said, draft.Unsure)
		}
	}
}

// TestFiltersInBracketsAreDrawn draws parameters that name the field in brackets.
func TestFiltersInBracketsAreDrawn(t *testing.T) {
	draft := drafted(t, queried(strings.Join([]string{taken("filter[status]", "string", ""), taken("filter[state]", "string", ""),
		taken("filter[created][gte]", "string", ""), taken("filter[other]", "string", "")}, ","), ""))
	l := drawnSpec(t, draft).Kinds[0].Lists[0]
	for name, field := range map[string]string{"filter[status]": "status", "filter[state]": "attributes.state",
		"filter[created][gte]": "attributes.created"} {
		if f := l.Filter(name); f == nil || f.Field != field {
			t.Errorf("%s is %+v, want a filter of %s", name, f, field)
		}
	}
	if l.Filter("filter[other]") != nil {
		t.Error("filter[other] is a filter of no field")
	}
}

func TestDigitsInAnAnswerAreATokenToo(t *testing.T) {
	text := live(t, func(query url.Values) (string, int) {
		from, _ := strconv.Atoi(strings.TrimPrefix(query.Get("cursor"), "49"))
		return fmt.Sprintf(`"next_cursor":"49%d","has_more":true,`, from+10), from
	})
	if !strings.Contains(text, "style: token") || !strings.Contains(text, "cursor: cursor") {
		t.Errorf("the draft does not go on by the token:\n%s", text)
	}
}

// TestAnAnswersNamesAreTriedAsParameters draws lists whose parameters have the names, or nearly the
// names, of what their answers say of pages.
func TestAnAnswersNamesAreTriedAsParameters(t *testing.T) {
	for _, c := range []struct {
		name, beside, param, size string
		first                     int // offsets count from it
		want                      []string
	}{
		{"AWS", `"NextMarker":"t%d",`, "Marker", "limit", 0, []string{"style: token", "cursor: Marker"}},
		{"Google", `"nextPageToken":"t%d",`, "nextPageToken", "limit", 0, []string{"style: token", "cursor: nextPageToken"}},
		{"Notion", `"next_cursor":"t%d",`, "start_cursor", "limit", 0, []string{"style: token", "cursor: start_cursor"}},
		{"Twitter", `"next_cursor":%d,`, "cursor", "limit", 0, []string{"style: token", "cursor: cursor"}},
		{"HubSpot", `"paging":{"next":{"after":"%[1]d","link":"/things?after=%[1]d"}},`, "after", "limit", 0,
			[]string{"style: token", "cursor: after"}},
		{"Kubernetes", `"metadata":{"continue":"t%d"},`, "continue", "limit", 0, []string{"style: token", "cursor: continue"}},
		{"Jira", `"startAt":%d,`, "startAt", "limit", 0, []string{"style: offset", "page: startAt"}},
		{"SCIM", `"startIndex":%d,`, "startIndex", "limit", 1, []string{"style: offset", "page: startIndex", "first_page: 1"}},
		{"counted from 1, asked for from 0", `"start":1%.0d,`, "start", "limit", 0, []string{"style: offset", "page: start"}},
		{"a size", `"itemsPerPage":10,"startAt":%d,`, "startAt", "itemsPerPage", 0, []string{"size: itemsPerPage", "default_size: 10"}},
	} {
		text := live(t, func(query url.Values) (string, int) {
			from, err := strconv.Atoi(strings.TrimPrefix(query.Get(c.param), "t"))
			if err == nil {
				from -= c.first
			}
			said := from + c.first
			switch {
			case query.Get(c.size) == "1":
				from = 29
			case strings.Contains(c.want[0], "token"):
				said = from + 10
			}
			return fmt.Sprintf(c.beside, said), from
		})
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: want %q in the draft:\n%s", c.name, want, text)
			}
		}
		if strings.Contains(text, "first_page: 1") != (c.first == 1) {
			t.Errorf("%s: want first_page: %d in the draft:\n%s", c.name, c.first, text)
		}
	}
}

func TestAPageWithoutRowsShowsThatItsParameterCounts(t *testing.T) {
	text := live(t, func(query url.Values) (string, int) {
		if page := query.Get("page"); page == "" || page == "1" {
			return "", 0
		}
		return "", 30
	})
	if !strings.Contains(text, "style: number") || !strings.Contains(text, "first_page: 1") {
		t.Errorf("the draft does not go on by number:\n%s", text)
	}
}

func TestAKeyThatARecordsPathTakesIsItsID(t *testing.T) {
	text := live(t, func(url.Values) (string, int) { return "", 0 })
	if !strings.Contains(text, "id: [key]") {
		t.Errorf("the key is no id:\n%s", text)
	}
}

// TestARangeIsNoPage draws lists whose parameters from and start are the edges of a range, or a number of rows.
func TestARangeIsNoPage(t *testing.T) {
	described := func(name, typ, text string) string {
		return fmt.Sprintf(`{"name":%q,"in":"query","description":%q,"schema":{"type":%q}}`, name, text, typ)
	}
	size := parameter("per_page", "integer") + ","
	for _, c := range []struct{ params, want string }{
		{size + parameter("from", "integer") + "," + parameter("to", "integer"), ""},
		{size + parameter("start", "integer") + "," + parameter("end", "integer"), ""},
		{size + described("from", "integer", "Unix timestamp of the first one"), ""},
		{size + described("from", "integer", "The first row"), "from"},
		{size + parameter("from", "integer") + "," + parameter("to", "integer") + "," + parameter("offset", "integer"), "offset"},
		{size + described("start_position", "string", "The zero-based index of the first result."), "start_position"},
		{size + described("start_position", "string", "A cursor."), ""},
	} {
		got := drawnSpec(t, drafted(t, paged(`"more":{"type":"string"}`, c.params))).Paging
		if got.Page != c.want {
			t.Errorf("%s: page is %q, want %q", c.params, got.Page, c.want)
		}
	}
}

// TestALastIDNeedsAnID draws a list that goes on by the last id, of rows without one.
func TestALastIDNeedsAnID(t *testing.T) {
	params := parameter("limit", "integer") + "," + parameter("starting_after", "string")
	document := strings.Replace(paged(`"has_more":{"type":"boolean"}`, params),
		`"id":`, `"text":`, 1)
	draft := drafted(t, document)
	if rules := drawnSpec(t, draft).Paging; rules.Style != "none" || len(rules.Tokens) != 1 {
		t.Errorf("style %q, tokens %v", rules.Style, rules.Tokens)
	}
	if !hasDoubt(draft, "starting_after takes the last id", "give the kind an id") {
		t.Errorf("no doubt says it: %q", draft.Unsure)
	}
}

// TestAListWithATokenGoesOnAsOthersDo draws lists that take the same token, of which one says that it has a Link header.
func TestAListWithATokenGoesOnAsOthersDo(t *testing.T) {
	list := func(name, says string) string {
		return `"/` + name + `":{"get":{"description":"` + says + `","parameters":[` + parameter("limit", "integer") +
			`,` + parameter("after", "string") + `],
			"responses":{"200":{"content":{"application/json":{"schema":{"type":"array","items":{"properties":{"id":{"type":"string"}}}}}}}}}}`
	}
	draft := drafted(t, `{"openapi":"3.0.3","servers":[{"url":"https://api.desk.example"}],"paths":{`+
		list("one", "The Link header leads on.")+`,`+list("two", "")+`,`+list("three", "")+`}}`)
	sp := drawnSpec(t, draft)
	checktest.MustTrue(t, len(sp.Pagings) <= 0, "paging: len(sp.Pagings) is %v, want <= 0", len(sp.Pagings))
	checktest.Equal(t, sp.Paging.Style, "header", "paging: sp.Paging.Style")
	checktest.Equal(t, len(sp.Paging.Tokens), 1, "paging: len(sp.Paging.Tokens)")
}
