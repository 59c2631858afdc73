// Contents come and go.

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
	"understudy/internal/store/sqlite"
	"understudy/kit/wal"
	"understudy/request"
)

// Put keeps a content, all of which from must bring: c.Size bytes, or what
// there is when that is negative. What was held under the key is replaced. It
// returns c with size and sum as they are. When it cannot be kept the error is
// ErrNotStored, with the reason, and nothing of it is; so it is when from fails,
// ctx ends, or its record was forgotten meanwhile.
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
		return c, fmt.Errorf("store: keep content %s: %w", c.Key, notKept(err))
	}
	f.stats.Kept++
	return c, nil
}

func newFile(c request.Content) file {
	x := file{key: keyOf(c.Key), sum: c.Sum, size: c.Size, record: tagOf(c.Key.Source, c.Kind, c.ID)}
	for _, id := range c.Within {
		x.within = append(x.within, tagOf(c.Key.Source, "", id))
	}
	return x
}

// notKept words why a content was not kept.
func notKept(err error) error {
	reason := ""
	var known *sqlite.Fault
	switch {
	case errors.As(err, &known):
		return err
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
	return &sqlite.Fault{Reason: reason, Saving: true, Err: err}
}

var (
	errLarge     = &sqlite.Fault{Reason: "larger than one content may be", Saving: true}
	errErased    = &sqlite.Fault{Reason: "erased", Saving: true}
	errForgotten = &sqlite.Fault{Reason: "its record was forgotten meanwhile", Saving: true}
)

func (f *Files) put(ctx context.Context, p *putting, c request.Content, from io.Reader) (request.Content, error) {
	most := min(f.o.Most, f.o.Limit)
	if c.Size > most {
		return c, errLarge
	}
	temp, err := os.CreateTemp(filepath.Join(f.o.Dir, "new"), "content-*")
	if err != nil {
		return c, err
	}
	defer os.Remove(temp.Name()) // nothing is there once it was renamed
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
		return c, err
	}
	c.Size, c.Sum = size, [32]byte(hash.Sum(nil))
	p.file.size, p.file.sum = c.Size, c.Sum
	f.disk.Lock()
	defer f.disk.Unlock()
	if err := f.still(ctx, p); err != nil {
		return c, err
	}
	if err := f.allowed(ctx, &c); err != nil {
		return c, err
	}
	f.makeRoom(size)
	return c, f.commit(p.file, c, temp.Name())
}

// allowed is an error when the content's record, or one it lies within, was
// erased. The disk is held: an erasure forgets before or after what follows.
func (f *Files) allowed(ctx context.Context, c *request.Content) error {
	if f.o.Erased == nil {
		return nil
	}
	erased, err := f.o.Erased(ctx, c.Key.Source, c.Kind, c.ID)
	for _, id := range c.Within {
		if err == nil && !erased {
			erased, err = f.o.Erased(ctx, c.Key.Source, "", id)
		}
	}
	if err == nil && erased {
		err = errErased
	}
	return err
}

// still is an error when the content may no longer be kept. The disk is held,
// so a forget comes before or after the whole of what follows.
func (f *Files) still(ctx context.Context, p *putting) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.spoiled {
		return errForgotten
	}
	return ctx.Err()
}

// commit puts content and index entry in their places; the disk is held.
func (f *Files) commit(x file, c request.Content, temp string) error {
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
		f.unlink(old)
	}
	f.link(&x)
	f.mu.Unlock()
	if old != nil {
		_ = f.removeUnused(old.sum) // it has logged it; the next start sees to the rest
	}
	return nil
}

// settle renames a synced file to where it belongs, for good.
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

// link and unlink keep the books of what is held; mu is held.
func (f *Files) link(x *file) {
	f.byKey[x.key] = x
	x.at = f.recent.PushFront(x)
	if f.refs[x.sum]++; f.refs[x.sum] == 1 {
		f.bytes += x.size
	}
}

