package contents

import (
	"testing"

	"understudy/internal/checktest"
	"understudy/request"
)

// FuzzEntry: whatever the metadata of an object or an index file contains, reading it ends with a content or an error. What was read is
// written and read again unchanged.
func FuzzEntry(f *testing.F) {
	f.Add([]byte(`{"source":"a","uri":"/b","kind":"c","id":"d","within":["e"],"size":1,"sum":"00","at":"2026-06-01T12:00:00Z"}`))
	data, _ := encodeIndex(request.Content{Kind: "recordings", ID: "RE1", Size: 7})
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decodeIndex(data)
		if err != nil {
			return
		}
		written, err := encodeIndex(c)
		if err != nil {
			return // a time that JSON does not have
		}
		again, err := decodeIndex(written)
		checktest.NoError(t, err, "read again")
		checktest.Equal(t, again.Key, c.Key, "the key")
		checktest.Equal(t, again.Sum, c.Sum, "the sum")
	})
}
