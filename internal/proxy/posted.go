// Posted: POSTs to paths that are read by POST.

package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"understudy"
	"understudy/spec"
)

// maxPosted bounds the body of a read, in bytes.
const maxPosted = 64 << 10

// posted answers a POST whose body says whether it reads. A write goes on as any other.
func (v *exchange) posted(header understudy.Query) error {
	if v.r.ContentLength > maxPosted {
		return &http.MaxBytesError{Limit: maxPosted}
	}
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, maxPosted))
	if err != nil {
		return bodyError{err}
	}
	v.read = true
	path, query, _ := strings.Cut(v.r.RequestURI, "?")
	post, err := v.proxy.o.Source.Spec.ParsePost(v.proxy.o.Source.Name, path, query, v.r.Header.Get("Content-Type"), body)
	if err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	if v.target, err = post.Target.WithHeader(header); err != nil {
		return err
	}
	v.line.RedactedTarget = string(v.proxy.o.Log.AppendTarget(nil, v.r.RequestURI))
	switch post.Purpose {
	case spec.PostReads:
		return v.get()
	case spec.PostQueries:
		v.queries, body = true, post.Body
	}
	v.r.Body = io.NopCloser(bytes.NewReader(body))
	return v.write()
}
