// Contents: from a file, from upstream, and never of a record that went.

package mirror

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy"
	"understudy/internal/checktest"
	"understudy/internal/store/contents"
	"understudy/request"
	"understudy/spec"
)

// studio is a world with contents.
type studio struct {
	*world
	mu      sync.Mutex
	opened  []request.MediaRequest
	closed  int
	content func(a request.MediaRequest) (*request.MediaResponse, error) // nil: sound for everything
	wait    time.Duration                                                // before the first byte
}

const sound = "RIFF a few seconds of noise"

func medio(status int, text string) *request.MediaResponse {
	return &request.MediaResponse{
		ReadCloser: io.NopCloser(strings.NewReader(text)), Status: status, Size: int64(len(text)), ContentType: "audio/x-wav",
		ETag: `"one"`, Outcome: request.Cold, Upstream: time.Second,
	}
}

func (s *studio) Open(ctx context.Context, a request.MediaRequest) (*request.MediaResponse, error) {
	s.mu.Lock()
	s.opened = append(s.opened, a)
	content, wait := s.content, s.wait
	s.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m, err := medio(200, sound), error(nil)
	if content != nil {
		m, err = content(a)
	}
	if m != nil {
		m.ReadCloser = &counted{m.ReadCloser, s}
	}
	return m, err
}

type counted struct {
	io.ReadCloser
	studio *studio
}

func (c *counted) Close() error {
	c.studio.mu.Lock()
	defer c.studio.mu.Unlock()
	c.studio.closed++
	return c.ReadCloser.Close()
}

func (s *studio) asks() []request.MediaRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request.MediaRequest(nil), s.opened...)
}

func (s *studio) answer(content func(a request.MediaRequest) (*request.MediaResponse, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content = content
}

func fails(err error) func(request.MediaRequest) (*request.MediaResponse, error) {
	return func(request.MediaRequest) (*request.MediaResponse, error) { return nil, err }
}

// recorded is a stage with contents of recordings and media kept.
func recorded(t *testing.T, change ...func(*Options)) (*stage, *studio, *contents.Files) {
	t.Helper()
	x := &studio{wait: time.Second}
	files, err := contents.Open(contents.Options{Dir: filepath.Join(t.TempDir(), "media"), MaxContentBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, 3, append([]setting{func(o *Options) {
		x.world = o.Sources[0].Upstream.(*world)
		o.Sources[0].Upstream, o.Files, o.Sources[0].Source.MediaKinds = x, files, []string{"recordings", "media"}
	}}, func() (all []setting) {
		for _, c := range change {
			all = append(all, c)
		}
		return all
	}()...)...)
	return s, x, files
}

const re = "RE00000000000000000000000000000001"

func (s *stage) audio(t testing.TB) *spec.Target {
	return s.target(t, "Recordings/"+re+".wav", "")
}

// hear opens a content and reads it whole.
func (s *stage) hear(t testing.TB, a request.MediaRequest) (*request.MediaResponse, string) {
	t.Helper()
	if a.Target == nil {
		a.Target = s.audio(t)
	}
	m, err := s.Open(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	b, err := io.ReadAll(m)
	if err != nil {
		t.Fatal(err)
	}
	return m, string(b)
}

func wantMedium(t testing.TB, m *request.MediaResponse, how request.Outcome, detail string) {
	t.Helper()
	if m.Outcome != how || m.Detail != detail {
		t.Fatalf("the content came %s, detail %q; want %s, %q", m.Outcome, m.Detail, how, detail)
	}
}

func TestContentIsBroughtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x, files := recorded(t)
		var all sync.WaitGroup
		joined := 0
		var mu sync.Mutex
		for range 20 {
			all.Go(func() {
				m, text := s.hear(t, request.MediaRequest{})
				checktest.Equal(t, text, sound, "text")
				checktest.True(t, m.File != nil, "no file: %+v", m)
				checktest.Equal(t, m.Outcome, request.Cold, "outcome")
				checktest.True(t, m.Stored, "not stored: %+v", m)
				mu.Lock()
				defer mu.Unlock()
				if m.Joined {
					joined++
				}
			})
		}
		all.Wait()
		if n := len(x.asks()); n != 1 || joined != 19 {
			t.Errorf("upstream was asked %d times, %d joined", n, joined)
		}
		m, text := s.hear(t, request.MediaRequest{Range: "bytes=2-3"}) // the frontend cuts
		wantMedium(t, m, request.Warm, "")
		checktest.Equal(t, text, sound, "text")
		checktest.Equal(t, m.Size, int64(len(sound)), "m.Size; text %q", text)
		checktest.True(t, m.ETag != "", "m.ETag is empty; text %q", text)
		checktest.True(t, m.ETag != `"one"`, "m.ETag is `\"one\"`; text %q", text)
		if m, _ := s.hear(t, request.MediaRequest{Head: true}); m.Outcome != request.Warm {
			t.Errorf("HEAD: %+v", m)
		}
		st := s.Stats("twilio").Media
		checktest.MustEqual(t, len(x.asks()), 1, "len(x.asks())")
		checktest.Equal(t, st.Cold, 20, "st.Cold")
		checktest.Equal(t, st.Warm, 2, "st.Warm")
		checktest.Equal(t, st.Kept, 1, "st.Kept")
		checktest.Equal(t, files.Stats().Files, 1, "files.Stats().Files")
		checktest.Equal(t, st.Requests, 22, "st.Requests")
		synctest.Wait()
		if x.closed != 1 {
			t.Errorf("%d of 1 answers closed", x.closed)
		}
	})
}

