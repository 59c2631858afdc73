// This file has a bucket of contents: it opens contents for reading, counts them, and evicts.

package contents

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"understudy"
	"understudy/internal/store/db"
	"understudy/kit/lockwatch"
	"understudy/request"
)

const (
	bucketTime  = 2 * time.Minute         // the maximum time of storing, reading or forgetting a content
	bucketSweep = 30 * time.Minute        // the interval between two listings, and the age of incomplete contents that are deleted
	entryHeader = "x-amz-meta-understudy" // the metadata that describe a content
	maxEntry    = 1900                    // the maximum bytes of the metadata, because S3 permits 2 KB
)

// bucketReason is the reason of all errors of the bucket.
const bucketReason = "the bucket cannot be used"

var errLongPath = &db.Fault{Reason: "its path is too long for the metadata of an object", Saving: true}

// Bucket stores contents in an S3-compatible store. Several processes may share a bucket. Above the limit it deletes the contents that
// were not stored or confirmed for the longest time. It is safe for concurrent use.
//
//	content/KEY/PUT    the bytes and, as metadata, what they are; each Put has another name, so an object never changes
//	of/RECORD/KEY/PUT  empty: one for each record in the path of the content, so that Forget finds the content
//
// PUT says when the content was stored, when the upstream last confirmed it, and how many records are in its path. A Put stores the
// objects of/… first, then the content, and then looks whether all are still there. Forget deletes the content, then of/…, and then
// the content again. So no content stays whose record was forgotten meanwhile, by whichever process. What a killed process leaves is
// deleted after a listing.
type Bucket struct {
	o       Options
	objects *objects
	slots   chan struct{}   // a channel that limits how many contents are open at once
	sweeps  lockwatch.Mutex // locked while the bucket is listed

	mu        lockwatch.Mutex
	putting   map[*putting]struct{}
	undeleted map[recordTags]struct{} // the records whose contents could not be deleted yet
	stats     FilesStats              // Files and Bytes are those of the last listing and what this process has stored since
}

// OpenBucket opens a bucket. Unless Options.LoadLater is set, it lists the contents. It returns an error if the folder Options.Dir has
// contents, because erasures would not reach them.
func OpenBucket(o Options) (*Bucket, error) {
	o.setDefaults()
	objects, err := newObjects(o.S3, o.Now)
	b := &Bucket{o: o, objects: objects, slots: make(chan struct{}, o.MaxOpen),
		putting: map[*putting]struct{}{}, undeleted: map[recordTags]struct{}{}}
	if err == nil {
		files := &Files{o: o}
		err = errors.Join(files.makeFolders(), visitFiles(filepath.Join(o.Dir, "content"), func(string, fs.FileInfo) error {
			return fmt.Errorf("the folder %s has contents, which no erasure reaches while store.contents names a bucket: delete the folder, "+
				"or remove store.contents from the settings", o.Dir)
		}))
	}
	if err == nil && !o.LoadLater {
		err = b.sweep(context.Background(), 0)
	}
	if err != nil {
		return nil, fmt.Errorf("store: files: %w", err)
	}
	return b, nil
}

