package paging

import "testing"

func TestCursor(t *testing.T) {
	both := Rules{Style: "cursor", Next: "more", Cursor: "after", Back: "before", Tokens: []string{"page"}}
	follow(t, both, []answered{
		{body: `{"rows":["a","b"],"more":true}`, want: "after=b"},
		{ask: "after=b", body: `{"rows":["c"],"more":true}`, want: "after=c"},
		{ask: "before=c", body: `{"rows":["a","b"],"more":true}`, want: "before=a"},
		{ask: "before=a", body: `{"rows":[],"more":false}`},
		{ask: "before=c", body: `{"rows":[],"more":true}`, why: "it has no record"},
		{ask: "before=&after=b", body: `{"rows":["c"],"more":true}`, want: "after=c"},
		{ask: "before=c", body: `{"rows":["a"],"more":"true"}`, want: "before=a"},
		{body: `{"rows":["a"],"more":1}`, want: "after=a"},
		{body: `{"rows":["a"],"more":"Y"}`, want: "after=a"},
		{body: `{"rows":["a"],"more":"N"}`},
		{body: `{"rows":["a"],"more":"0"}`},
		{body: `{"rows":["a"],"more":0}`},
		{body: `{"rows":["a"],"more":null}`},
		{body: `{"rows":[]}`},
		{body: `{"rows":["a"]}`, want: "after=a"}, // only the page behind it tells
		{ask: "after=a", body: `{"rows":["c"]}`, want: "after=c"},
		{ask: "after=a", body: `{"rows":["a"]}`, open: "refuted"},
		{ask: "before=c", body: `{"rows":["a"]}`, want: "before=a"},
	})
	// Without back, a page asked for by another parameter leads on the usual way.
	follow(t, Rules{Style: "cursor", Next: "more", Cursor: "after", Tokens: []string{"before"}}, []answered{
		{ask: "before=c", body: `{"rows":["a","b"],"more":true}`, want: "after=b"},
	})
	follow(t, Rules{Style: "cursor", Next: "header:X-More", Cursor: "after"}, []answered{
		{body: `["a","b"]`, header: "X-More: True", want: "after=b"},
		{body: `["a","b"]`, header: "X-More: false"},
		{body: `["a","b"]`, want: "after=b"},
	})
	// Without next only a page without rows ends the list.
	follow(t, Rules{Style: "cursor", Cursor: "before", Size: "limit", Default: 3}, []answered{
		{body: `["c","b"]`, want: "before=b"},
		{ask: "before=b", body: `["a"]`, want: "before=a"},
		{ask: "before=a", body: `[]`},
		{ask: "before=a", body: `{"rows":[],"has_more":true}`, open: "refuted"},
	})
	refused(t, map[string]Rules{
		"cursor is missing":                    {Style: "cursor", Next: "more"},
		"token: if back is set":                {Style: "cursor", Next: "more", Cursor: "after", Back: "before", Token: "PA{id}"},
		"back has no effect with style body":   {Style: "body", Next: "next", Back: "before"},
		"more has no effect with style cursor": {Style: "cursor", Next: "more", Cursor: "after", More: "more"},
		"write body, header, cursor, token":    {Style: "page"},
	})
}
