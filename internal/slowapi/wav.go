// WAV: 16-bit PCM at 8 kHz, of which any byte can be computed by itself.
package slowapi

import (
	"encoding/binary"
	"math"
)

const (
	wavRate = 8000
	wavHead = 44 // bytes before the first sample
)

// wavOf plays a melody.
func wavOf(tune melody, seconds, channels int64) *computed {
	frame := 2 * channels // bytes of one moment
	data := seconds * wavRate * frame
	head := wavHeader(data, channels)
	return &computed{size: wavHead + data, fill: func(p []byte, from int64) {
		if from < wavHead {
			n := copy(p, head[from:])
			p, from = p[n:], from+int64(n)
		}
		for at := from - wavHead; len(p) > 0; {
			var both [2]byte
			binary.LittleEndian.PutUint16(both[:], uint16(tune.sample(at/frame, at%frame/2)))
			n := copy(p, both[at%2:])
			p, at = p[n:], at+int64(n)
		}
	}}
}

// wavHeader is a RIFF header with its two chunks (Microsoft and IBM, Multimedia
// Programming Interface and Data Specifications 1.0).
func wavHeader(data, channels int64) []byte {
	le := binary.LittleEndian
	b := append([]byte(nil), "RIFF"...)
	b = le.AppendUint32(b, uint32(wavHead-8+data))
	b = append(b, "WAVEfmt "...)
	b = le.AppendUint32(b, 16)
	b = le.AppendUint16(b, 1) // PCM
	b = le.AppendUint16(b, uint16(channels))
	b = le.AppendUint32(b, wavRate)
	b = le.AppendUint32(b, uint32(wavRate*2*channels))
	b = le.AppendUint16(b, uint16(2*channels))
	b = le.AppendUint16(b, 16)
	b = append(b, "data"...)
	return le.AppendUint32(b, uint32(data))
}

// sample is how far the membrane is out at a moment; the second channel plays an
// octave lower. Each note fades.
func (m melody) sample(at, channel int64) int16 {
	const perNote = wavRate / notesPerSecond
	line := float64(m.note(at/perNote)) + 0.5
	since := float64(at % perNote)
	fade := (1 - since/perNote) * min(since/40, 1)
	pitch := line * toneStep / float64(1+channel)
	return int16(9000 * fade * math.Sin(2*math.Pi*pitch*float64(at)/wavRate))
}
