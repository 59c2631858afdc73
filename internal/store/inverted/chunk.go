// Chunks: sorted entries packed in one row.
//
// A body is groups, one a token: the difference to the token before (0 in the first), the length of what follows in
// bytes, and the postings. The first posting of a group is its difference to the chunk's first posting; each further
// one is its difference to the one before. All are varints (encoding/binary).

package inverted

import (
	"database/sql/driver"
	"encoding/binary"
	"iter"
	"slices"

	"understudy/internal/store/postings"
	"understudy/internal/store/sqlite"
)

// maxChunk is how long a chunk's body is at most, in bytes: four fit on a page of the database.
const maxChunk = 2000

// chunk is a row: its first entry is its key.
type chunk struct {
	first Entry
	body  []byte
}

// chunkOf reads the columns token, posting and body.
func chunkOf(r []driver.Value) chunk {
	body, _ := r[2].([]byte)
	return chunk{Entry{r[0].(int64), r[1].(int64)}, body}
}

// pack packs as many of the entries as fit in one chunk, at least one, and says how many.
func pack(entries []Entry) (c chunk, n int) {
	c.first = entries[0]
	c.body = make([]byte, 0, maxChunk)
	var group []byte
	token := c.first.Token
	for n < len(entries) {
		end := n + 1
		group = binary.AppendVarint(group[:0], entries[n].Posting-c.first.Posting)
		// Room for the group's token and length, ten bytes and two at most.
		for end < len(entries) && entries[end].Token == entries[n].Token && len(c.body)+len(group) < maxChunk-24 {
			group = binary.AppendUvarint(group, difference(entries[end-1].Posting, entries[end].Posting))
			end++
		}
		if n > 0 && len(c.body)+len(group) > maxChunk-12 {
			break
		}
		c.body = binary.AppendUvarint(c.body, uint64(entries[n].Token-token))
		c.body = binary.AppendUvarint(c.body, uint64(len(group)))
		c.body = append(c.body, group...)
		token, n = entries[n].Token, end
		if end < len(entries) && entries[end].Token == token {
			break // the chunk is full
		}
	}
	c.body = slices.Clip(c.body)
	return c, n
}

// The postings of a token are mostly of one shape, which is in the low bits: then
// these bits of a difference are zero and are left out.
const shapeMask = 1<<postings.ShapeBits - 1

func difference(a, b int64) uint64 {
	d := uint64(b) - uint64(a)
	if d&shapeMask == 0 {
		return d >> postings.ShapeBits << 1
	}
	return d<<1 | 1
}

func following(a int64, d uint64) int64 {
	if d&1 == 0 {
		return a + int64(d>>1<<postings.ShapeBits)
	}
	return a + int64(d>>1)
}

// groups gives each token and its packed postings. What is no group ends them, and err says so.
func (c *chunk) groups(err *error) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		token := c.first.Token
		for body := c.body; len(body) > 0; {
			d, n := binary.Uvarint(body)
			length, m := binary.Uvarint(body[max(n, 0):])
			if n <= 0 || m <= 0 || length > uint64(len(body)-n-m) {
				*err = c.damaged()
				return
			}
			token += int64(d)
			if !yield(token, body[n+m:n+m+int(length)]) {
				return
			}
			body = body[n+m+int(length):]
		}
	}
}

// unpack appends the postings of a group to dst, rising.
func (c *chunk) unpack(dst []int64, group []byte) ([]int64, error) {
	d, n := binary.Varint(group)
	if n <= 0 {
		return dst, c.damaged()
	}
	at := c.first.Posting + d
	dst = append(dst, at)
	for group = group[n:]; len(group) > 0; group = group[n:] {
		var d uint64
		if d, n = binary.Uvarint(group); n <= 0 {
			return dst, c.damaged()
		}
		at = following(at, d)
		dst = append(dst, at)
	}
	return dst, nil
}

// entryBytes is about how much of a body an entry takes.
const entryBytes = 6

// entries appends all entries of a chunk to dst.
func (c *chunk) entries(dst []Entry) (all []Entry, err error) {
	var room [64]int64
	buf := room[:]
	if need := len(c.body) / entryBytes; cap(dst)-len(dst) < need {
		dst = slices.Grow(dst, max(need, len(dst)))
	}
	for token, group := range c.groups(&err) {
		if buf, err = c.unpack(buf[:0], group); err != nil {
			break
		}
		for _, posting := range buf {
			dst = append(dst, Entry{token, posting})
		}
	}
	return dst, err
}

// postingsOf are those of a token, rising. over reports that a larger token
// follows: no later chunk of the run has this one.
func (c *chunk) postingsOf(token int64) (all []int64, over bool, err error) {
	for t, group := range c.groups(&err) {
		if over = t > token; over {
			break
		}
		if t == token {
			if all, err = c.unpack(all, group); err != nil {
				break
			}
		}
	}
	return all, over, err
}

func (c *chunk) damaged() error {
	return sqlite.Damaged("the index of terms cannot be read at token %d, posting %d", c.first.Token, c.first.Posting)
}
