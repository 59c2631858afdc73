// How a number's country is found.

package e164_test

import (
	"fmt"

	"understudy/kit/e164"
)

func ExampleCountry() {
	fmt.Println(e164.Country("442079460018"), e164.Country("14165550100"))
	// Output: GB CA
}
