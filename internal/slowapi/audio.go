// Audio: what recordings sound like, one second of a melody over and over.
package slowapi

import (
	"embed"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxAudio is how many seconds are to hear of a recording, however long it
// says it is.
const maxAudio = 30

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
func wavOf(chance uint64, seconds, channels int64) *loop {
	raw := sampleNamed(fmt.Sprintf("channels%d.wav", channels))
	data := seconds * wavBytes * channels
	head := raw[:wavHead]
	binary.LittleEndian.PutUint32(head[4:], uint32(wavHead-8+data))
	binary.LittleEndian.PutUint32(head[40:], uint32(data))
	shift := int64(chance%4) * wavBytes * channels / 4
	return &loop{head: head, sample: raw[wavHead:], shift: shift, size: wavHead + data}
}

// mp3Of plays so many seconds, from a pair of frames that chance decides: over
// two frames the signs of a steady tone repeat.
func mp3Of(chance uint64, seconds, channels int64) *loop {
	const rate, moments = 32000, 1152
	raw := sampleNamed(fmt.Sprintf("channels%d.mp3", channels))
	frames := (seconds*rate + moments - 1) / moments
	return &loop{sample: raw, shift: int64(chance%14) * 2 * mp3Frame, size: frames * mp3Frame}
}

// serveAudio answers the path of a recording without .json: WAV, unless it ends
// in .mp3. Nothing is there before the recording is complete.
func (s *Server) serveAudio(r *http.Request, t target, _ url.Values) (answer, error) {
	w := s.world
	w.mu.RLock()
	defer w.mu.RUnlock()
	var one recording
	one.load(w, t.seq, t.index)
	if !t.seq.exists(t.index) || one.status != "completed" {
		return notFound(t.path).answer(), nil
	}
	c := one.sound(strings.HasSuffix(t.path, ".mp3"), r.URL.Query().Get("RequestedChannels"))
	return answer{status: http.StatusOK, content: &c}, nil
}

// sound is what the recording sounds like. Asked for one channel or two, it has
// that many, else as many as it was recorded with.
func (r *recording) sound(mp3 bool, asked string) content {
	channels := r.channels()
	if asked == "1" || asked == "2" {
		channels = int64(asked[0] - '0')
	}
	seconds := min(max(r.seconds(), 1), maxAudio)
	tune := uint64(drawFor(r.s.seed, tagRecorded<<16|uint64(r.s.account), r.i))
	c := content{
		ReadSeeker: wavOf(tune, seconds, channels), sort: "audio/x-wav", modified: time.Unix(r.updated(), 0),
	}
	if mp3 {
		c.ReadSeeker, c.sort = mp3Of(tune, seconds, channels), "audio/mpeg"
	}
	c.tag = fmt.Sprintf(`"%016x-%d-%d-%s"`, tune, seconds, channels, c.sort[len("audio/"):])
	return c
}
