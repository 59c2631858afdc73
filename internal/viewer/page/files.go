// Static files: the style sheet, the script and the icon. Their names contain a hash of their content.

package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"

	"understudy/kit/header"
)

// files serves the files of the folder static/. Style sheets lose their comments, and all are compressed when the server starts.
type files struct {
	byName  map[string]file   // the files by their name with the hash, such as "viewer.Zq3k-A.css"
	Address map[string]string // the address of each file, such as "viewer.css" -> "/-/static/viewer.Zq3k-A.css"
}

// contentTypes are the media types of the static files by extension. The table of the operating system is not used,
// so all hosts behave alike.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

var cssComment = regexp.MustCompile(`(?s)/\*.*?\*/`)

type file struct {
	contentType string
	plain, gzip []byte
}

// Assets are the parsed templates and the compressed static files. They never change, so several visitors may share them.
type Assets struct {
	files *files
	pages *pages
}

// ReadAssets parses the folder "templates" and packs the folder "static".
func ReadAssets(assets fs.FS) (*Assets, error) {
	static, err := readFiles(assets)
	if err != nil {
		return nil, fmt.Errorf("viewer: %w", err)
	}
	templates, err := readPages(assets, static)
	if err != nil {
		return nil, fmt.Errorf("viewer: %w", err)
	}
	return &Assets{files: static, pages: templates}, nil
}

// readFiles compresses the files of the folder "static".
func readFiles(assets fs.FS) (*files, error) {
	entries, err := fs.ReadDir(assets, "static")
	if err != nil {
		return nil, err
	}
	all := &files{byName: map[string]file{}, Address: map[string]string{}}
	for _, e := range entries {
		body, err := readStatic(assets, "static/"+e.Name(), e.IsDir())
		if err != nil {
			return nil, err
		}
		ext := path.Ext(e.Name())
		if ext == ".css" {
			body = cssComment.ReplaceAll(body, nil)
		}
		contentType, known := contentTypes[ext]
		if !known {
			return nil, fmt.Errorf("static/%s: unknown type", e.Name())
		}
		var packed bytes.Buffer
		zw, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		if _, err := zw.Write(body); err != nil {
			return nil, err
		}
		if err := zw.Close(); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(body)
		name := strings.TrimSuffix(e.Name(), ext) + "." + base64.RawURLEncoding.EncodeToString(sum[:4]) + ext
		all.byName[name] = file{contentType: contentType, plain: body, gzip: packed.Bytes()}
		all.Address[e.Name()] = "/-/static/" + name
	}
	return all, nil
}

// readStatic reads a file. If the name is that of a folder, it returns all files of the folder joined, because
// browsers load them as one.
func readStatic(assets fs.FS, name string, folder bool) ([]byte, error) {
	if !folder {
		return fs.ReadFile(assets, name)
	}
	parts, err := fs.Glob(assets, name+"/*")
	var whole []byte
	for _, part := range parts {
		body, readErr := fs.ReadFile(assets, part)
		if readErr != nil {
			return nil, readErr
		}
		whole = append(whole, body...)
	}
	return whole, err
}

// Serve sends a file. Its name contains a hash of its content, so browsers may cache it forever.
func (fs *files) Serve(w http.ResponseWriter, r *http.Request) {
	f, ok := fs.byName[r.PathValue("file")]
	if !ok {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	body := f.plain
	if IsGzipAccepted(r) {
		body = f.gzip
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// IsGzipAccepted reports whether Accept-Encoding (RFC 9110, 12.5.3) names gzip or "*" with a weight above zero.
func IsGzipAccepted(r *http.Request) bool {
	any := false
	for item := range header.Items(r.Header["Accept-Encoding"]) {
		name, weight := header.Weight(item)
		if strings.EqualFold(name, "gzip") {
			return weight > 0
		}
		any = any || name == "*" && weight > 0
	}
	return any
}
