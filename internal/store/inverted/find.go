// This file finds the postings of tokens in all runs.

package inverted

import (
	"database/sql/driver"
	"math"
	"slices"

	"understudy/internal/store/db"
	"understudy/internal/store/postings"
)

var (
	selectFloors = &db.Statement{Head: "SELECT r.number, t.token, t.posting, t.body FROM term_run r CROSS JOIN term_chunk t ON " +
		"t.rowid = (SELECT f.rowid FROM term_chunk f WHERE f.run = r.number AND (f.token, f.posting) <= (?, ?) " +
		"ORDER BY f.token DESC, f.posting DESC LIMIT 1)",
		Standard: "SELECT r.number, t.token, t.posting, t.body FROM term_run r CROSS JOIN LATERAL (SELECT token, posting, body " +
			"FROM term_chunk f WHERE f.run = r.number AND (f.token, f.posting) <= (?, ?) ORDER BY f.token DESC, f.posting DESC LIMIT 1) t",
		Reads: db.Index}
	selectAfter = &db.Statement{Head: "SELECT token, posting, body FROM term_chunk WHERE run = ? AND (token, posting) > (?, ?) " +
		"ORDER BY token, posting LIMIT 1", Reads: db.Index}
)

// find returns an iterator over the written postings of any of the tokens. It reads nothing before the first call of
// Advance.
func find(c db.Conn, up, even bool, tokens ...int64) postings.Iterator {
	return &finder{c: c, up: up, even: even, tokens: tokens}
}

type finder struct {
	c      db.Conn
	up     bool
	even   bool // the value of Pending.Even
	tokens []int64
	all    postings.Iterator // the postings of all tokens, or nil until the first read
}

func (f *finder) Advance(from int64) (int64, bool, error) {
	if f.all == nil {
		var found []postings.Iterator
		for _, token := range f.tokens {
			some, err := f.open(token, from)
			if err != nil {
				return 0, false, err
			}
			found = append(found, some...)
		}
		f.all = postings.Unite(f.up, found...)
	}
	return f.all.Advance(from)
}

// open returns, for each run, an iterator over the postings of a token, beginning at from. In descending order it leaves
// out runs without the token, unless the finder is even: then the number of reads must not depend on the token.
func (f *finder) open(token, from int64) (found []postings.Iterator, err error) {
	if f.up || f.even {
		runs, err := readRuns(f.c)
		for _, r := range runs {
			one := &cursor{c: f.c, up: f.up, run: r.number, token: token}
			if f.even && err == nil {
				err = one.readEvenly(from)
			}
			found = append(found, one)
		}
		return found, err
	}
	err = f.c.Query(selectFloors, 0, []driver.Value{token, from}, func(r []driver.Value) error {
		one := &cursor{c: f.c, run: r[0].(int64), token: token}
		chunk := chunkOf(r[1:])
		if err := one.take(&chunk, from); err != nil {
			return err
		}
		if !one.ended || len(one.postings) > 0 {
			found = append(found, one)
		}
		return nil
	})
	return found, err
}

// cursor iterates over the postings of a token in one run. It holds the postings of one chunk at a time.
type cursor struct {
	c          db.Conn
	up         bool
	run, token int64

	postings []int64 // the postings in the order of iteration
	ended    bool    // no other chunk of the run has postings of the token
}

func (u *cursor) Advance(from int64) (int64, bool, error) {
	for {
		u.postings = u.postings[postings.Skip(u.postings, from, u.up):]
		if len(u.postings) > 0 {
			return u.postings[0], true, nil
		}
		if u.ended {
			return 0, false, nil
		}
		if err := u.read(from); err != nil {
			return 0, false, err
		}
	}
}

// read reads the chunk that may contain from. In ascending order it also reads the next chunk if the first chunk has no
// posting at or after from.
func (u *cursor) read(from int64) error {
	at := Entry{u.token, from}
	one, ok, err := readFloor(u.c, u.run, at)
	if err == nil && ok {
		at, err = one.first, u.take(&one, from)
	}
	if err != nil || u.ended || len(u.postings) > 0 {
		return err
	}
	u.ended = true
	if !u.up {
		return nil
	}
	ok, err = db.QueryRow(u.c, selectAfter, []driver.Value{u.run, at.Token, at.Posting}, func(r []driver.Value) { one = chunkOf(r) })
	if err != nil || !ok {
		return err
	}
	return u.take(&one, from)
}

