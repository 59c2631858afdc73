// This file stores, evicts and forgets contents.

package contents

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"understudy"
	"understudy/internal/store/db"
	"understudy/kit/wal"
	"understudy/request"
)

// Put stores a content and replaces the former content of its key. from must deliver all of the content: c.Size bytes,
// or any number of bytes if c.Size is negative. Put returns c with the actual size and hash. If the content cannot be
// stored, it returns ErrNotStored with the reason, and nothing is stored. That includes errors of from, the end of ctx,
// and a record that was forgotten meanwhile.
func (f *Files) Put(ctx context.Context, c request.Content, from io.Reader) (request.Content, error) {
	p := &putting{file: newFile(c)}
	f.mu.Lock()
	f.putting[p] = struct{}{}
	f.mu.Unlock()
	c, err := f.put(ctx, p, c, from)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.putting, p)
	if err != nil {
		f.stats.Failed++
		return c, fmt.Errorf("store: keep content %s: %w", c.Key, wrapError(err))
	}
	return c, nil
}

func newFile(c request.Content) file {
	x := file{key: keyOf(c.Key), sum: c.Sum, size: c.Size, record: tagOf(c.Key.Source, c.Kind, c.ID)}
	for _, id := range c.ParentIDs {
		x.within = append(x.within, tagOf(c.Key.Source, "", id))
	}
	return x
}

// wrapError adds the reason why a content was not stored.
func wrapError(err error) error {
	reason := ""
	var fault *db.Fault
	switch {
	case errors.As(err, &fault) && fault.Saving:
		return err
	case fault != nil:
		reason = fault.Reason
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		reason = "disk full"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		reason = "too many open files"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		reason = "the folder of contents cannot be written"
	case errors.Is(err, syscall.EIO):
		reason = "disk I/O error"
	default:
		reason = "the content did not come whole"
	}
	return &db.Fault{Reason: reason, Saving: true, Err: err}
}

var (
	errLarge     = &db.Fault{Reason: "larger than one content may be", Saving: true}
	errErased    = &db.Fault{Reason: "erased", Saving: true}
	errForgotten = &db.Fault{Reason: "its record was forgotten meanwhile", Saving: true}
)

// put writes the content to a temporary file and then moves it into place.
func (f *Files) put(ctx context.Context, p *putting, c request.Content, from io.Reader) (request.Content, error) {
	temp, c, err := writeTemp(filepath.Join(f.o.Dir, "new"), min(f.o.MaxContentBytes, f.o.Limit), c, from)
	if err != nil {
		return c, err
	}
	defer os.Remove(temp) // after a successful rename this file does not exist
	p.file.size, p.file.sum = c.Size, c.Sum
	f.disk.Lock()
	defer f.disk.Unlock()
	if err := f.checkForgotten(ctx, p); err != nil {
		return c, err
	}
	if err := f.o.checkErased(ctx, &c); err != nil {
		return c, err
	}
	f.makeRoom(c.Size)
	return c, f.storeFiles(p.file, c, temp)
}

// writeTemp writes a content of at most most bytes to a temporary file. It returns c with the actual size and hash.
func writeTemp(folder string, most int64, c request.Content, from io.Reader) (path string, _ request.Content, err error) {
	if c.Size > most {
		return "", c, errLarge
	}
	temp, err := os.CreateTemp(folder, "content-*")
	if err != nil {
		return "", c, err
	}
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(temp, hash), io.LimitReader(from, most+1))
	switch {
	case err != nil:
	case size > most:
		err = errLarge
	case c.Size >= 0 && size != c.Size:
		err = fmt.Errorf("%d bytes came of %d", size, c.Size)
	default:
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return "", c, errors.Join(err, os.Remove(temp.Name()))
	}
	c.Size, c.Sum = size, [32]byte(hash.Sum(nil))
	return temp.Name(), c, nil
}

// checkErased returns an error if the content's record, or a record in its path, was erased. Files calls it with disk locked, so an
// erasure forgets the record either before or after this check.
func (o *Options) checkErased(ctx context.Context, c *request.Content) error {
	if o.Erased == nil {
		return nil
	}
	erased, err := o.Erased(ctx, c.Key.Source, c.Kind, c.ID)
	for _, id := range c.ParentIDs {
		if err == nil && !erased {
			erased, err = o.Erased(ctx, c.Key.Source, "", id)
		}
	}
	if err == nil && erased {
		err = errErased
	}
	return err
}

// checkForgotten returns an error if the content's record was forgotten while the content was being stored. The caller
// has locked disk, so a Forget runs either before this check or after the rest of Put.
func (f *Files) checkForgotten(ctx context.Context, p *putting) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.forgotten {
		return errForgotten
	}
	return ctx.Err()
}

// storeFiles moves a content and its index file to their final names. The caller has locked disk.
func (f *Files) storeFiles(x file, c request.Content, temp string) error {
	f.mu.Lock()
	shared := f.refs[x.sum] > 0
	f.mu.Unlock()
	if !shared {
		if err := settle(temp, f.contentPath(x.sum)); err != nil {
			return err
		}
	}
	if err := f.writeIndex(x.key, c, true); err != nil {
		return errors.Join(err, f.removeUnused(x.sum))
	}
	x.touched = f.o.Now()
	f.mu.Lock()
	old := f.byKey[x.key]
	if old != nil {
		f.removeEntry(old)
	}
	f.addEntry(&x)
	f.mu.Unlock()
	if old != nil {
		_ = f.removeUnused(old.sum) // removeUnused logs the error; the next start removes the file
	}
	return nil
}

