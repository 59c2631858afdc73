// Ids: what goes in comes out, and nothing that comes in from a damaged file does harm.

package db_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"understudy/internal/checktest"
	"understudy/internal/store/db"
)

// TestIDsAreShort: an id of each usual form takes at most 17 bytes, and is read back exactly.
func TestIDsAreShort(t *testing.T) {
	const uuid = "ad91e02b-a147-4c47-aa8c-1f3c2240c0df"
	for _, c := range []struct {
		prefix, id string
		size       int // 0 means the text and a byte
	}{
		{"+CA", "CAad91e02ba1474c47aa8c1f3c2240c0df", 17}, {"CA", "CAad91e02ba1474c47aa8c1f3c2240c0df", 17},
		{"+", uuid, 17}, {"+user_", "user_" + uuid, 17}, {"+user_", "user_rZHgK6FHTEeqjB88IkDA3w", 17}, {"+", "rZHgK6FHTEeqjB88IkDA3w", 17},
		{"+", "ad91e02ba1474c47aa8c1f3c2240c0df", 17}, {"+user_", "user_01234567890123456789012345678901", 17},
		{"+", "CAad91e02ba1474c47aa8c1f3c2240c0df", 19},
		{"+job_", "job_7N42dgm5tFLK9N8MT7fHC7", 17}, {"+", "0", 1}, {"+", "7", 2}, {"+", "18446744073709551615", 9},
		{"+ch_", "ch_3MmlLrLkdIwHu7ix0snN0B15", 19}, {"+", "007", 2}, {"+", "18446744073709551616", 16},
		{"+", strings.ToUpper(uuid), 0}, {"+user_", uuid, 0}, {"", uuid, 0}, {"+", "ad91e02b-a147-4c47-aa8c1-f3c2240c0df", 0}, {"+", "", 0},
		{"+user_", "user_", 0}, {"+", "+7", 0}, {"+", "rZHgK6FHTEeqjB88IkDA3\n", 0}, {"+", "é", 0},
	} {
		stored := db.AppendID(nil, c.prefix, c.id)
		if c.size == 0 {
			c.size = len(c.id) + 1
		}
		checktest.Equal(t, len(stored), c.size, "bytes of %q with the prefix %q", c.id, c.prefix)
		checkID(t, c.prefix, c.id)
	}
}

// checkID checks that an id is read back exactly.
func checkID(t checktest.T, prefix, id string) {
	got, err := db.DecodeID(prefix, db.AppendID(nil, prefix, id))
	checktest.NoError(t, err, "decode %q with the prefix %q", id, prefix)
	checktest.Equal(t, got, id, "the id with the prefix %q", prefix)
}

// TestAnyIDIsReadBack: whatever an id looks like, its stored form gives it back, so different ids have different forms.
func TestAnyIDIsReadBack(t *testing.T) {
	like := rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9]{1,22}`), rapid.StringMatching(`[A-Za-z0-9_-]{20,24}`),
		rapid.StringMatching(`[0-9A-Za-z]{1,70}`), rapid.StringMatching(`[0-9a-fA-F-]{36}`), rapid.StringMatching(`([A-Z]{2})?[0-9a-fA]{32}`),
		rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`))
	rapid.Check(t, func(t *rapid.T) {
		prefix := rapid.SampledFrom([]string{"", "+", "CA", "+CA", "+user_"}).Draw(t, "prefix")
		checkID(t, prefix, rapid.SampledFrom([]string{"", strings.TrimPrefix(prefix, "+")}).Draw(t, "with")+like.Draw(t, "id"))
	})
}

func FuzzID(f *testing.F) {
	hex := strings.Repeat("0123456789abcdef", 2)
	for _, id := range []string{"", "CA" + hex, "SM" + hex, "CA" + hex + "~SM" + hex, "~", "CA" + strings.ToUpper(hex), "\x01" + hex[:16],
		"x"} {
		f.Add("CA", id)
		f.Add("", id)
	}
	for _, id := range []string{"ad91e02b-a147-4c47-aa8c-1f3c2240c0df", "user_7N42dgm5tFLK9N8MT7fHC7", "007", "rZHgK6FHTEeqjB88IkDA3w"} {
		f.Add("+user_", id)
		f.Add("+", id)
	}
	f.Fuzz(func(t *testing.T, prefix, id string) {
		stored := db.AppendID([]byte("before"), prefix, id)[6:]
		if got, err := db.DecodeID(prefix, stored); err != nil || got != id {
			t.Fatalf("%q came back as %q, %v", id, got, err)
		}
		_, _ = db.DecodeID(prefix, []byte(id))
	})
}
