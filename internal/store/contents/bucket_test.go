// Contents in a bucket: the tests of the folder, and what only a bucket shared by several processes can do.

package contents_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/contents"
)

// bucket is a bucket of an S3-compatible store that runs in this process.
type bucket struct {
	s3      contents.S3
	backend *s3mem.Backend
	before  atomic.Pointer[func(w http.ResponseWriter, r *http.Request) (done bool)] // called before each request
}

func newBucket(t testing.TB, now func() time.Time) *bucket {
	b := &bucket{backend: s3mem.New(s3mem.WithTimeSource(clock(now)))}
	checktest.MustNoError(t, b.backend.CreateBucket("contents"), "create the bucket")
	handler := gofakes3.New(b.backend, gofakes3.WithTimeSkewLimit(0)).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before := b.before.Load(); before != nil && (*before)(w, r) {
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b.s3 = bucketAt(server.URL)
	return b
}

func bucketAt(endpoint string) contents.S3 {
	return contents.S3{URL: "s3://contents/a/b", Endpoint: endpoint, Key: "key", Secret: understudy.NewSecret("secret")}
}

// clock is the clock of a bucket.
type clock func() time.Time

func (c clock) Now() time.Time                  { return c() }
func (c clock) Since(t time.Time) time.Duration { return c().Sub(t) }

// names returns the names of all objects without the prefix.
func (b *bucket) names(t testing.TB) (all []string) {
	list, err := b.backend.ListBucket("contents", &gofakes3.Prefix{}, gofakes3.ListBucketPage{})
	checktest.MustNoError(t, err, "list the bucket")
	for _, one := range list.Contents {
		name, ok := strings.CutPrefix(one.Key, "a/b/")
		checktest.True(t, ok, "the object %s is not below the prefix", one.Key)
		all = append(all, name)
	}
	return all
}

// count returns the number of contents.
func (b *bucket) count(t testing.TB) (n int) {
	for _, name := range b.names(t) {
		if strings.HasPrefix(name, "content/") {
			n++
		}
	}
	return n
}

type shelfMaker func(t testing.TB, change ...func(*contents.Options)) *shelf

func newBucketShelf(t testing.TB, change ...func(*contents.Options)) *shelf {
	s := &shelf{TB: t, dir: t.TempDir(), now: filesEpoch}
	s.bucket = newBucket(t, func() time.Time { return s.now })
	s.open(change...)
	return s
}

// inEveryStore runs a test with contents in a folder and with contents in a bucket.
func inEveryStore(t *testing.T, test func(t *testing.T, newShelf shelfMaker)) {
	t.Run("folder", func(t *testing.T) { test(t, newShelf) })
	t.Run("bucket", func(t *testing.T) { test(t, newBucketShelf) })
}

// contains reports whether any version of an object contains a text.
func (b *bucket) contains(t testing.TB, text string) bool {
	list, err := b.backend.ListBucketVersions("contents", &gofakes3.Prefix{}, &gofakes3.ListBucketVersionsPage{MaxKeys: 10_000})
	checktest.MustNoError(t, err, "list the versions")
	for _, one := range list.Versions {
		v, ok := one.(*gofakes3.Version)
		if !ok {
			continue // a deletion marker
		}
		object, err := b.backend.GetObjectVersion("contents", v.Key, v.VersionID, nil)
		if v.VersionID == "null" || v.VersionID == "" {
			object, err = b.backend.GetObject("contents", v.Key, nil)
		}
		checktest.MustNoError(t, err, "get %s", v.Key)
		data, err := io.ReadAll(object.Contents)
		checktest.MustNoError(t, err, "read %s", v.Key)
		if strings.Contains(string(data), text) {
			return true
		}
	}
	return false
}

// intercept calls before for each request from now on. If it returns true, it has answered the request.
func (b *bucket) intercept(before func(w http.ResponseWriter, r *http.Request) bool) {
	if before == nil {
		b.before.Store(nil)
		return
	}
	b.before.Store(&before)
}

// TestBucketRefusesAFolderWithContents: no erasure would reach them, and nothing deletes them unasked.
func TestBucketRefusesAFolderWithContents(t *testing.T) {
	folder := newShelf(t)
	folder.put(1, "kept")
	b := newBucket(t, func() time.Time { return filesEpoch })
	_, err := contents.OpenStore(contents.Options{Dir: folder.dir, S3: b.s3})
	checktest.MustTrue(t, err != nil, "a bucket opens beside a folder with contents")
	checktest.Contains(t, err.Error(), folder.dir+" has contents", "error")
	got, _ := folder.text(1)
	checktest.Equal(t, got, "kept", "content of the folder afterwards")
	checktest.MustNoError(t, os.RemoveAll(folder.dir), "delete the folder")
	_, err = contents.OpenStore(contents.Options{Dir: folder.dir, S3: b.s3})
	checktest.NoError(t, err, "open after the folder was deleted")
}

// TestBucketIsShared: what one process stores, replaces, confirms or forgets, another one sees at once.
func TestBucketIsShared(t *testing.T) {
	one := newBucketShelf(t)
	other := &shelf{TB: t, dir: t.TempDir(), now: filesEpoch, bucket: one.bucket}
	other.open()
	one.put(1, "first")
	for _, want := range []string{"second", "third"} {
		one.now, other.now = one.now.Add(time.Minute), other.now.Add(time.Minute)
		other.put(1, want)
		got, _ := one.text(1)
		checktest.Equal(t, got, want, "content after the other process has replaced it")
	}
	for n := range 3 {
		checktest.MustNoError(t, one.Confirm(contentOf(1).Key, filesEpoch.Add(time.Duration(n)*time.Hour)), "confirm")
	}
	c, r, err := other.Get(t.Context(), contentOf(1).Key)
	checktest.MustNoError(t, err, "get")
	checktest.MustNoError(t, r.Close(), "close")
	checktest.True(t, c.At.Equal(filesEpoch.Add(2*time.Hour)), "time of the confirmation: %v", c.At)
	checktest.Equal(t, one.bucket.count(t), 1, "contents after it was replaced and confirmed")
	gone, err := one.Forget("twilio", "accounts", "AC1")
	checktest.MustNoError(t, err, "forget")
	checktest.Equal(t, gone, 1, "forgotten contents")
	_, held := other.text(1)
	checktest.True(t, !held, "the other process has the forgotten content")
	one.now = one.now.Add(time.Hour)
	one.open()
	checktest.Equal(t, fmt.Sprint(one.bucket.names(t)), "[]", "objects after all is forgotten and an hour has passed")
}

// TestBucketForgetsWhatAnotherProcessStores: a record is forgotten while another process stores its content. Whichever request to the
// bucket the one comes after, the content is not stored.
func TestBucketForgetsWhatAnotherProcessStores(t *testing.T) {
	one := newBucketShelf(t)
	other := &shelf{TB: t, dir: t.TempDir(), now: filesEpoch, bucket: one.bucket}
	other.open()
	for _, id := range []struct{ kind, id string }{{"recordings", contentOf(1).ID}, {"accounts", "AC1"}} {
		for after := 0; ; after++ {
			requests := 0
			var once sync.Once
			one.bucket.intercept(func(http.ResponseWriter, *http.Request) bool {
				if requests++; requests > after {
					once.Do(func() {
						one.bucket.intercept(nil)
						_, err := other.Forget("twilio", id.kind, id.id)
						checktest.NoError(t, err, "forget")
					})
				}
				return false
			})
			c, err := one.Put(t.Context(), contentOf(1), strings.NewReader("the voice"))
			one.bucket.intercept(nil)
			_, held := one.text(1)
			checktest.Equal(t, held, err == nil && c.Size > 0 && one.bucket.count(t) == 1, "whether the content is there, after %d requests", after)
			if err == nil && held {
				// Before the object of the record is there, only an erasure is noticed.
				checktest.MustTrue(t, after < 3 || requests <= after, "the content is there although it was forgotten after %d requests", after)
				_, err := other.Forget("twilio", id.kind, id.id)
				checktest.NoError(t, err, "forget at the end")
				_, held := one.text(1)
				checktest.True(t, !held, "the content is there after all")
			}
			if requests <= after {
				break // the Put had ended
			}
		}
	}
	checktest.True(t, !one.bucket.contains(t, "the voice"), "a content is left")
}

// TestBucketWithVersions: an erasure also deletes the former versions.
func TestBucketWithVersions(t *testing.T) {
	s := newBucketShelf(t)
	checktest.MustNoError(t, s.bucket.backend.SetVersioningConfiguration("contents",
		gofakes3.VersioningConfiguration{Status: gofakes3.VersioningEnabled}), "enable versioning")
	s.open()
	s.put(1, "the voice")
	checktest.MustTrue(t, s.bucket.contains(t, "the voice"), "the content is not found")
	_, err := s.Forget("twilio", "recordings", contentOf(1).ID)
	checktest.MustNoError(t, err, "forget")
	checktest.True(t, !s.bucket.contains(t, "the voice"), "a former version of the content is left")
}

// TestBucketAway: if the bucket cannot be reached, reads and puts end soon, nothing half is there afterwards, and an erasure waits.
func TestBucketAway(t *testing.T) {
	s := newBucketShelf(t)
	s.put(1, "one")
	for name, before := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"503": func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(503); return true },
		"cut": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
		"403": func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(403); return true },
	} {
		s.bucket.intercept(before)
		_, _, err := s.Get(t.Context(), contentOf(1).Key)
		checktest.True(t, err != nil && !errors.Is(err, understudy.ErrNotFound), "%s: get: %v", name, err)
		_, err = s.Put(t.Context(), contentOf(2), strings.NewReader("two"))
		checktest.True(t, errors.Is(err, understudy.ErrNotStored), "%s: put: %v", name, err)
		_, err = s.Forget("twilio", "recordings", contentOf(1).ID)
		checktest.True(t, err != nil, "%s: forget", name)
		checktest.True(t, s.RetryRemovals() != nil, "%s: the removal is not tried again", name)
		s.bucket.intercept(nil)
		checktest.NoError(t, s.RetryRemovals(), "%s: removals when the bucket is back", name)
		s.open()
		s.holds()
		s.put(1, "one")
	}
}

