// What is drawn of answers beside lists: objects, and records by other names than their ids.

package infer_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/infer"
)

// answering draws the addresses below a host of an API with a few answers, by their escaped paths.
func answering(t *testing.T, answers map[string]infer.Answer, paths ...string) *infer.Draft {
	t.Helper()
	ask := func(_ context.Context, address string) (*infer.Answer, error) {
		at, err := url.Parse(address)
		if err != nil {
			return nil, err
		}
		if a, ok := answers[at.EscapedPath()]; ok {
			a.Status = http.StatusOK
			return &a, nil
		}
		return &infer.Answer{Status: http.StatusNotFound, Body: []byte(`{"message":"none"}`)}, nil
	}
	var addresses []string
	for _, path := range paths {
		addresses = append(addresses, "https://api.desk.example"+path)
	}
	draft, err := infer.DrawFromAnswers(t.Context(), addresses, infer.LiveAPI{Ask: ask, Auth: "none"})
	if err != nil {
		t.Fatal(err)
	}
	return draft
}

// TestRecordsAreFoundByOtherNamesThanTheirIDs draws issues that a number within their project names, and
// branches that have no id and a slash in their names. No row answers for them.
func TestRecordsAreFoundByOtherNamesThanTheirIDs(t *testing.T) {
	draft := answering(t, map[string]infer.Answer{
		"/projects/7/issues":             {Body: []byte(`[{"id":91,"iid":1,"title":"a"},{"id":92,"iid":2,"title":"b"}]`)},
		"/projects/7/issues/1":           {Body: []byte(`{"id":91,"iid":1,"title":"a"}`)},
		"/projects/7/branches":           {Body: []byte(`[{"name":"fix/one","default":false},{"name":"main","default":true}]`)},
		"/projects/7/branches/fix%2Fone": {Body: []byte(`{"name":"fix/one","default":false}`)},
		"/projects/7/labels":             {Body: []byte(`[{"id":5,"number":4},{"id":6,"number":5}]`)},
		"/projects/7/labels/4":           {Body: []byte(`{"id":44,"number":4}`)},
	}, "/projects/7/issues", "/projects/7/branches", "/projects/7/labels")
	sp := drawnSpec(t, draft)
	for path, want := range map[string]bool{
		"/projects/7/issues/1": true, "/projects/8/branches/fix%2Ftwo": true, "/projects/7/labels/4": false,
	} {
		target, err := sp.Resolve("x", path, "")
		if err != nil {
			t.Fatal(err)
		}
		if (target.Instance != nil) != want {
			t.Errorf("%s is drawn: %v, want %v", path, !want, want)
		}
		if target.ID != "" {
			t.Errorf("%s names the record %s", path, target.ID)
		}
	}
}

// TestAnObjectBesideListsIsKept asks for a list and for one object.
func TestAnObjectBesideListsIsKept(t *testing.T) {
	sp := drawnSpec(t, answering(t, map[string]infer.Answer{
		"/things":  {Body: []byte(`[{"id":"a"},{"id":"b"}]`)},
		"/version": {Body: []byte(`{"version":"4.2"}`)},
	}, "/things", "/version"))
	k := sp.Kind("version")
	checktest.MustTrue(t, k != nil, "the object is no kind of its own: k is nil")
	checktest.MustEqual(t, len(k.Instances), 1, "the object is no kind of its own: len(k.Instances)")
	checktest.Equal(t, k.Instances[0].Path, "/version", "the object is no kind of its own: k.Instances[0].Path")
}

// TestAListWhoseLinksNameNothingGoesOnAsOthers draws a list on one page, whose Link header leads to it
// alone, beside one that goes on.
func TestAListWhoseLinksNameNothingGoesOnAsOthers(t *testing.T) {
	link := func(text string) http.Header { return http.Header{"Link": {text}} }
	sp := drawnSpec(t, answering(t, map[string]infer.Answer{
		"/short": {Header: link(`<https://api.desk.example/short>; rel="first"`), Body: []byte(`[{"id":"a"}]`)},
		"/long":  {Header: link(`<https://api.desk.example/long?page=2>; rel="next"`), Body: []byte(`[{"id":"a"},{"id":"b"}]`)},
	}, "/short", "/long"))
	for _, k := range sp.Kinds {
		for _, l := range k.Lists {
			if p := sp.PagingOf(l); p.Page != "page" {
				t.Errorf("%s goes on by %+v", l.Path, p.Rules)
			}
		}
	}
}

