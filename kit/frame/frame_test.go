package frame

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"understudy/internal/checktest"
)

// readAll returns the contents of all frames, and the error that ended the stream.
func readAll(r *Reader) (contents [][]byte, err error) {
	for {
		content, err := r.Next()
		if err != nil {
			return contents, err
		}
		contents = append(contents, bytes.Clone(content))
	}
}

// The layout is public. These sums were computed by a program of another language, which finds e3069283 for "123456789".
func TestLayoutIsThePublishedOne(t *testing.T) {
	t.Parallel()
	checktest.Equal(t, hex.EncodeToString(Append(nil, []byte("abc"))), "8f337f9900000003616263", "a frame")
	checktest.Equal(t, hex.EncodeToString(Append(nil, nil)), "48674bc700000000", "an empty frame")
}

// Whatever the contents are and however the stream is cut, the frames come back, and HasNext tells which of them are there.
func TestFramesComeBackHoweverTheStreamIsCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		contents := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40_000), 0, 8).Draw(t, "contents")
		var stream []byte
		for _, c := range contents {
			stream = Append(stream, c)
		}
		end := rapid.IntRange(0, len(stream)).Draw(t, "end")
		in := []func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return r }, iotest.HalfReader, iotest.DataErrReader, iotest.OneByteReader,
		}[rapid.IntRange(0, 3).Draw(t, "cut")]
		r := NewReader(in(bytes.NewReader(stream[:end])), 40_000)
		got, err := readAll(r)
		whole, size := 0, 0
		for whole < len(contents) && size+headerBytes+len(contents[whole]) <= end {
			size += headerBytes + len(contents[whole])
			whole++
		}
		want := io.EOF
		if size < end {
			want = ErrShort
		}
		checktest.True(t, slices.EqualFunc(got, contents[:whole], bytes.Equal), "%d frames of %d", len(got), whole)
		checktest.True(t, errors.Is(err, want), "the end is %v, want %v", err, want)
	})
}

// No damaged byte of a frame goes unnoticed: CRC32C finds every error of up to 32 bits in a row.
func TestDamagedByteIsFound(t *testing.T) {
	t.Parallel()
	whole := Append(Append(nil, []byte("the content")), []byte("another"))
	for i := range headerBytes + len("the content") {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			got, err := readAll(NewReader(bytes.NewReader(b), 100))
			checktest.Equal(t, len(got), 0, "frames with bit %d of byte %d flipped", bit, i)
			checktest.True(t, errors.Is(err, ErrSum) || errors.Is(err, ErrTooLong) || errors.Is(err, ErrShort), "the error is %v", err)
		}
	}
}

// A length above the limit is an error before the content arrives, and a header alone reserves no memory for its content.
func TestLimitHoldsBeforeTheContentArrives(t *testing.T) {
	t.Parallel()
	header := Append(nil, make([]byte, 101))[:headerBytes]
	r := NewReader(io.MultiReader(bytes.NewReader(header), iotest.ErrReader(errors.New("read too far"))), 100)
	_, err := r.Next()
	checktest.True(t, errors.Is(err, ErrTooLong), "one byte above the limit: %v", err)
	checktest.Equal(t, err.Error(), "frame: the frame is too long: 101 bytes, but at most 100 are accepted", "the error")
	checktest.True(t, r.HasNext(), "the error is ready")
	r = NewReader(bytes.NewReader([]byte{0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff}), 1<<31-1)
	_, err = r.Next()
	checktest.True(t, errors.Is(err, ErrShort), "a header of 2 GiB: %v", err)
	checktest.True(t, len(r.buf) <= 16<<10, "%d bytes reserved", len(r.buf))
	_, err = NewReader(bytes.NewReader(make([]byte, 100)), 100).Next()
	checktest.True(t, errors.Is(err, ErrSum), "zeros: %v", err)
}

// After a timeout the stream continues where it was.
func TestErrorOfTheStreamIsPassedOn(t *testing.T) {
	t.Parallel()
	r := NewReader(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(Append(nil, []byte("abc"))))), 10)
	_, err := r.Next()
	checktest.True(t, errors.Is(err, iotest.ErrTimeout), "the error is %v", err)
	got, err := r.Next()
	checktest.NoError(t, err, "after the timeout")
	checktest.Equal(t, string(got), "abc", "the content")
}

// endless returns the same frames again and again.
type endless struct {
	frames []byte
	at     int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.frames[e.at:])
	e.at = (e.at + n) % len(e.frames)
	return n, nil
}

func TestFramesAllocateNothing(t *testing.T) {
	content, buf := make([]byte, 64), make([]byte, 0, 1<<10)
	checktest.Equal(t, testing.AllocsPerRun(1000, func() { buf = Append(buf[:0], content) }), 0, "allocations of Append")
	r := NewReader(&endless{frames: Append(nil, content)}, 64)
	checktest.Equal(t, testing.AllocsPerRun(1000, func() {
		if _, err := r.Next(); err != nil {
			t.Error(err)
		}
		r.HasNext()
	}), 0, "allocations of Next")
}

// What is read was written: the frames that a Reader accepts are the beginning of the stream.
func FuzzReader(f *testing.F) {
	f.Add(Append(Append(nil, []byte("first")), nil), uint8(1))
	f.Add(Append(nil, make([]byte, 300))[:200], uint8(3))
	f.Add([]byte{0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, uint8(0))
	f.Fuzz(func(t *testing.T, stream []byte, step uint8) {
		r := NewReader(&stepReader{stream, int(step) + 1}, 1<<10)
		got, err := readAll(r)
		var again []byte
		for _, content := range got {
			again = Append(again, content)
		}
		checktest.True(t, bytes.HasPrefix(stream, again), "%d frames of %x", len(got), stream)
		checktest.True(t, (err == io.EOF) == (len(again) == len(stream)), "%d of %d bytes were read: %v", len(again), len(stream), err)
	})
}

// stepReader returns at most step bytes at once.
type stepReader struct {
	rest []byte
	step int
}

func (s *stepReader) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(s.step, len(s.rest))])
	s.rest = s.rest[n:]
	return n, nil
}

func BenchmarkFrame64(b *testing.B) {
	content, buf := make([]byte, 64), make([]byte, 0, 1<<10)
	r := NewReader(&endless{frames: Append(nil, content)}, 64)
	b.ReportAllocs()
	for b.Loop() {
		buf = Append(buf[:0], content)
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}