// TestBucketRanges: a content is read from any offset, and a damaged one is never read to its end.
func TestBucketRanges(t *testing.T) {
	s := newBucketShelf(t)
	text := strings.Repeat("0123456789", 50_000)
	c := s.put(1, text)
	_, r, err := s.Get(t.Context(), c.Key)
	checktest.MustNoError(t, err, "get")
	for _, at := range []int{0, 499_990, 3, 250_000, 3} {
		_, err := r.Seek(int64(at), io.SeekStart)
		checktest.MustNoError(t, err, "seek")
		p := make([]byte, 10)
		_, err = io.ReadFull(r, p)
		checktest.MustNoError(t, err, "read at %d", at)
		checktest.Equal(t, string(p), text[at:at+10], "bytes at %d", at)
	}
	end, err := r.Seek(0, io.SeekEnd)
	checktest.MustNoError(t, err, "seek to the end")
	checktest.Equal(t, end, int64(len(text)), "size")
	checktest.MustNoError(t, r.Close(), "close")

	for _, name := range s.bucket.names(t) {
		if !strings.HasPrefix(name, "content/") {
			continue
		}
		object, err := s.bucket.backend.GetObject("contents", "a/b/"+name, nil)
		checktest.MustNoError(t, err, "get the object")
		damaged := text[:len(text)-1] + "x"
		_, err = s.bucket.backend.PutObject("contents", "a/b/"+name, object.Metadata, strings.NewReader(damaged), int64(len(text)), nil)
		checktest.MustNoError(t, err, "damage the object")
	}
	all, err := s.verify()
	checktest.MustNoError(t, err, "verify")
	checktest.Equal(t, fmt.Sprint(all), "[1 [the content of "+c.Key.String()+" has changed]]", "what verify says")
	_, held := s.text(1)
	checktest.True(t, !held, "a damaged content is served")
	s.holds()
}

