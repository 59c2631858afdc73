// Samples: what is heard and seen, made of embedded seconds and pictures.
package kinds

import (
	"embed"
	"encoding/binary"
	"fmt"
	"io"
)

// samples hold one second of the melody in each form, with one channel and with
// two: a RIFF file of 16-bit PCM at 8 kHz, and 28 frames of MPEG-1 Layer III of
// 32 kbit/s at 32 kHz. No frame refers to the one before, so they can be
// repeated. A picture of each type stands beside them.
//
//go:embed samples
var samples embed.FS

// Sizes of the samples, in bytes.
const (
	wavHead  = 44    // before the first moment
	wavBytes = 16000 // of a second of one channel
	mp3Frame = 144   // of 1152 moments
)

// sampleNamed reads a sample.
func sampleNamed(name string) []byte {
	raw, err := samples.ReadFile("samples/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return raw
}

// wavOf plays so many seconds, from a quarter of the sample that chance decides.
func wavOf(chance uint64, seconds, channels int64) *io.SectionReader {
	raw := sampleNamed(fmt.Sprintf("channels%d.wav", channels))
	data := seconds * wavBytes * channels
	head := raw[:wavHead]
	binary.LittleEndian.PutUint32(head[4:], uint32(wavHead-8+data))
	binary.LittleEndian.PutUint32(head[40:], uint32(data))
	shift := int64(chance%4) * wavBytes * channels / 4
	return io.NewSectionReader(&loop{head: head, sample: raw[wavHead:], shift: shift}, 0, wavHead+data)
}

// mp3Of plays so many seconds, from a pair of frames that chance decides: over
// two frames the signs of a steady tone repeat.
func mp3Of(chance uint64, seconds, channels int64) *io.SectionReader {
	const rate, moments = 32000, 1152
	raw := sampleNamed(fmt.Sprintf("channels%d.mp3", channels))
	frames := (seconds*rate + moments - 1) / moments
	return io.NewSectionReader(&loop{sample: raw, shift: int64(chance%14) * 2 * mp3Frame}, 0, frames*mp3Frame)
}

// loop is a head and then a sample over and over.
type loop struct {
	head, sample []byte
	shift        int64 // where in the sample it begins
}

// ReadAt copies bytes. A loop has no end.
func (c *loop) ReadAt(p []byte, at int64) (n int, _ error) {
	for n < len(p) {
		next := c.head[min(at, int64(len(c.head))):]
		if len(next) == 0 {
			next = c.sample[(at-int64(len(c.head))+c.shift)%int64(len(c.sample)):]
		}
		step := copy(p[n:], next)
		n, at = n+step, at+int64(step)
	}
	return n, nil
}

// maxAudio is how many seconds are to hear of a recording, however long it
// says it is.
const maxAudio = 30
