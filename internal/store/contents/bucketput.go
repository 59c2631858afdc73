// This file stores and forgets contents of a bucket.

package contents

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"understudy"
	"understudy/request"
)

// Put stores a content and replaces the former content of its key, as Files.Put does.
func (b *Bucket) Put(ctx context.Context, c request.Content, from io.Reader) (request.Content, error) {
	p := &putting{file: newFile(c)}
	b.mu.Lock()
	b.putting[p] = struct{}{}
	b.mu.Unlock()
	c, err := b.put(ctx, p, c, from)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.putting, p)
	if err != nil {
		b.stats.Failed++
		return c, fmt.Errorf("store: keep content %s: %w", c.Key, wrapError(err))
	}
	return c, nil
}

// put writes the content to a temporary file and then to the bucket.
func (b *Bucket) put(ctx context.Context, p *putting, c request.Content, from io.Reader) (request.Content, error) {
	path, c, err := writeTemp(filepath.Join(b.o.Dir, "new"), min(b.o.MaxContentBytes, b.o.Limit), c, from)
	if err != nil {
		return c, err
	}
	defer os.Remove(path) // a file that stays is removed at the next start
	in, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer in.Close()
	ctx, cancel := context.WithTimeout(ctx, bucketTime)
	defer cancel()
	earlier, err := b.find(ctx, p.file.key)
	if err != nil && !errors.Is(err, understudy.ErrNotFound) {
		return c, err
	}
	if s := b.Stats(); s.Bytes+c.Size > s.Limit {
		if err := b.sweep(ctx, c.Size); err != nil {
			return c, err
		}
	}
	return c, b.store(ctx, p, &c, earlier, in)
}

// markerName returns the name of the object by which Forget finds a content of a record.
func markerName(tag uint64, name string) string { return fmt.Sprintf("of/%016x/%s", tag, name) }

// store stores the objects of a content, and deletes the earlier contents. If the content must not be
// stored, store deletes what it has stored.
func (b *Bucket) store(ctx context.Context, p *putting, c *request.Content, earlier []object, in io.Reader) error {
	data, err := encodeIndex(*c)
	up := &upload{body: in, size: c.Size, sum: c.Sum, contentType: c.ContentType, entry: base64.RawURLEncoding.EncodeToString(data)}
	if err == nil && len(up.entry) > maxEntry {
		err = errLongPath
	}
	if err == nil {
		err = b.checkPut(ctx, p, c)
	}
	if err != nil {
		return err
	}
	name := b.newName(&p.file, c.At, earlier)
	for _, tag := range p.file.tags() {
		if err == nil {
			err = b.objects.request(ctx, http.MethodPut, markerName(tag, name), nil, nil)
		}
	}
	if err == nil {
		err = b.objects.request(ctx, http.MethodPut, "content/"+name, nil, up)
	}
	for _, tag := range p.file.tags() {
		if err == nil {
			err = b.objects.request(ctx, http.MethodHead, markerName(tag, name), nil, nil)
		}
	}
	if errors.Is(err, understudy.ErrNotFound) {
		err = errForgotten // by another process
	}
	if err == nil {
		err = b.checkPut(ctx, p, c)
	}
	if err != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), bucketWait)
		defer cancel()
		_, derr := b.objects.delete(late, "content/"+name)
		return errors.Join(err, derr)
	}
	b.mu.Lock()
	b.stats.Files += 1 - int64(len(earlier))
	b.stats.Bytes += c.Size
	for _, former := range earlier {
		b.stats.Bytes -= former.size
	}
	b.mu.Unlock()
	for _, former := range earlier {
		if _, err := b.objects.delete(ctx, former.name); err != nil {
			b.o.Logger.Warn("store: an earlier content cannot be removed", "error", err) // a reader gets the newest one
		}
	}
	return nil
}

// checkPut returns an error if the content must not be stored: its record was erased or forgotten meanwhile, or the caller has left.
func (b *Bucket) checkPut(ctx context.Context, p *putting, c *request.Content) error {
	b.mu.Lock()
	forgotten := p.forgotten
	b.mu.Unlock()
	if forgotten {
		return errForgotten
	}
	return errors.Join(ctx.Err(), b.o.checkErased(ctx, c))
}

// tags returns the tags of all records in the path of the content.
func (x *file) tags() []uint64 { return append([]uint64{x.record}, x.within...) }

// Confirm stores that the upstream still had the same content at the given time. It returns ErrNotFound if the content
// is not stored.
func (b *Bucket) Confirm(key understudy.Key, at time.Time) error {
	ctx, cancel := context.WithTimeout(context.Background(), bucketTime)
	defer cancel()
	earlier, err := b.find(ctx, keyOf(key))
	if err == nil {
		var c request.Content
		var in *os.File
		if c, in, err = b.objects.fetch(ctx, earlier[len(earlier)-1].name, filepath.Join(b.o.Dir, "new")); err == nil {
			c.At = at
			err = b.store(ctx, &putting{file: newFile(c)}, &c, earlier, in)
			_ = in.Close() // the transport may have closed it already
		}
	}
	if err != nil {
		return fmt.Errorf("store: confirm content %s: %w", key, err)
	}
	return nil
}

// Forget deletes the contents of a record and of the records below it, and cancels Puts of such contents, also those that another process
// has begun to store. It returns how many contents it deleted. After an error, RetryRemovals tries again.
func (b *Bucket) Forget(source, kind, id string) (gone int, err error) {
	what := recordTags{tagOf(source, kind, id), tagOf(source, "", id)}
	b.mu.Lock()
	for p := range b.putting {
		p.forgotten = p.forgotten || what.match(&p.file)
	}
	b.mu.Unlock()
	if gone, err = b.forget(what); err != nil {
		return gone, fmt.Errorf("store: forget contents of %s %s: %w", kind, id, err)
	}
	return gone, nil
}

// forget deletes the contents of a record and of the records below it.
func (b *Bucket) forget(what recordTags) (gone int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), bucketTime)
	defer cancel()
	for _, tag := range []uint64{what.record, what.within} {
		markers, lerr := b.objects.list(ctx, markerName(tag, ""))
		err = errors.Join(err, lerr)
		for _, one := range markers {
			found, derr := b.objects.delete(ctx, contentName(one.name))
			if found {
				gone++
			}
			if derr == nil {
				_, derr = b.objects.delete(ctx, one.name)
			}
			if derr == nil {
				_, derr = b.objects.delete(ctx, contentName(one.name)) // a Put may have stored it in between
			}
			err = errors.Join(err, derr)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Forgotten += int64(gone)
	b.stats.Files -= min(b.stats.Files, int64(gone)) // and Bytes at the next listing
	if delete(b.undeleted, what); err != nil {
		b.undeleted[what] = struct{}{}
	}
	return gone, err
}

// RetryRemovals tries again to delete what could not be deleted, and returns the errors.
func (b *Bucket) RetryRemovals() (err error) {
	b.mu.Lock()
	all := slices.Collect(maps.Keys(b.undeleted))
	b.mu.Unlock()
	for _, what := range all {
		if _, ferr := b.forget(what); ferr != nil {
			err = errors.Join(err, fmt.Errorf("store: forget contents: %w", ferr))
		}
	}
	return err
}
