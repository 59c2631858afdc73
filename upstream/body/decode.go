// Decode: the content codings upstream may answer in.

package body

import (
	"bufio"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"understudy"
)

// AcceptEncoding is the Accept-Encoding of requests, the cheapest coding first. deflate is read when it comes all the
// same.
const AcceptEncoding = "zstd, gzip, br"

// zstdWindow is what a zstd stream over HTTP may need (RFC 9659, section 3).
const zstdWindow = 8 << 20

// codings keeps decoders for the next bodies. It is safe for concurrent use.
type codings struct{ gzip, zstd, brotli sync.Pool }

// decoder reads one coded body. done gives it back; it is not used afterwards.
type decoder struct {
	io.Reader
	coding string // "gzip ", for errors; "" = none
	done   func()
}

// codingOf is the content coding that a header names; "" for none.
func codingOf(h http.Header) string {
	name := strings.ToLower(strings.TrimSpace(strings.Join(h.Values("Content-Encoding"), ", ")))
	if name == "identity" {
		return ""
	}
	return name
}

// decoded is in without its content coding. The caller bounds what it reads.
func (c *codings) decoded(name string, in io.Reader) (decoder, error) {
	d, err := decoder{in, name + " ", func() {}}, error(nil)
	switch name {
	case "":
		d.coding = ""
	case "gzip", "x-gzip":
		var z *gzip.Reader
		if z, err = c.unzip(in); err == nil {
			d.Reader, d.done = z, func() { c.gzip.Put(z) }
		}
	case "zstd":
		var z *zstd.Decoder
		if z, err = c.unzstd(in); err == nil {
			d.Reader, d.done = z, func() { _ = z.Reset(nil); c.zstd.Put(z) }
		}
	case "br":
		z := c.unbrotli(in)
		d.Reader, d.done = z, func() { c.brotli.Put(z) }
	case "deflate":
		d.Reader, err = inflate(in)
	default:
		return d, fmt.Errorf("content encoding %q was not asked for", understudy.Clip(name))
	}
	if err != nil {
		return d, fmt.Errorf("the %sbody: %w", d.coding, AsCut(err))
	}
	return d, nil
}

func (c *codings) unzip(in io.Reader) (*gzip.Reader, error) {
	if z, ok := c.gzip.Get().(*gzip.Reader); ok {
		if err := z.Reset(in); err != nil {
			c.gzip.Put(z)
			return nil, err
		}
		return z, nil
	}
	return gzip.NewReader(in)
}

// unzstd decodes in the goroutine that reads, so that no other one must be ended.
func (c *codings) unzstd(in io.Reader) (*zstd.Decoder, error) {
	if z, ok := c.zstd.Get().(*zstd.Decoder); ok {
		return z, z.Reset(in)
	}
	return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
}

func (c *codings) unbrotli(in io.Reader) *brotli.Reader {
	if z, ok := c.brotli.Get().(*brotli.Reader); ok && z.Reset(in) == nil {
		return z
	}
	return brotli.NewReader(in)
}

// inflate reads zlib's format, which "deflate" means (RFC 9110, section 8.4.1.2), and the bare stream that some servers
// send under that name.
func inflate(in io.Reader) (io.Reader, error) {
	b := bufio.NewReader(in)
	head, err := b.Peek(2)
	if err != nil {
		return nil, err
	}
	// A zlib header: method 8, and a multiple of 31 (RFC 1950, section 2.2).
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		z, err := zlib.NewReader(b)
		return &toTheEnd{in: z, rest: b}, err
	}
	return &toTheEnd{in: flate.NewReader(b), rest: b}, nil
}

var errMore = errors.New("something follows it")

// toTheEnd reads a coded stream and makes sure that nothing follows it.
type toTheEnd struct{ in, rest io.Reader }

func (r *toTheEnd) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if err != io.EOF {
		return n, err
	}
	var one [1]byte
	if m, err := io.ReadFull(r.rest, one[:]); m > 0 {
		return n, errMore
	} else if err != io.EOF {
		return n, err
	}
	return n, io.EOF
}
