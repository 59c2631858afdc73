package paging

import "testing"

func TestNumber(t *testing.T) {
	follow(t, Rules{Style: "number", Page: "page", First: 1, Size: "size", Default: 3, Max: 5}, []answered{
		{ask: "", body: `{"rows":[1,2,3]}`, want: "page=2"},
		{ask: "", body: `{"rows":[1,2]}`, open: "short"},
		{ask: "page=7", body: `{"rows":[1,2,3]}`, want: "page=8"},
		{ask: "page=8", body: `{"rows":[]}`},
		{ask: "size=5&page=2", body: `{"rows":[1,2,3,4]}`, open: "short"},
		{ask: "size=5&page=2", body: `{"rows":[1,2,3,4,5]}`, want: "page=3"},
		{ask: "size=100", body: `{"rows":[1,2,3,4,5]}`, want: "page=2"}, // the largest is 5
		{ask: "size=100", body: `{"rows":[1,2,3,4]}`, open: "short"},
		{ask: "page=two", body: `{"rows":[1,2,3]}`, why: `page: "two" is not a page number`},
		{ask: "page=-1", body: `{"rows":[1,2,3]}`, why: "is not a page number"},
		{ask: "page=9223372036854775807", body: `{"rows":[1,2,3]}`, why: "is not a page number"},
	})
	// Where it is not known how many rows a full page has, a short one may be one that
	// upstream has cut: only a page without rows is the end.
	follow(t, Rules{Style: "number", Page: "page", Size: "size"}, []answered{
		{ask: "", body: `{"rows":[1]}`, want: "page=1"},
		{ask: "size=500", body: `{"rows":[1]}`, want: "page=1"},
		{ask: "size=500&page=4", body: `{"rows":[]}`},
	})
	follow(t, Rules{Style: "number", Page: "page", Size: "size", Default: 30}, []answered{
		{ask: "size=100", body: `{"rows":[1,2]}`, want: "page=1"},
		{ask: "size=20", body: `{"rows":[1,2]}`, open: "short"},
	})
}

func TestNumberThatSaysWhereItEnds(t *testing.T) {
	follow(t, Rules{Style: "number", Page: "page", Size: "size", Default: 2, Max: 2, Total: "meta.total"}, []answered{
		{ask: "", body: `{"rows":[1,2],"meta":{"total":5}}`, want: "page=1"},
		{ask: "page=1", body: `{"rows":[1],"meta":{"total":"5"}}`, want: "page=2"}, // a row of it was left out
		{ask: "page=2", body: `{"rows":[1],"meta":{"total":5}}`, open: "short"},
		{ask: "page=1", body: `{"rows":[1],"meta":{"total":5.0}}`, want: "page=2"},
		{ask: "page=1", body: `{"rows":[1,2],"meta":{"total":-1}}`, want: "page=2"},
		{ask: "page=1", body: `{"rows":[1,2],"meta":{"total":0}}`, want: "page=2"},
		{ask: "page=1", body: `{"rows":[1,2],"meta":{"total":4}}`, open: "silent"},
		{ask: "page=1", body: `{"rows":[],"meta":{"total":5}}`, want: "page=2"}, // all of its rows were left out
		{ask: "page=3", body: `{"rows":[],"meta":{"total":5}}`},
		{ask: "", body: `{"rows":[],"meta":{"total":0}}`},
		{ask: "", body: `{"rows":[1,2]}`, want: "page=1"},
		{ask: "", body: `{"rows":[1,2],"meta":{"total":"many"}}`, want: "page=1"},
		{ask: "page=4611686018427387904", body: `{"rows":[1],"meta":{"total":5}}`, why: "is not a page number"},
	})
	follow(t, Rules{Style: "number", Page: "page", Next: "more"}, []answered{
		{ask: "", body: `{"rows":[1],"more":true}`, want: "page=1"},
		{ask: "", body: `{"rows":[1,2,3],"more":false}`},
		{ask: "", body: `{"rows":[1,2,3],"more":null}`},
		{ask: "", body: `{"rows":[1,2,3]}`, open: "silent"},
		{ask: "", body: `{"rows":[1],"more":2}`, want: "page=1"}, // the next page's number
		{ask: "", body: `{"rows":[],"more":true}`, want: "page=1"},
	})
	follow(t, Rules{Style: "number", Page: "page", First: 1, Next: "header:X-Next-Page"}, []answered{
		{ask: "", body: `[1]`, header: "X-Next-Page: 2", want: "page=2"},
		{ask: "page=2", body: `[1]`, header: "X-Next-Page: "},
		{ask: "page=2", body: `[1]`, open: "silent"},
	})
	refused(t, map[string]Rules{
		"page is missing":                       {Style: "number"},
		"tokens: style number has no tokens":    {Style: "number", Page: "page", Tokens: []string{"after"}},
		"total has no effect with style header": {Style: "header", Total: "total"},
		"answer: write {more} at more":          {Style: "number", Page: "page", Next: "more", Template: `{"rows":{rows},"more":1}`},
		"answer: write {total} at count":        {Style: "number", Page: "page", Total: "count", Template: `{"rows":{rows},"count":0}`},
		"answer: write {total} at all.count":    {Style: "number", Page: "page", Total: "all.count", Template: `{"rows":{rows},"count":{total}}`},
	})
}
