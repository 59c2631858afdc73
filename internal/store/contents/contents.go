// This file has the options of a folder of contents and its index in memory, and opens contents for reading.

// Package contents stores the contents of records, such as audio and images, as whole files.
package contents

import (
	"cmp"
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
	"understudy/kit/lockwatch"
	"understudy/request"
)

// The default values of Options.
const (
	filesLimit = 1 << 30
	fileLimit  = 64 << 20
	filesOpen  = 256
	openWait   = 5 * time.Second // maximum wait until another content is closed, if too many are open
	touchEvery = time.Hour       // minimum time between two updates of a file's time of last read on the disk
)

// Options are the settings of Files. A zero value means the default, where one is named.
type Options struct {
	Dir             string // the folder of the contents, which is created if it is missing; a Bucket has only temporary files in it; required
	S3              S3     // the bucket of a Bucket
	Limit           int64  // maximum bytes of all contents; default 1 GiB
	MaxContentBytes int64  // maximum bytes of one content; default 64 MiB
	MaxOpen         int    // the maximum number of contents open at once; default 256
	LoadLater       bool   // Open does not read the index, so the caller must call Load once
	// Erased reports whether a record was erased and must not be stored again. Then its contents are not stored either.
	// kind may be empty. A nil Erased means that no record was erased.
	Erased func(ctx context.Context, source, kind, id string) (bool, error)
	Now    func() time.Time // returns the current time; nil means time.Now
	Logger *slog.Logger     // receives errors; nil means that nothing is logged
}

// Store stores contents: Files in a folder, and Bucket in a bucket.
type Store interface {
	Get(context.Context, understudy.Key) (request.Content, io.ReadSeekCloser, error)
	Put(context.Context, request.Content, io.Reader) (request.Content, error)
	Confirm(key understudy.Key, at time.Time) error
	Forget(source, kind, id string) (gone int, err error)
	RetryRemovals() error
	Load(context.Context) error
	Stats() FilesStats
}

// OpenStore opens the bucket of the options, or the folder if they name no bucket.
func OpenStore(o Options) (Store, error) {
	if o.S3.URL == "" {
		return Open(o)
	}
	return OpenBucket(o)
}

// Files stores contents under the key of their media path. Above the limit it evicts the least recently read
// contents. It is safe for concurrent use, but only one process at a time may open a folder.
//
//	content/ab/abcd…  the bytes, under their SHA-256; two keys may share them
//	index/cd/cdef….json  the metadata of one key
//	new/  files being written
//
// The index is small files, not a table. A content appears and disappears with its own rename, without waiting
// for the database's only writer. So contents are served even while the database is full or locked. In memory
// an entry takes about 200 bytes; the other metadata is read together with the content.
//
// Every file is written in new/, synced and renamed: first the content, then its index file. They are removed
// in the opposite order. So after a crash every index file names a complete content, and the next start deletes
// contents without an index file.
type Files struct {
	o     Options
	slots chan struct{} // a channel that limits how many files are open at once

	disk      lockwatch.Mutex // locked while files are created or removed
	undeleted []*file         // files of forgotten contents that could not be deleted yet; guarded by disk

	mu      lockwatch.Mutex // guards the fields below; never locked while waiting for disk
	byKey   map[fileKey]*file
	refs    map[[32]byte]int // the number of keys whose contents have the same bytes, by the SHA-256 of the bytes
	loading loading
	recent  *list.List // the files in memory (*file), most recently read first
	bytes   int64      // bytes of all contents; a content of several keys is counted once
	putting map[*putting]struct{}
	stats   FilesStats
}

// fileKey identifies a key in memory and on the disk. It is half of the SHA-256 of the source and the URI.
type fileKey [16]byte

// file is what memory has about the content of one key.
type file struct {
	key     fileKey
	sum     [32]byte
	size    int64
	record  uint64   // the tag of the record that the content belongs to
	within  []uint64 // the tags of the other records in the path of the content
	touched time.Time
	at      *list.Element
}

