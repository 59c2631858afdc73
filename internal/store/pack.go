// Packing: zstd with dictionaries, behind a seam that another packing can fill.

package store

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// packer turns the unpacked form of a block or a page into fewer bytes and
// back. Whatever replaces it only needs a number for its own ways of packing;
// that number is stored beside the bytes. Safe for concurrent use.
type packer interface {
	// pack appends the packed form of raw to dst. A dictionary it does not
	// know is taken for 0, none; used says which it was.
	pack(dst, raw []byte, dictionary int64) (packed []byte, used int64)
	// unpack returns size bytes, in room if it has the capacity, or an error when
	// the bytes are damaged or the dictionary is unknown.
	unpack(room, packed []byte, dictionary int64, size int) ([]byte, error)
	// knows reports whether a dictionary has been learned; 0 always has.
	knows(dictionary int64) bool
	// learn makes a dictionary known.
	learn(dictionary int64, body []byte) error
	// forget makes a dictionary unknown again.
	forget(dictionary int64)
}

// maxUnpacked bounds what one block or page may unpack to.
const maxUnpacked = 1 << 30

// maxEncoders bounds how many encoders with a dictionary are held: each keeps
// its tables, about half a megabyte. There is one per shape that was saved lately.
const maxEncoders = 4

// zstdPacker packs with github.com/klauspost/compress/zstd.
type zstdPacker struct {
	mu           sync.Mutex
	dictionaries map[int64][]byte
	decoders     map[int64]*zstd.Decoder
	encoders     map[int64]*zstd.Encoder
	order        []int64 // of encoders, the last used last
}

func newZstdPacker() *zstdPacker {
	return &zstdPacker{dictionaries: map[int64][]byte{0: nil}, decoders: map[int64]*zstd.Decoder{}, encoders: map[int64]*zstd.Encoder{}}
}

// newEncoder makes an encoder for whole buffers. One goroutine at a time
// writes, so one set of tables is enough.
func newEncoder(dictionary []byte) (*zstd.Encoder, error) {
	opts := []zstd.EOption{zstd.WithEncoderLevel(packLevel), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(maxWindow)}
	if len(dictionary) > 0 {
		opts = append(opts, zstd.WithEncoderDict(dictionary))
	}
	return zstd.NewWriter(nil, opts...)
}

func newDecoder(dictionary []byte) (*zstd.Decoder, error) {
	// As many at once as unpack for one Seek, and two in any case.
	at := max(2, min(maxHelpers+1, runtime.GOMAXPROCS(0)))
	opts := []zstd.DOption{zstd.WithDecoderConcurrency(at), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxUnpacked), zstd.WithDecodeAllCapLimit(true)}
	if len(dictionary) > 0 {
		opts = append(opts, zstd.WithDecoderDicts(dictionary))
	}
	return zstd.NewReader(nil, opts...)
}

// packLevel is the encoder's level; dictionaries are built for the same. On a
// page of 50 calls the next level takes a third longer, packs one per cent
// worse with a dictionary, and its tables take 2 MB more per encoder.
const packLevel = zstd.SpeedFastest

func (z *zstdPacker) pack(dst, raw []byte, dictionary int64) ([]byte, int64) {
	enc, used := z.encoder(dictionary)
	return enc.EncodeAll(raw, dst), used
}

// encoder returns the encoder of a dictionary, or the plain one when there is
// no such dictionary or it cannot be used.
func (z *zstdPacker) encoder(dictionary int64) (*zstd.Encoder, int64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if enc := z.encoders[dictionary]; enc != nil {
		z.use(dictionary)
		return enc, dictionary
	}
	body, known := z.dictionaries[dictionary]
	if !known {
		dictionary, body = 0, nil
	}
	if enc := z.encoders[dictionary]; enc != nil {
		return enc, dictionary
	}
	enc, err := newEncoder(body)
	if err != nil && dictionary != 0 {
		dictionary = 0
		enc, err = newEncoder(nil)
	}
	if err != nil {
		panic("store: zstd encoder: " + err.Error()) // its options are constants
	}
	z.encoders[dictionary] = enc
	z.use(dictionary)
	return enc, dictionary
}

// use notes that an encoder was used and lets the longest unused one go.
func (z *zstdPacker) use(dictionary int64) {
	if dictionary == 0 {
		return
	}
	for i, d := range z.order {
		if d == dictionary {
			z.order = append(z.order[:i], z.order[i+1:]...)
			break
		}
	}
	z.order = append(z.order, dictionary)
	if len(z.order) > maxEncoders {
		delete(z.encoders, z.order[0])
		z.order = z.order[1:]
	}
}

func (z *zstdPacker) unpack(room, packed []byte, dictionary int64, size int) ([]byte, error) {
	if size < 0 || size > maxUnpacked {
		return nil, fmt.Errorf("unpacked size of %d bytes", size)
	}
	dec, err := z.decoder(dictionary)
	if err != nil {
		return nil, err
	}
	if cap(room) < size {
		room = make([]byte, 0, size)
	}
	raw, err := dec.DecodeAll(packed, room[:0:size])
	if err == nil && len(raw) != size {
		err = fmt.Errorf("unpacked to %d bytes, want %d", len(raw), size)
	}
	return raw, err
}

func (z *zstdPacker) decoder(dictionary int64) (*zstd.Decoder, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if dec := z.decoders[dictionary]; dec != nil {
		return dec, nil
	}
	body, known := z.dictionaries[dictionary]
	if !known {
		return nil, fmt.Errorf("dictionary %d is unknown", dictionary)
	}
	dec, err := newDecoder(body)
	if err != nil {
		return nil, fmt.Errorf("dictionary %d: %w", dictionary, err)
	}
	z.decoders[dictionary] = dec
	return dec, nil
}

func (z *zstdPacker) knows(dictionary int64) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	_, known := z.dictionaries[dictionary]
	return known
}

func (z *zstdPacker) learn(dictionary int64, body []byte) error {
	dec, err := newDecoder(body)
	if err != nil {
		return fmt.Errorf("dictionary %d: %w", dictionary, err)
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.dictionaries[dictionary] = body
	z.decoders[dictionary] = dec
	return nil
}

func (z *zstdPacker) forget(dictionary int64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	delete(z.dictionaries, dictionary)
	delete(z.decoders, dictionary)
	delete(z.encoders, dictionary)
	for i, d := range z.order {
		if d == dictionary {
			z.order = append(z.order[:i], z.order[i+1:]...)
			break
		}
	}
}
