// Package logline writes log records as lines of logfmt, of JSON, or of text for a terminal. Handler is a slog.Handler that
// allocates nothing for a line, except for values that only fmt or encoding/json can format. Whatever a program logs, a
// record is exactly one line without control characters, and a parser finds the same keys and values in it.
package logline

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Format is the format of the lines.
type Format int32

// The formats of lines.
const (
	Logfmt   Format = iota // key=value; texts with other than plain characters are quoted and escaped as in Go
	JSON                   // an object of RFC 8259
	Terminal               // for people: the time of day, the level, the message and the fields, with colours
	formats  = iota        // the number of formats
)

// Options are the options of a Handler.
type Options struct {
	Format  Format
	Levels  *Levels // decides which records are written; nil means those from slog.LevelInfo on
	NoColor bool    // leaves out the colours of Terminal, which are only for terminals anyway
}

// Handler is a slog.Handler. Create it with New. It is safe for concurrent use. A value that is a slog.LogValuer is
// written as what it resolves to. Others are formatted by fmt, in JSON by encoding/json, so that a secret can hide itself.
type Handler struct {
	out    *output
	prefix [formats][]byte // the attributes of WithAttrs, encoded in each format
	groups []string        // the names of the open groups
	path   []byte          // the same, each name followed by a dot
	quoted bool            // whether a name in path needs quotes
	opened int             // how many groups prefix[JSON] has opened
}

// output is what a Handler and the handlers derived from it share.
type output struct {
	levels *Levels
	color  bool
	format atomic.Int32
	mu     sync.Mutex // held while writing
	w      io.Writer
}

// New returns a handler that writes each record to w in a single call of Write.
func New(w io.Writer, o Options) *Handler {
	out := &output{levels: cmp.Or(o.Levels, &Levels{}), w: w}
	out.format.Store(int32(o.Format))
	if f, ok := w.(*os.File); ok && !o.NoColor {
		info, err := f.Stat()
		out.color = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return &Handler{out: out}
}

// SetFormat changes the format of the next lines, also of the handlers that were derived from this one.
func (h *Handler) SetFormat(f Format) { h.out.format.Store(int32(f)) }

// Enabled reports whether any package writes records of that level.
func (h *Handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.out.levels.loadRules().lowest
}

// WithAttrs returns a handler that adds the attributes to each record. They are encoded now, once for all records.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	for f := range h.prefix {
		e, b := &encoder{format: Format(f)}, slices.Clone(h.prefix[f])
		e.start(h)
		for i := range attrs {
			b = e.appendAttr(b, &attrs[i])
		}
		derived.prefix[f], derived.opened = b, max(derived.opened, e.opened)
	}
	return &derived
}

// WithGroup returns a handler that puts the attributes of each record into a group. In logfmt and on a terminal the group's
// name and a dot precede the key.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	derived := *h
	derived.path, derived.quoted = appendName(slices.Clone(h.path), h.quoted, name)
	derived.groups = append(slices.Clip(h.groups), name)
	return &derived
}

// Handle writes a record, unless the level of the calling package is higher.
func (h *Handler) Handle(_ context.Context, r slog.Record) error {
	l := h.begin(r.PC, r.Time, r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		l = l.Attr(a)
		return l.e != nil
	})
	return l.Write()
}

// Begin begins a line without a slog.Record, which Write ends. It costs less than a slog.Logger, which finds out the caller of
// each record and stores its attributes. The levels of packages do not apply. The zero time is left out.
func (h *Handler) Begin(at time.Time, level slog.Level, message string) Line {
	return h.begin(0, at, level, message)
}

// begin returns the beginning of a line, up to the attributes of WithAttrs.
func (h *Handler) begin(pc uintptr, at time.Time, level slog.Level, message string) Line {
	if !h.out.levels.allow(pc, level) {
		return Line{}
	}
	e, f := encoders.Get().(*encoder), Format(h.out.format.Load())
	e.out, e.format, e.color = h.out, f, h.out.color
	l := Line{e, e.putHead(at, level)}
	switch {
	case f == Terminal:
		l = e.keep(appendMessage(e.buf[:l.n], message))
	case message == e.message && len(e.text) > 0:
		l.n += copy(e.buf[l.n:], e.text)
	default:
		head := l.n
		if l = l.String(messageKey, message); l.n-head <= room {
			e.message, e.text = message, append(e.text[:0], e.buf[head:l.n]...)
		}
	}
	if len(h.groups)+len(h.prefix[f]) > 0 {
		e.start(h)
		l = e.keep(append(e.buf[:l.n], h.prefix[f]...))
	}
	return l
}

// messageKey is the key of messages.
var messageKey = NewKey(slog.MessageKey)

// Write ends the line and writes it.
func (l Line) Write() error {
	e := l.e
	if e == nil {
		return nil
	}
	b := e.appendEnd(e.buf[:l.n])
	e.out.mu.Lock()
	_, err := e.out.w.Write(b)
	e.out.mu.Unlock()
	e.free(b)
	return err
}

// free returns the encoder of the line b to the pool, unless its buffer is large.
func (e *encoder) free(b []byte) {
	if len(e.groups) > 0 {
		e.start(&Handler{})
	}
	if e.keep(b); len(e.buf) <= 16<<10 {
		encoders.Put(e)
	}
}

// encoders is a pool of encoders for reuse.
var encoders = sync.Pool{New: func() any { return &encoder{buf: make([]byte, 1<<10)} }}