// Load lists the contents again and again until ctx ends, because other processes store contents, too.
func (b *Bucket) Load(ctx context.Context) error {
	next := time.NewTicker(bucketSweep)
	defer next.Stop()
	for {
		if err := b.sweep(ctx, 0); err != nil && ctx.Err() == nil {
			b.o.Logger.Error("store: the contents of the bucket cannot be listed", "error", err)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sweep lists the bucket, and deletes contents and objects of/… that have had no partner for some time. If the contents and size more
// bytes are above the limit, it deletes contents until a tenth of the limit is free, so that not every Put has to list the bucket.
func (b *Bucket) sweep(ctx context.Context, size int64) error {
	b.sweeps.Lock()
	defer b.sweeps.Unlock()
	markers, err := b.objects.list(ctx, "of/")
	if err != nil {
		return err
	}
	contents, err := b.objects.list(ctx, "content/")
	if err != nil {
		return err
	}
	records, bytes, evicted, files := map[string]int{}, int64(0), int64(0), int64(0)
	for _, one := range markers {
		records[contentName(one.name)]++
	}
	for _, one := range contents {
		bytes += one.size
	}
	limit, old, kept := b.o.Limit, b.o.Now().Add(-bucketSweep), map[string]bool{}
	if bytes+size > limit {
		limit -= limit / 10
	}
	slices.SortFunc(contents, func(x, y object) int { return x.modified.Compare(y.modified) })
	for _, one := range contents {
		_, _, want := parseName(one.name)
		isPartial := records[one.name] < want && one.modified.Before(old)
		if kept[one.name] = !isPartial && bytes+size <= limit; kept[one.name] {
			files++
			continue
		}
		if !isPartial {
			evicted++
		}
		bytes -= one.size
		_, derr := b.objects.delete(ctx, one.name)
		err = errors.Join(err, derr)
	}
	for _, one := range markers {
		if !kept[contentName(one.name)] && one.modified.Before(old) {
			_, derr := b.objects.delete(ctx, one.name)
			err = errors.Join(err, derr)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Evicted += evicted
	b.stats.Files, b.stats.Bytes = files, bytes
	return err
}

// contentName returns the name of the content to which an object of/… belongs.
func contentName(marker string) string {
	_, name, _ := strings.Cut(strings.TrimPrefix(marker, "of/"), "/")
	return "content/" + name
}

// newName returns the name of a content that is stored now, later than the earlier contents of its key.
func (b *Bucket) newName(x *file, at time.Time, earlier []object) string {
	now := b.o.Now().UnixNano()
	if len(earlier) > 0 {
		stored, _, _ := parseName(earlier[len(earlier)-1].name)
		now = max(now, stored+1) // the clock of another process may be ahead
	}
	return fmt.Sprintf("%x/%016x-%016x-%x-%s", x.key, now, at.UnixNano(), len(x.tags()), rand.Text()[:8])
}

// parseName returns what the name of a content says.
func parseName(name string) (stored, at int64, records int) {
	_, _ = fmt.Sscanf(path.Base(name), "%x-%x-%x", &stored, &at, &records) // other names are older than all
	return stored, at, records
}

// find lists the contents of a key, the newest one last. It returns ErrNotFound if there is none.
func (b *Bucket) find(ctx context.Context, k fileKey) (all []object, err error) {
	all, err = b.objects.list(ctx, "content/"+hex.EncodeToString(k[:])+"/")
	if err == nil && len(all) == 0 {
		err = understudy.ErrNotFound
	}
	return all, err
}

// Get downloads the content of a key into a temporary file, compares its hash and opens it. The caller must close it. Errors:
// ErrNotFound; ErrUnavailable if too many contents are open; db.Fault if the bucket cannot be used; the context's error.
func (b *Bucket) Get(ctx context.Context, key understudy.Key) (request.Content, io.ReadSeekCloser, error) {
	if err := take(ctx, b.slots); err != nil {
		return request.Content{}, nil, fmt.Errorf("store: open content %s: %w", key, err)
	}
	c, in, err := b.open(ctx, key)
	if err != nil {
		<-b.slots
		return c, nil, fmt.Errorf("store: open content %s: %w", key, err)
	}
	return c, &contentReader{File: in, slots: b.slots}, nil
}

// open finds a content and downloads it. It deletes a content that is damaged.
func (b *Bucket) open(ctx context.Context, key understudy.Key) (c request.Content, in *os.File, err error) {
	all, err := b.find(ctx, keyOf(key))
	if err != nil {
		return c, nil, err
	}
	name := all[len(all)-1].name
	c, in, err = b.objects.fetch(ctx, name, filepath.Join(b.o.Dir, "new"))
	if errors.Is(err, understudy.ErrDamaged) || err == nil && c.Key != key {
		b.o.Logger.Error("store: a content is damaged and no longer served", "key", key.String())
		_, err = b.objects.delete(ctx, name)
		return c, nil, cmp.Or(err, understudy.ErrNotFound)
	}
	return c, in, err
}

// Stats returns the current counts.
func (b *Bucket) Stats() FilesStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Limit, s.MaxContentBytes = b.o.Limit, b.o.MaxContentBytes
	return s
}
