// MP3: MPEG-1 Audio Layer III, one spectral line at a time.
package slowapi

import "math/bits"

// A frame here is always 144 bytes: 32 kbit/s at 32 kHz, so without padding, and
// it refers to no frame before it. So any byte of the stream can be computed by
// itself. Each of a frame's two granules holds one spectral line: its place in
// the Huffman-coded pairs is its pitch. All of this is ISO/IEC 11172-3, 2.4.
const (
	mp3Frame       = 144
	mp3Samples     = 1152 // of a frame
	mp3Rate        = 32000
	mp3GlobalGain  = 200 // a quarter of the full amplitude
	mp3SideMono    = 17
	mp3SideStereo  = 32
	mp3PairTable   = 1 // of Huffman codes: pairs of 0 and 1
	mp3HeaderBytes = 4
)

// mp3Of plays a melody.
func mp3Of(tune melody, seconds, channels int64) *computed {
	frames := (seconds*mp3Rate + mp3Samples - 1) / mp3Samples
	return &computed{size: frames * mp3Frame, fill: func(p []byte, from int64) {
		for len(p) > 0 {
			frame := tune.frame(from/mp3Frame, channels)
			n := copy(p, frame[from%mp3Frame:])
			p, from = p[n:], from+int64(n)
		}
	}}
}

// bitWriter fills a frame from its first bit.
type bitWriter struct {
	frame [mp3Frame]byte
	at    int
}

// put appends the lowest n bits of value, the highest of them first.
func (b *bitWriter) put(value uint, n int) {
	for n--; n >= 0; n-- {
		b.frame[b.at/8] |= byte(value>>n&1) << (7 - b.at%8)
		b.at++
	}
}

// frame is one frame of the melody.
func (m melody) frame(n, channels int64) [mp3Frame]byte {
	var b bitWriter
	line := m.note(n * mp3Samples * notesPerSecond / mp3Rate)
	b.put(0xFFFB, 16)     // sync, MPEG-1, Layer III, no CRC
	b.put(0b0001_10_0, 7) // 32 kbit/s, 32 kHz, no padding
	b.put(0, 1)           // private
	mode := uint(0b11)    // one channel
	if channels == 2 {
		mode = 0b00
	}
	b.put(mode<<6|0b000100, 8) // original, no emphasis

	b.put(0, 9) // main data begin in this frame
	if channels == 2 {
		b.put(0, 3+8) // private, scale factors never shared
	} else {
		b.put(0, 5+4)
	}
	for range 2 * channels {
		b.granule(line)
	}
	for granule := range 2 {
		for range channels {
			b.line(line, 2*n+int64(granule))
		}
	}
	return b.frame
}

// granule writes the side information of one granule of one channel.
func (b *bitWriter) granule(line int) {
	b.put(uint(lineBits(line)), 12)
	b.put(uint(line/2+1), 9) // pairs
	b.put(mp3GlobalGain, 8)
	b.put(0, 4) // scale factors take no bits
	b.put(0, 1) // long blocks
	for range 3 {
		b.put(mp3PairTable, 5)
	}
	b.put(0, 4+3) // regions: all use the same table
	b.put(0, 3)   // no preemphasis, small scale factors, table of the quadruples
}

// lineBits is how many bits line writes.
func lineBits(line int) int { return line/2 + 3 + line%2 }

// line writes a spectrum of silence but for one line. A steady tone at the
// middle of a line changes its sign every second granule, because the window
// moves on by a quarter of its period more than a whole number of them.
func (b *bitWriter) line(line int, granule int64) {
	for range line / 2 {
		b.put(1, 1) // the pair 0 0
	}
	if line%2 == 0 {
		b.put(0b01, 2) // the pair 1 0
	} else {
		b.put(0b001, 3) // the pair 0 1
	}
	b.put(uint(bits.OnesCount64(uint64(granule)&2)), 1) // its sign
}
