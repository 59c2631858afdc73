// This file packs the index changes that a save leaves to a later transaction.

package index

import (
	"encoding/binary"

	"understudy/internal/store/codec"
	"understudy/internal/store/inverted"
	"understudy/internal/store/wordrows"
)

// appendTo appends the packed changes. Numbers are varints (encoding/binary):
//
//	length, entries to remove; length, entries to add
//	    an entry: the difference from the previous posting, 8 bytes of token
//	length, rows of words
//	    a row: its posting, 1 to remove it or 0, and for each column length and text
func (a *changes) appendTo(dst []byte) []byte {
	dst = appendEntries(appendEntries(dst, a.out), a.in)
	dst = binary.AppendUvarint(dst, uint64(len(a.words)))
	for i := range a.words {
		w := &a.words[i]
		out := byte(0)
		if w.Delete {
			out = 1
		}
		dst = append(binary.AppendVarint(dst, w.Posting), out)
		for _, text := range w.Row {
			dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
		}
	}
	return dst
}

func appendEntries(dst []byte, entries []inverted.Entry) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	last := int64(0)
	for _, e := range entries {
		dst = binary.AppendVarint(dst, e.Posting-last)
		dst, last = binary.LittleEndian.AppendUint64(dst, uint64(e.Token)), e.Posting
	}
	return dst
}

// parse reads packed changes from data and appends them to a.
func (a *changes) parse(data []byte) error {
	r := codec.NewReader(data)
	a.out = parseEntries(&r, a.out)
	a.in = parseEntries(&r, a.in)
	for range r.Count(r.Len()) {
		w := wordrows.Write{Posting: r.Varint(), Delete: r.Byte() != 0}
		for c := range w.Row {
			w.Row[c] = string(r.Take(r.Count(r.Len())))
		}
		a.words = append(a.words, w)
	}
	return r.End()
}

func parseEntries(r *codec.Reader, to []inverted.Entry) []inverted.Entry {
	posting := int64(0)
	for range r.Count(r.Len()) {
		posting += r.Varint()
		token := r.Take(8)
		if token == nil {
			break
		}
		to = append(to, inverted.Entry{Token: int64(binary.LittleEndian.Uint64(token)), Posting: posting})
	}
	return to
}
