package fake

import (
	"testing"

	"understudy/internal/checktest"
	"understudy/internal/slowapi/format"
)

func TestSIDsInvert(t *testing.T) {
	c := NewCipher(1)
	seen := map[string]bool{}
	for i := range int64(2000) {
		sid := string(c.AppendSID(nil, "CA", int(i%3), 'C', i*i))
		index, ok := c.Index(sid, int(i%3), 'C')
		checktest.MustTrue(t, ok, "%s: ok is false", sid)
		checktest.MustEqual(t, index, i*i, "%s: index", sid)
		checktest.MustTrue(t, !seen[sid], "%s: seen[sid] is true", sid)
		checktest.MustTrue(t, format.IsSID(sid, "CA"), `%s: format.IsSID(sid, "CA") is false`, sid)
		seen[sid] = true
		if _, ok := c.Index(sid, int(i%3)+1, 'C'); ok {
			t.Fatalf("%s is of two accounts", sid)
		}
		if _, ok := c.Index(sid, int(i%3), 'M'); ok {
			t.Fatalf("%s is of two kinds", sid)
		}
	}
}