// Kinds that are not kept, HEAD and large contents are a request of the
// reader's own; of a large one the file comes behind.
func TestContentIsPassedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x, files := recorded(t, func(o *Options) { o.Sources[0].Source.MediaKinds = []string{"media"} })
		a := request.MediaRequest{Range: "bytes=2-3", IfRange: `"x"`, IfNoneMatch: `"y"`, Flow: 7}
		x.answer(func(request.MediaRequest) (*request.MediaResponse, error) { return medio(206, "FF"), nil })
		for range 2 {
			m, text := s.hear(t, a)
			wantMedium(t, m, request.Cold, "")
			checktest.Equal(t, text, "FF", "text")
			checktest.MustTrue(t, m.File == nil, "m.File is %v; text %q", m.File, text)
			checktest.Equal(t, m.Status, 206, "m.Status; text %q", text)
		}
		asks := x.asks()
		checktest.MustEqual(t, len(asks), 2, "len(asks)")
		checktest.Equal(t, asks[0].Range, a.Range, "asks[0].Range")
		checktest.Equal(t, asks[0].IfRange, a.IfRange, "asks[0].IfRange")
		checktest.Equal(t, asks[0].IfNoneMatch, a.IfNoneMatch, "asks[0].IfNoneMatch")
		checktest.Equal(t, files.Stats().Files, 0, "files.Stats().Files")
	})
	synctest.Test(t, func(t *testing.T) {
		s, x, files := recorded(t)
		{
			m, _ := s.hear(t, request.MediaRequest{Head: true})
			checktest.Equal(t, m.Outcome, request.Cold, "m.Outcome")
			checktest.Equal(t, files.Stats().Files, 0, "files.Stats().Files")
			checktest.Equal(t, len(x.asks()), 1, "len(x.asks())")
		}
		large := strings.Repeat("0123456789abcdef", (4<<20)/16+1)
		x.answer(func(a request.MediaRequest) (*request.MediaResponse, error) {
			if a.Range != "" {
				return medio(206, "FF"), nil
			}
			return medio(200, large), nil
		})
		if m, text := s.hear(t, request.MediaRequest{Range: "bytes=1-2"}); m.Status != 206 || text != "FF" {
			t.Errorf("%+v", m)
		}
		synctest.Wait()
		m, text := s.hear(t, request.MediaRequest{Range: "bytes=1-2"})
		if wantMedium(t, m, request.Warm, ""); text != large {
			t.Errorf("%d bytes", len(text))
		}
		if len(x.asks()) != 3 {
			t.Errorf("%d asks", len(x.asks()))
		}
	})
}

func TestContentGrowsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x, _ := recorded(t)
		s.hear(t, request.MediaRequest{})
		time.Sleep(23 * time.Hour)
		m, _ := s.hear(t, request.MediaRequest{})
		if wantMedium(t, m, request.Warm, ""); m.Age != 23*time.Hour || m.TTL != time.Hour {
			t.Errorf("%+v", m)
		}
		time.Sleep(2 * time.Hour)
		x.answer(func(a request.MediaRequest) (*request.MediaResponse, error) {
			if a.IfNoneMatch != `"one"` || a.Reason != request.ReasonRefresh {
				t.Errorf("%+v", a)
			}
			return medio(304, ""), nil
		})
		m, text := s.hear(t, request.MediaRequest{}) // at once, and asked about behind
		if wantMedium(t, m, request.Stale, ""); text != sound || m.TTL != -time.Hour {
			t.Errorf("%+v", m)
		}
		time.Sleep(2 * time.Second)
		m, _ = s.hear(t, request.MediaRequest{})
		if wantMedium(t, m, request.Warm, ""); m.Age != time.Second || len(x.asks()) != 2 {
			t.Errorf("%+v after %d asks", m, len(x.asks()))
		}
		// Upstream has something else after all.
		time.Sleep(25 * time.Hour)
		x.answer(func(request.MediaRequest) (*request.MediaResponse, error) { return medio(200, "another"), nil })
		s.hear(t, request.MediaRequest{})
		time.Sleep(2 * time.Second)
		m, text = s.hear(t, request.MediaRequest{})
		if wantMedium(t, m, request.Warm, ""); text != "another" {
			t.Errorf("%q", text)
		}
		// It went.
		time.Sleep(25 * time.Hour)
		x.answer(func(request.MediaRequest) (*request.MediaResponse, error) { return medio(404, ""), nil })
		s.hear(t, request.MediaRequest{})
		time.Sleep(2 * time.Second)
		if m, _ := s.hear(t, request.MediaRequest{}); m.Status != 404 || m.Outcome != request.Cold {
			t.Errorf("%+v", m)
		}
	})
}

