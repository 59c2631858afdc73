package paging

import "testing"

func TestOffset(t *testing.T) {
	follow(t, Rules{Style: "offset", Page: "start", Size: "size", Default: 3, Max: 4}, []answered{
		{ask: "", body: `{"rows":[1,2,3]}`, want: "start=3"},
		{ask: "start=3", body: `{"rows":[1,2,3]}`, want: "start=6"},
		{ask: "start=6", body: `{"rows":[1]}`, open: "short"},
		{ask: "start=6", body: `{"rows":[]}`},
		{ask: "start=1&size=9", body: `{"rows":[1,2,3,4]}`, want: "start=5"},
		{ask: "start=x", body: `{"rows":[1]}`, why: `start: "x" is not a page number`},
	})
	// Upstream gives fewer rows than it is asked for, without a word: the total tells.
	follow(t, Rules{Style: "offset", Page: "start", Size: "size", Total: "total"}, []answered{
		{ask: "size=1000", body: `{"rows":[1,2],"total":5}`, want: "start=2"},
		{ask: "size=1000&start=2", body: `{"rows":[1,2],"total":5}`, want: "start=4"},
		{ask: "size=1000&start=4", body: `{"rows":[1],"total":5}`, open: "silent"},
		{ask: "size=1000&start=2", body: `{"rows":[],"total":5}`, want: "start=3"},
		{ask: "size=1000&start=5", body: `{"rows":[],"total":5}`},
		{ask: "start=2", body: `{"rows":[1,2]}`, want: "start=4"},
	})
	// The first row has the number 1.
	follow(t, Rules{Style: "offset", Page: "startIndex", First: 1, Size: "count", Total: "totalResults"}, []answered{
		{ask: "", body: `{"rows":[1,2],"totalResults":4}`, want: "startIndex=3"},
		{ask: "startIndex=3", body: `{"rows":[1,2],"totalResults":4}`, open: "silent"},
	})
	follow(t, Rules{Style: "offset", Page: "start", Total: "header:X-Total"}, []answered{
		{ask: "", body: `[1,2]`, header: "X-Total: 3", want: "start=2"},
		{ask: "start=2", body: `[1]`, header: "X-Total: 3", open: "silent"},
		{ask: "start=2", body: `[1]`, want: "start=3"},
	})
	// A page whose rows were all left out leads on all the same.
	follow(t, Rules{Style: "offset", Page: "start", Next: "next"}, []answered{
		{ask: "start=10", body: `{"rows":[],"next":20}`, want: "start=20"},
		{ask: "start=10", body: `{"rows":[],"next":"/things?size=5&start=15"}`, want: "start=15"},
		{ask: "start=10", body: `{"rows":[],"next":true}`, want: "start=11"},
		{ask: "start=10", body: `{"rows":[],"next":"/things?start=3"}`, want: "start=11"},
		{ask: "start=10", body: `{"rows":[],"next":null}`},
		{ask: "start=10", body: `{"rows":[1],"next":20}`, want: "start=11"},
	})
	refused(t, map[string]Rules{
		"page is missing":    {Style: "offset"},
		"more has no effect": {Style: "offset", Page: "start", More: "more"},
	})
}
