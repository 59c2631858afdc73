package slide_test

import (
	"fmt"
	"time"

	"understudy"
	"understudy/mirror/slide"
)

func Example() {
	lists, at := slide.New(), time.Unix(1000, 0)
	one := &understudy.Page{Key: understudy.Key{Source: "shop", URI: "/orders"}, At: at, Rows: []understudy.Row{{ID: "b"}, {ID: "a"}}}
	two := &understudy.Page{Key: understudy.Key{Source: "shop", URI: "/orders?page=2"}, At: at, Rows: []understudy.Row{{ID: "0"}}}
	lists.AddFetched("orders", one, at, true)
	lists.AddFetched("orders", two, at, true)
	fmt.Println(lists.IsCurrent("orders", two.Key, two.At, at))

	later := at.Add(time.Minute)
	anew := &understudy.Page{Key: one.Key, At: later, Rows: []understudy.Row{{ID: "c"}, {ID: "b"}}}
	fmt.Println("moved:", lists.AddFetched("orders", anew, later, true))
	fmt.Println(lists.IsCurrent("orders", two.Key, two.At, later))
	// Output:
	// true
	// moved: true
	// false
}
