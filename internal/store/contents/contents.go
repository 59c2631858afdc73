// The folder of contents: its settings, its index in memory, reading and forgetting.

// Package contents keeps the contents of records (audio, images) whole, as files.
package contents

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"understudy"
	"understudy/request"
)

// Defaults of Options.
const (
	filesLimit = 1 << 30
	fileLimit  = 64 << 20
	filesOpen  = 256
	openWait   = 5 * time.Second // for another file to be closed
	touchEvery = time.Hour       // how often a read is noted on disk
)

// Options are the settings of Files; zero values are the defaults named.
type Options struct {
	Dir   string // made when it is missing; required
	Limit int64  // bytes of all contents: 1 GiB
	Most  int64  // bytes of one content: 64 MiB
	Open  int    // contents read at once: 256
	Later bool   // OpenFiles does not read the index; Load is called once, and does
	// Erased reports whether a record may not be stored again, so that none of
	// its contents is kept either; kind may be empty. nil: every record may.
	Erased func(ctx context.Context, source, kind, id string) (bool, error)
	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: discard
}

// Files keeps contents under their media path's key. When they pass the limit,
// what was not read for longest goes. It is safe for concurrent use; one
// process at a time may have a folder open.
//
//	content/ab/abcd…  the bytes, under their SHA-256; two keys may share them
//	index/cd/cdef….json  what is known of one key
//	new/  what is being written
//
// The index is small files and no table: a content comes and goes with its own
// rename, which needs no place in the database's one row of writers, and a
// database that is full or locked still plays what is held. In memory an entry
// costs about 200 bytes; the rest of what is known is read with the content.
//
// Every file is written in new/, synced and renamed: content first, then index;
// they are removed in the other order. So whatever a kill leaves behind, an
// index entry names a whole content, and what no entry names is swept at the
// next start.
type Files struct {
	o     Options
	slots chan struct{} // open files

	disk sync.Mutex // held while files come or go
	left []*file    // forgotten, and still on the disk; disk guards it

	mu      sync.Mutex // guards what follows; never held while disk is waited for
	byKey   map[fileKey]*file
	refs    map[[32]byte]int // keys that share a content
	loading loading
	recent  *list.List // of *file, the last read first
	bytes   int64      // of the contents, each counted once
	putting map[*putting]struct{}
	stats   FilesStats
}

// fileKey names a key in memory and on disk: half the SHA-256 of source and URI.
type fileKey [16]byte

// file is one key's content in memory.
type file struct {
	key     fileKey
	sum     [32]byte
	size    int64
	record  uint64   // whose content it is
	within  []uint64 // the records its path names beside it
	touched time.Time
	at      *list.Element
}

// putting is a content on its way in.
type putting struct {
	file    file
	spoiled bool // forgotten meanwhile: it must not be kept
}

// FilesStats counts contents. Counts only rise, but for Files and Bytes.
type FilesStats struct {
	Files     int64 // keys held
	Bytes     int64 // of their contents
	Limit     int64
	Most      int64 // bytes of one content
	Kept      int64 // put
	Evicted   int64 // removed to stay under the limit
	Forgotten int64 // removed because their record went
	Failed    int64 // could not be kept: too large, disk full
}

func (o *Options) defaults() {
	if o.Limit <= 0 {
		o.Limit = filesLimit
	}
	if o.Most <= 0 {
		o.Most = fileLimit
	}
	if o.Open <= 0 {
		o.Open = filesOpen
	}
	understudy.SetDefaults(&o.Logger, &o.Now)
}

// Open opens a folder, reads its index and removes what belongs to none; with
// Later, the last two are Load's.
func Open(o Options) (*Files, error) {
	o.defaults()
	if o.Dir == "" {
		return nil, errors.New("store: files: no folder was given")
	}
	f := &Files{
		o: o, slots: make(chan struct{}, o.Open), byKey: map[fileKey]*file{}, refs: map[[32]byte]int{},
		recent: list.New(), putting: map[*putting]struct{}{},
	}
	f.loading.on, f.loading.done = true, make(chan struct{})
	if err := f.folders(); err != nil {
		return nil, fmt.Errorf("store: files: %w", err)
	}
	if o.Later {
		return f, nil
	}
	if err := f.Load(context.Background()); err != nil {
		return nil, err
	}
	return f, nil
}

