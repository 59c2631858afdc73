// This file stores annotations as rows of the database and keeps all of them in memory, because lists and searches need
// the annotation of every record.

// Package annotations stores what people write about records: notes, and marks that a record is handled.
package annotations

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"understudy"
	"understudy/internal/store/catalog"
	"understudy/internal/store/db"
	"understudy/kit/lockwatch"
)

// maxBytes is the maximum size of all notes in memory.
const maxBytes = 32 << 20

// bytesPerNote is how many bytes of memory a note takes in addition to its text and its author.
const bytesPerNote = 200

var (
	selectAll = &db.Statement{Head: `SELECT a.number, s.name, k.name, a.id, a.author, a.at, a.text FROM annotation a
		JOIN kind k ON k.number = a.kind JOIN source s ON s.number = k.source ORDER BY a.number`}
	insertRow = &db.Statement{Head: "INSERT INTO annotation (kind, record, id, author, at, text) VALUES (?, ?, ?, ?, ?, ?) " +
		"RETURNING number"}
	deleteHandled = &db.Statement{Head: "DELETE FROM annotation WHERE record = ? AND text = ''"}
	deleteRecord  = &db.Statement{Head: "DELETE FROM annotation WHERE record = ?"}
	selectTexts   = &db.Statement{Head: "SELECT number, author, text FROM annotation"}
	deleteNumber  = &db.Statement{Head: "DELETE FROM annotation WHERE number = ?"}
	selectName    = &db.Statement{Head: "SELECT record, erased FROM names WHERE kind = ? AND id = ?"}
)

// place identifies a record by source, kind and id.
type place struct{ source, kind, id string }

// Book stores annotations. It is safe for concurrent use.
type Book struct {
	pool    *db.Pool
	catalog *catalog.Catalog
	mu      lockwatch.RWMutex // guards the fields below; only the goroutine with the writing connection changes them
	byPlace map[place]*understudy.Annotation
	bytes   int64
	version int64 // a number that grows with every change of an annotation
}

// New returns the annotations of a database. Load reads them.
func New(pool *db.Pool, catalog *catalog.Catalog) *Book {
	return &Book{pool: pool, catalog: catalog, byPlace: map[place]*understudy.Annotation{}}
}

// Load reads all annotations into memory. The caller has the writing connection.
func (b *Book) Load(c db.Conn) error {
	of, bytes := map[place]*understudy.Annotation{}, int64(0)
	err := db.VisitRows(c, selectAll, nil, func(r []driver.Value) {
		at := place{r[1].(string), r[2].(string), r[3].(string)}
		a := of[at]
		if a == nil {
			a = &understudy.Annotation{Source: at.source, Kind: at.kind, ID: at.id}
			of[at] = a
		}
		n := understudy.Note{Number: r[0].(int64), By: r[4].(string), At: time.Unix(0, r[5].(int64)).UTC(), Text: r[6].(string)}
		bytes += sizeOf(n)
		if n.Text == "" {
			a.Handled = &understudy.Mark{By: n.By, At: n.At}
		} else {
			a.Notes = append(a.Notes, n)
		}
	})
	if err != nil {
		return fmt.Errorf("read the annotations: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byPlace, b.bytes = of, bytes
	b.version++
	return nil
}

// Reload reads all annotations into memory again, after rows were deleted from the database only.
func (b *Book) Reload(ctx context.Context) error {
	return b.pool.Write(ctx, func(c db.Conn) (bool, error) {
		return c.RunReading(ctx, func() error { return b.Load(c) })
	})
}

func sizeOf(n understudy.Note) int64 { return int64(len(n.Text) + len(n.By) + bytesPerNote) }

// Annotation returns the annotation of a record, or nil if there is none.
func (b *Book) Annotation(source, kind, id string) *understudy.Annotation {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.byPlace[place{source, kind, id}]
}

// Annotations returns the annotations of a kind, in no order.
func (b *Book) Annotations(source, kind string) (all []*understudy.Annotation) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for at, a := range b.byPlace {
		if at.source == source && at.kind == kind {
			all = append(all, a)
		}
	}
	return all
}

// AnnotationsVersion returns a number that grows with every change of an annotation.
func (b *Book) AnnotationsVersion() int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.version
}

// AddNote writes a note on a record. It does not repeat a note if the last note on the record has the same text
// and author. Errors: ErrInvalid for a text that is empty, above understudy.MaxNote bytes or not UTF-8, and for
// a record with understudy.MaxNotes notes; ErrNotFound for a record that is not stored; ErrNotStored, also if
// there is no room for more notes.
func (b *Book) AddNote(ctx context.Context, source, kind, id string, n understudy.Note) error {
	n.Text = strings.TrimSpace(n.Text)
	switch {
	case n.Text == "":
		return fmt.Errorf("%w: the note is empty", understudy.ErrInvalid)
	case len(n.Text) > understudy.MaxNote:
		return fmt.Errorf("%w: the note has %d bytes, and %d at most are kept; shorten it", understudy.ErrInvalid, len(n.Text),
			understudy.MaxNote)
	case !utf8.ValidString(n.Text) || strings.ContainsRune(n.Text, 0):
		return fmt.Errorf("%w: the note is not a text in UTF-8", understudy.ErrInvalid)
	}
	r := place{source, kind, id}
	return b.change(ctx, r, "write a note", func(c db.Conn, record int64, a *understudy.Annotation) error {
		if i := len(a.Notes) - 1; i >= 0 && a.Notes[i].Text == n.Text && a.Notes[i].By == n.By {
			return nil
		} else if i+1 >= understudy.MaxNotes {
			return fmt.Errorf("%w: a record can have %d notes; remove one first", understudy.ErrInvalid, i+1)
		}
		written, err := b.insert(c, r, record, n)
		a.Notes = append(slices.Clip(a.Notes), written)
		return err
	})
}

