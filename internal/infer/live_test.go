// What is drawn of answers beside lists: objects, and records by other names than their ids.

package infer_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

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
	draft, err := infer.FromAnswers(t.Context(), addresses, infer.Live{Ask: ask, Auth: "none"})
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
		target, err := sp.Target("x", path, "")
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
	if k := sp.Kind("version"); k == nil || len(k.Instances) != 1 || k.Instances[0].Path != "/version" {
		t.Errorf("the object is no kind of its own: %+v", k)
	}
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

// TestAnAnswerThatSaysMoreIsNotCalledComplete draws a list whose answer says that there is more, and one that does not say so.
func TestAnAnswerThatSaysMoreIsNotCalledComplete(t *testing.T) {
	draft := answering(t, map[string]infer.Answer{
		"/things": {Body: []byte(`{"things":[{"id":"a"},{"id":"b"}],"has_more":true}`)},
		"/others": {Body: []byte(`[{"id":"a"},{"id":"b"}]`)},
	}, "/things", "/others")
	if !hasDoubt(draft, "/things", "has_more says whether there is more") {
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
		draft, err := infer.FromAnswers(t.Context(), []string{"https://api.desk.example/things"}, infer.Live{Ask: ask, Auth: "none"})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(draft.YAML), c.want) {
			t.Errorf("%s: want %s in\n%s", name, c.want, draft.YAML)
		}
		if doubts := strings.Join(draft.Unsure, "\n"); c.takes == "" && !strings.Contains(doubts, "next_cursor says whether there is more") {
			t.Errorf("%s: no doubt names next_cursor: %s", name, doubts)
		}
	}
	ask := func(context.Context, string) (*infer.Answer, error) {
		asked++
		body := fmt.Appendf(nil, `{"data":[{"at":%d},{"at":%d}],"next_cursor":"c"}`, asked, asked+1)
		return &infer.Answer{Status: http.StatusOK, Body: body}, nil
	}
	draft, err := infer.FromAnswers(t.Context(), []string{"https://api.desk.example/things"}, infer.Live{Ask: ask, Auth: "none"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(draft.YAML), "style: none") {
		t.Errorf("rows that are others each time lead on:\n%s", draft.YAML)
	}
}
