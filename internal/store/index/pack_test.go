package index

import (
	"reflect"
	"testing"

	"understudy/internal/store/inverted"
	"understudy/internal/store/wordrows"
)

// FuzzPending reads any bytes as what is pending; what can be read is packed to what reads the
// same.
func FuzzPending(f *testing.F) {
	some := changes{
		out:   []inverted.Entry{{Token: 1 << 59, Posting: -5}, {Token: 7, Posting: -5}},
		in:    []inverted.Entry{{Token: 0, Posting: 1 << 62}},
		words: []wordrows.Write{{Posting: 9, Delete: true, Row: wordrows.Row{"00ba 00bb", 8: "00oc"}}, {Posting: 9}},
	}
	f.Add(some.appendTo(nil))
	f.Add([]byte{0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		var a, again changes
		if a.parse(data) != nil {
			return
		}
		if err := again.parse(a.appendTo(nil)); err != nil || !reflect.DeepEqual(a, again) {
			t.Fatalf("%v, %v, %v", err, a, again)
		}
		a.pending()
	})
}
