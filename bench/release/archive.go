// This file writes archives whose bytes depend only on the files, and on one time for all of them.

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// file is a file of an archive. A name that ends with a slash is an empty folder.
type file struct {
	name string
	data []byte
	run  bool // whether it is a program

	owner int // the number of its user and group; 0 means root
}

func (f file) mode() int64 {
	if f.run || f.isFolder() {
		return 0o755
	}
	return 0o644
}

func (f file) isFolder() bool { return strings.HasSuffix(f.name, "/") }

// tree is the files of an archive.
type tree []file

// below returns the files sorted by name, in a folder.
func (t tree) below(folder string) tree {
	t = slices.Clone(t)
	for i := range t {
		t[i].name = folder + t[i].name
	}
	slices.SortFunc(t, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return t
}

// withFolders returns the files with the folders in which they are.
func (t tree) withFolders() tree {
	folders := map[string]bool{}
	for _, f := range t {
		for dir := path.Dir(strings.TrimSuffix(f.name, "/")); dir != "."; dir = path.Dir(dir) {
			folders[dir+"/"] = true
		}
	}
	t = slices.Clone(t)
	for _, f := range t {
		delete(folders, f.name)
	}
	for dir := range folders {
		t = append(t, file{name: dir})
	}
	return t.below("")
}

// tarball returns a compressed tar archive.
func (t tree) tarball(date time.Time) []byte { return gzipped(t.tarred(date)) }

// tarred returns a tar archive.
func (t tree) tarred(date time.Time) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range t {
		h := &tar.Header{Name: f.name, Mode: f.mode(), Size: int64(len(f.data)), ModTime: date, Uid: f.owner, Gid: f.owner, Typeflag: tar.TypeReg}
		if f.owner == 0 {
			h.Uname, h.Gname = "root", "root"
		}
		if f.isFolder() {
			h.Typeflag = tar.TypeDir
		}
		must(w.WriteHeader(h))
		_, err := w.Write(f.data)
		must(err)
	}
	must(w.Close())
	return b.Bytes()
}

// zipped returns a zip archive.
func (t tree) zipped(date time.Time) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range t {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		h.SetMode(fs.FileMode(f.mode()))
		to, err := w.CreateHeader(h)
		must(err)
		_, err = to.Write(f.data)
		must(err)
	}
	must(w.Close())
	return b.Bytes()
}

// gzipped returns compressed data, without a time.
func gzipped(data []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	must(err)
	_, err = z.Write(data)
	must(err)
	must(z.Close())
	return b.Bytes()
}

// must ends the program on an error of a writer to memory, which can only be a mistake in this program.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// archive returns the archive of a program with its man pages, completions and documents: zip for Windows, else a tarball.
// It has no entries for folders, so that unpacking it changes no folder that is there.
func (r *release) archive(p platform, program []byte, common tree) file {
	name := "understudy-" + r.version + "-" + p.os + "-" + p.arch
	all := append(slices.Clone(common), file{name: "bin/understudy" + p.suffix(), data: program, run: true}).below(name + "/")
	if p.os == "windows" {
		return file{name: name + ".zip", data: all.zipped(r.date)}
	}
	return file{name: name + ".tar.gz", data: all.tarball(r.date)}
}
