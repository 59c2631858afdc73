// Bringing: contents that cannot be kept, downloads, and an end in the middle.

package mirror

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/request"
	"understudy/spec"
)

// What was on its way when the record went is not kept either.
func TestContentOnItsWayWhenItsRecordGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x, files := recorded(t)
		x.write = func(w request.Write) (*understudy.Page, error) { return page(w.Target, 204, ""), nil }
		heard := make(chan error)
		go func() {
			m, err := s.Open(t.Context(), request.MediaRequest{Target: s.audio(t)})
			if err == nil && m.Status == 200 {
				err = errors.New("it was played")
				m.Close()
			}
			heard <- err
		}()
		time.Sleep(500 * time.Millisecond)
		x.answer(func(request.MediaRequest) (*request.MediaResponse, error) { return medio(404, ""), nil })
		if _, err := s.Mirror.Write(t.Context(), request.Write{Target: s.target(t, "Recordings/"+re+".json", ""), Method: "DELETE"}); err != nil {
			t.Fatal(err)
		}
		if err := <-heard; err != nil {
			t.Error(err)
		}
		if files.Stats().Files != 0 {
			t.Errorf("%+v", files.Stats())
		}
	})
}

func TestContentThatCannotBeKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x, files := recorded(t)
		large := bytes.Repeat([]byte("x"), 9<<20) // more than one file may have
		x.answer(func(request.MediaRequest) (*request.MediaResponse, error) {
			m := medio(200, "")
			m.ReadCloser, m.Size = io.NopCloser(bytes.NewReader(large)), int64(len(large))
			return m, nil
		})
		for range 3 {
			if m, text := s.hear(t, request.MediaRequest{}); len(text) != len(large) || m.File != nil {
				t.Errorf("%d bytes", len(text))
			}
			synctest.Wait()
		}
		st := s.Stats("twilio").Media
		checktest.MustEqual(t, len(x.asks()), 4, "len(x.asks())")
		checktest.Equal(t, st.NotKept, 1, "st.NotKept")
		checktest.Equal(t, files.Stats().Files, 0, "files.Stats().Files")
		// What broke off is passed on as far as it came, and tried again.
		broken := fmt.Errorf("broke off")
		x.answer(func(request.MediaRequest) (*request.MediaResponse, error) {
			m := medio(200, "")
			m.ReadCloser, m.Size = io.NopCloser(io.MultiReader(strings.NewReader("half"), errReader{broken})), 100
			return m, nil
		})
		other := request.MediaRequest{Target: s.target(t, "Recordings/RE2.wav", "")}
		m, err := s.Open(t.Context(), other)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(m); !errors.Is(err, broken) || string(b) != "half" {
			t.Errorf("%q, %v", b, err)
		}
		m.Close()
		time.Sleep(2 * time.Second)
		x.answer(nil)
		if m, text := s.hear(t, other); text != sound || m.File == nil {
			t.Errorf("%q %+v", text, m)
		}
	})
}

func TestContentDownloadsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x, _ := recorded(t)
		x.wait = 5 * time.Second
		var all sync.WaitGroup
		for i := range 24 {
			all.Go(func() {
				s.hear(t, request.MediaRequest{Target: s.target(t, fmt.Sprintf("Recordings/RE%d.wav", i), "")})
			})
		}
		time.Sleep(time.Second)
		if n := len(x.asks()); n != 24 {
			t.Errorf("%d requests", n)
		}
		all.Wait()
		synctest.Wait()
		if st := s.Stats("twilio").Media; st.Kept != 8 || st.Cold != 24 {
			t.Errorf("%d of 24 readers waited for a download: %+v", st.Kept, st)
		}
		if n := s.Loads().Waiters.Now; n != 0 {
			t.Errorf("%d waiters left", n)
		}
	})
}

func TestContentWhenTheMirrorCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x, _ := recorded(t)
		x.wait = time.Minute
		time.AfterFunc(time.Second, s.stop)
		if _, err := s.Open(t.Context(), request.MediaRequest{Target: s.audio(t)}); !errors.Is(err, understudy.ErrClosed) {
			t.Errorf("%v", err)
		}
		if _, err := s.Open(t.Context(), request.MediaRequest{Target: s.audio(t)}); !errors.Is(err, understudy.ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestContentAsksThatMakeNoSense(t *testing.T) {
	t.Parallel()
	s, _, _ := recorded(t)
	for _, a := range []request.MediaRequest{{}, {Target: s.newest(t)},
		{Target: &spec.Target{Key: understudy.Key{Source: "other"}, Media: &spec.Media{}}}} {
		if _, err := s.Open(t.Context(), a); !errors.Is(err, understudy.ErrInvalid) {
			t.Errorf("%+v: %v", a, err)
		}
	}
	plain := open(t, 1)
	if _, err := plain.Mirror.Open(t.Context(), request.MediaRequest{Target: plain.audio(t)}); !errors.Is(err, understudy.ErrNotFound) {
		t.Errorf("an upstream without contents: %v", err)
	}
	_, err := New(Options{Store: plain.store, Sources: []Source{{Source: &spec.Source{Name: "twilio", Spec: plain.world.spec, User: account,
		MediaKinds: []string{"calls"}}, Upstream: plain.world}}})
	if err == nil || !strings.Contains(err.Error(), `"calls" has no contents`) {
		t.Errorf("%v", err)
	}
}
