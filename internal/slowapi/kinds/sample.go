// Samples: audio and pictures that are made from embedded files.
package kinds

import (
	"embed"
	"encoding/binary"
	"fmt"
	"io"
)

// samples has one second of a melody in each format, with one and with two channels: a RIFF file of 16-bit
// PCM at 8 kHz, and 28 frames of MPEG-1 Layer III with 32 kbit/s at 32 kHz. The frames do not depend
// on each other, so they can be repeated. It also has a picture of each type.
//
//go:embed samples
var samples embed.FS

// Sizes of the samples, in bytes.
const (
	wavHead  = 44    // the length in bytes of the header of a WAV file
	wavBytes = 16000 // the length in bytes of one second of audio with one channel
	mp3Frame = 144   // the length in bytes of an MP3 frame, which has 1152 audio samples
)

// sampleNamed returns an embedded file.
func sampleNamed(name string) []byte {
	raw, err := samples.ReadFile("samples/" + name)
	if err != nil {
		panic(err) // an error is not possible, because the file is part of the program
	}
	return raw
}

// wavOf returns a WAV file of the given length. chance decides at which quarter of the melody it begins.
func wavOf(chance uint64, seconds, channels int64) *io.SectionReader {
	raw := sampleNamed(fmt.Sprintf("channels%d.wav", channels))
	data := seconds * wavBytes * channels
	head := raw[:wavHead]
	binary.LittleEndian.PutUint32(head[4:], uint32(wavHead-8+data))
	binary.LittleEndian.PutUint32(head[40:], uint32(data))
	shift := int64(chance%4) * wavBytes * channels / 4
	return io.NewSectionReader(&loopReader{head: head, sample: raw[wavHead:], shift: shift}, 0, wavHead+data)
}

// mp3Of returns an MP3 file of the given length. chance decides at which pair of frames it begins. It begins with a
// pair because the phase of a steady tone repeats every two frames.
func mp3Of(chance uint64, seconds, channels int64) *io.SectionReader {
	const rate, samplesPerFrame = 32000, 1152
	raw := sampleNamed(fmt.Sprintf("channels%d.mp3", channels))
	frames := (seconds*rate + samplesPerFrame - 1) / samplesPerFrame
	return io.NewSectionReader(&loopReader{sample: raw, shift: int64(chance%14) * 2 * mp3Frame}, 0, frames*mp3Frame)
}

// loopReader is a file without an end: a header, followed by a sample that is repeated again and again.
type loopReader struct {
	head, sample []byte
	shift        int64 // the position in the sample at which the audio begins, in bytes
}

// ReadAt reads bytes at an offset. It never returns io.EOF, because the file is endless.
func (c *loopReader) ReadAt(p []byte, at int64) (n int, _ error) {
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

// maxAudio is the maximum length of audio in seconds. The duration in the record may be longer.
const maxAudio = 30
