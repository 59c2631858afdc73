// Tests of archives that are damaged, made up, or of another version.

package backup

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"understudy/internal/checktest"
	"understudy/internal/sample"
	"understudy/internal/store"
)

// entry is a file of a made-up archive.
type entry struct {
	name, text string
	kind       byte // the type of a tar file; 0 means a regular one
}

// manifestOf returns the manifest of entries.
func manifestOf(t testing.TB, entries []entry, change func(m *Manifest)) entry {
	t.Helper()
	m := Manifest{Version: "v9", Schema: store.Schema, At: now}
	for _, e := range entries {
		root, err := os.OpenRoot(t.TempDir())
		checktest.MustNoError(t, err, "open a folder")
		p, err := readPart(t.Context(), root, "x", strings.NewReader(e.text))
		checktest.MustNoError(t, err, "hash")
		checktest.MustNoError(t, root.Close(), "close")
		m.Parts = append(m.Parts, Part{e.name, p.Size, p.SHA256})
	}
	change(&m)
	data, err := json.Marshal(m)
	checktest.MustNoError(t, err, "marshal")
	return entry{name: manifestName, text: string(data)}
}

// pack returns an archive of entries.
func pack(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	packed, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	checktest.MustNoError(t, err, "zstd")
	archive := tar.NewWriter(packed)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.text)), Mode: 0o600}
		if e.kind != 0 {
			h.Typeflag, h.Linkname, h.Size, e.text = e.kind, e.text, 0, ""
		}
		checktest.MustNoError(t, archive.WriteHeader(h), "header of %s", e.name)
		_, err := archive.Write([]byte(e.text))
		checktest.MustNoError(t, err, "write %s", e.name)
	}
	checktest.MustNoError(t, archive.Close(), "close the tar file")
	checktest.MustNoError(t, packed.Close(), "close zstd")
	return out.Bytes()
}

// refuse checks that an archive is refused with a text, and that nothing appears in the folder or beside it.
func refuse(t *testing.T, archive []byte, text string) {
	t.Helper()
	above := t.TempDir()
	dir := filepath.Join(above, "data")
	checktest.MustNoError(t, os.Mkdir(dir, 0o700), "make the folder")
	_, err := Restore(t.Context(), bytes.NewReader(archive), dir)
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("the error is %v, want %q", err, text)
	}
	checktest.Equal(t, strings.Join(slices.Sorted(maps.Keys(readFiles(t, above))), " "), "", "files")
}

func TestArchiveWithOtherPartsIsRefused(t *testing.T) {
	good := []entry{{name: "understudy.db", text: "rows"}, {name: "audit/one/header", text: "header"}}
	same := func(*Manifest) {}
	with := func(more ...entry) []entry { return append(slices.Clone(good), more...) }
	_, err := Restore(t.Context(), bytes.NewReader(pack(t, with(manifestOf(t, good, same))...)), t.TempDir())
	checktest.MustNoError(t, err, "the good one")
	for name, one := range map[string]struct {
		archive []entry
		want    string
	}{
		"above the folder":    {with(entry{name: "../evil", text: "x"}), "not a part of a backup"},
		"an absolute path":    {with(entry{name: "/tmp/evil", text: "x"}), "not a part of a backup"},
		"above within a part": {with(entry{name: "audit/../../evil", text: "x"}), "not a part of a backup"},
		"another file":        {with(entry{name: "run.json", text: "x"}), "not a part of a backup"},
		"the mark":            {with(entry{name: "paused"}), "not a part of a backup"},
		"a link":              {with(entry{name: "audit/link", text: "/etc", kind: tar.TypeSymlink}), "not a part of a backup"},
		"a hard link":         {with(entry{name: "audit/link", text: "understudy.db", kind: tar.TypeLink}), "not a part of a backup"},
		"a pipe":              {with(entry{name: "audit/pipe", kind: tar.TypeFifo}), "not a part of a backup"},
		"a part twice":        {with(good[1], manifestOf(t, with(good[1]), same)), "exist"},
		"a part below a part": {with(entry{name: "audit/one/header/x"}), "audit/one/header/x"},
		"no manifest":         {good, "the end of the backup"},
		"a part more":         {with(entry{name: "audit.heads"}, manifestOf(t, good, same)), "not those"},
		"a part less":         {append(slices.Clone(good[:1]), manifestOf(t, good, same)), "audit/one/header is damaged"},
		"another part":        {[]entry{good[0], {name: good[1].name, text: "Header"}, manifestOf(t, good, same)}, "header is damaged"},
		"another order":       {[]entry{good[1], good[0], manifestOf(t, good, same)}, "damaged"},
		"a part after it":     {with(manifestOf(t, good, same), entry{name: "audit.heads"}), "the end of the backup"},
		"a newer schema":      {with(manifestOf(t, good, func(m *Manifest) { m.Schema++ })), "newer Understudy (v9)"},
		"no JSON":             {with(entry{name: manifestName, text: "x"}), "the end of the backup"},
	} {
		t.Run(name, func(t *testing.T) { refuse(t, pack(t, one.archive...), one.want) })
	}
	refuse(t, []byte("not an archive at all"), "the end of the backup")
	refuse(t, nil, "the end of the backup")
}

