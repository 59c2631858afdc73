package logline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"understudy/internal/sample"
)

// Colours are for people in front of a terminal. Without them the line is the same.
func TestColoursAreOnlyForTerminals(t *testing.T) {
	r := record("server is ready", slog.String("port", "viewer"), slog.Int("n", 1))
	plain := written(t, Terminal, r)
	var out bytes.Buffer
	h := New(&out, Options{Format: Terminal})
	h.out.color = true
	if err := h.WithAttrs([]slog.Attr{slog.String("port", "viewer")}).Handle(t.Context(), record("server is ready", slog.Int("n",
		1))); err != nil {
		t.Fatal(err)
	}
	want := "12:00:00.123 \x1b[33mWARN\x1b[0m  server is ready  port=viewer  n=1\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if got := regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(out.String(), ""); got != plain {
		t.Errorf("without colours %q, want %q", got, plain)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if New(file, Options{Format: Terminal}).out.color {
		t.Error("a file is taken for a terminal")
	}
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	if !New(device, Options{Format: Terminal}).out.color || New(device, Options{Format: Terminal, NoColor: true}).out.color {
		t.Error("NoColor does not decide for a character device")
	}
	h.SetFormat(Logfmt)
	out.Reset()
	if err := h.Handle(t.Context(), r); err != nil || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestSetFormatAppliesToDerivedHandlers(t *testing.T) {
	var out bytes.Buffer
	h := New(&out, Options{})
	derived := slog.New(h.WithGroup("g").WithAttrs([]slog.Attr{slog.Int("a", 1)}))
	for _, f := range []Format{JSON, Terminal, Logfmt} {
		h.SetFormat(f)
		out.Reset()
		derived.Info("m", "b", 2)
		pairs := parse(t, f, out.String())
		if last := pairs[len(pairs)-1]; strings.Join(last.path, ".") != "g.b" || last.value != "2" || len(pairs) != 5 {
			t.Errorf("format %d: %q", f, out.String())
		}
	}
}

// Lines of many goroutines and handlers are whole, while the format and the levels change.
func TestConcurrentLinesAreWhole(t *testing.T) {
	var out bytes.Buffer
	levels := &Levels{}
	h := New(&out, Options{Levels: levels})
	var wg sync.WaitGroup
	for i := range 8 {
		log := slog.New(h.WithAttrs([]slog.Attr{slog.Int("i", i)}))
		wg.Go(func() {
			for n := range 200 {
				log.Info("a message", "n", n, "text", strings.Repeat("x", n))
			}
		})
	}
	for n := range 100 {
		levels.Set(slog.LevelInfo, map[string]slog.Level{"logline": slog.Level(-n)})
		h.SetFormat(Format(n % 2))
	}
	wg.Wait()
	count := 0
	for line := range strings.Lines(out.String()) {
		count++
		f := Logfmt
		if line[0] == '{' {
			f = JSON
		}
		if pairs := parse(t, f, line); len(pairs) != 6 {
			t.Fatalf("%q has %d pairs", line, len(pairs))
		}
	}
	if count != 1600 {
		t.Errorf("wrote %d lines, want 1600", count)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestErrorOfTheWriterIsReturned(t *testing.T) {
	h := New(failing{}, Options{})
	if err := h.Handle(t.Context(), record("m")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Handle returned %v", err)
	}
	if err := h.Begin(start, slog.LevelInfo, "m").Write(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Write returned %v", err)
	}
}

// counting counts the bytes that are written to it. Package log writes nothing to io.Discard, so io.Discard would flatter it.
type counting struct{ n int }

func (c *counting) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

// tenFields are the attributes of the measurements.
func tenFields() []slog.Attr {
	return []slog.Attr{slog.String("id", "K7Q2M4XWTA-1f"), slog.String("method", "GET"), slog.String("path",
		"/2010-04-01/Accounts/AC1/Calls.json"),
		slog.Int("status", 200), slog.Int64("bytes", 102400), slog.String("caller", "reports"), slog.String("how", "warm"),
		slog.Duration("dur", 41*time.Microsecond), slog.Bool("fresh", true), slog.Int("tries", 1)}
}

func TestLinesAllocateNothing(t *testing.T) {
	r := record("request answered", tenFields()...)
	for name, f := range map[string]Format{"logfmt": Logfmt, "JSON": JSON, "terminal": Terminal} {
		out := &counting{}
		h := New(out, Options{Format: f})
		derived := h.WithGroup("g").WithAttrs([]slog.Attr{slog.Int("a", 1)})
		grouped := record("m", slog.Group("g", slog.String("a", "\u00e9 \n"), slog.Group("h", slog.Int("b", 1))))
		log := slog.New(h)
		for what, do := range map[string]func(){
			"Handle with ten fields":    func() { _ = h.Handle(context.Background(), r) },
			"Handle, derived":           func() { _ = derived.Handle(context.Background(), r) },
			"Handle with groups":        func() { _ = h.Handle(context.Background(), grouped) },
			"Begin with ten fields":     func() { lineOfTen(h) },
			"a constant message, Begin": func() { _ = h.Begin(start, slog.LevelInfo, "the server is ready").Write() },
			"a constant message":        func() { log.Info("the server is ready") },
			"a disabled level":          func() { log.Debug("the server is ready") },
		} {
			if n := testing.AllocsPerRun(200, do); n != 0 && !sample.UnderRace {
				t.Errorf("%s: %s allocates %v times", name, what, n)
			}
		}
	}
}

var (
	keyID, keyMethod, keyPath, keyStatus, keyBytes = NewKey("id"), NewKey("method"), NewKey("path"), NewKey("status"), NewKey("bytes")
	keyCaller, keyHow, keyDur, keyFresh, keyTries  = NewKey("caller"), NewKey("how"), NewKey("dur"), NewKey("fresh"), NewKey("tries")
)

func lineOfTen(h *Handler) {
	_ = h.Begin(start, slog.LevelInfo, "request answered").String(keyID, "K7Q2M4XWTA-1f").String(keyMethod, "GET").
		String(keyPath, "/2010-04-01/Accounts/AC1/Calls.json").Int64(keyStatus, 200).Int64(keyBytes, 102400).String(keyCaller, "reports").
		String(keyHow, "warm").Duration(keyDur, 41*time.Microsecond).Bool(keyFresh, true).Int64(keyTries, 1).Write()
}

func BenchmarkTenFields(b *testing.B) {
	r := record("request answered", tenFields()...)
	for name, h := range map[string]slog.Handler{"logfmt": New(&counting{}, Options{}), "JSON": New(&counting{}, Options{Format: JSON}),
		"terminal": New(&counting{}, Options{Format: Terminal}), "slog text": slog.NewTextHandler(&counting{}, nil),
		"slog JSON": slog.NewJSONHandler(&counting{}, nil)} {
		b.Run(name+"/Handle", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = h.Handle(context.Background(), r)
			}
		})
		if h, ok := h.(*Handler); ok {
			b.Run(name+"/Begin", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					lineOfTen(h)
				}
			})
		}
	}
}

func BenchmarkConstantMessage(b *testing.B) {
	const text = "the server has opened its ports and answers requests now!"
	for _, n := range []int{12, 34, 57} {
		for name, h := range map[string]*Handler{"logfmt": New(&counting{}, Options{}), "JSON": New(&counting{},
			Options{Format: JSON})} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_ = h.Begin(start, slog.LevelInfo, text[:n]).Write()
				}
			})
		}
	}
}
