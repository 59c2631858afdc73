// Contents: what is kept, what goes, and that nothing half is ever served.

package contents_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/contents"
	"understudy/request"
)

var filesEpoch = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// shelf is a folder or a bucket of contents with a clock of its own.
type shelf struct {
	testing.TB
	contents.Store
	dir    string
	now    time.Time
	bucket *bucket // nil if the contents are in the folder
}

func newShelf(t testing.TB, change ...func(*contents.Options)) *shelf {
	s := &shelf{TB: t, dir: filepath.Join(t.TempDir(), "media"), now: filesEpoch}
	s.open(change...)
	return s
}

func (s *shelf) open(change ...func(*contents.Options)) {
	s.Helper()
	o := contents.Options{Dir: s.dir, Now: func() time.Time { return s.now }}
	for _, c := range change {
		c(&o)
	}
	var err error
	if s.bucket != nil {
		o.S3 = s.bucket.s3
	}
	if s.Store, err = contents.OpenStore(o); err != nil {
		s.Fatal(err)
	}
}

func contentOf(n int) request.Content {
	id := fmt.Sprintf("RE%032d", n)
	return request.Content{
		Key:  understudy.Key{Source: "twilio", URI: "/2010-04-01/Accounts/AC1/Recordings/" + id + ".wav"},
		Kind: "recordings", ID: id, ParentIDs: []string{"AC1"}, ContentType: "audio/x-wav", Size: -1,
		ETag: `"u"`, Modified: filesEpoch.Add(-time.Hour), At: filesEpoch,
	}
}

