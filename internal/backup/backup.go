// Package backup writes the data of a server into one archive, and restores it.
//
// An archive is a tar file, compressed with zstd. Each part is a file, under the name that it has in the data folder. The
// last file is manifest.json with the size and the SHA-256 of each part. So an archive without its end has no manifest.
package backup

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

	"github.com/klauspost/compress/zstd"

	"understudy/internal/datadir"
	"understudy/internal/store"
	"understudy/kit/wal"
)

const (
	manifestName     = "manifest.json"
	headsFile        = datadir.AuditName + ".heads"
	windowBytes      = 1 << 20  // decides how much memory packing and unpacking need
	maxWindowBytes   = 64 << 20 // more than windowBytes, because another program may have packed the archive
	maxManifestBytes = 1 << 30
	maxTrailingBytes = 1 << 20 // the zeros after the last file
)

// keyFiles are parts with keys or with hashes of passwords, otherFiles the other parts outside the folders.
var (
	keyFiles = []string{datadir.AuditName + ".key", datadir.AuthorityFile, datadir.AuthorityKeyFile,
		datadir.CertificateFile, datadir.CertificateKeyFile, datadir.UsersFile}
	otherFiles = []string{datadir.StoreFile, headsFile, datadir.SettingsFile, datadir.DemoFile}
)

// Manifest describes an archive.
type Manifest struct {
	Version string    `json:"version"` // the version of the program that has written the archive
	Schema  int       `json:"schema"`  // the newest step of the database's schema
	At      time.Time `json:"at"`
	Parts   []Part    `json:"parts"`
}

// Part is a file of an archive.
type Part struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Options say what Write writes. Dir and Now must be set.
type Options struct {
	Dir      string                                       // the data folder, whose files may change meanwhile
	Copy     func(ctx context.Context, path string) error // writes a copy of the database
	CopyPath string                                       // where Copy writes it; "" if the database is not a file
	Contents bool                                         // whether the contents of records are parts
	Keys     bool                                         // whether the files with keys are parts
	More     map[string]string                            // the paths of parts outside the data folder; those missing are left out
	Version  string
	Now      func() time.Time
	Report   func(done, total int64) // is called with the written bytes of the parts; may be nil
	// Put stores what write writes, and returns its size. If it is nil, the archive becomes a file.
	Put func(ctx context.Context, write func(io.Writer) error) (size int64, err error)
}

// file is a file that becomes a part. data is its content if it was read already.
type file struct {
	name, path string
	data       []byte
}

// Write writes an archive and returns its size. A file appears when it is complete and on the disk.
func Write(ctx context.Context, o Options, to string) (size int64, err error) {
	w := writer{ctx: ctx, o: &o, manifest: Manifest{Version: o.Version, Schema: store.Schema, At: o.Now().UTC()}}
	if o.Put != nil {
		size, err = o.Put(ctx, w.write)
	} else {
		size, err = w.writeFile(to)
	}
	if err != nil {
		return 0, fmt.Errorf("backup: %w", err)
	}
	return size, nil
}

// writer writes the parts of an archive.
type writer struct {
	ctx         context.Context
	o           *Options
	files       []file
	tar         *tar.Writer
	manifest    Manifest
	done, total int64
	folder      string // that of the file; "" if there is none
}

