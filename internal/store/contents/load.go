// Load: the index of contents is read while contents are given out.

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

// loadWait bounds how long Left waits for Load.
const loadWait = 30 * time.Second

// loading is what Files knows until the index is read; mu guards it. Meanwhile
// a content is found by the name of its index file, nothing is evicted, and a
// content no key seems to have stays until the sweep at the end.
type loading struct {
	done      chan struct{} // closed when Load has ended
	on        bool          // byKey is not all there is
	forgotten []recordTags  // meanwhile
}

// recordTags name a record whose contents are forgotten.
type recordTags struct{ record, within uint64 }

func (g recordTags) about(x *file) bool {
	return x.record == g.record || slices.Contains(x.within, g.within)
}

// folders makes the folders, the one of what is being written empty.
func (f *Files) folders() error {
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

// Load reads the index of a folder that was opened with Later, in the order
// things were last read, and removes what belongs to none. It is called once;
// everything else works before and beside it. On an error, also the context's,
// contents are given out all the same, but none is evicted.
func (f *Files) Load(ctx context.Context) error {
	f.mu.Lock()
	on := f.loading.on
	f.mu.Unlock()
	if !on {
		return nil // it was read when the folder was opened
	}
	defer close(f.loading.done)
	if err := f.load(ctx); err != nil {
		return fmt.Errorf("store: files: %w", err)
	}
	return nil
}

func (f *Files) load(ctx context.Context) error {
	var all []*file
	err := eachFile(filepath.Join(f.o.Dir, "index"), func(path string, info fs.FileInfo) error {
		x, err := f.loadOne(path)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist) && !exists(path):
			return nil // it went meanwhile
		case err != nil:
			return f.useless(path, err)
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

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// useless removes an index entry that names no whole content, unless another
// has taken its place.
func (f *Files) useless(path string, why error) error {
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

// linkAll puts what was read, the last read first, behind what came meanwhile,
// and removes what was forgotten meanwhile; the disk is held.
func (f *Files) linkAll(all []*file) {
	var gone []*file
	f.mu.Lock()
	for _, x := range all {
		switch {
		case f.byKey[x.key] != nil: // kept anew meanwhile
		case slices.ContainsFunc(f.loading.forgotten, func(g recordTags) bool { return g.about(x) }):
			gone = append(gone, x)
		default:
			f.link(x)
			f.recent.MoveToBack(x.at)
		}
	}
	f.loading.on, f.loading.forgotten = false, nil
	f.stats.Forgotten += int64(len(gone))
	f.mu.Unlock()
	for _, x := range gone {
		if f.remove(x) != nil {
			f.left = append(f.left, x) // remove has logged it
		}
	}
}

// sweep removes contents no key has.
func (f *Files) sweep(ctx context.Context) error {
	return eachFile(filepath.Join(f.o.Dir, "content"), func(path string, _ fs.FileInfo) error {
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

// unlisted finds a content whose index entry Load has not come to yet.
func (f *Files) unlisted(k fileKey) (sum [32]byte, ok bool) {
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
	return x.sum, !slices.ContainsFunc(f.loading.forgotten, func(g recordTags) bool { return g.about(x) })
}

// await waits for Load when contents that were forgotten are still on the disk.
func (f *Files) await() error {
	f.mu.Lock()
	waits := len(f.loading.forgotten) > 0
	f.mu.Unlock()
	if !waits {
		return nil
	}
	late := time.NewTimer(loadWait)
	defer late.Stop()
	select {
	case <-f.loading.done:
	case <-late.C:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.loading.forgotten) > 0 {
		return fmt.Errorf("store: forget contents: %w: the index of contents is not read yet", understudy.ErrUnavailable)
	}
	return nil
}