func (s *shelf) put(n int, text string) request.Content {
	s.Helper()
	c, err := s.Put(s.Context(), contentOf(n), strings.NewReader(text))
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// text is what is held, "" and false when nothing is.
func (s *shelf) text(n int) (string, bool) {
	s.Helper()
	c, r, err := s.Get(s.Context(), contentOf(n).Key)
	if errors.Is(err, understudy.ErrNotFound) {
		return "", false
	}
	if err != nil {
		s.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		s.Fatal(err)
	}
	if int64(len(b)) != c.Size || sha256.Sum256(b) != c.Sum {
		s.Errorf("%d: %d bytes, not what was said", n, len(b))
	}
	return string(b), true
}

// onDisk counts files under one of the folders.
func (s *shelf) onDisk(folder string) (n int) {
	s.Helper()
	if s.bucket != nil && folder != "new" {
		return s.bucket.count(s) // each object has its own metadata
	}
	err := filepath.WalkDir(filepath.Join(s.dir, folder), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return n
}

func (s *shelf) holds(want ...int) {
	s.Helper()
	all := map[int]bool{}
	for _, n := range want {
		all[n] = true
	}
	for n := range 12 {
		if _, ok := s.text(n); ok != all[n] {
			s.Errorf("content %d is held: %v, want %v", n, ok, all[n])
		}
	}
	if s.onDisk("index") != len(want) || s.onDisk("new") != 0 {
		s.Errorf("%d index files, %d new ones; %d are held", s.onDisk("index"), s.onDisk("new"), len(want))
	}
}

func TestFilesKeep(t *testing.T) {
	inEveryStore(t, func(t *testing.T, newShelf shelfMaker) {
		s := newShelf(t)
		c := s.put(1, "RIFF one")
		if c.Size != 8 || c.Sum != sha256.Sum256([]byte("RIFF one")) {
			t.Errorf("%+v", c)
		}
		for range 2 {
			got, r, err := s.Get(t.Context(), c.Key)
			if err != nil {
				t.Fatal(err)
			}
			want := contentOf(1)
			want.Size, want.Sum = c.Size, c.Sum
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%+v, want %+v", got, want)
			}
			if _, err := r.Seek(5, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(r); string(b) != "one" || err != nil {
				t.Errorf("%q, %v", b, err)
			}
			r.Close()
			r.Close()
			s.open() // and again after a restart
		}
		if err := s.Confirm(c.Key, filesEpoch.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		s.open()
		if got, r, err := s.Get(t.Context(), c.Key); err != nil || !got.At.Equal(filesEpoch.Add(time.Hour)) {
			t.Errorf("%+v, %v", got, err)
		} else {
			r.Close()
		}
		if err := s.Confirm(contentOf(2).Key, filesEpoch); !errors.Is(err, understudy.ErrNotFound) {
			t.Errorf("%v", err)
		}
		if s.bucket != nil {
			return
		}
		info, err := os.Stat(filepath.Join(s.dir, "content"))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v %v", info.Mode(), err)
		}
	})
}

func TestFilesReplaceAndShare(t *testing.T) {
	s := newShelf(t)
	s.put(1, "same")
	s.put(2, "same")
	checktest.Equal(t, s.onDisk("content"), 1, `s.onDisk("content")`)
	checktest.Equal(t, s.Stats().Bytes, 4, "s.Stats().Bytes")
	checktest.Equal(t, s.Stats().Files, 2, "s.Stats().Files")
	s.put(1, "other")
	if got, _ := s.text(2); got != "same" {
		t.Errorf("%q", got)
	}
	s.put(2, "other")
	{
		got, _ := s.text(2)
		checktest.Equal(t, got, "other", "got")
		checktest.Equal(t, s.onDisk("content"), 1, `s.onDisk("content"); got %q`, got)
		checktest.Equal(t, s.Stats().Bytes, 5, "s.Stats().Bytes; got %q", got)
	}
	s.holds(1, 2)
	s.open()
	s.holds(1, 2)
}

func TestFilesLimit(t *testing.T) {
	limit := func(o *contents.Options) { o.Limit = 30 }
	s := newShelf(t, limit)
	for n := range 3 {
		s.put(n, fmt.Sprintf("content %02d", n))
		s.now = s.now.Add(2 * time.Hour)
	}
	s.holds(0, 1, 2)
	s.now = s.now.Add(2 * time.Hour)
	for _, n := range []int{2, 1, 0} { // 2 was read longest ago
		s.text(n)
		s.now = s.now.Add(2 * time.Hour)
	}
	s.put(3, "content 03")
	if _, ok := s.text(2); ok {
		t.Error("what was read longest ago is held")
	}
	s.open(limit) // the order survives
	s.put(4, "content 04")
	s.holds(0, 3, 4)
	{
		st := s.Stats()
		checktest.Equal(t, st.Bytes, 30, "st.Bytes")
		checktest.Equal(t, st.Limit, 30, "st.Limit")
		checktest.Equal(t, st.Files, 3, "st.Files")
		checktest.Equal(t, st.Evicted, 1, "st.Evicted")
	}
	s.open(func(o *contents.Options) { o.Limit = 10 })
	{
		st := s.Stats()
		checktest.Equal(t, st.Files, 1, "st.Files")
		checktest.Equal(t, st.Bytes, 10, "st.Bytes")
		checktest.Equal(t, s.onDisk("content"), 1, `s.onDisk("content")`)
	}
}

func TestFilesNotKept(t *testing.T) {
	inEveryStore(t, func(t *testing.T, newShelf shelfMaker) {
		s := newShelf(t, func(o *contents.Options) { o.MaxContentBytes = 10 })
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, test := range []struct {
			name, reason string
			size         int64
			from         io.Reader
			ctx          context.Context
		}{
			{"too large, said so", "larger", 11, strings.NewReader("never read"), t.Context()},
			{"too large", "larger", -1, strings.NewReader("01234567890"), t.Context()},
			{"cut", "did not come whole", 9, strings.NewReader("short"), t.Context()},
			{"longer than said", "did not come whole", 3, strings.NewReader("long"), t.Context()},
			{"broken", "did not come whole", -1, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF)), t.Context()},
			{"its reader left", "did not come whole", -1, strings.NewReader("x"), ended},
		} {
			c := contentOf(1)
			c.Size = test.size
			_, err := s.Put(test.ctx, c, test.from)
			var short interface{ ShortString() string }
			checktest.True(t, errors.Is(err, understudy.ErrNotStored), "%s: err is %v, want understudy.ErrNotStored",
				test.name, err)
			checktest.MustTrue(t, errors.As(err, &short), "%s: errors.As(err, &short) is false", test.name)
			checktest.Contains(t, short.ShortString(), test.reason, "%s: short.ShortString(); %v", test.name, err)
		}
		s.holds()
		if s.onDisk("content") != 0 || s.Stats().Failed != 6 {
			t.Errorf("%d contents, %+v", s.onDisk("content"), s.Stats())
		}
	})
}

