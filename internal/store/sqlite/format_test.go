// Pages of any content against the parser of SQLite's file format.

package sqlite

import (
	"slices"
	"testing"
)

// FuzzTreePage makes sure that no page, however broken, makes the walk claim a
// byte twice or panic.
func FuzzTreePage(f *testing.F) {
	page := make([]byte, 512)
	page[0] = tableLeaf
	f.Add(page, uint32(2))
	page = slices.Clone(page)
	copy(page, []byte{indexInterior, 0, 12, 0, 2, 1, 0})
	f.Add(page, uint32(1))
	l := layout{size: 512, usable: 512, pages: 10}
	f.Fuzz(func(t *testing.T, data []byte, number uint32) {
		data = append(data, make([]byte, 512)...)[:512]
		p, err := l.parse(number, data)
		if err != nil {
			return
		}
		if len(p.used) != l.size || p.isLeaf() != (len(p.children) == 0) {
			t.Fatalf("%d children on a page of kind %d", len(p.children), p.kind)
		}
	})
}
