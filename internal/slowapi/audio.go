// Audio: what recordings sound like, a melody from the seed.
package slowapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// maxAudio is how many seconds are to hear of a recording, however long it
	// says it is.
	maxAudio = 30
	// notesPerSecond is how fast the melody goes.
	notesPerSecond = 4
)

// melody is a sequence of notes, each a multiple of one frequency.
type melody struct{ d draw }

// scale are notes that sound well in any order, as spectral lines of toneStep.
var scale = [...]int{12, 14, 16, 18, 21, 24, 28, 32}

// toneStep is the distance of two spectral lines of an MP3 of 32 kHz, in Hz.
const toneStep = 32000.0 / 2 / 576

// note is the spectral line that sounds then.
func (m melody) note(n int64) int {
	d := drawFor(uint64(m.d), 0, n)
	return scale[d.below(len(scale))]
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
	tune := melody{drawFor(r.s.seed, tagRecorded<<16|uint64(r.s.account), r.i)}
	c := content{
		ReadSeeker: wavOf(tune, seconds, channels), sort: "audio/x-wav", modified: time.Unix(r.updated(), 0),
	}
	if mp3 {
		c.ReadSeeker, c.sort = mp3Of(tune, seconds, channels), "audio/mpeg"
	}
	c.tag = fmt.Sprintf(`"%016x-%d-%d-%s"`, uint64(tune.d), seconds, channels, c.sort[len("audio/"):])
	return c
}