func TestFilesForget(t *testing.T) {
	inEveryStore(t, func(t *testing.T, newShelf shelfMaker) {
		s := newShelf(t)
		for n := range 4 {
			s.put(n, fmt.Sprint("content ", n))
		}
		mp3 := contentOf(1)
		mp3.Key.URI = strings.Replace(mp3.Key.URI, ".wav", ".mp3", 1)
		image := request.Content{Key: understudy.Key{Source: "twilio", URI: "/M/SM1/Media/ME1"}, Kind: "media", ID: "ME1",
			ParentIDs: []string{"AC1", "SM1"}, Size: -1}
		for _, c := range []request.Content{mp3, image} {
			if _, err := s.Put(t.Context(), c, strings.NewReader(c.Key.URI)); err != nil {
				t.Fatal(err)
			}
		}
		for _, test := range []struct {
			source, kind, id string
			want             int
		}{
			{"twilio", "recordings", contentOf(9).ID, 0}, {"other", "recordings", contentOf(1).ID, 0}, {"twilio", "calls", contentOf(2).ID, 0},
			{"twilio", "recordings", contentOf(1).ID, 2}, {"twilio", "messages", "SM1", 1}, {"twilio", "accounts", "AC1", 3},
		} {
			if gone, err := s.Forget(test.source, test.kind, test.id); gone != test.want || err != nil {
				t.Errorf("forget %s %s: %d, %v; want %d", test.kind, test.id, gone, err, test.want)
			}
		}
		s.holds()
		checktest.Equal(t, s.onDisk("content"), 0, `s.onDisk("content")`)
		checktest.Equal(t, s.Stats().Forgotten, 6, "s.Stats().Forgotten")
		s.open() // a bucket counts its bytes when it is listed
		checktest.Equal(t, s.Stats().Bytes, 0, "s.Stats().Bytes")
	})
}

// What is forgotten while it comes in is not kept.
func TestFilesForgetMeanwhile(t *testing.T) {
	inEveryStore(t, func(t *testing.T, newShelf shelfMaker) {
		s := newShelf(t)
		r, w := io.Pipe()
		kept := make(chan error)
		go func() {
			_, err := s.Put(t.Context(), contentOf(1), r)
			kept <- err
		}()
		if _, err := w.Write([]byte("half")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Forget("twilio", "recordings", contentOf(1).ID); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if err := <-kept; !errors.Is(err, understudy.ErrNotStored) || !strings.Contains(err.Error(), "forgotten") {
			t.Errorf("%v", err)
		}
		s.holds()
		s.put(1, "again") // the next one is
		s.holds(1)
	})
}

// Whatever a kill or a stranger leaves behind is not served, and goes.
func TestFilesSweep(t *testing.T) {
	s := newShelf(t)
	for n := range 5 {
		s.put(n, fmt.Sprint("content ", n))
	}
	find := func(folder, holding string) string {
		var found string
		_ = filepath.WalkDir(filepath.Join(s.dir, folder), func(path string, d fs.DirEntry, err error) error {
			if b, _ := os.ReadFile(path); err == nil && !d.IsDir() && bytes.Contains(b, []byte(holding)) {
				found = path
			}
			return nil
		})
		if found == "" {
			t.Fatal("nothing holds", holding)
		}
		return found
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Truncate(find("content", "content 0"), 5))
	must(os.Remove(find("content", "content 1")))
	must(os.WriteFile(find("index", contentOf(2).ID), []byte(`{"sum":`), 0o600))
	must(os.Rename(find("index", contentOf(3).ID), filepath.Join(s.dir, "index", "00.json")))
	must(os.WriteFile(filepath.Join(s.dir, "new", "content-1"), []byte("half"), 0o600))
	must(os.WriteFile(filepath.Join(s.dir, "content", "stray"), []byte("stray"), 0o600))
	if _, ok := s.text(0); ok {
		t.Error("a content that was cut is served")
	}
	if _, ok := s.text(1); ok {
		t.Error("a content that is not there is served")
	}
	s.open()
	s.holds(4)
	checktest.Equal(t, s.onDisk("content"), 1, `s.onDisk("content")`)
	checktest.Equal(t, s.Stats().Files, 1, "s.Stats().Files")
	checktest.Equal(t, s.Stats().Bytes, 9, "s.Stats().Bytes")
}

func TestFilesOpenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, func(o *contents.Options) { o.MaxOpen = 1 })
		s.put(1, "one")
		_, first, err := s.Get(t.Context(), contentOf(1).Key)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, _, err := s.Get(t.Context(), contentOf(1).Key); !errors.Is(err, understudy.ErrUnavailable) || time.Since(begin) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		time.AfterFunc(time.Second, func() { first.Close() })
		if got, _ := s.text(1); got != "one" {
			t.Errorf("%q", got)
		}
	})
}