// list lists the files that become parts. Checkpoints, and the header of a log, are read before the files of lines are listed.
func (w *writer) list() error {
	read := func(name string) error {
		data, err := os.ReadFile(filepath.Join(w.o.Dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		w.files = append(w.files, file{name: name, data: data})
		return err
	}
	for name, path := range w.o.More {
		if w.o.Keys || !slices.Contains(keyFiles, name) {
			w.files = append(w.files, file{name: name, path: path})
		}
	}
	if err := read(headsFile); err != nil {
		return err
	}
	return fs.WalkDir(os.DirFS(w.o.Dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
			return nil
		case err == nil && d.IsDir() && path.Dir(name) == datadir.AuditName:
			return read(name + "/header")
		case err == nil && !d.IsDir() && w.o.isPart(name):
			w.files = append(w.files, file{name: name, path: filepath.Join(w.o.Dir, filepath.FromSlash(name))})
		}
		return err
	})
}

// isPart reports whether list adds a file of the data folder that it has not read.
func (o *Options) isPart(name string) bool {
	switch folder, rest, _ := strings.Cut(name, "/"); {
	case folder == datadir.AuditName:
		return strings.HasSuffix(name, ".wal")
	case folder == datadir.MediaFolder:
		return o.Contents && !strings.HasPrefix(rest, "new/")
	}
	return name == datadir.DemoFile || o.Keys && name != datadir.UsersFile && slices.Contains(keyFiles, name)
}

// checkRoom returns an error if the disk of the file may be too small for the archive.
func (w *writer) checkRoom() error {
	for _, f := range w.files {
		if info, err := os.Stat(f.path); err == nil {
			w.total += info.Size()
		}
	}
	if free, err := datadir.CountFree(w.folder); w.folder != "" && (err != nil || free < w.total) {
		return fmt.Errorf("the backup needs up to %d bytes, and %s has %d free bytes; %w", w.total, w.folder, free,
			cmp.Or(err, errors.New("free space there")))
	}
	return nil
}

// Write counts the bytes of a part.
func (w *writer) Write(p []byte) (int, error) {
	if w.done += int64(len(p)); w.o.Report != nil {
		w.o.Report(w.done, w.total)
	}
	return len(p), w.ctx.Err()
}

// writeFile writes a file under another name, and renames it when it is on the disk.
func (w *writer) writeFile(to string) (size int64, err error) {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%s exists already; name a new file", to)
	}
	w.folder = filepath.Dir(to)
	out, err := os.OpenFile(to+".partial", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	if err = w.write(out); err == nil {
		size, err = out.Seek(0, io.SeekCurrent)
	}
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = os.Rename(out.Name(), to)
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(out.Name()))
	}
	return size, wal.SyncFolder(filepath.Dir(to))
}

// write writes the parts and the manifest. Files may vanish meanwhile, such as evicted contents, but not those of a log.
func (w *writer) write(out io.Writer) (err error) {
	if w.o.CopyPath != "" {
		defer os.Remove(w.o.CopyPath) // the next start removes a file that stays
		w.files = append(w.files, file{name: datadir.StoreFile, path: w.o.CopyPath})
		err = w.o.Copy(w.ctx, w.o.CopyPath)
	}
	if err = cmp.Or(err, w.list(), w.checkRoom()); err != nil {
		return err
	}
	packed, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(windowBytes))
	if err != nil {
		return err
	}
	w.tar = tar.NewWriter(packed)
	for _, f := range w.files {
		err := w.add(f)
		if err != nil && (!errors.Is(err, fs.ErrNotExist) || strings.HasSuffix(f.name, ".wal")) {
			return errors.Join(err, packed.Close())
		}
	}
	data, err := json.MarshalIndent(w.manifest, "", "\t")
	if err == nil {
		err = w.add(file{name: manifestName, data: data})
	}
	return errors.Join(err, w.tar.Close(), packed.Close())
}

// add writes a part.
func (w *writer) add(f file) (err error) {
	if strings.HasSuffix(f.name, ".wal") {
		if f.data, err = readLog(f.path); err != nil {
			return err
		}
	}
	size, in := int64(len(f.data)), io.Reader(bytes.NewReader(f.data))
	if f.data == nil {
		opened, err := os.Open(f.path)
		if err != nil {
			return err
		}
		defer opened.Close()
		info, err := opened.Stat()
		if err != nil {
			return err
		}
		size, in = info.Size(), io.LimitReader(opened, info.Size())
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: size, Mode: 0o600, ModTime: w.manifest.At}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(w.tar, hash, w), in)
	w.manifest.Parts = append(w.manifest.Parts, Part{f.name, size, hex.EncodeToString(hash.Sum(nil))})
	return err
}

// readLog reads a file to which records are appended meanwhile. A byte that two readings agree on had this value between them. So
// the bytes before the first difference are what a crash at that moment would have left.
func readLog(path string) ([]byte, error) {
	first, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	second, err := os.ReadFile(path)
	n := 0
	for n < min(len(first), len(second)) && first[n] == second[n] {
		n++
	}
	return first[:n], err
}

var errNoEnd = errors.New("the end of the backup is missing or damaged")