// putting is a content that is being stored.
type putting struct {
	file      file
	forgotten bool // the record was forgotten while its content was being stored, so the content must not be stored
}

// FilesStats counts contents. All counts only grow, except Files and Bytes.
type FilesStats struct {
	Files           int64 // the number of stored keys
	Bytes           int64 // the bytes of all stored contents
	Limit           int64
	MaxContentBytes int64 // the maximum number of bytes of one content
	Evicted         int64 // the number of contents removed to stay under the limit
	Forgotten       int64 // the number of contents removed because their record was forgotten
	Failed          int64 // the number of contents not stored, for example because the disk was full
}

func (o *Options) setDefaults() {
	o.Limit = cmp.Or(max(o.Limit, 0), filesLimit)
	o.MaxContentBytes = cmp.Or(max(o.MaxContentBytes, 0), fileLimit)
	o.MaxOpen = cmp.Or(max(o.MaxOpen, 0), filesOpen)
	understudy.SetDefaults(&o.Logger, &o.Now)
}

// Open opens a folder, reads its index and removes files without a key. With Options.LoadLater, Load reads the index and
// removes the files instead.
func Open(o Options) (*Files, error) {
	o.setDefaults()
	if o.Dir == "" {
		return nil, errors.New("store: files: no folder was given")
	}
	f := &Files{
		o: o, slots: make(chan struct{}, o.MaxOpen), byKey: map[fileKey]*file{}, refs: map[[32]byte]int{},
		recent: list.New(), putting: map[*putting]struct{}{},
	}
	f.loading.on, f.loading.done = true, make(chan struct{})
	if err := f.makeFolders(); err != nil {
		return nil, fmt.Errorf("store: files: %w", err)
	}
	if o.LoadLater {
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

// tagOf returns the tag that stands for a record in memory, a hash. kind is "" for a record that a path names without
// its kind.
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

// Get opens the content of a key. The caller must close it. Errors: ErrNotFound; ErrUnavailable if too many contents
// are open; the context's error.
func (f *Files) Get(ctx context.Context, key understudy.Key) (request.Content, io.ReadSeekCloser, error) {
	if err := take(ctx, f.slots); err != nil {
		return request.Content{}, nil, fmt.Errorf("store: open content %s: %w", key, err)
	}
	c, r, err := f.get(key)
	if err != nil {
		<-f.slots
		return c, nil, fmt.Errorf("store: open content %s: %w", key, err)
	}
	return c, r, nil
}

// take waits for a free slot of the open contents.
func take(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case slots <- struct{}{}:
		return nil
	case <-time.After(openWait):
		return fmt.Errorf("%w: %d contents are being read", understudy.ErrUnavailable, cap(slots))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// get finds a content and opens its file. It returns ErrNotFound if there is none, or if the file is damaged.
func (f *Files) get(key understudy.Key) (request.Content, io.ReadSeekCloser, error) {
	k := keyOf(key)
	for range 2 { // tries twice, because the content may be replaced during the first try
		sum, touch, ok := f.find(k)
		if !ok {
			sum, ok = f.findUnlisted(k)
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
			_ = os.Chtimes(f.indexPath(k), now, now) // a failure only changes the order of eviction after a restart
		}
		return c, &contentReader{File: in, slots: f.slots}, nil
	}
	return request.Content{}, nil, understudy.ErrNotFound
}

// find looks up a key and records that its content was read. touch reports that the caller should also store the time
// of the read on the disk.
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

// contentReader is an open content. Closing it lets another content be opened.
type contentReader struct {
	*os.File
	slots chan struct{}
	once  sync.Once
}

// Close closes the file and lets another content be opened.
func (r *contentReader) Close() (err error) {
	r.once.Do(func() {
		err = r.File.Close()
		<-r.slots
	})
	return err
}

// Stats returns the current counts.
func (f *Files) Stats() FilesStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Files, s.Bytes, s.Limit = int64(len(f.byKey)), f.bytes, f.o.Limit
	s.MaxContentBytes = f.o.MaxContentBytes
	return s
}
