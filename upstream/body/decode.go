// This file decodes the content encodings of the upstream's answers.

package body

import (
	"bufio"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"understudy"
)

// AcceptEncoding is the Accept-Encoding of requests, the cheapest encoding first. deflate is also decoded, but
// not requested.
const AcceptEncoding = "zstd, gzip, br"

// zstdWindow is the maximum window in bytes of a zstd stream over HTTP (RFC 9659, section 3).
const zstdWindow = 8 << 20

// codings keeps decoders for reuse. It is safe for concurrent use.
type codings struct{ gzip, zstd, brotli sync.Pool }

// decoder decodes one body. done makes the decoder available for another body, so it must not be used afterwards.
type decoder struct {
	io.Reader
	coding string // the name of the encoding in errors, such as "gzip "; "" if the body is not encoded
	done   func()
}

// newDecoder returns a reader of in without its content encoding. The caller limits how much it reads.
func (c *codings) newDecoder(name string, in io.Reader) (decoder, error) {
	d, err := decoder{in, name + " ", func() {}}, error(nil)
	switch name {
	case "":
		d.coding = ""
	case "gzip", "x-gzip":
		var z *gzip.Reader
		if z, err = c.openGzip(in); err == nil {
			d.Reader, d.done = z, func() { c.gzip.Put(z) }
		}
	case "zstd":
		var z *zstd.Decoder
		if z, err = c.openZstd(in); err == nil {
			d.Reader, d.done = z, func() { _ = z.Reset(nil); c.zstd.Put(z) }
		}
	case "br":
		z, ok := c.brotli.Get().(*brotli.Reader)
		if !ok || z.Reset(in) != nil {
			z = brotli.NewReader(in)
		}
		d.Reader, d.done = z, func() { c.brotli.Put(z) }
	case "deflate":
		d.Reader, err = openDeflate(in)
	default:
		return d, fmt.Errorf("content encoding %q was not requested", understudy.Clip(name))
	}
	if err != nil {
		return d, fmt.Errorf("the %sbody: %w", d.coding, ReplaceEOF(err))
	}
	return d, nil
}

// openGzip returns a gzip decoder.
func (c *codings) openGzip(in io.Reader) (*gzip.Reader, error) {
	if z, ok := c.gzip.Get().(*gzip.Reader); ok {
		if err := z.Reset(in); err != nil {
			c.gzip.Put(z)
			return nil, err
		}
		return z, nil
	}
	return gzip.NewReader(in)
}

// openZstd returns a zstd decoder. It decodes in the goroutine that reads, so that no other goroutine must be ended.
func (c *codings) openZstd(in io.Reader) (*zstd.Decoder, error) {
	if z, ok := c.zstd.Get().(*zstd.Decoder); ok {
		return z, z.Reset(in)
	}
	return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
}

// openDeflate decodes zlib's format, which "deflate" means (RFC 9110, section 8.4.1.2), and also the raw stream
// that some servers send under that name.
func openDeflate(in io.Reader) (io.Reader, error) {
	b := bufio.NewReader(in)
	head, err := b.Peek(2)
	if err != nil {
		return nil, err
	}
	// A zlib header: method 8, and a multiple of 31 (RFC 1950, section 2.2).
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		z, err := zlib.NewReader(b)
		return &strictReader{in: z, rest: b}, err
	}
	return &strictReader{in: flate.NewReader(b), rest: b}, nil
}

var errTrailingData = errors.New("unexpected data follows it")

// strictReader reads an encoded stream and returns an error if data follows it.
type strictReader struct{ in, rest io.Reader }

func (r *strictReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if err != io.EOF {
		return n, err
	}
	var one [1]byte
	if m, err := io.ReadFull(r.rest, one[:]); m > 0 {
		return n, errTrailingData
	} else if err != io.EOF {
		return n, err
	}
	return n, io.EOF
}
