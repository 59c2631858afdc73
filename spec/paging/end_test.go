package paging

import "testing"

// What says that there is more contradicts the end of a list, wherever an answer has it.
func TestAnAnswerThatSaysMoreRefutesTheEnd(t *testing.T) {
	follow(t, Rules{Style: "none"}, []answered{
		{body: `{"rows":["a"],"pagination":{"moreData":true}}`, open: "refuted"},
		{body: `{"rows":[1],"response":{"a":{"b":{"pageInfo":{"hasNextPage":true}}}}}`, open: "refuted"},
		{body: `{"rows":[1],"links":[{"rel":"self","href":"/a"},{"rel":"next","href":"/b"}]}`, open: "refuted"},
		{body: `{"rows":[1],"links":[{"rel":"self","href":"/a"},{"rel":"next","href":""},"x"]}`},
		{body: `{"rows":[1],"links":[{"rel":"self","href":"/a"}]}`, open: "alone"},
		{body: `{"rows":[1],"total":{"value":57,"relation":"eq"}}`, open: "refuted"},
		{body: `{"rows":[1],"total":{"value":1,"relation":"eq"}}`, open: "alone"},
		{body: `{"rows":[1],"incomplete_results":true}`, open: "refuted"},
		{body: `{"rows":[1],"incomplete_results":false}`, open: "alone"},
		{body: `{"rows":[1,2],"limit":2}`, open: "refuted"},
		{body: `{"rows":[1,2],"limit":3,"size":2}`, open: "alone"},
		{body: `[1,2]`, header: "Content-Range: items 0-1/57", open: "refuted"},
		{body: `[1,2]`, header: "Content-Range: items 0-1/2", open: "alone"},
		{body: `[1,2]`, header: "Content-Range: items 0-1/*", open: "alone"},
		{body: `[1,2]`, header: `Link: </a?page=6>; rel="last"`, open: "refuted"},
		{body: `[1,2]`, header: `Link: </a?page=1>; rel="last"`, open: "alone"},
	})
	follow(t, Rules{Style: "header", Page: "page", First: 1}, []answered{
		{body: `[1,2]`, header: `Link: </a?page=6>; rel="last"`, open: "refuted"},
		{ask: "page=6", body: `[1,2]`, header: `Link: </a?page=6>; rel="last"`},
	})
	// The last page of a list may be as long as its limit.
	follow(t, Rules{Style: "token", Next: "next", Cursor: "after"}, []answered{
		{body: `{"rows":[1,2],"next":null,"limit":2}`},
	})
}
