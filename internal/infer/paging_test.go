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
	draft, err := infer.FromAnswers(t.Context(), []string{"https://api.desk.example/things"}, infer.Live{Ask: ask, Auth: "none"})
	if err != nil {
		t.Fatal(err)
	}
	return string(draft.YAML)
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
