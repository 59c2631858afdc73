package fake

import (
	"testing"

	"understudy/internal/slowapi/format"
)

func TestSIDsInvert(t *testing.T) {
	c := NewCipher(1)
	seen := map[string]bool{}
	for i := range int64(2000) {
		sid := string(c.AppendSID(nil, "CA", int(i%3), 'C', i*i))
		index, ok := c.Index(sid, int(i%3), 'C')
		if !ok || index != i*i || seen[sid] || !format.IsSID(sid, "CA") {
			t.Fatalf("%s: %d %v", sid, index, ok)
		}
		seen[sid] = true
		if _, ok := c.Index(sid, int(i%3)+1, 'C'); ok {
			t.Fatalf("%s is of two accounts", sid)
		}
		if _, ok := c.Index(sid, int(i%3), 'M'); ok {
			t.Fatalf("%s is of two kinds", sid)
		}
	}
}