// TestAListThatFitsOnAPageShowsHowItGoesOnByOneRow draws lists of three rows whose answers lead on only where there is more:
// by a token, a link and a Link header. One that ignores the size is a list of one page.
func TestAListThatFitsOnAPageShowsHowItGoesOnByOneRow(t *testing.T) {
	const all = `{"id":"a"},{"id":"b"},{"id":"c"}`
	for _, c := range []struct{ name, beside, link, style, param string }{
		{"a token", `,"next":{"page":"t1"}`, "", "token", "page"},
		{"a link", `,"next":"https://api.desk.example/things?after=t1"`, "", "body", "after"},
		{"a Link header", "", `<https://api.desk.example/things?after=t1>; rel="next"`, "header", "after"},
		{"nothing", "", "", "none", ""},
	} {
		header := http.Header{}
		if c.link != "" {
			header.Set("Link", c.link)
		}
		ask := func(_ context.Context, address string) (*infer.Answer, error) {
			at, err := url.Parse(address)
			switch query := at.Query(); {
			case err != nil:
				return nil, err
			case at.Path != "/things":
				return &infer.Answer{Status: http.StatusNotFound, Body: []byte(`{}`)}, nil
			case query.Get(c.param) == "t1":
				return &infer.Answer{Status: http.StatusOK, Body: []byte(`{"things":[{"id":"b"},{"id":"c"}]}`)}, nil
			case query.Has("page"):
				return &infer.Answer{Status: http.StatusBadRequest, Body: []byte(`{}`)}, nil
			case query.Get("limit") == "1" && c.param != "":
				return &infer.Answer{Status: http.StatusOK, Header: header,
					Body: []byte(`{"things":[{"id":"a"}]` + c.beside + `}`)}, nil
			}
			return &infer.Answer{Status: http.StatusOK, Body: []byte(`{"things":[` + all + `]}`)}, nil
		}
		draft, err := infer.DrawFromAnswers(t.Context(), []string{"https://api.desk.example/things"}, infer.LiveAPI{Ask: ask, Auth: "none"})
		if err != nil {
			t.Fatal(err)
		}
		p := drawnSpec(t, draft).Paging
		if p.Style != c.style {
			t.Errorf("%s: the style is %q, want %q:\n%s", c.name, p.Style, c.style, draft.YAML)
		}
		if c.param != "" && p.Cursor != c.param && !slices.Contains(p.Tokens, c.param) {
			t.Errorf("%s: %s is no parameter of the pages:\n%s", c.name, c.param, draft.YAML)
		}
		if p.Default != 0 {
			t.Errorf("%s: a page is said to have %d rows, and nothing shows it", c.name, p.Default)
		}
	}
}

// TestAnAnswerThatSaysMoreIsNotCalledComplete draws a list whose answer says that there is more, and one that does not say so.
func TestAnAnswerThatSaysMoreIsNotCalledComplete(t *testing.T) {
	draft := answering(t, map[string]infer.Answer{
		"/things": {Body: []byte(`{"things":[{"id":"a"},{"id":"b"}],"has_more":true}`)},
		"/others": {Body: []byte(`[{"id":"a"},{"id":"b"}]`)},
	}, "/things", "/others")
	if !hasDoubt(draft, "/things", "has_more says whether more pages exist") {
		t.Errorf("no doubt tells of has_more: %q", draft.Unsure)
	}
	if hasDoubt(draft, "all of its rows") {
		t.Errorf("a doubt says that the list was complete: %q", draft.Unsure)
	}
}

// TestAListWithoutIDsKeepsItsPaging draws lists whose rows have no id of their own from their answers.
// One whose rows are others each time says nothing of its parameters.
func TestAListWithoutIDsKeepsItsPaging(t *testing.T) {
	asked := 0
	rows := func(from int, row string) string {
		var all []string
		for n := from; n < min(from+4, 11); n++ {
			all = append(all, fmt.Sprintf(row, n))
		}
		return strings.Join(all, ",")
	}
	for name, c := range map[string]struct {
		row   string // of a number
		next  string // the answer's member of the next row's number
		takes string // the parameter
		want  string
	}{
		"a token":                        {`{"name":"same","size":%d}`, `,"next_cursor":"c%d"`, "cursor", "style: token"},
		"a token, and ids that repeat":   {`{"id":"x","size":%d}`, `,"next_cursor":"c%d"`, "cursor", "style: token"},
		"a token, and ids that are null": {`{"id":null,"size":%d}`, `,"next_cursor":"c%d"`, "cursor", "style: token"},
		"an offset":                      {`{"name":"same","size":%d}`, ``, "offset", "style: offset"},
		"a token that nothing takes":     {`{"name":"same","size":%d}`, `,"next_cursor":"c%d"`, "", "style: none"},
	} {
		ask := func(_ context.Context, address string) (*infer.Answer, error) {
			at, err := url.Parse(address)
			if err != nil {
				return nil, err
			}
			from, _ := strconv.Atoi(strings.TrimPrefix(at.Query().Get(c.takes), "c")) // else the first page
			next := ""
			if c.next != "" && from+4 < 11 {
				next = fmt.Sprintf(c.next, from+4)
			}
			return &infer.Answer{Status: http.StatusOK, Body: fmt.Appendf(nil, `{"data":[%s]%s}`, rows(from, c.row), next)}, nil
		}
		draft, err := infer.DrawFromAnswers(t.Context(), []string{"https://api.desk.example/things"}, infer.LiveAPI{Ask: ask, Auth: "none"})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(draft.YAML), c.want) {
			t.Errorf("%s: want %s in\n%s", name, c.want, draft.YAML)
		}
		if doubts := strings.Join(draft.Unsure, "\n"); c.takes == "" && !strings.Contains(doubts, "next_cursor says whether more pages exist") {
			t.Errorf("%s: no doubt names next_cursor: %s", name, doubts)
		}
	}
	ask := func(context.Context, string) (*infer.Answer, error) {
		asked++
		body := fmt.Appendf(nil, `{"data":[{"at":%d},{"at":%d}],"next_cursor":"c"}`, asked, asked+1)
		return &infer.Answer{Status: http.StatusOK, Body: body}, nil
	}
	draft, err := infer.DrawFromAnswers(t.Context(), []string{"https://api.desk.example/things"}, infer.LiveAPI{Ask: ask, Auth: "none"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(draft.YAML), "style: none") {
		t.Errorf("rows that are others each time lead on:\n%s", draft.YAML)
	}
}
