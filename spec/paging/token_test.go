package paging

import (
	"testing"

	"understudy/internal/checktest"
)

func TestToken(t *testing.T) {
	follow(t, Rules{Style: "token", Next: "meta.next", Cursor: "cursor"}, []answered{
		{body: `{"rows":[1],"meta":{"next":"a b"}}`, want: "cursor=a b"},
		{body: `{"rows":[],"meta":{"next":"x"}}`, want: "cursor=x"}, // all rows of the page were left out
		{body: `{"rows":[1],"meta":{"next":7}}`, want: "cursor=7"},
		{body: `{"rows":[1],"meta":{"next":null}}`},
		{body: `{"rows":[1],"meta":{"next":""}}`},
		{body: `{"rows":[1],"meta":{"next":false}}`},
		{body: `{"rows":[1],"meta":{}}`, open: "unseen"},
		{body: `{"rows":[1],"meta":{"next":{ }}}`},
		{body: `{"rows":[1],"meta":{"next":[]}}`},
		{body: `{"rows":[1],"meta":{"next":{"after":"x"}}}`, why: "the token at meta.next is not a text"},
		{body: `{"rows":[1],"meta":{"next":["x"]}}`, why: "the token at meta.next is not a text"},
		{body: `{"rows":[1],"meta":{"next":"0"}}`},
		{body: `{"rows":[]}`},
		{body: `{"rows":[1]}`, open: "unseen"},
	})
	follow(t, Rules{Style: "token", Next: "next", More: "more", Cursor: "cursor"}, []answered{
		{body: `{"rows":[1],"next":"x","more":true}`, want: "cursor=x"},
		{body: `{"rows":[1],"next":"x","more":false}`},
		{body: `{"rows":[1],"next":"x"}`, want: "cursor=x"},
		{body: `{"rows":[1],"next":"x","more":"no"}`},
		{body: `{"rows":[1],"next":"x","more":"False"}`},
		{body: `{"rows":[1],"next":"x","more":"yes"}`, want: "cursor=x"},
		{body: `{"rows":[1],"next":null,"more":true}`, why: "it has no token for the next page"},
	})
	follow(t, Rules{Style: "token", Next: "header:X-Next", Cursor: "cursor"}, []answered{
		{body: `[1]`, header: "X-Next: abc", want: "cursor=abc"},
		{body: `[1]`, header: "X-Next: "},
		{body: `[1]`, open: "unseen"},
	})
	// A full page that has a token contradicts itself where it says that there is no more.
	follow(t, Rules{Style: "token", Next: "next", More: "more", Cursor: "cursor", Default: 2}, []answered{
		{body: `{"rows":[1,2],"next":"x","more":false}`, want: "cursor=x"},
		{body: `{"rows":[1],"next":"x","more":false}`},
		{body: `{"rows":[1,2],"next":null,"more":false}`},
	})
	// A full first page may repeat that no cursor was asked for.
	follow(t, Rules{Style: "token", Next: "meta.cursor", Cursor: "cursor", Default: 2}, []answered{
		{body: `{"rows":[1,2],"meta":{"cursor":null}}`, open: "unseen"},
		{body: `{"rows":[1],"meta":{"cursor":null}}`},
		{ask: "cursor=x", body: `{"rows":[1,2],"meta":{"cursor":null}}`},
	})
	refused(t, map[string]Rules{
		"next is missing":                         {Style: "token", Cursor: "cursor"},
		"cursor is missing":                       {Style: "token", Next: "next"},
		"answer: write {next_token} at next":      {Style: "token", Next: "next", Cursor: "c", Template: `{"rows":{rows},"next":{next}}`},
		"answer: write {next_token} at meta.next": {Style: "token", Next: "meta.next", Cursor: "c", Template: `{"rows":{rows}}`},
		"answer: write {more} at more": {Style: "token", Next: "next", More: "more", Cursor: "c",
			Template: `{"rows":{rows},"next":{next_token},"more":false}`},
	})
	whole := Rules{Style: "token", Next: "next", More: "more", Cursor: "c", Token: "t-{id}",
		Template: `{"rows":{rows},"next":{next_token},"more":{more}}`}
	err := whole.Check()
	checktest.MustNoError(t, err, "")
	checktest.Equal(t, whole.TokenParam(), "c", "whole.TokenParam()")
	checktest.True(t, whole.IsPosition("c"), `whole.IsPosition("c") is false`)
}
