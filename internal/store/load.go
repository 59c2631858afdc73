// Loading: pages put together from versions, and single records.

package store

import (
	"context"
	"database/sql/driver"
	"time"

	"understudy"
	"understudy/internal/store/codec"
	"understudy/internal/store/records"
	"understudy/internal/store/sqlite"
)

var selectPage = &sqlite.Statement{Head: `SELECT p.list, p.status, p.generation, p.at, p.version, p.sum, p.size, p.body, p.kind,
	k.name, k.prefix, k.generation, h.name, h.slot, p.number, p.read
	FROM page p LEFT JOIN kind k ON k.number = p.kind LEFT JOIN shape h ON h.number = p.shape
	WHERE p.key = ? AND p.source = ?`}

// pageRow is a page's row.
type pageRow struct {
	list                    bool
	status                  int
	generation, at, version int64
	sum                     [16]byte
	size                    int64
	body                    []byte
	kind                    int64
	kindName, prefix, shape string
	kindGeneration, slot    int64
	number, read            int64
}

func (p *pageRow) scan(r []driver.Value) {
	p.list, p.status = r[0].(int64) != 0, int(r[1].(int64))
	p.generation, p.at, p.version = r[2].(int64), r[3].(int64), r[4].(int64)
	copy(p.sum[:], r[5].([]byte))
	p.size, p.body = r[6].(int64), r[7].([]byte)
	if p.kind = r[8].(int64); r[9] != nil {
		p.kindName, p.prefix, p.kindGeneration = r[9].(string), r[10].(string), r[11].(int64)
	}
	if r[12] != nil {
		p.shape, p.slot = r[12].(string), r[13].(int64)
	}
	p.number, p.read = r[14].(int64), r[15].(int64)
}

// lastRead is when the page was last read or saved, in Unix seconds.
func (p *pageRow) lastRead() int64 { return max(p.read, p.at/int64(time.Second)) }

// Page returns the held page of a key, put together from the versions it
// refers to and checked against its sum: what is returned is byte for byte
// what was saved, or an error that names the page. Superseded is found out
// anew each time. ErrNotFound: nothing is held. Took is 0.
func (db *DB) Page(ctx context.Context, key understudy.Key) (*understudy.Page, error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return nil, err
	}
	defer leave()
	source, ok := db.catalog.Source(key.Source)
	if !ok {
		return nil, sqlite.Failed(false, understudy.ErrNotFound, "page %s", key)
	}
	var p *understudy.Page
	err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
		row, sk, err := pageLoader{db}.findPage(c, source, key)
		if err != nil {
			return err
		}
		blocks := db.opener.Open(c)
		p, err = pageLoader{db}.assemble(row, sk, blocks)
		if err == nil {
			p.Key.Source, p.Next.Source = key.Source, sourceOf(key.Source, p.Next.URI)
			err = pageLoader{db}.supersede(c, p, row, blocks)
		}
		if err == nil {
			db.evictor.NoteRead(row.number, row.lastRead())
		}
		return err
	})
	if err != nil {
		return nil, sqlite.Failed(false, err, "page %s", key)
	}
	return p, nil
}

// sourceOf is the source of a link: none when there is no link.
func sourceOf(source, uri string) string {
	if uri == "" {
		return ""
	}
	return source
}

// pageLoader reads pages and puts them together.
type pageLoader struct{ *DB }

// findPage finds a page's row by the hash of its key, and makes sure that it
// is this key's.
func (db pageLoader) findPage(c *sqlite.Conn, source int64, key understudy.Key) (row *pageRow, sk *codec.Skeleton, err error) {
	err = c.Query(selectPage, 0, []driver.Value{keyHash(key), source}, func(r []driver.Value) error {
		var one pageRow
		one.scan(r)
		s, err := db.skeleton(one.body, one.size)
		if err == nil && s.URI == key.URI {
			row, sk = &one, s
		}
		return err
	})
	if err == nil && row == nil {
		err = understudy.ErrNotFound
	}
	return row, sk, err
}

