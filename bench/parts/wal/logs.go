package wal

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	tidwall "github.com/tidwall/wal"
	"go.etcd.io/bbolt"
	_ "modernc.org/sqlite" // the driver

	"understudy/kit/wal"
)

// log is one way to keep entries: put returns when its entry is durable.
type log struct {
	name string
	open func(dir string) (put func(context.Context, []byte) error, end func() error, err error)
}

const (
	ours   = "kit/wal"
	sqlite = "SQLite, WAL, synchronous FULL"
)

// logs has ours first. bbolt.Batch is tuned: it waits half a millisecond for others, not ten.
var logs = []log{
	{ours, openOurs},
	{"bbolt, Update", func(dir string) (func(context.Context, []byte) error, func() error, error) {
		return openBolt(dir, (*bbolt.DB).Update)
	}},
	{"bbolt, Batch", func(dir string) (func(context.Context, []byte) error, func() error, error) {
		return openBolt(dir, (*bbolt.DB).Batch)
	}},
	{sqlite, openSQLite},
	{"tidwall/wal", openTidwall},
}

func openOurs(dir string) (func(context.Context, []byte) error, func() error, error) {
	l, err := wal.Open(dir, wal.Options{})
	if err != nil {
		return nil, nil, err
	}
	put := func(ctx context.Context, entry []byte) error {
		_, err := l.Append(ctx, entry)
		return err
	}
	return put, l.Close, nil
}

func openBolt(dir string, write func(*bbolt.DB, func(*bbolt.Tx) error) error) (func(context.Context, []byte) error, func() error, error) {
	db, err := bbolt.Open(filepath.Join(dir, "db"), 0o600, &bbolt.Options{NoFreelistSync: true, InitialMmapSize: 1 << 28})
	if err != nil {
		return nil, nil, err
	}
	db.MaxBatchDelay = 500 * time.Microsecond
	name := []byte("log")
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(name)
		return err
	})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	var last atomic.Uint64
	put := func(_ context.Context, entry []byte) error {
		n := last.Add(1)
		key := []byte{byte(n >> 40), byte(n >> 32), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
		return write(db, func(tx *bbolt.Tx) error {
			b := tx.Bucket(name)
			b.FillPercent = 1 // keys nearly ascend
			return b.Put(key, entry)
		})
	}
	return put, db.Close, nil
}

func openSQLite(dir string) (func(context.Context, []byte) error, func() error, error) {
	db, err := sql.Open("sqlite", filepath.Join(dir, "db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE log (n INTEGER PRIMARY KEY, entry BLOB NOT NULL)`); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	insert, err := db.Prepare(`INSERT INTO log (entry) VALUES (?)`)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	put := func(ctx context.Context, entry []byte) error {
		_, err := insert.ExecContext(ctx, entry)
		return err
	}
	return put, func() error { return errors.Join(insert.Close(), db.Close()) }, nil
}

// openTidwall numbers the entries itself, as that log asks of its callers.
func openTidwall(dir string) (func(context.Context, []byte) error, func() error, error) {
	l, err := tidwall.Open(filepath.Join(dir, "log"), nil) // every write is flushed
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	last := uint64(0)
	put := func(_ context.Context, entry []byte) error {
		mu.Lock()
		defer mu.Unlock()
		last++
		return l.Write(last, entry)
	}
	return put, l.Close, nil
}