// TestBucketAddress: what names a bucket and what does not.
func TestBucketAddress(t *testing.T) {
	for from, want := range map[string]string{
		"s3://b": "b  <nil>", "s3://b/": "b  <nil>", "s3://b/c/d": "b c/d/ <nil>", "s3://b/c/d/": "b c/d/ <nil>",
		"https://b/c": "", "s3:///c": "", "b": "", "s3://key:secret@b/c": "", "s3://b/c?x": "", "s3://b/%zz": "",
	} {
		bucket, prefix, err := contents.ParseS3(from)
		if want == "" {
			checktest.True(t, err != nil, "%s is accepted", from)
			continue
		}
		checktest.Equal(t, fmt.Sprintln(bucket, prefix, err), want+"\n", "parts of %s", from)
	}
}

// TestBucketLimit: above the limit the contents go that were not stored or confirmed for the longest time, whichever process stored them.
func TestBucketLimit(t *testing.T) {
	limit := func(o *contents.Options) { o.Limit = 100 }
	one := newBucketShelf(t, limit)
	other := &shelf{TB: t, dir: t.TempDir(), now: filesEpoch, bucket: one.bucket}
	other.open(limit)
	for n := range 10 {
		one.now = filesEpoch.Add(time.Duration(n) * time.Minute)
		one.put(n, "content 00")
	}
	one.now = one.now.Add(time.Minute)
	checktest.MustNoError(t, one.Confirm(contentOf(0).Key, one.now), "confirm the oldest content")
	other.now = one.now
	other.open(limit)
	other.put(10, "content 10")
	one.holds(0, 3, 4, 5, 6, 7, 8, 9, 10)
	checktest.Equal(t, other.Stats().Evicted, 2, "evicted contents")
	checktest.Equal(t, other.Stats().Bytes, 90, "bytes")
	one.open(func(o *contents.Options) { o.Limit = 40 })
	one.holds(0, 9, 10)
}

// TestBucketSweep: what a killed process has left has no partner, and is deleted after some time.
func TestBucketSweep(t *testing.T) {
	s := newBucketShelf(t)
	for n := range 3 {
		s.put(n, fmt.Sprint("content ", n))
	}
	names := s.bucket.names(t)
	lost := names[:1] // the first content, and one record of the second content
	for _, name := range names[3:] {
		if strings.HasSuffix(name, strings.TrimPrefix(names[1], "content/")) {
			lost = append(lost, name)
			break
		}
	}
	checktest.MustEqual(t, len(lost), 2, "objects to delete")
	for _, name := range lost {
		_, err := s.bucket.backend.DeleteObject("contents", "a/b/"+name)
		checktest.MustNoError(t, err, "delete %s", name)
	}
	s.open()
	checktest.Equal(t, len(s.bucket.names(t)), 7, "objects while all are new")
	s.now = s.now.Add(31 * time.Minute)
	s.open()
	checktest.Equal(t, len(s.bucket.names(t)), 3, "objects: a content and one for each record")
	checktest.Equal(t, s.Stats().Files, 1, "contents")
}
