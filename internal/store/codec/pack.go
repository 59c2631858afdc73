// This file compresses a whole block or page with zstd.

package codec

import (
	"fmt"
	"runtime"

	"github.com/klauspost/compress/zstd"
)

// MaxUnpacked is the maximum number of bytes of an unpacked block or page.
const MaxUnpacked = 1 << 30

// maxWindow is how many bytes back the zstd encoder looks for repetitions.
const maxWindow = 256 << 10

// packLevel is the level of the encoder. On a page of 50 calls the next level takes a third longer, and its
// tables need 2 MB more.
const packLevel = zstd.SpeedFastest

// Packer compresses and decompresses blocks and pages. It is safe for concurrent use.
type Packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// NewPacker returns a packer. readers is the number of goroutines that decompress at the same time.
func NewPacker(readers int) Packer {
	// Only one goroutine at a time writes, so one set of tables is enough.
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(packLevel), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(maxWindow))
	if err != nil {
		panic("store: zstd encoder: " + err.Error()) // impossible, because the options are constants
	}
	// The pool has at least two decoders, also on a machine with one core.
	at := max(2, min(readers, runtime.GOMAXPROCS(0)))
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(at), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(MaxUnpacked), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("store: zstd decoder: " + err.Error())
	}
	return Packer{encoder, decoder}
}

// Pack appends the packed form of raw to dst.
func (p *Packer) Pack(dst, raw []byte) []byte { return p.encoder.EncodeAll(raw, dst) }

// Unpack decompresses packed, whose unpacked size must be size bytes. It uses the buffer room if its capacity is
// large enough. It returns an error if the bytes are damaged.
func (p *Packer) Unpack(room, packed []byte, size int) ([]byte, error) {
	if size < 0 || size > MaxUnpacked {
		return nil, fmt.Errorf("unpacked size of %d bytes", size)
	}
	if cap(room) < size {
		room = make([]byte, 0, size)
	}
	raw, err := p.decoder.DecodeAll(packed, room[:0:size])
	if err == nil && len(raw) != size {
		err = fmt.Errorf("unpacked to %d bytes, want %d", len(raw), size)
	}
	return raw, err
}