func (f *Files) unlink(x *file) {
	delete(f.byKey, x.key)
	f.recent.Remove(x.at)
	if f.refs[x.sum]--; f.refs[x.sum] == 0 {
		delete(f.refs, x.sum)
		f.bytes -= x.size
	}
}

// makeRoom removes what was not read for longest until size more bytes fit;
// the disk is held.
func (f *Files) makeRoom(size int64) {
	for {
		f.mu.Lock()
		last := f.recent.Back()
		if f.bytes+size <= f.o.Limit || last == nil || f.loading.on {
			f.mu.Unlock()
			return
		}
		x := last.Value.(*file)
		f.unlink(x)
		f.stats.Evicted++
		f.mu.Unlock()
		_ = f.remove(x) // it is out of the books; the next start sees to the rest
	}
}

// remove takes what is no longer in the books off the disk: index first.
func (f *Files) remove(x *file) error {
	err := os.Remove(f.indexPath(x.key))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		f.o.Logger.Error("store: a content cannot be removed", "error", err)
		return err // without its index entry gone the content must stay whole
	}
	return f.removeUnused(x.sum)
}

// Left tries again to remove what Forget could not, and says why not.
func (f *Files) Left() (err error) {
	if err := f.await(); err != nil {
		return err
	}
	f.disk.Lock()
	defer f.disk.Unlock()
	var left []*file
	for _, x := range f.left {
		if rerr := f.remove(x); rerr != nil {
			left = append(left, x)
			err = errors.Join(err, rerr)
		}
	}
	if f.left = left; err != nil {
		return fmt.Errorf("store: forget contents: %w", err)
	}
	return nil
}

// removeUnused removes a content no key has.
func (f *Files) removeUnused(sum [32]byte) error {
	f.mu.Lock()
	used := f.refs[sum] > 0 || f.loading.on // a key not read yet may have it: the sweep sees to it
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

// drop removes one key's content.
func (f *Files) drop(k fileKey) {
	f.disk.Lock()
	defer f.disk.Unlock()
	f.mu.Lock()
	x := f.byKey[k]
	if x != nil {
		f.unlink(x)
	}
	f.mu.Unlock()
	if x != nil {
		_ = f.remove(x) // remove has logged it
	}
}

// Forget removes what is held of a record and of whatever lies within it (a
// message's images), and spoils what of it is on its way in. It says how many
// contents went. Even when files cannot be removed, nothing of the record is
// given out by this process any more; the error says that the next one might. Before
// Load has come to them they are hidden at once and go at its end; Left waits.
func (f *Files) Forget(source, kind, id string) (gone int, err error) {
	what := recordTags{tagOf(source, kind, id), tagOf(source, "", id)}
	about := what.about
	f.disk.Lock()
	defer f.disk.Unlock()
	var all []*file
	f.mu.Lock()
	if f.loading.on {
		f.loading.forgotten = append(f.loading.forgotten, what)
	}
	for p := range f.putting {
		p.spoiled = p.spoiled || about(&p.file)
	}
	for _, x := range f.byKey {
		if about(x) {
			all = append(all, x)
		}
	}
	for _, x := range all {
		f.unlink(x)
	}
	f.stats.Forgotten += int64(len(all))
	f.mu.Unlock()
	for _, x := range all {
		if rerr := f.remove(x); rerr != nil {
			f.left = append(f.left, x)
			err = errors.Join(err, rerr)
		}
	}
	if err != nil {
		return len(all), fmt.Errorf("store: forget contents of %s %s: %w", kind, id, err)
	}
	return len(all), nil
}

// Confirm notes that upstream said at that time that the content is still so.
// ErrNotFound when it is not held.
func (f *Files) Confirm(key understudy.Key, at time.Time) error {
	f.disk.Lock()
	defer f.disk.Unlock()
	k := keyOf(key)
	_, _, ok := f.find(k)
	if !ok {
		_, ok = f.unlisted(k)
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
		return fmt.Errorf("store: confirm content %s: %w", key, notKept(err))
	}
	return nil
}
