// Every id has its number, whichever table it stands in.

package store

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/store/db"
	"understudy/internal/store/names"
	"understudy/internal/store/sqlite"
)

// namesModel is the tables of names beside a map that is right by construction.
type namesModel struct {
	t    *testing.T
	db   *DB
	rng  *rand.Rand
	is   map[string]int64 // kind and id: record
	all  []string
	last int64
}

func (m *namesModel) key(kind int64, id []byte) string { return string(rune('0'+kind)) + string(id) }

// put puts up to 64 new ids in one transaction, some of which are rolled back.
func (m *namesModel) put() {
	var args []driver.Value
	last, kept := m.last, map[string]int64{}
	for range 1 + m.rng.IntN(64) {
		kind, id := int64(1+m.rng.IntN(3)), binary.BigEndian.AppendUint64(nil, m.rng.Uint64())
		last++
		args = append(args, kind, id, last)
		kept[m.key(kind, id)] = last
	}
	undone := errors.New("rolled back")
	roll := m.rng.IntN(10) == 0
	err := m.write(func(c db.Conn) error {
		if err := m.db.scratch.names.Put(c, args, last); err != nil || !roll {
			return err
		}
		return undone
	})
	switch {
	case roll && errors.Is(err, undone):
		return
	case err != nil:
		m.t.Fatal(err)
	}
	m.last = last
	for key, record := range kept {
		m.is[key], m.all = record, append(m.all, key)
	}
}

func (m *namesModel) write(work func(c db.Conn) error) error {
	return m.db.pool.Write(m.t.Context(), func(c db.Conn) (bool, error) {
		return c.RunTransaction(context.Background(), func() error { return work(c) })
	})
}

// check asks for an id that is there, in its own kind and in another.
func (m *namesModel) check(key string) {
	kind, id := int64(key[0]-'0'), []byte(key[1:])
	err := m.write(func(c db.Conn) error {
		for _, k := range []int64{kind, kind%3 + 1} {
			n, err := names.FindRecord(c, k, id)
			if want := m.is[m.key(k, id)]; err != nil || n != want {
				m.t.Fatalf("kind %d: record %d, %v; want %d", k, n, err, want)
			}
		}
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// count is how many rows a table of names has.
func (m *namesModel) count(table string) (n int64) {
	err := m.write(func(c db.Conn) (err error) {
		n, err = c.(*sqlite.Conn).QueryInteger("SELECT count(*) FROM " + table)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}

func TestNamesMoveOn(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	db, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "understudy.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	m := &namesModel{t: t, db: db, rng: rand.New(rand.NewPCG(seed, 0)), is: map[string]int64{}}
	for len(m.all) < 40_000 {
		m.put()
		if len(m.all) == 0 { // the first transaction was rolled back
			continue
		}
		m.check(m.all[m.rng.IntN(len(m.all))])
		m.check(m.all[len(m.all)-1])
		if m.rng.IntN(100) == 0 {
			m.db.scratch.names = names.Table{} // as after a start
		}
	}
	recent, middle, rest := m.count("name_recent"), m.count("name_middle"), m.count("name")
	checktest.True(t, recent < 1000, "recent is %v, want < 1000", recent)
	checktest.True(t, middle <= 16_000, "middle is %v, want <= 16_000", middle)
	checktest.True(t, rest != 0, "rest is 0")
	checktest.Equal(t, recent+middle+rest, int64(len(m.all)), "recent+middle+rest")
	for _, key := range m.all {
		if m.rng.IntN(20) == 0 {
			m.check(key)
			m.erase(key)
		}
	}
}

// erase marks an id twice: only the first time changes it.
func (m *namesModel) erase(key string) {
	err := m.write(func(c db.Conn) error {
		for _, want := range []bool{true, false} {
			changed, err := names.MarkErased(c, int64(key[0]-'0'), []byte(key[1:]), names.Erased)
			if err != nil || changed != want {
				m.t.Fatalf("changed %v, %v; want %v", changed, err, want)
			}
		}
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
}
