// Audio: what recordings sound like and say in words, and the paths of all that is heard and seen.
package slowapi

import (
	"embed"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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
	tune := uint64(rngFor(r.s.seed, tagRecorded<<16|uint64(r.s.account), r.i))
	c := content{
		ReadSeeker: wavOf(tune, seconds, channels), sort: "audio/x-wav", modified: time.Unix(r.updated(), 0),
	}
	if mp3 {
		c.ReadSeeker, c.sort = mp3Of(tune, seconds, channels), "audio/mpeg"
	}
	c.tag = fmt.Sprintf(`"%016x-%d-%d-%s"`, tune, seconds, channels, c.sort[len("audio/"):])
	return c
}

var transcriptions = &kind{
	name: "transcriptions", prefix: "TR", tag: 'T',
	blank: func() row { return new(transcription) },
	seed:  seedTranscriptions,
	life:  transcriptionLife, remove: true,
}

// transcription is one transcription, read from the seed and its mark.
type transcription struct {
	progress progress
	s        *sequence
	i        int64
	of       recording
}

var (
	transcriptionDone   = []string{"in-progress", "completed", "completed"}
	transcriptionFailed = []string{"in-progress", "failed"}
)

// transcriptionLife is what a transcription goes through.
func transcriptionLife(s *sequence, i int64) lifecycle {
	d := rngFor(s.seed, s.kind.tag, i)
	dwell := [8]int64{int64(10 + d.below(80)), int64(5 + d.below(55))}
	if d.below(12) == 0 {
		return lifecycle{transcriptionFailed, dwell}
	}
	return lifecycle{transcriptionDone, dwell}
}

// load reads the transcription with an index.
func (t *transcription) load(w *world, s *sequence, i int64) {
	*t = transcription{s: s, i: i, progress: progressOf(s, i, transcriptionLife(s, i))}
	t.of.load(w, s.among[recordings], spokenIn(s, i))
}

// append writes the transcription's row, which is its instance too. Its price
// is a number, unlike that of a recording.
func (t *transcription) append(dst []byte, w *world) []byte {
	account := w.accountSID(t.s.account)
	sid := string(w.appendSID(nil, t.s, t.i))
	text, price := "", ""
	if t.progress.status() == "completed" {
		d := rngFor(t.s.seed, tagSpoken<<8, t.i)
		if text = body(d, false); text == "" {
			text = "(blank)" // Twilio's word for silence
		}
	}
	if t.progress.settled() {
		price = money(5000 * max((t.of.seconds()+59)/60, 1))
	}

	o := object{b: dst}
	o.open()
	o.text("account_sid", account)
	o.text("api_version", apiVersion)
	o.date("date_created", t.progress.created)
	o.date("date_updated", t.progress.updated())
	o.textOrNull("duration", someSeconds(t.of.seconds()))
	o.name("price")
	o.b = appendPrice(o.b, price, true)
	o.text("price_unit", "USD")
	o.text("recording_sid", string(w.appendSID(nil, t.of.s, t.of.i)))
	o.text("sid", sid)
	o.text("status", t.progress.status())
	o.textOrNull("transcription_text", text)
	o.text("type", "fast")
	o.text("uri", version+"/Accounts/"+account+"/Transcriptions/"+sid+".json")
	o.close()
	return o.b
}

var soundRoutes = []route{
	{pattern: "Accounts/*/Conferences", kind: conferences},
	{pattern: "Accounts/*/Conferences/*", kind: conferences, instance: true},
	{pattern: "Accounts/*/Conferences/*/Participants", kind: participants, parent: conferences, within: participantsOf},
	{pattern: "Accounts/*/Conferences/*/Participants/*", kind: participants, parent: conferences, within: participantsOf, instance: true},
	{pattern: "Accounts/*/Recordings", kind: recordings, dress: showRecording(recordingAlone)},
	{pattern: "Accounts/*/Recordings/*", kind: recordings, dress: showRecording(recordingAlone), instance: true},
	recordedIn("Calls", calls, recordingsOfCall, recordingOfCall, false),
	recordedIn("Calls", calls, recordingsOfCall, recordingOfCall, true),
	recordedIn("Conferences", conferences, recordingsOfConference, recordingOfConference, false),
	recordedIn("Conferences", conferences, recordingsOfConference, recordingOfConference, true),
	{pattern: "Accounts/*/Transcriptions", kind: transcriptions},
	{pattern: "Accounts/*/Transcriptions/*", kind: transcriptions, instance: true},
	{pattern: "Accounts/*/Recordings/*/Transcriptions", kind: transcriptions, parent: recordings, within: transcriptionsOf},
	{pattern: "Accounts/*/Recordings/*/Transcriptions/*", kind: transcriptions, parent: recordings, within: transcriptionsOf, instance: true},
	{pattern: "Accounts/*/Messages/*/Media", kind: media, parent: messages, within: mediaOf},
	{pattern: "Accounts/*/Messages/*/Media/*", kind: media, parent: messages, within: mediaOf, instance: true},
}

// recordedIn is the list of recordings of one call or conference, or one of them.
func recordedIn(path string, parent *kind, within func(*world, *sequence, int64) condition, look recordingLook, instance bool) route {
	r := route{
		pattern: "Accounts/*/" + path + "/*/Recordings", kind: recordings, instance: instance,
		parent: parent, within: within, filters: recordingDates, dress: showRecording(look),
	}
	if instance {
		r.pattern += "/*"
	}
	return r
}

// fileRoutes are the paths of what is no JSON.
var fileRoutes = []route{
	audioAt("Accounts/*/Recordings/*", nil, nil),
	audioAt("Accounts/*/Calls/*/Recordings/*", calls, recordingsOfCall),
	audioAt("Accounts/*/Conferences/*/Recordings/*", conferences, recordingsOfConference),
	{
		pattern: "Accounts/*/Messages/*/Media/*", kind: media, parent: messages, within: mediaOf, instance: true,
		serve: (*Server).redirectMedium, methods: "GET, HEAD", endings: []string{""},
	},
}

// audioAt is where a recording can be heard.
func audioAt(pattern string, parent *kind, within func(*world, *sequence, int64) condition) route {
	return route{
		pattern: pattern, kind: recordings, parent: parent, within: within, instance: true,
		serve: (*Server).serveAudio, methods: "GET, HEAD", endings: []string{"", ".wav", ".mp3"},
	}
}

// fileRouteOf finds the route of a path that does not end in .json.
func fileRouteOf(path string) (*route, []string) {
	name, ending := splitEnding(path)
	for i := range fileRoutes {
		r := &fileRoutes[i]
		if sids, ok := r.match(name); ok && slices.Contains(r.endings, ending) {
			return r, sids
		}
	}
	return nil, nil
}
