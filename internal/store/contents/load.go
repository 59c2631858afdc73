// This file reads the index of contents from the disk, while contents can already be read.

package contents

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"understudy"
)

// loadWait is the maximum time that RetryRemovals waits for Load.
const loadWait = 30 * time.Second

// loading is the state until the index was read; mu guards it. Until then a content is found by the name of its index
// file, and nothing is evicted. A content without a known key is kept until the sweep at the end.
type loading struct {
	done      chan struct{} // a channel that is closed when Load has ended
	on        bool          // Load is running, so byKey is not complete yet
	forgotten []recordTags  // the records that were forgotten while Load ran
}

// recordTags identify a record whose contents are forgotten.
type recordTags struct{ record, within uint64 }

func (g recordTags) match(x *file) bool {
	return x.record == g.record || slices.Contains(x.within, g.within)
}

// makeFolders creates the folders and empties the folder for files being written.
func (f *Files) makeFolders() error {
	fresh := filepath.Join(f.o.Dir, "new")
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	for _, dir := range []string{fresh, filepath.Join(f.o.Dir, "content"), filepath.Join(f.o.Dir, "index")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// Load reads the index of a folder that was opened with LoadLater, ordered by the time of the last read, and
// removes files without a key. Call it once; all other methods work before it and concurrently. After an error,
// also the context's, contents are still served but none is evicted.
func (f *Files) Load(ctx context.Context) error {
	f.mu.Lock()
	on := f.loading.on
	f.mu.Unlock()
	if !on {
		return nil // Open has already read the index
	}
	defer close(f.loading.done)
	if err := f.load(ctx); err != nil {
		return fmt.Errorf("store: files: %w", err)
	}
	return nil
}

// load reads the index files, adds them to the index in memory and sweeps the folder.
func (f *Files) load(ctx context.Context) error {
	var all []*file
	err := visitFiles(filepath.Join(f.o.Dir, "index"), func(path string, info fs.FileInfo) error {
		x, err := f.loadOne(path)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist) && !hasFile(path):
			return nil // the file was removed in the meantime
		case err != nil:
			return f.removeUseless(path, err)
		}
		x.touched = info.ModTime()
		all = append(all, x)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b *file) int { return b.touched.Compare(a.touched) })
	f.disk.Lock()
	f.linkAll(all)
	f.disk.Unlock()
	if err := f.sweep(ctx); err != nil {
		return err
	}
	f.disk.Lock()
	defer f.disk.Unlock()
	f.makeRoom(0)
	return nil
}

func hasFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// removeUseless removes an index file that names no complete content, unless the file was replaced meanwhile.
func (f *Files) removeUseless(path string, why error) error {
	f.disk.Lock()
	defer f.disk.Unlock()
	if _, err := f.loadOne(path); err == nil {
		return nil
	}
	f.o.Logger.Warn("store: an index entry of a content is of no use and is removed", "error", why)
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// linkAll adds the files that Load has read to memory, most recently read first, after the files that were stored
// meanwhile. It removes the files that were forgotten meanwhile. The caller has locked disk.
func (f *Files) linkAll(all []*file) {
	var gone []*file
	f.mu.Lock()
	for _, x := range all {
		switch {
		case f.byKey[x.key] != nil: // the content was stored again in the meantime
		case slices.ContainsFunc(f.loading.forgotten, func(g recordTags) bool { return g.match(x) }):
			gone = append(gone, x)
		default:
			f.addEntry(x)
			f.recent.MoveToBack(x.at)
		}
	}
	f.loading.on, f.loading.forgotten = false, nil
	f.stats.Forgotten += int64(len(gone))
	f.mu.Unlock()
	for _, x := range gone {
		if f.remove(x) != nil {
			f.undeleted = append(f.undeleted, x) // remove has already logged the error
		}
	}
}

// sweep removes contents without a key.
func (f *Files) sweep(ctx context.Context) error {
	return visitFiles(filepath.Join(f.o.Dir, "content"), func(path string, _ fs.FileInfo) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var sum [32]byte
		name := filepath.Base(path)
		n, err := hex.Decode(sum[:], []byte(name[:min(64, len(name))]))
		f.disk.Lock()
		defer f.disk.Unlock()
		f.mu.Lock()
		used := err == nil && n == len(sum) && f.refs[sum] > 0
		f.mu.Unlock()
		if used {
			return nil
		}
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// findUnlisted finds a content whose index file Load has not read yet.
func (f *Files) findUnlisted(k fileKey) (sum [32]byte, ok bool) {
	f.mu.Lock()
	on := f.loading.on
	f.mu.Unlock()
	if !on {
		return sum, false
	}
	x, err := f.loadOne(f.indexPath(k))
	if err != nil {
		return sum, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return x.sum, !slices.ContainsFunc(f.loading.forgotten, func(g recordTags) bool { return g.match(x) })
}

// await waits for Load to end if it still has to remove forgotten contents from the disk.
func (f *Files) await() error {
	f.mu.Lock()
	waits := len(f.loading.forgotten) > 0
	f.mu.Unlock()
	if !waits {
		return nil
	}
	select {
	case <-f.loading.done:
	case <-time.After(loadWait):
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.loading.forgotten) > 0 {
		return fmt.Errorf("store: forget contents: %w: the index of contents is not read yet", understudy.ErrUnavailable)
	}
	return nil
}
