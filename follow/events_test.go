// Events: the parser, by the rules of the document it follows.

package follow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// all are the events of a stream in few words, and how it ended.
func all(t testing.TB, r io.Reader) (events []string, err error) {
	t.Helper()
	p := newParser(r)
	for {
		e, err := p.readEvent()
		if err != nil {
			return events, err
		}
		text := "-"
		if e.data != nil {
			text = fmt.Sprintf("%q", e.data)
		}
		if e.hasID {
			text += " told"
		}
		if e.retry >= 0 {
			text += " " + e.retry.String()
		}
		events = append(events, text+" at "+e.id)
	}
}

func TestParser(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"\n\n\n", ""},
		{"data: a\n\n", `"a" at `},
		{"data:a\n\n", `"a" at `},
		{"data:  a\n\n", `" a" at `},
		{"data\n\n", `"" at `},
		{"data: a\ndata: b\n\n", `"a\nb" at `},
		{"data\ndata\n\n", `"\n" at `},
		{"id: 1\ndata: a\n\ndata: b\n\n", `"a" told at 1|"b" at 1`},
		{"id: 1\n\n", `- told at 1`},
		{"id\ndata: x\n\n", `"x" told at `},
		{"id: 1\x002\ndata: x\n\n", `"x" at `},
		{"retry: 10\n\n", `- 10ms at `},
		{"retry: 1x\n\n", `- at `},
		{"retry: -1\nretry: +1\nretry:\n\n", `- at `},
		{": hello\n\ndata: a\n\n", `- at |"a" at `},
		{":\n:\n", `- at |- at `},
		{"data: a\n: comment inside\ndata: b\n\n", `"a\nb" at `},
		{"event: x\nother: y\nnothing\ndata: a\n\n", `"a" at `},
		{"data: a\r\n\r\ndata: b\r\rdata: c\n\n", `"a" at |"b" at |"c" at `},
		{"data: a\r\n\rdata: b\r\n\r\n", `"a" at |"b" at `},
		{"\xef\xbb\xbfdata: a\n\n", `"a" at `},
		{"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", `- at `},
		{"data: cut off", ""},
		{"data: cut off\n", ""},
		{"data: ä\u2028ö\n\n", `"ä\u2028ö" at `},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
			got, err := all(t, r)
			if strings.Join(got, "|") != c.want || err != io.EOF {
				t.Errorf("%q is %q, %v; want %q", c.in, strings.Join(got, "|"), err, c.want)
			}
		}
	}
}

func TestParserIsBounded(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"data: " + strings.Repeat("x", maxEvent+1), strings.Repeat("data: x\n", maxEvent/7+1),
		strings.Repeat("x", maxEvent+9) + "\n"} {
		if _, err := all(t, strings.NewReader(in)); !errors.Is(err, errLong) {
			t.Errorf("%d bytes: %v", len(in), err)
		}
	}
}

func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"data: a\n\n", "id: 1\r\ndata: {}\r\n\r\n", ":\n\nretry: 3\n\n", "\xef\xbb\xbfid: x\rdata\r\r",
		"data: a\ndata: b\n\nid\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, err := all(t, bytes.NewReader(in))
		if err != io.EOF {
			t.Fatal(err)
		}
		bytewise, _ := all(t, iotest.OneByteReader(bytes.NewReader(in)))
		if strings.Join(whole, "|") != strings.Join(bytewise, "|") {
			t.Fatalf("%q is %q, byte by byte %q", in, whole, bytewise)
		}
		// What comes after the end of a block is a block of its own.
		more, _ := all(t, bytes.NewReader(append(bytes.Clone(in), "\n\n\ndata: z\n\n"...)))
		if len(more) == 0 || !strings.HasPrefix(more[len(more)-1], `"z" at `) {
			t.Fatalf("%q, then z: %q", in, more)
		}
		for _, e := range whole {
			if strings.Contains(e, time.Duration(-1).String()) {
				t.Fatalf("%q", e)
			}
		}
	})
}
