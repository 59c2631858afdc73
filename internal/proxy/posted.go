// This file answers POST requests that may be reads.

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

// maxReadBody is the maximum size of a POST body that may be a read, in bytes.
const maxReadBody = 64 << 10

// servePost answers a POST whose body decides whether it is a read. A write is handled like any other write.
func (v *exchange) servePost(header understudy.Query) error {
	if v.r.ContentLength > maxReadBody {
		return &http.MaxBytesError{Limit: maxReadBody}
	}
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, maxReadBody))
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
