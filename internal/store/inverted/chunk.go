// This file packs sorted entries into chunks. A chunk is one row of a table.
//
// The body of a chunk consists of groups, one for each token. A group is the difference from the previous token (0 in
// the first group), the length in bytes of the postings, and the postings. The first posting of a group is stored as
// the difference from the chunk's first posting. Each further posting is the difference from the posting before. All
// numbers are varints (encoding/binary).

package inverted

import (
	"database/sql/driver"
	"encoding/binary"
	"iter"
	"slices"

	"understudy/internal/store/db"
	"understudy/internal/store/postings"
)

// maxChunk is the maximum length of a chunk's body in bytes. Four chunks fit on a page of the database.
const maxChunk = 2000

// chunk is one row of the table of chunks. Its first entry is its key.
type chunk struct {
	first Entry
	body  []byte
}

// chunkOf converts a result row with the columns token, posting and body.
func chunkOf(r []driver.Value) chunk {
	body, _ := r[2].([]byte)
	return chunk{Entry{r[0].(int64), r[1].(int64)}, body}
}

// pack packs as many of the entries as fit into one chunk, and at least one entry. n is their number.
func pack(entries []Entry) (c chunk, n int) {
	c.first = entries[0]
	c.body = make([]byte, 0, maxChunk)
	var group []byte
	token := c.first.Token
	for n < len(entries) {
		end := n + 1
		group = binary.AppendVarint(group[:0], entries[n].Posting-c.first.Posting)
		// Leave room for the group's token and length, at most ten bytes and two bytes.
		for end < len(entries) && entries[end].Token == entries[n].Token && len(c.body)+len(group) < maxChunk-24 {
			group = binary.AppendUvarint(group, encodeDifference(entries[end-1].Posting, entries[end].Posting))
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
			break // no room is left in the chunk
		}
	}
	c.body = slices.Clip(c.body)
	return c, n
}

// Most postings of a token have the same shape in their low bits. In the difference of two such postings these bits are
// zero and are omitted.
const shapeMask = 1<<postings.ShapeBits - 1

func encodeDifference(a, b int64) uint64 {
	d := uint64(b) - uint64(a)
	if d&shapeMask == 0 {
		return d >> postings.ShapeBits << 1
	}
	return d<<1 | 1
}

func decodeDifference(a int64, d uint64) int64 {
	if d&1 == 0 {
		return a + int64(d>>1<<postings.ShapeBits)
	}
	return a + int64(d>>1)
}

// groups returns each token with its packed postings. If the bytes are not a valid group, it sets err and stops.
func (c *chunk) groups(err *error) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		token := c.first.Token
		for body := c.body; len(body) > 0; {
			d, n := binary.Uvarint(body)
			length, m := binary.Uvarint(body[max(n, 0):])
			if n <= 0 || m <= 0 || length > uint64(len(body)-n-m) {
				*err = c.newDamageError()
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

// unpack appends the postings of a group to dst in ascending order.
func (c *chunk) unpack(dst []int64, group []byte) ([]int64, error) {
	d, n := binary.Varint(group)
	if n <= 0 {
		return dst, c.newDamageError()
	}
	at := c.first.Posting + d
	dst = append(dst, at)
	for group = group[n:]; len(group) > 0; group = group[n:] {
		var d uint64
		if d, n = binary.Uvarint(group); n <= 0 {
			return dst, c.newDamageError()
		}
		at = decodeDifference(at, d)
		dst = append(dst, at)
	}
	return dst, nil
}

// entryBytes is the approximate number of bytes that one entry takes in the body of a chunk.
const entryBytes = 6

// appendEntries appends all entries of a chunk to dst.
func (c *chunk) appendEntries(dst []Entry) (all []Entry, err error) {
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

// readPostings returns the postings of a token in ascending order. over reports that the chunk also has a larger token,
// so no later chunk of the run has this token.
func (c *chunk) readPostings(token int64) (all []int64, over bool, err error) {
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

func (c *chunk) newDamageError() error {
	return db.NewDamageError("the index of terms cannot be read at token %d, posting %d", c.first.Token, c.first.Posting)
}