func TestContentIsAskedForAgainWhen304HasAnotherETag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x, _ := recorded(t)
		s.hear(t, request.MediaRequest{})
		time.Sleep(25 * time.Hour)
		x.answer(func(a request.MediaRequest) (*request.MediaResponse, error) {
			if a.IfNoneMatch == "" {
				return medio(200, "another"), nil
			}
			m := medio(304, "")
			m.ETag = `"two"`
			return m, nil
		})
		s.hear(t, request.MediaRequest{}) // stale, and asked about in the background
		time.Sleep(5 * time.Second)       // two requests take longer than one
		m, text := s.hear(t, request.MediaRequest{})
		if wantMedium(t, m, request.Warm, ""); text != "another" {
			t.Errorf("%q is held, want the content of the second answer", text)
		}
		if n := len(x.asks()); n != 3 {
			t.Errorf("%d requests, want 3: the first, the conditional and the unconditional one", n)
		}
	})
}

func TestContentInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x, _ := recorded(t, shortAges)
		s.hear(t, request.MediaRequest{})
		x.answer(fails(down(503)))
		m, _ := s.hear(t, request.MediaRequest{})
		wantMedium(t, m, request.Warm, "")
		if _, err := s.Open(t.Context(), request.MediaRequest{Target: s.target(t, "Recordings/RE2.wav", "")}); !errors.Is(err,
			understudy.ErrUnavailable) {
			t.Errorf("nothing held: %v", err)
		}
		time.Sleep(2 * time.Hour)
		s.hear(t, request.MediaRequest{})
		time.Sleep(2 * time.Second)
		m, text := s.hear(t, request.MediaRequest{})
		if wantMedium(t, m, request.Stale, "stale: upstream 503"); text != sound {
			t.Errorf("%q", text)
		}
		// A reader that insists waits for one download, then has the file.
		zero := time.Duration(0)
		for _, a := range []request.MediaRequest{{NoCache: true}, {MaxStale: &zero}} {
			time.Sleep(5 * time.Second)
			m, text = s.hear(t, a)
			if wantMedium(t, m, request.Stale, "stale: upstream 503"); text != sound {
				t.Errorf("%q", text)
			}
		}
		time.Sleep(shortHard)
		if _, err := s.Open(t.Context(), request.MediaRequest{Target: s.audio(t)}); !errors.Is(err, understudy.ErrUnavailable) {
			t.Errorf("older than anything: %v", err)
		}
		x.answer(func(a request.MediaRequest) (*request.MediaResponse, error) { return medio(304, ""), nil })
		time.Sleep(2 * time.Second)
		m, _ = s.hear(t, request.MediaRequest{})
		if wantMedium(t, m, request.Cold, ""); m.Age != 0 {
			t.Errorf("%+v", m)
		}
		if m, _ = s.hear(t, request.MediaRequest{NoCache: true}); m.Outcome != request.Cold {
			t.Errorf("%+v", m)
		}
	})
}

