// Keys: requests that must get the same bytes have the same one.

package understudy

import (
	"testing"
)

func TestKeyText(t *testing.T) {
	k := Key{Source: "s", URI: "/a?b"}
	if k.String() != "s /a?b" || k.Path() != "/a" || k.Query() != "b" || k.IsZero() || !(Key{Source: "s"}).IsZero() {
		t.Errorf("%s %s %s", k, k.Path(), k.Query())
	}
}
