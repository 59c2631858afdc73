// This file checks whether the stored contents have the bytes that were stored.

package contents

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"understudy"
	"understudy/request"
)

// Verify reads all contents of a bucket, or of a folder if Options.S3 has no URL, and compares their hashes. It changes nothing, so a
// server may use them meanwhile. It calls report for each damaged content and returns how many contents it has read.
func Verify(ctx context.Context, o Options, report func(key understudy.Key)) (checked int64, err error) {
	o.setDefaults()
	if o.S3.URL == "" {
		err = verifyFolder(o.Dir, func(c request.Content, in io.ReadCloser) error {
			defer in.Close()
			hash := sha256.New()
			n, err := io.Copy(hash, in)
			if checked++; err == nil && (n != c.Size || [32]byte(hash.Sum(nil)) != c.Sum) {
				report(c.Key)
			}
			return errors.Join(err, ctx.Err())
		})
		return checked, err
	}
	objects, err := newObjects(o.S3, o.Now)
	if err != nil {
		return 0, err
	}
	all, err := objects.list(ctx, "content/")
	for _, one := range all {
		c, in, err := objects.fetch(ctx, one.name, os.TempDir())
		switch {
		case errors.Is(err, understudy.ErrNotFound):
			continue // it was deleted meanwhile
		case errors.Is(err, understudy.ErrDamaged):
			report(c.Key)
		case err != nil:
			return checked, err
		default:
			_ = in.Close() // fetch has read it
		}
		checked++
	}
	return checked, err
}

// verifyFolder calls check for each content of a folder.
func verifyFolder(dir string, check func(request.Content, io.ReadCloser) error) error {
	f := &Files{o: Options{Dir: dir}}
	err := visitFiles(filepath.Join(dir, "index"), func(path string, _ fs.FileInfo) error {
		c, err := readIndex(path)
		if err != nil {
			return nil // it is being replaced, or the next start removes it
		}
		in, err := os.Open(f.contentPath(c.Sum))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the same
		}
		if err != nil {
			return err
		}
		return check(c, in)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no content was ever stored, or a folder was removed meanwhile
	}
	return err
}