// A slow upstream: what is held goes out after Ages.Wait.
func TestContentWhenUpstreamIsSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x, _ := recorded(t)
		s.hear(t, request.MediaRequest{})
		x.wait = time.Minute
		begin := time.Now()
		m, _ := s.hear(t, request.MediaRequest{NoCache: true})
		wantMedium(t, m, request.Stale, "stale: upstream slow")
		if took := time.Since(begin); took != 8*time.Second {
			t.Errorf("after %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Open(ctx, request.MediaRequest{Target: s.target(t, "Recordings/RE2.wav", "")}); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

// Of a record that went nothing is played, however it went.
func TestContentOfARecordThatWent(t *testing.T) {
	t.Parallel()
	for name, goes := range map[string]func(t *testing.T, s *stage, x *studio){
		"deleted through us": func(t *testing.T, s *stage, x *studio) {
			x.write = func(w request.Write) (*understudy.Page, error) { return page(w.Target, 204, ""), nil }
			_, err := s.Mirror.Write(t.Context(), request.Write{Target: s.target(t, "Recordings/"+re+".json", ""), Method: "DELETE"})
			if err != nil {
				t.Error(err)
			}
		},
		"deleted by its other name": func(t *testing.T, s *stage, x *studio) {
			x.write = func(w request.Write) (*understudy.Page, error) { return page(w.Target, 204, ""), nil }
			if _, err := s.Mirror.Write(t.Context(), request.Write{Target: s.target(t, "Recordings/"+re, ""), Method: "DELETE"}); err != nil {
				t.Error(err)
			}
		},
		"perhaps deleted": func(t *testing.T, s *stage, x *studio) {
			x.write = func(request.Write) (*understudy.Page, error) { return nil, understudy.ErrUnknownOutcome }
			_, err := s.Mirror.Write(t.Context(), request.Write{Target: s.target(t, "Recordings/"+re+".json", ""), Method: "DELETE"})
			if !errors.Is(err, understudy.ErrUnknownOutcome) {
				t.Error(err)
			}
		},
		"its account deleted": func(t *testing.T, s *stage, x *studio) {
			x.write = func(w request.Write) (*understudy.Page, error) { return page(w.Target, 204, ""), nil }
			target, err := s.spec.Resolve("twilio", "/2010-04-01/Accounts/"+account+".json", "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Mirror.Write(t.Context(), request.Write{Target: target, Method: "DELETE"}); err != nil {
				t.Error(err)
			}
		},
		"purged": func(t *testing.T, s *stage, x *studio) {
			if _, err := s.ForgetRecord(t.Context(), "twilio", "recordings", re); err != nil {
				t.Error(err)
			}
		},
		"purged by its path": func(t *testing.T, s *stage, x *studio) {
			if _, err := s.Forget(t.Context(), s.audio(t)); err != nil {
				t.Error(err)
			}
		},
		"found missing": func(t *testing.T, s *stage, x *studio) {
			if a := s.get(t, s.target(t, "Recordings/"+re+".json", "")); a.Page.Status != 404 {
				t.Errorf("%+v", a.Page)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, x, files := recorded(t)
				s.hear(t, request.MediaRequest{})
				x.answer(fails(down(503))) // only a file could answer now
				wantMedium(t, first(s.hear(t, request.MediaRequest{})), request.Warm, "")
				goes(t, s, x)
				if _, err := s.Open(t.Context(), request.MediaRequest{Target: s.audio(t)}); !errors.Is(err, understudy.ErrUnavailable) {
					t.Errorf("it still plays: %v", err)
				}
				if files.Stats().Files != 0 || files.Stats().Forgotten != 1 {
					t.Errorf("%+v", files.Stats())
				}
			})
		})
	}
}

func first[A, B any](a A, _ B) A { return a }

// Under another account's path a recording is not there; that does not mean
// that it is gone.
func TestContentUnderAnotherPath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x, files := recorded(t)
		s.hear(t, request.MediaRequest{})
		x.answer(func(request.MediaRequest) (*request.MediaResponse, error) { return medio(404, ""), nil })
		other, err := s.spec.Resolve("twilio", strings.Replace(s.audio(t).Key.URI, account, "AC00000000000000000000000000000002", 1), "")
		if err != nil {
			t.Fatal(err)
		}
		if m, _ := s.hear(t, request.MediaRequest{Target: other}); m.Status != 404 || files.Stats().Files != 1 {
			t.Errorf("%+v, %+v", m, files.Stats())
		}
		wantMedium(t, first(s.hear(t, request.MediaRequest{})), request.Warm, "")
	})
}

func TestContentThatIsHeldOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, x, _ := recorded(t)
		only := request.MediaRequest{Target: s.audio(t), OnlyIfCached: true}
		if _, err := s.Open(t.Context(), only); !errors.Is(err, understudy.ErrNoStoredAnswer) || len(x.asks()) != 0 {
			t.Errorf("nothing held: %v", err)
		}
		s.hear(t, request.MediaRequest{})
		m, _ := s.hear(t, only)
		wantMedium(t, m, request.Warm, "")
		time.Sleep(25 * time.Hour)
		m, _ = s.hear(t, only)
		wantMedium(t, m, request.Stale, "")
		only.NoCache = true
		if _, err := s.Open(t.Context(), only); !errors.Is(err, understudy.ErrNoStoredAnswer) {
			t.Errorf("nothing new enough held: %v", err)
		}
		synctest.Wait()
		if n := len(x.asks()); n != 1 {
			t.Errorf("upstream was asked %d times", n)
		}
	})
}