// Restore unpacks an archive into a data folder that has none of its parts. The caller holds the lock of the folder. Nothing
// appears in the folder before every part has its hash. The restored folder is paused.
func Restore(ctx context.Context, from io.Reader, dir string) (m Manifest, err error) {
	temp := filepath.Join(dir, ".new-restore")
	if err = errors.Join(os.RemoveAll(temp), os.Mkdir(temp, 0o700)); err == nil { // a crash may have left it
		defer os.RemoveAll(temp)
		m, err = unpack(ctx, from, temp)
	}
	if err == nil {
		err = cmp.Or(os.WriteFile(filepath.Join(temp, datadir.PausedFile), nil, 0o600), syncFiles(temp))
	}
	if err == nil {
		err = place(temp, dir)
	}
	if err != nil {
		return m, fmt.Errorf("restore: %w", err)
	}
	return m, nil
}

// unpack writes the parts of an archive into an empty folder, and compares them with the manifest.
func unpack(ctx context.Context, from io.Reader, dir string) (m Manifest, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return m, err
	}
	defer root.Close()
	packed, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindowBytes))
	if err != nil {
		return m, err
	}
	defer packed.Close()
	archive := tar.NewReader(packed)
	var found []Part
	h, err := archive.Next()
	for ; err == nil && h.Name != manifestName; h, err = archive.Next() {
		if h.Typeflag != tar.TypeReg || !isPartName(h.Name) {
			return m, fmt.Errorf("%q is not a part of a backup", h.Name)
		}
		p, err := readPart(ctx, root, h.Name, archive)
		if err != nil {
			return m, fmt.Errorf("%s: %w", h.Name, err)
		}
		found = append(found, p)
	}
	if err == nil {
		err = json.NewDecoder(io.LimitReader(archive, maxManifestBytes)).Decode(&m)
	}
	if err != nil {
		return m, fmt.Errorf("%w (%w)", errNoEnd, err)
	}
	if m.Schema > store.Schema {
		return m, fmt.Errorf("the backup was written by a newer Understudy (%s); restore it with that version", m.Version)
	}
	if err := m.compare(found); err != nil {
		return m, err
	}
	_, err = archive.Next()
	n, rerr := io.Copy(io.Discard, io.LimitReader(packed, maxTrailingBytes)) // at the end, zstd compares its checksum
	if err != io.EOF || rerr != nil || n == maxTrailingBytes {
		return m, errNoEnd
	}
	return m, nil
}

// isPartName reports whether a file of an archive may have a name.
func isPartName(name string) bool {
	folder, _, isBelow := strings.Cut(name, "/")
	return isBelow && fs.ValidPath(name) && (folder == datadir.AuditName || folder == datadir.MediaFolder) ||
		slices.Contains(keyFiles, name) || slices.Contains(otherFiles, name)
}

// compare returns an error if the unpacked parts are not those of the manifest.
func (m *Manifest) compare(found []Part) error {
	for i, p := range m.Parts {
		if i >= len(found) || found[i] != p {
			return fmt.Errorf("%s is damaged: its bytes are not those that were written", p.Name)
		}
	}
	if len(found) != len(m.Parts) {
		return errors.New("the parts are not those that the manifest lists")
	}
	return nil
}

// readPart writes a part to a new file.
func readPart(ctx context.Context, root *os.Root, name string, in io.Reader) (p Part, err error) {
	_ = root.MkdirAll(path.Dir(name), 0o700) // if it fails, OpenFile fails too
	out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return p, err
	}
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(out, hash, &writer{ctx: ctx, o: &Options{}}), in)
	return Part{name, size, hex.EncodeToString(hash.Sum(nil))}, errors.Join(err, out.Close())
}

// syncFiles writes the files and the names in a folder to the disk.
func syncFiles(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return errors.Join(err, wal.SyncFolder(path))
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// place moves the unpacked files into the data folder: first the file that pauses a server, and the database last.
func place(temp, dir string) error {
	entries, err := os.ReadDir(temp)
	if err != nil {
		return err
	}
	rank := map[string]int{datadir.PausedFile: -1, datadir.StoreFile: 1}
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return rank[a.Name()] - rank[b.Name()] })
	for _, e := range slices.Backward(entries) {
		if _, err := os.Lstat(filepath.Join(dir, e.Name())); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s has %s already; move it away, or restore to an empty folder", dir, e.Name())
		}
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(temp, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return wal.SyncFolder(dir)
}
