// Packing: zstd over a whole block or page.

package codec

import (
	"fmt"
	"runtime"

	"github.com/klauspost/compress/zstd"
)

// MaxUnpacked bounds what one block or page may unpack to.
const MaxUnpacked = 1 << 30

// maxWindow is how far back packing looks, in blocks and in pages.
const maxWindow = 256 << 10

// packLevel is the encoder's level. On a page of 50 calls the next level takes a
// third longer, and its tables take 2 MB more.
const packLevel = zstd.SpeedFastest

// packer turns the unpacked form of a block or a page into fewer bytes and back.
// Safe for concurrent use.
type Packer struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// newPacker returns a packer; readers is how many goroutines unpack for one
// caller.
func NewPacker(readers int) Packer {
	// One goroutine at a time writes, so one set of tables is enough.
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(packLevel), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(maxWindow))
	if err != nil {
		panic("store: zstd encoder: " + err.Error()) // its options are constants
	}
	// Two in any case.
	at := max(2, min(readers, runtime.GOMAXPROCS(0)))
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(at), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(MaxUnpacked), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("store: zstd decoder: " + err.Error())
	}
	return Packer{encoder, decoder}
}

// pack appends the packed form of raw to dst.
func (p *Packer) Pack(dst, raw []byte) []byte { return p.encoder.EncodeAll(raw, dst) }

// unpack returns size bytes, in room if it has the capacity, or an error when the
// bytes are damaged.
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
