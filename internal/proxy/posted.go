// Posted: POSTs to paths that are read by POST.

package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"understudy"
)

// maxPosted bounds the body of a read, in bytes.
const maxPosted = 64 << 10

// posted answers a POST whose body says whether it reads. A write goes on as any other.
func (v *exchange) posted(header understudy.Query) error {
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, maxPosted))
	if err != nil {
		return bodyError{err}
	}
	v.read = true
	path, query, _ := strings.Cut(v.r.RequestURI, "?")
	t, reads, err := v.o.Source.Spec.PostTarget(v.o.Source.Name, path, query, v.r.Header.Get("Content-Type"), body)
	if err == nil {
		t, err = t.With(header)
	}
	if err != nil {
		return err
	}
	v.target, v.line.Written = t, string(v.o.Log.AppendTarget(nil, v.r.RequestURI))
	if reads {
		return v.get()
	}
	v.r.Body = io.NopCloser(bytes.NewReader(body))
	return v.write()
}
