// The set of records that have changed.

package seek

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRecordSet puts records in and takes them out, as a map has them.
func TestRecordSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var set recordSet
		want := map[int64]bool{}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			record, in := rapid.Int64Range(0, 300).Draw(t, "record"), rapid.Bool().Draw(t, "in")
			set.set(record, in)
			want[record] = in
		}
		for record := range int64(400) {
			if set.has(record) != want[record] {
				t.Fatalf("record %d: %v", record, set.has(record))
			}
		}
	})
}