// readEvenly reads the chunk that may contain from, and the next chunk in the cursor's order, whether they have
// postings of the token or not. If there is no such chunk, it reads another chunk. So the number of reads does not
// depend on whether records have the token.
func (u *cursor) readEvenly(from int64) error {
	at := Entry{u.token, from}
	one, ok, err := readFloor(u.c, u.run, at)
	if err == nil && ok {
		at, err = one.first, u.take(&one, from)
	} else if err == nil {
		_, _, err = readFloor(u.c, u.run, maxEntry)
	}
	if err != nil {
		return err
	}
	first, ended := u.postings, ok && u.ended
	if u.up {
		ok, err = db.QueryRow(u.c, selectAfter, []driver.Value{u.run, at.Token, at.Posting}, func(r []driver.Value) { one = chunkOf(r) })
	} else {
		one, ok, err = readFloor(u.c, u.run, Entry{at.Token, at.Posting - 1})
	}
	if err == nil && !ok {
		_, _, err = readFloor(u.c, u.run, maxEntry)
	}
	if u.ended = ended || !ok; err != nil || u.ended {
		return err
	}
	err = u.take(&one, from)
	u.postings = append(first, u.postings...)
	return err
}

// maxEntry is greater than every entry.
var maxEntry = Entry{math.MaxInt64, math.MaxInt64}

// take takes the postings of the token from a chunk, beginning at from.
func (u *cursor) take(one *chunk, from int64) error {
	all, over, err := one.readPostings(u.token)
	if err != nil {
		return err
	}
	if u.up {
		u.ended = over || one.first.Token > u.token
	} else {
		u.ended = one.first.Token < u.token
		slices.Reverse(all)
	}
	u.postings = all[postings.Skip(all, from, u.up):]
	return nil
}

// rangeFinder iterates over the postings of the tokens from first to last; see Pending.FindRange.
type rangeFinder struct {
	c           db.Conn
	up          bool
	first, last int64
	out, in     []Entry
	all         *postings.Slice // the postings of all tokens, or nil until the first read
}

func (b *rangeFinder) Advance(from int64) (int64, bool, error) {
	if b.all == nil {
		found, err := b.read()
		if err != nil {
			return 0, false, err
		}
		slices.Sort(found)
		if found = slices.Compact(found); !b.up {
			slices.Reverse(found)
		}
		b.all = &postings.Slice{Up: b.up, Spots: found}
	}
	return b.all.Advance(from)
}

// read reads from each run the last chunk that may have one of the tokens, the chunk before it, and further chunks that
// may have one of the tokens. If there is no such chunk, it reads another chunk. So the number of reads does not depend
// on whether records have the tokens.
func (b *rangeFinder) read() (found []int64, err error) {
	for _, e := range b.in {
		found = append(found, e.Posting)
	}
	runs, err := readRuns(b.c)
	for _, r := range runs {
		at := Entry{b.last, math.MaxInt64}
		for n := 0; err == nil && (n < 2 || at.Token >= b.first); n++ {
			var one chunk
			var ok bool
			if one, ok, err = readFloor(b.c, r.number, at); ok {
				at = Entry{one.first.Token, one.first.Posting - 1}
				found, err = b.take(found, &one)
			} else if at.Token = -1; err == nil {
				_, _, err = readFloor(b.c, r.number, maxEntry)
			}
		}
	}
	return found, err
}

// take appends the postings that a chunk has for the tokens from first to last.
func (b *rangeFinder) take(dst []int64, one *chunk) (all []int64, err error) {
	for token, group := range one.groups(&err) {
		if token < b.first || token > b.last {
			continue
		}
		n := len(dst)
		if dst, err = one.unpack(dst, group); err != nil {
			break
		}
		dst = dst[:n+len(slices.DeleteFunc(dst[n:], func(posting int64) bool {
			_, gone := slices.BinarySearchFunc(b.out, Entry{token, posting}, Compare)
			return gone
		}))]
	}
	return dst, err
}