func keyOf(k understudy.Key) fileKey {
	sum := sha256.Sum256(append(append([]byte(k.Source), 0), k.URI...))
	return fileKey(sum[:16])
}

// tagOf names a record in memory. kind is "" for one that a path names without
// saying of which kind it is.
func tagOf(source, kind, id string) uint64 {
	sum := sha256.Sum256([]byte(source + "\x00" + kind + "\x00" + id))
	return binary.BigEndian.Uint64(sum[:8])
}

func (f *Files) contentPath(sum [32]byte) string {
	name := hex.EncodeToString(sum[:])
	return filepath.Join(f.o.Dir, "content", name[:2], name)
}

func (f *Files) indexPath(k fileKey) string {
	name := hex.EncodeToString(k[:])
	return filepath.Join(f.o.Dir, "index", name[:2], name+".json")
}

// Get opens the content held under a key; it must be closed. Errors:
// ErrNotFound; ErrUnavailable when too many are open; the context's.
func (f *Files) Get(ctx context.Context, key understudy.Key) (request.Content, io.ReadSeekCloser, error) {
	if err := f.take(ctx); err != nil {
		return request.Content{}, nil, fmt.Errorf("store: open content %s: %w", key, err)
	}
	c, r, err := f.get(key)
	if err != nil {
		<-f.slots
		return c, nil, fmt.Errorf("store: open content %s: %w", key, err)
	}
	return c, r, nil
}

// take waits for one of the open files.
func (f *Files) take(ctx context.Context) error {
	select {
	case f.slots <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(openWait)
	defer late.Stop()
	select {
	case f.slots <- struct{}{}:
		return nil
	case <-late.C:
		return fmt.Errorf("%w: %d contents are being read", understudy.ErrUnavailable, f.o.Open)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Files) get(key understudy.Key) (request.Content, io.ReadSeekCloser, error) {
	k := keyOf(key)
	for range 2 { // what was replaced between two looks is found at the second
		sum, touch, ok := f.find(k)
		if !ok {
			sum, ok = f.unlisted(k)
		}
		if !ok {
			break
		}
		c, err := readIndex(f.indexPath(k))
		if errors.Is(err, fs.ErrNotExist) || err == nil && (c.Sum != sum || c.Key != key) {
			continue
		}
		if err != nil {
			return c, nil, err
		}
		in, err := os.Open(f.contentPath(sum))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return c, nil, err
		}
		if info, err := in.Stat(); err != nil || info.Size() != c.Size {
			_ = in.Close()
			f.o.Logger.Error("store: a content is damaged and no longer served", "key", key.String())
			f.drop(k)
			break
		}
		if touch {
			now := f.o.Now()
			_ = os.Chtimes(f.indexPath(k), now, now) // the order after a restart, nothing more
		}
		return c, &contentReader{File: in, slots: f.slots}, nil
	}
	return request.Content{}, nil, understudy.ErrNotFound
}

// find looks a key up and notes that it was read; touch says that this should
// be noted on disk, too.
func (f *Files) find(k fileKey) (sum [32]byte, touch, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.byKey[k]
	if x == nil {
		return sum, false, false
	}
	f.recent.MoveToFront(x.at)
	if now := f.o.Now(); now.Sub(x.touched) >= touchEvery || now.Before(x.touched) {
		x.touched, touch = now, true
	}
	return x.sum, touch, true
}

// contentReader is an open content.
type contentReader struct {
	*os.File
	slots chan struct{}
	once  sync.Once
}

// Close gives the file back.
func (r *contentReader) Close() (err error) {
	r.once.Do(func() {
		err = r.File.Close()
		<-r.slots
	})
	return err
}

// Stats are the counts now.
func (f *Files) Stats() FilesStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Files, s.Bytes, s.Limit = int64(len(f.byKey)), f.bytes, f.o.Limit
	s.Most = f.o.Most
	return s
}
