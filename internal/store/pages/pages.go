// Package pages rebuilds stored pages from the versions that they refer to, and decides whether a page may still be
// used as a fresh response.
package pages

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"slices"
	"time"

	"understudy"
	"understudy/internal/store/catalog"
	"understudy/internal/store/codec"
	"understudy/internal/store/db"
	"understudy/internal/store/records"
)

var selectPage = &db.Statement{Head: `SELECT p.list, p.status, p.generation, p.at, p.version, p.sum, p.size, p.body, p.kind,
	k.name, k.prefix, k.generation, h.name, h.slot, p.number, p.read
	FROM page p LEFT JOIN kind k ON k.number = p.kind LEFT JOIN shape h ON h.number = p.shape
	WHERE p.key = ? AND p.source = ?`}

// Row is the row of a page in the database.
type Row struct {
	List                    bool
	status                  int
	generation, at, version int64
	sum                     [16]byte
	Size                    int64
	Body                    []byte
	Kind                    RowKind
	shape                   rowShape
	Number, read            int64
}

// rowShape is the shape of a page's records.
type rowShape struct {
	name string
	slot int64
}

// RowKind is the kind of a page's records. The number is 0 if the page has none.
type RowKind struct {
	Number, generation int64
	name, prefix       string
}

// Scan reads the columns of selectPage.
func (p *Row) Scan(r []driver.Value) {
	p.List, p.status = r[0].(int64)&1 != 0, int(r[1].(int64))
	p.generation, p.at, p.version = r[2].(int64), r[3].(int64), r[4].(int64)
	copy(p.sum[:], r[5].([]byte))
	p.Size, p.Body = r[6].(int64), r[7].([]byte)
	if p.Kind.Number = r[8].(int64); r[9] != nil {
		p.Kind.name, p.Kind.prefix, p.Kind.generation = r[9].(string), r[10].(string), r[11].(int64)
	}
	if r[12] != nil {
		p.shape.name, p.shape.slot = r[12].(string), r[13].(int64)
	}
	p.Number, p.read = r[14].(int64), r[15].(int64)
}

// Reader reads pages. It is safe for concurrent use.
type Reader struct {
	pool     *db.Pool
	loader   *Loader
	noteRead func(page, before int64)
}

// NewReader returns a reader of a file. For each page that is read, it calls noteRead with the page's number and the
// time when the page was last read before, in Unix seconds.
func NewReader(pool *db.Pool, loader *Loader, noteRead func(page, before int64)) *Reader {
	return &Reader{pool: pool, loader: loader, noteRead: noteRead}
}

// ReadPage returns the stored page of a key. It rebuilds the page from the versions that the page refers to, and checks
// its hash. So the result is byte for byte the saved page, or an error that names the page. ReadPage computes
// Superseded anew each time, and Took is 0. It returns ErrNotFound if the page is not stored.
func (r *Reader) ReadPage(ctx context.Context, key understudy.Key) (*understudy.Page, error) {
	var p *understudy.Page
	err := r.pool.Read(ctx, func(c db.Conn) error {
		source, ok := r.loader.catalog.Source(key.Source)
		if !ok {
			return understudy.ErrNotFound
		}
		row, sk, err := r.loader.Find(c, source, key)
		if err != nil {
			return err
		}
		blocks := r.loader.records.Open(c)
		p, err = r.loader.Assemble(row, sk, blocks)
		if err == nil {
			if p.Key.Source = key.Source; p.Next.URI != "" {
				p.Next.Source = key.Source
			}
			err = r.loader.markSuperseded(c, p, row, blocks)
		}
		if err == nil {
			r.noteRead(row.Number, max(row.read, row.at/int64(time.Second)))
		}
		return err
	})
	if err != nil {
		return nil, db.WrapError(false, err, "page %s", key)
	}
	return p, nil
}

// Loader rebuilds pages in a read transaction of its caller. It is safe for concurrent use.
type Loader struct {
	catalog *catalog.Catalog
	records *records.Opener
}

// NewLoader returns a loader for a file.
func NewLoader(catalog *catalog.Catalog, records *records.Opener) *Loader {
	return &Loader{catalog: catalog, records: records}
}

// Expect announces that the open transaction will Find a page.
func (l *Loader) Expect(c db.Conn, source int64, key understudy.Key) error {
	return c.Expect(selectPage, 0, KeyHash(key), source)
}

// Find finds the row of a page by the hash of the page's key, and checks that the page has this key. It returns
// ErrNotFound if there is no such page.
func (l *Loader) Find(c db.Conn, source int64, key understudy.Key) (row *Row, sk *codec.Skeleton, err error) {
	err = c.Query(selectPage, 0, []driver.Value{KeyHash(key), source}, func(r []driver.Value) error {
		var one Row
		one.Scan(r)
		s, err := l.UnpackSkeleton(one.Body, one.Size)
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

// UnpackSkeleton unpacks the skeleton of a page's row.
func (l *Loader) UnpackSkeleton(packed []byte, size int64) (*codec.Skeleton, error) {
	raw, err := l.records.Packer.Unpack(nil, packed, int(size))
	if err != nil {
		return nil, db.NewDamageError("its skeleton: %w", err)
	}
	sk, err := codec.ParseSkeleton(raw)
	if err != nil {
		return nil, db.NewDamageError("its skeleton: %w", err)
	}
	return sk, nil
}

// Assemble rebuilds a page. Its keys lack the source, and Superseded is not computed yet.
func (l *Loader) Assemble(row *Row, sk *codec.Skeleton, blocks *records.Blocks) (*understudy.Page, error) {
	entries := make([]*codec.Entry, len(sk.Versions))
	for i, v := range sk.Versions {
		var err error
		if entries[i], err = blocks.ReadEntry(v); err != nil {
			return nil, err
		}
	}
	body, rows, err := sk.Assemble(entries)
	if err != nil {
		return nil, db.NewDamageError("its skeleton: %w", err)
	}
	if SumOf(body) != row.sum {
		return nil, db.NewDamageError("the rebuilt body differs from the saved body")
	}
	why := ""
	if len(rows) == 0 {
		rows, why = understudy.OutageRows(sk.Kept)
		rows = slices.DeleteFunc(rows, func(r understudy.Row) bool { return r.End > len(body) }) // only a damaged file has such rows
	}
	return &understudy.Page{Key: understudy.Key{URI: sk.URI}, Kind: row.Kind.name, Shape: row.shape.name, List: row.List, ID: sk.ID,
		Status:      row.status,
		ContentType: sk.ContentType, Charset: sk.Charset, Header: sk.Kept, Body: body, Rows: rows, Next: understudy.Key{URI: sk.Next},
		At: time.Unix(0, row.at).UTC(), InitialAge: sk.InitialAge, Generation: row.generation, Version: row.version, Sum: row.sum,
		NotStored: why}, nil
}

var selectPresent = &db.Statement{Head: "SELECT count(*) FROM held WHERE number BETWEEN ? AND ? AND state & 4 = 0"}

// KeyHash returns the hash by which a page is found. Different keys may have the same hash, so the caller must also
// compare the URI.
func KeyHash(k understudy.Key) int64 {
	var buf [256]byte
	text := append(append(append(buf[:0], k.Source...), 0), k.URI...)
	sum := sha256.Sum256(text)
	return int64(binary.LittleEndian.Uint64(sum[:]))
}

// SumOf returns the Sum of a page with this body.
func SumOf(body []byte) [16]byte {
	sum := sha256.Sum256(body)
	return [16]byte(sum[:16])
}