// A folder with a store, or with any other part, is left as it is.
func TestFolderWithAPartIsRefused(t *testing.T) {
	archive, err := os.ReadFile(write(t, newOptions(t)))
	checktest.MustNoError(t, err, "read")
	for _, name := range []string{"understudy.db", "audit", "paused", "settings.yml"} {
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{name: "mine"})
		_, err := Restore(t.Context(), bytes.NewReader(archive), dir)
		checktest.True(t, err != nil && strings.Contains(err.Error(), "has "+name+" already"), "%s: %v", name, err)
		files := readFiles(t, dir)
		checktest.Equal(t, files[name], "mine", "%s", name)
		checktest.Equal(t, len(files), 1, "files")
	}
}

// TestDamagedArchiveIsRefused cuts an archive at every place and changes every byte of it. A changed byte of a header that means
// nothing may go unnoticed, if all parts are what they were.
func TestDamagedArchiveIsRefused(t *testing.T) {
	archive, err := os.ReadFile(write(t, newOptions(t)))
	checktest.MustNoError(t, err, "read")
	whole := t.TempDir()
	_, err = Restore(t.Context(), bytes.NewReader(archive), whole)
	checktest.MustNoError(t, err, "Restore")
	want := readFiles(t, whole)
	chosen := sample.OneIn(t, 96)
	for i := range archive {
		if !chosen() {
			continue
		}
		dir := t.TempDir()
		if _, err := Restore(t.Context(), bytes.NewReader(archive[:i]), dir); err == nil {
			t.Errorf("cut after %d of %d bytes: no error", i, len(archive))
		}
		checktest.Equal(t, len(readFiles(t, dir)), 0, "files after a cut at %d", i)
		changed := bytes.Clone(archive)
		changed[i] ^= 1 << (i % 8)
		_, err := Restore(t.Context(), bytes.NewReader(changed), dir)
		if got := readFiles(t, dir); err == nil && !maps.Equal(got, want) || err != nil && len(got) > 0 {
			t.Errorf("byte %d of %d changed: %v, and the folder has %d files", i, len(archive), err, len(got))
		}
	}
}

// FuzzUnpack: whatever the bytes are, only parts of a manifest are accepted, and nothing is written outside the folder.
func FuzzUnpack(f *testing.F) {
	good := []entry{{name: "understudy.db", text: "rows"}, {name: "audit/one/header", text: "header"}}
	f.Add(pack(f, append(slices.Clone(good), manifestOf(f, good, func(*Manifest) {}))...))
	f.Add(pack(f, entry{name: "../evil", text: "x"}))
	f.Add(pack(f, entry{name: "audit/link", text: "/", kind: tar.TypeSymlink}, entry{name: "audit/link/evil", text: "x"}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		above := t.TempDir()
		dir := filepath.Join(above, "data")
		checktest.MustNoError(t, os.Mkdir(dir, 0o700), "make the folder")
		m, err := unpack(t.Context(), bytes.NewReader(archive), dir)
		for name := range readFiles(t, above) {
			if !strings.HasPrefix(name, "data/") || !isPartName(strings.TrimPrefix(name, "data/")) {
				t.Errorf("wrote %s", name)
			}
		}
		if err == nil && len(readFiles(t, dir)) != len(m.Parts) {
			t.Errorf("%d parts, and %d files", len(m.Parts), len(readFiles(t, dir)))
		}
	})
}
