// Package logline is a part of the bench: a log line of ten fields, beside other loggers.
package logline

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	phuslu "github.com/phuslu/log"
	"github.com/rs/zerolog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"understudy/bench/rig"
	"understudy/kit/logline"
)

// The message and the fields of every line.
const (
	message = "request answered"
	id      = "K7Q2M4XWTA-1f"
	method  = "GET"
	path    = "/2010-04-01/Accounts/AC1/Calls.json"
	caller  = "reports"
	how     = "warm"
	took    = 41 * time.Microsecond
	status  = 200
	bytes   = 102400
	load    = 0.25
)

// logger writes the line once.
type logger struct {
	name string
	open func(io.Writer) func()
}

// loggers are the loggers that are compared, ours first. Each writes the time with milliseconds or less.
var loggers = []logger{
	{"logline, logfmt, Begin", func(w io.Writer) func() { return ours(logline.New(w, logline.Options{})) }},
	{"logline, JSON, Begin", func(w io.Writer) func() { return ours(logline.New(w, logline.Options{Format: logline.JSON})) }},
	{"logline, logfmt, slog.Logger", func(w io.Writer) func() { return bySlog(logline.New(w, logline.Options{})) }},
	{"slog.TextHandler", func(w io.Writer) func() { return bySlog(slog.NewTextHandler(w, nil)) }},
	{"zap, JSON", byZap},
	{"zerolog, JSON", byZerolog},
	{"phuslu/log, JSON", byPhuslu},
}

// The names of the fields.
var (
	keyID, keyMethod, keyPath = logline.NewKey("id"), logline.NewKey("method"), logline.NewKey("path")
	keyStatus, keyBytes       = logline.NewKey("status"), logline.NewKey("bytes")
	keyCaller, keyHow, keyDur = logline.NewKey("caller"), logline.NewKey("how"), logline.NewKey("dur")
	keyFresh, keyLoad         = logline.NewKey("fresh"), logline.NewKey("load")
)

func ours(h *logline.Handler) func() {
	return func() {
		_ = h.Begin(time.Now(), slog.LevelInfo, message).String(keyID, id).String(keyMethod, method).String(keyPath, path).
			Int64(keyStatus, status).Int64(keyBytes, bytes).String(keyCaller, caller).String(keyHow, how).Duration(keyDur, took).
			Bool(keyFresh, true).Float64(keyLoad, load).Write()
	}
}

func bySlog(h slog.Handler) func() {
	l := slog.New(h)
	return func() {
		l.LogAttrs(context.Background(), slog.LevelInfo, message, slog.String("id", id), slog.String("method", method),
			slog.String("path", path),
			slog.Int("status", status), slog.Int64("bytes", bytes), slog.String("caller", caller), slog.String("how", how),
			slog.Duration("dur", took), slog.Bool("fresh", true), slog.Float64("load", load))
	}
}

func byZap(w io.Writer) func() {
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.ISO8601TimeEncoder
	l := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(c), zapcore.AddSync(w), zap.InfoLevel))
	return func() {
		l.Info(message, zap.String("id", id), zap.String("method", method), zap.String("path", path), zap.Int("status", status),
			zap.Int64("bytes", bytes), zap.String("caller", caller), zap.String("how", how), zap.Duration("dur", took),
			zap.Bool("fresh", true), zap.Float64("load", load))
	}
}

func byZerolog(w io.Writer) func() {
	l := zerolog.New(w)
	return func() {
		l.Info().Timestamp().Str("id", id).Str("method", method).Str("path", path).Int("status", status).Int64("bytes", bytes).
			Str("caller", caller).Str("how", how).Dur("dur", took).Bool("fresh", true).Float64("load", load).Msg(message)
	}
}

func byPhuslu(w io.Writer) func() {
	l := phuslu.Logger{Level: phuslu.InfoLevel, Writer: phuslu.IOWriter{Writer: w}}
	return func() {
		l.Info().Str("id", id).Str("method", method).Str("path", path).Int("status", status).Int64("bytes", bytes).
			Str("caller", caller).Str("how", how).Dur("dur", took).Bool("fresh", true).Float64("load", load).Msg(message)
	}
}

// Measure lets each logger write lines in alternating rounds: to a file through a buffer of 64 KiB, to a writer that only counts,
// and, with a system call for each line, to a file without a buffer.
func Measure(_ context.Context, r *rig.Run) error {
	dir, err := os.MkdirTemp("", "logline")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, way := range []struct {
		name  string
		lines int
		open  func(*os.File) io.Writer
	}{
		{"a file, through 64 KiB", 200_000, func(f *os.File) io.Writer { return &file{f: f, buf: make([]byte, 0, bufferSize)} }},
		{"a counting writer", 200_000, func(*os.File) io.Writer { return &counter{} }},
		{"a file, a write a line", 20_000, func(f *os.File) io.Writer { return &file{f: f} }},
	} {
		times, allocs := make([][]float64, len(loggers)), make([]float64, len(loggers))
		writes := make([]func(), len(loggers))
		for i, l := range loggers {
			f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.log", i)))
			if err != nil {
				return err
			}
			defer f.Close()
			writes[i] = l.open(way.open(f))
		}
		for round := range r.Times(15, 2) {
			for i := range loggers {
				i = (i + round) % len(loggers)
				each, made, err := rig.Each(func() error { writes[i](); return nil }, r.Times(way.lines, 1000))
				if err != nil {
					return err
				}
				times[i], allocs[i] = append(times[i], float64(each)), max(allocs[i], made)
			}
		}
		table := [][]string{{way.name, "ns, median", "quartiles", "allocations", "times ours"}}
		for i, l := range loggers {
			table = append(table, []string{l.name, rig.Figure(rig.Median(times[i])),
				rig.Figure(rig.Quantile(times[i], 0.25)) + " to " + rig.Figure(rig.Quantile(times[i], 0.75)), rig.Figure(allocs[i]),
				rig.Figure(rig.Median(times[i]) / rig.Median(times[0]))})
		}
		r.Table(table)
		if way.lines == 200_000 {
			r.AtMost("ten fields as logfmt to "+way.name+", median", rig.Median(times[0]), 200, "ns")
		}
		r.AtMost("allocations a line", float64(int(allocs[0])), 0, "")
	}
	return nil
}

const (
	bufferSize = 64 << 10
	maxFile    = 16 << 20 // the file is overwritten from its beginning after so many bytes
)

// file writes to a file, through a buffer if it has one.
type file struct {
	f   *os.File
	buf []byte
	at  int64
}

func (w *file) Write(p []byte) (int, error) {
	if cap(w.buf) == 0 {
		return w.write(p)
	}
	if len(w.buf)+len(p) > cap(w.buf) {
		if _, err := w.write(w.buf); err != nil {
			return 0, err
		}
		w.buf = w.buf[:0]
	}
	w.buf = append(w.buf, p...)
	return len(p), nil
}

func (w *file) write(p []byte) (int, error) {
	n, err := w.f.WriteAt(p, w.at)
	if w.at += int64(n); w.at >= maxFile {
		w.at = 0
	}
	return n, err
}

// counter counts bytes. Package log writes nothing to io.Discard, which would flatter it.
type counter struct{ n int }

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}
