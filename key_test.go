// Keys: requests that must get the same bytes have the same one.

package understudy

import (
	"testing"

	"understudy/internal/checktest"
)

func TestKeyText(t *testing.T) {
	k := Key{Source: "s", URI: "/a?b"}
	checktest.Equal(t, k.String(), "s /a?b", "k.String()")
	checktest.Equal(t, k.Path(), "/a", "k.Path()")
	checktest.Equal(t, k.Query(), "b", "k.Query()")
	checktest.True(t, !k.IsZero(), "k.IsZero() is true")
	checktest.True(t, (Key{Source: "s"}).IsZero(), `(Key{Source: "s"}).IsZero() is false`)
}