func TestFilesAtOnce(t *testing.T) {
	inEveryStore(t, func(t *testing.T, newShelf shelfMaker) {
		s := newShelf(t, func(o *contents.Options) { o.Limit = 4000 })
		var all sync.WaitGroup
		for g := range 6 {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(1, uint64(g)))
				for range 60 {
					n := rng.IntN(12)
					switch rng.IntN(4) {
					case 0:
						if _, err := s.Forget("twilio", "recordings", contentOf(n).ID); err != nil {
							t.Error(err)
						}
					case 1:
						_, err := s.Put(t.Context(), contentOf(n), strings.NewReader(strings.Repeat(fmt.Sprint(rng.IntN(3), " "), 100+rng.IntN(300))))
						if err != nil && !strings.Contains(err.Error(), "forgotten") {
							t.Error(err)
						}
					default:
						s.text(n)
					}
				}
			})
		}
		all.Wait()
		s.open(func(o *contents.Options) { o.Limit = 4000 }) // a bucket counts exactly when it is listed
		st := s.Stats()
		checktest.True(t, st.Bytes <= 4000, "st.Bytes is %v, want <= 4000", st.Bytes)
		checktest.Equal(t, int(st.Files), s.onDisk("index"), "int(st.Files)")
		checktest.Equal(t, s.onDisk("new"), 0, `s.onDisk("new")`)
		held := s.onDisk("content")
		s.open(func(o *contents.Options) { o.Limit = 4000 })
		after := s.Stats()
		checktest.Equal(t, after.Files, st.Files, "after.Files")
		checktest.Equal(t, after.Bytes, st.Bytes, "after.Bytes")
		checktest.Equal(t, s.onDisk("content"), held, `s.onDisk("content")`)
	})
}

func BenchmarkFilesGet(b *testing.B) {
	s := newShelf(b)
	c := s.put(1, strings.Repeat("x", 100_000))
	for b.Loop() {
		_, r, err := s.Get(b.Context(), c.Key)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// verify returns how many contents were checked and which are damaged.
func (s *shelf) verify() (all []any, err error) {
	o := contents.Options{Dir: s.dir}
	if s.bucket != nil {
		o.S3 = s.bucket.s3
	}
	var damaged []string
	n, err := contents.Verify(s.Context(), o, func(key understudy.Key) {
		damaged = append(damaged, "the content of "+key.String()+" has changed")
	})
	return []any{n, damaged}, err
}

// TestVerifyContents: a content whose bytes have changed is reported, others are not.
func TestVerifyContents(t *testing.T) {
	s := newShelf(t)
	all, err := s.verify()
	checktest.MustNoError(t, err, "verify an empty folder")
	checktest.Equal(t, fmt.Sprint(all), "[0 []]", "what verify says of nothing")
	s.put(1, "one")
	c := s.put(2, "two")
	path := filepath.Join(s.dir, "content", fmt.Sprintf("%x", c.Sum[:1]), fmt.Sprintf("%x", c.Sum))
	checktest.MustNoError(t, os.WriteFile(path, []byte("tow"), 0o600), "damage a content")
	all, err = s.verify()
	checktest.MustNoError(t, err, "verify")
	checktest.Equal(t, fmt.Sprint(all), "[2 [the content of "+c.Key.String()+" has changed]]", "what verify says")
}
