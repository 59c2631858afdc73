// This file reads and writes the index of contents, one small file for each key.

package contents

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"understudy"
	"understudy/request"
	"understudy/spec"
)

// indexEntry is the JSON object in an index file. Sum is in hexadecimal.
type indexEntry struct {
	Source   string    `json:"source"`
	URI      string    `json:"uri"`
	Kind     string    `json:"kind"`
	ID       string    `json:"id"`
	Within   []string  `json:"within,omitempty"`
	Type     string    `json:"type,omitempty"`
	Size     int64     `json:"size"`
	Sum      string    `json:"sum"`
	ETag     string    `json:"etag,omitempty"`
	Modified time.Time `json:"modified,omitzero"`
	At       time.Time `json:"at"`
}

// maxIndex is the maximum size of an index file in bytes: an escaped URI and the other fields.
const maxIndex = 8*spec.MaxKey + 4096

// readIndex reads an index file.
func readIndex(path string) (request.Content, error) {
	info, err := os.Stat(path)
	if err != nil {
		return request.Content{}, err
	}
	if info.Size() > maxIndex {
		return request.Content{}, fmt.Errorf("%s is too large", filepath.Base(path))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return request.Content{}, err
	}
	c, err := decodeIndex(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return c, err
}

// decodeIndex returns the content that an indexEntry in JSON describes.
func decodeIndex(data []byte) (request.Content, error) {
	var e indexEntry
	if err := json.Unmarshal(data, &e); err != nil {
		return request.Content{}, err
	}
	c := request.Content{
		Key: understudy.Key{Source: e.Source, URI: e.URI}, Kind: e.Kind, ID: e.ID, ParentIDs: e.Within,
		ContentType: e.Type, Size: e.Size, ETag: e.ETag, Modified: e.Modified, At: e.At,
	}
	if n, err := hex.Decode(c.Sum[:], []byte(e.Sum[:min(len(e.Sum), 64)])); err != nil || n != len(c.Sum) || len(e.Sum) != 64 {
		return c, errors.New("no sum")
	}
	return c, nil
}

// encodeIndex returns the indexEntry of a content in JSON.
func encodeIndex(c request.Content) ([]byte, error) {
	return json.Marshal(indexEntry{
		Source: c.Key.Source, URI: c.Key.URI, Kind: c.Kind, ID: c.ID, Within: c.ParentIDs, Type: c.ContentType,
		Size: c.Size, Sum: hex.EncodeToString(c.Sum[:]), ETag: c.ETag, Modified: c.Modified, At: c.At.Round(0),
	})
}

// writeIndex replaces an index file atomically. The caller has locked disk. If lasting is set, the file also survives a
// power failure.
func (f *Files) writeIndex(k fileKey, c request.Content, lasting bool) error {
	data, err := encodeIndex(c)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Join(f.o.Dir, "new"), "index-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // after a successful rename this file does not exist
	if _, err = temp.Write(data); err == nil && lasting {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if lasting {
		return settle(temp.Name(), f.indexPath(k))
	}
	return os.Rename(temp.Name(), f.indexPath(k))
}

// loadOne reads an index file and checks that its content exists and is complete.
func (f *Files) loadOne(path string) (*file, error) {
	c, err := readIndex(path)
	if err != nil {
		return nil, err
	}
	x := newFile(c)
	if want := filepath.Base(f.indexPath(x.key)); filepath.Base(path) != want {
		return nil, fmt.Errorf("%s should be %s", filepath.Base(path), want)
	}
	info, err := os.Stat(f.contentPath(x.sum))
	if err != nil {
		return nil, err
	}
	if info.Size() != c.Size {
		return nil, fmt.Errorf("%s: %d bytes of %d are there", strings.TrimSuffix(filepath.Base(path), ".json"), info.Size(), c.Size)
	}
	return &x, nil
}

// visitFiles calls visit for the files two folders down.
func visitFiles(root string, visit func(path string, info fs.FileInfo) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return visit(path, info)
	})
}