// skeleton unpacks the skeleton of a page's row.
func (db pageLoader) skeleton(packed []byte, size int64) (*codec.Skeleton, error) {
	raw, err := db.opener.Packer.Unpack(nil, packed, int(size))
	if err != nil {
		return nil, sqlite.Damaged("its skeleton: %w", err)
	}
	sk, err := codec.ParseSkeleton(raw)
	if err != nil {
		return nil, sqlite.Damaged("its skeleton: %w", err)
	}
	return sk, nil
}

// assemble puts a page together; its keys lack the source, and Superseded is
// still to be found out.
func (db pageLoader) assemble(row *pageRow, sk *codec.Skeleton, blocks *records.Blocks) (*understudy.Page, error) {
	entries := make([]*codec.Entry, len(sk.Versions))
	for i, v := range sk.Versions {
		var err error
		if entries[i], err = blocks.Entry(v); err != nil {
			return nil, err
		}
	}
	body, rows, err := sk.Assemble(entries)
	if err != nil {
		return nil, sqlite.Damaged("its skeleton: %w", err)
	}
	if sumOf(body) != row.sum {
		return nil, sqlite.Damaged("it does not come out as it was saved")
	}
	return &understudy.Page{Key: understudy.Key{URI: sk.URI}, Kind: row.kindName, Shape: row.shape, List: row.list, ID: sk.ID,
		Status:      row.status,
		ContentType: sk.ContentType, Charset: sk.Charset, Body: body, Rows: rows, Next: understudy.Key{URI: sk.Next},
		At: time.Unix(0, row.at).UTC(), InitialAge: sk.InitialAge, Generation: row.generation, Version: row.version, Sum: row.sum}, nil
}

var selectPresent = &sqlite.Statement{Head: "SELECT count(*) FROM held WHERE number BETWEEN ? AND ? AND state & 4 = 0"}

var selectRecordHeld = &sqlite.Statement{Head: `SELECT h.number, h.version, h.seen, h.state, h.since FROM names n
	JOIN held h ON h.number = n.record * 64 + ?
	WHERE n.kind = ? AND n.id = ?`}

// Record returns the newest held version of a record in one shape. Its body
// belongs to the caller alone. ErrNotFound: it was never seen in that shape,
// or it is gone.
func (db *DB) Record(ctx context.Context, source, kind, shape, id string) (*understudy.Record, error) {
	leave, err := db.pool.Begin()
	if err != nil {
		return nil, err
	}
	defer leave()
	s := db.catalog.Shape(source, kind, shape)
	if s == nil {
		return nil, sqlite.Failed(false, understudy.ErrNotFound, "record %s %s %s", source, kind, id)
	}
	rec := &understudy.Record{Source: source, Kind: kind, Shape: shape, ID: id}
	err = db.pool.Read(ctx, func(c *sqlite.Conn) error {
		state, since := int64(records.Gone), int64(0)
		_, err := c.One(selectRecordHeld, []driver.Value{s.Slot, s.Kind.Number, sqlite.AppendID(nil, s.Kind.Prefix, id)}, func(r []driver.Value) {
			rec.Number, rec.Version, rec.Seen = r[0].(int64)/records.Slots, r[1].(int64), time.Unix(0, r[2].(int64)).UTC()
			state = r[3].(int64)
			since, _ = r[4].(int64)
		})
		if err == nil && state&(records.Gone|records.Forgotten) != 0 {
			err = understudy.ErrNotFound
		}
		if err != nil {
			return err
		}
		rec.Final, rec.Invalid = state&records.Final != 0, state&records.Invalid != 0
		if since == 0 {
			if since, err = records.MadeAt(c, rec.Version); err != nil {
				return err
			}
		}
		rec.Since = time.Unix(0, since).UTC()
		e, err := db.opener.Open(c).Entry(rec.Version)
		if err != nil {
			return err
		}
		// A copy, so that one record does not hold its whole block in memory.
		rec.Body = append(make([]byte, 0, len(e.Body)), e.Body...)
		return nil
	})
	if err != nil {
		return nil, sqlite.Failed(false, err, "record %s %s %s", source, kind, id)
	}
	return rec, nil
}
