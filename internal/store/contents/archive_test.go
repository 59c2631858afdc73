// Files in a bucket that are sent in parts, as backups are.

package contents_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/contents"
)

// testPart is the size of parts in bytes.
const testPart = 64 << 10

func openArchive(t *testing.T, b *bucket) *contents.Archive {
	t.Helper()
	at := b.s3
	at.URL = "s3://contents/a/b/backup.tar"
	a, name, err := contents.OpenArchive(at, time.Now)
	checktest.MustNoError(t, err, "OpenArchive")
	checktest.Equal(t, name, "backup.tar", "the name")
	a.SetPartBytes(testPart)
	return a
}

// writePieces writes data in pieces of different sizes.
func writePieces(data []byte) func(w io.Writer) error {
	return func(w io.Writer) error {
		for size := 1; len(data) > 0; size = size*3 + 1 {
			n := min(size, len(data))
			if _, err := w.Write(data[:n]); err != nil {
				return err
			}
			data = data[n:]
		}
		return nil
	}
}

// randomBytes returns bytes of three parts.
func randomBytes() []byte {
	data := make([]byte, 2*testPart+12345)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	return data
}

// TestArchiveComesBack stores a file in parts, each with its SHA-256. A part that the bucket refuses once is sent again.
func TestArchiveComesBack(t *testing.T) {
	t.Parallel()
	b := newBucket(t, time.Now)
	a, data := openArchive(t, b), randomBytes()
	var parts, refused atomic.Int64
	b.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		body, err := io.ReadAll(r.Body)
		sum := sha256.Sum256(body)
		if err != nil || r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]) {
			t.Errorf("a part has another SHA-256 (%v)", err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if parts.Add(1) == 2 && refused.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	size, err := a.Put(t.Context(), "backup.tar", writePieces(data))
	checktest.MustNoError(t, err, "Put")
	checktest.Equal(t, size, int64(len(data)), "the size")
	checktest.Equal(t, parts.Load(), int64(4), "requests with parts")
	in, err := a.Get(t.Context(), "backup.tar")
	checktest.MustNoError(t, err, "Get")
	got, err := io.ReadAll(in)
	checktest.True(t, err == nil && in.Close() == nil && bytes.Equal(got, data), "%d bytes come back of %d (%v)", len(got), len(data), err)
	_, err = a.Put(t.Context(), "backup.tar", writePieces(nil))
	checktest.True(t, err != nil && strings.Contains(err.Error(), "exists already"), "a second one: %v", err)
	names, err := a.List(t.Context(), "back")
	checktest.True(t, err == nil && strings.Join(names, " ") == "backup.tar", "names: %q %v", names, err)
	checktest.MustNoError(t, a.Remove(t.Context(), "backup.tar"), "Remove")
	_, err = a.Get(t.Context(), "backup.tar")
	checktest.True(t, errors.Is(err, understudy.ErrNotFound), "after Remove: %v", err)
}

// TestCutUploadLeavesNoObject ends an upload in each way in which it can end early. No object appears.
func TestCutUploadLeavesNoObject(t *testing.T) {
	t.Parallel()
	fail := func(when func(r *http.Request) bool, status int, body string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !when(r) {
				return false
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	isEnd := func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") }
	isPart := func(r *http.Request) bool { return r.Method == http.MethodPut }
	broken := errors.New("the disk cannot be read")
	data := randomBytes()[:testPart+1]
	for name, one := range map[string]struct {
		before func(w http.ResponseWriter, r *http.Request) bool
		write  func(io.Writer) error
		want   string
	}{
		"the caller leaves": {fail(isPart, 503, ""), writePieces(data), "context canceled"},
		"the end is refused": {fail(isEnd, 200, "<Error><Code>InternalError</Code><Message>try again</Message></Error>"),
			writePieces(data), "InternalError try again"},
		"the end is not XML":  {fail(isEnd, 200, "oops"), writePieces(data), "EOF"},
		"the file breaks off": {nil, func(w io.Writer) error { return errors.Join(writePieces(data)(w), broken) }, broken.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBucket(t, time.Now)
			if one.before != nil {
				b.intercept(one.before)
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			_, err := openArchive(t, b).Put(ctx, "backup.tar", func(w io.Writer) error {
				if name == "the caller leaves" {
					defer time.AfterFunc(50*time.Millisecond, leave).Stop()
				}
				return one.write(w)
			})
			checktest.True(t, err != nil && strings.Contains(err.Error(), one.want), "Put: %v", err)
			checktest.Equal(t, len(b.names(t)), 0, "objects")
		})
	}
}

func TestArchiveNeedsAName(t *testing.T) {
	for _, url := range []string{"s3://contents/", "s3://contents", "s3://", ""} {
		_, _, err := contents.OpenArchive(contents.S3{URL: url}, time.Now)
		checktest.True(t, err != nil, "%q is accepted", url)
	}
}