// RemoveNote deletes a note of a record. Errors: ErrNotFound if there is no such note, ErrNotStored.
func (b *Book) RemoveNote(ctx context.Context, source, kind, id string, number int64) error {
	r := place{source, kind, id}
	return b.change(ctx, r, "remove a note", func(c db.Conn, record int64, a *understudy.Annotation) error {
		i := slices.IndexFunc(a.Notes, func(n understudy.Note) bool { return n.Number == number })
		if i < 0 {
			return fmt.Errorf("%w: there is no such note", understudy.ErrNotFound)
		}
		a.Notes = slices.Concat(a.Notes[:i], a.Notes[i+1:])
		return c.Execute(deleteNumber, 0, number)
	})
}

// MarkHandled marks a record as handled, or removes the mark if m is nil. The first mark stays; another mark
// changes nothing. It returns the same errors as AddNote.
func (b *Book) MarkHandled(ctx context.Context, source, kind, id string, m *understudy.Mark) error {
	r := place{source, kind, id}
	return b.change(ctx, r, "mark a record", func(c db.Conn, record int64, a *understudy.Annotation) error {
		switch {
		case (m != nil) == (a.Handled != nil):
			return nil
		case m == nil:
			a.Handled = nil
			return c.Execute(deleteHandled, 0, record)
		}
		a.Handled = m
		_, err := b.insert(c, r, record, understudy.Note{By: m.By, At: m.At})
		return err
	})
}

func (b *Book) kind(r place) *catalog.Kind { return b.catalog.Kind(r.source, r.kind) }

// insert writes a row and returns the note with its number.
func (b *Book) insert(c db.Conn, r place, record int64, n understudy.Note) (understudy.Note, error) {
	b.mu.RLock()
	bytes := b.bytes
	b.mu.RUnlock()
	if bytes+sizeOf(n) > maxBytes {
		return n, fmt.Errorf("%w: all notes together may take %d MiB; remove some first", understudy.ErrNotStored, maxBytes>>20)
	}
	n.At = n.At.UTC()
	_, err := db.QueryRow(c, insertRow, []driver.Value{b.kind(r).Number, record, r.id, n.By, n.At.UnixNano(), n.Text},
		func(row []driver.Value) { n.Number = row[0].(int64) })
	return n, err
}

// change changes the annotation of a record: first the rows in a transaction, then the memory. work receives a copy of
// the annotation and changes it.
func (b *Book) change(ctx context.Context, r place, what string,
	work func(c db.Conn, record int64, a *understudy.Annotation) error) error {
	err := b.pool.ChangeDurably(ctx, func(c db.Conn) error {
		record, err := b.findRecord(c, r)
		if err != nil {
			return err
		}
		a := understudy.Annotation{Source: r.source, Kind: r.kind, ID: r.id}
		if old := b.Annotation(r.source, r.kind, r.id); old != nil {
			a = *old
		}
		b.pool.MarkChanged(db.Annotations)
		b.pool.CallAfterCommit(func() { b.set(r, &a) })
		return work(c, record, &a)
	})
	return db.WrapError(true, err, "%s", what)
}

// findRecord returns the number of a record that is stored and was not erased.
func (b *Book) findRecord(c db.Conn, r place) (record int64, err error) {
	k, erased := b.kind(r), int64(0)
	if k == nil {
		return 0, errNotHeld
	}
	_, err = db.QueryRow(c, selectName, []driver.Value{k.Number, db.AppendID(nil, k.Prefix(), r.id)}, func(row []driver.Value) {
		record, erased = row[0].(int64), row[1].(int64)
	})
	if err == nil && (record == 0 || erased != 0) {
		err = errNotHeld
	}
	return record, err
}

// errNotHeld is the error for an annotation of a record that is not stored.
var errNotHeld = fmt.Errorf("%w: the record is not stored", understudy.ErrNotFound)

func bytesOf(a *understudy.Annotation) (n int64) {
	for _, one := range a.Notes {
		n += sizeOf(one)
	}
	if a.Handled != nil {
		n += sizeOf(understudy.Note{By: a.Handled.By})
	}
	return n
}

// set replaces the annotation of a record in memory.
func (b *Book) set(r place, a *understudy.Annotation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.byPlace[r]; old != nil {
		b.bytes -= bytesOf(old)
	}
	b.bytes += bytesOf(a)
	b.version++
	if len(a.Notes) == 0 && a.Handled == nil {
		delete(b.byPlace, r)
	} else {
		b.byPlace[r] = a
	}
}