// settle renames a synced file and syncs its folder, so that the file survives a power failure.
func settle(temp, path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return wal.SyncFolder(dir)
}

// addEntry adds the content of one key to the index in memory. The caller has locked mu.
func (f *Files) addEntry(x *file) {
	f.byKey[x.key] = x
	x.at = f.recent.PushFront(x)
	if f.refs[x.sum]++; f.refs[x.sum] == 1 {
		f.bytes += x.size
	}
}

func (f *Files) removeEntry(x *file) {
	delete(f.byKey, x.key)
	f.recent.Remove(x.at)
	if f.refs[x.sum]--; f.refs[x.sum] == 0 {
		delete(f.refs, x.sum)
		f.bytes -= x.size
	}
}

// makeRoom removes the least recently read contents until size more bytes fit. The caller has locked disk.
func (f *Files) makeRoom(size int64) {
	for {
		f.mu.Lock()
		last := f.recent.Back()
		if f.bytes+size <= f.o.Limit || last == nil || f.loading.on {
			f.mu.Unlock()
			return
		}
		x := last.Value.(*file)
		f.removeEntry(x)
		f.stats.Evicted++
		f.mu.Unlock()
		_ = f.remove(x) // the content is no longer in the index in memory, so the next start removes its files
	}
}

// remove deletes the files of a content that is no longer in the index in memory. It deletes the index file first.
func (f *Files) remove(x *file) error {
	err := os.Remove(f.indexPath(x.key))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		f.o.Logger.Error("store: a content cannot be removed", "error", err)
		return err // the content must stay while its index file exists
	}
	return f.removeUnused(x.sum)
}

// RetryRemovals tries again to remove what Forget could not remove, and returns the errors.
func (f *Files) RetryRemovals() (err error) {
	if err := f.await(); err != nil {
		return err
	}
	f.disk.Lock()
	defer f.disk.Unlock()
	var left []*file
	for _, x := range f.undeleted {
		if rerr := f.remove(x); rerr != nil {
			left = append(left, x)
			err = errors.Join(err, rerr)
		}
	}
	if f.undeleted = left; err != nil {
		return fmt.Errorf("store: forget contents: %w", err)
	}
	return nil
}

// removeUnused deletes a content from the disk if no key has it.
func (f *Files) removeUnused(sum [32]byte) error {
	f.mu.Lock()
	used := f.refs[sum] > 0 || f.loading.on // a key that Load has not read yet may have this content; Load removes unused contents at its end
	f.mu.Unlock()
	if used {
		return nil
	}
	err := os.Remove(f.contentPath(sum))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		f.o.Logger.Error("store: a content cannot be removed", "error", err)
	}
	return err
}

// drop removes the content of one key.
func (f *Files) drop(k fileKey) {
	f.disk.Lock()
	defer f.disk.Unlock()
	f.mu.Lock()
	x := f.byKey[k]
	if x != nil {
		f.removeEntry(x)
	}
	f.mu.Unlock()
	if x != nil {
		_ = f.remove(x) // remove has already logged the error
	}
}

// Forget removes the contents of a record and of the records below it (a message's images), and cancels Puts of
// such contents. It returns how many contents it removed. Even if files cannot be removed, this process no
// longer serves them. The error then means that the next process might. Contents that Load has not read yet are
// hidden at once and removed at its end; RetryRemovals waits for that.
func (f *Files) Forget(source, kind, id string) (gone int, err error) {
	what := recordTags{tagOf(source, kind, id), tagOf(source, "", id)}
	about := what.match
	f.disk.Lock()
	defer f.disk.Unlock()
	var all []*file
	f.mu.Lock()
	if f.loading.on {
		f.loading.forgotten = append(f.loading.forgotten, what)
	}
	for p := range f.putting {
		p.forgotten = p.forgotten || about(&p.file)
	}
	for _, x := range f.byKey {
		if about(x) {
			all = append(all, x)
		}
	}
	for _, x := range all {
		f.removeEntry(x)
	}
	f.stats.Forgotten += int64(len(all))
	f.mu.Unlock()
	for _, x := range all {
		if rerr := f.remove(x); rerr != nil {
			f.undeleted = append(f.undeleted, x)
			err = errors.Join(err, rerr)
		}
	}
	if err != nil {
		return len(all), fmt.Errorf("store: forget contents of %s %s: %w", kind, id, err)
	}
	return len(all), nil
}

// Confirm stores that the upstream still had the same content at the given time. It returns ErrNotFound if the content
// is not stored.
func (f *Files) Confirm(key understudy.Key, at time.Time) error {
	f.disk.Lock()
	defer f.disk.Unlock()
	k := keyOf(key)
	_, _, ok := f.find(k)
	if !ok {
		_, ok = f.findUnlisted(k)
	}
	if !ok {
		return fmt.Errorf("store: confirm content %s: %w", key, understudy.ErrNotFound)
	}
	c, err := readIndex(f.indexPath(k))
	if err == nil {
		c.At = at
		err = f.writeIndex(k, c, false)
	}
	if err != nil {
		return fmt.Errorf("store: confirm content %s: %w", key, wrapError(err))
	}
	return nil
}
