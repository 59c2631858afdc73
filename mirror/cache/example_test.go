package cache_test

import (
	"fmt"

	"understudy"
	"understudy/mirror/cache"
)

// A page goes in packed and comes out as it was.
func Example() {
	tier, calls := cache.New(4<<20), cache.NewGroup("calls")
	page := &understudy.Page{
		Key: understudy.Key{Source: "twilio", URI: "/Calls.json"}, Kind: "calls", Shape: "calls", List: true,
		Status: 200, Body: []byte(`{"calls":[]}`),
	}
	tier.Put(tier.Pack(calls, page), nil)

	entry := tier.Find(page.Key)
	out, err := tier.Unpack(entry)
	fmt.Println(string(out.Body), err)
	fmt.Println(tier.Usage().Entries)
	// Output:
	// {"calls":[]} <nil>
	// 1
}
