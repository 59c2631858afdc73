// Recordings: what was said in calls and conferences, how rows of them look, and what they say in words.
package kinds

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Recordings are the recordings of calls and conferences.
var Recordings = &world.Kind{
	Name: "recordings", Prefix: "RE", Tag: 'R',
	Blank: func() world.Row { return new(Recording) }, Shape: "recording",
	Count: func(w *world.World) int64 { return w.Records / perRecording },
	At:    func(s *world.Sequence, i int64) int64 { return SubjectOf(s, i).Since },
	Life:  recordingLife,
	Filters: slices.Concat(RecordingDates, []world.Filter{
		{Key: "CallSid", Read: ofFilter("CallSid")},
		{Key: "ConferenceSid", Read: ofFilter("ConferenceSid")},
		{Key: "IncludeSoftDeleted", Read: readBuried},
	}),
	Remove: true, Buries: true,
}

// RecordingDates are all that narrows the lists of one call or conference.
var RecordingDates = world.ClockFilters("DateCreated", false, "created")

// Recording is one recording, read from the seed, its mark and what it is of.
type Recording struct {
	progress world.Progress
	S        *world.Sequence
	i        int64
	of       subject
	end      int64 // of the call or conference, 0 while it goes on
	Status   string
	rest     fake.Rng // what only the row needs
}

var (
	recordingPlan = []string{"in-progress", "processing", "completed", "completed"}
	recordingLost = []string{"absent"}
)

// recordingLife is what a recording goes through.
func recordingLife(s *world.Sequence, i int64) world.Lifecycle {
	of := SubjectOf(s, i)
	d := s.Draw(i)
	length := lengthOf(callLife(s.Among[Calls], of.Call), "in-progress")
	if of.Conference >= 0 {
		rooms := s.Among[Conferences]
		length = lengthOf(conferenceLife(rooms, of.Conference), "in-progress")
	}
	if of.lost || d.Below(150) == 0 {
		return world.Lifecycle{Plan: recordingLost}
	}
	return world.Lifecycle{Plan: recordingPlan, Dwell: [8]int64{length, int64(2 + d.Below(20)), int64(5 + d.Below(55))}}
}

// Load reads the recording with an index.
func (r *Recording) Load(w *world.World, s *world.Sequence, i int64) {
	*r = Recording{S: s, i: i, of: SubjectOf(s, i), progress: s.Progress(i)}
	r.rest = fake.RngFor(s.Seed, tagRecorded<<8, i)
	if r.of.Conference >= 0 {
		p := s.Among[Conferences].Progress(r.of.Conference)
		r.end = p.Reached("completed")
	} else {
		var c Call
		c.Load(w, s.Among[Calls], r.of.Call)
		r.end = c.End
	}
	r.Status = r.state()
}

// Value returns when it was created: all that lists are narrowed by.
func (r *Recording) Value(string) any { return r.progress.Created }

// state is the status shown: a recording does not end before what it is of.
func (r *Recording) state() string {
	status := r.progress.Status()
	switch {
	case r.S.Deleted(r.i):
		return "deleted"
	case status == "absent":
		return status
	case r.end == 0:
		return "in-progress"
	case status == "in-progress":
		return "processing"
	}
	return status
}

// seconds is how long it lasts, 0 as long as that is not known.
func (r *Recording) seconds() int64 {
	if r.end == 0 || r.Status == "absent" || r.Status == "processing" {
		return 0
	}
	return max(r.end-r.of.Since, 1)
}

// channels is 2 for half of the calls, and 1 for conferences.
func (r *Recording) channels() int64 {
	d := r.rest
	if r.of.Conference < 0 && d.Below(2) == 0 {
		return 2
	}
	return 1
}

// updated is when the recording last changed.
func (r *Recording) updated() int64 {
	at := max(r.progress.Updated(), r.end)
	if r.end == 0 && r.Status != "absent" {
		at = r.progress.Created
	}
	return max(at, r.S.Touched(r.i))
}

// Values are the recording as its templates show it: the published documents have
// one shape for recordings alone, one below calls and one below conferences. Its price is
// for begun minutes, once the step after the final state is reached.
func (r *Recording) Values(w *world.World) table.Values {
	d := r.rest
	d.Next() // the channels'
	v, pick := table.Values{
		"call": w.SID(r.S.Among[Calls], r.of.Call), "conference": "", "channels": r.channels(), "source": "Trunking",
		"created": r.progress.Created, "updated": r.updated(), "start": r.of.Since, "duration": someSeconds(r.seconds()), "status": r.Status,
		"price": "",
	}, d.Below(10)
	if r.of.Conference >= 0 {
		v["conference"] = w.SID(r.S.Among[Conferences], r.of.Conference)
		v["source"] = [...]string{"Conference", "StartConferenceRecordingAPI"}[pick%2]
	} else if pick < 4 {
		v["source"] = "DialVerb"
	} else if pick < 9 {
		v["source"] = [...]string{"RecordVerb", "OutboundAPI", "StartCallRecordingAPI"}[pick%3]
	}
	if r.progress.Settled() && r.seconds() != 0 {
		v["price"] = format.Money(250 * ((r.seconds() + 59) / 60))
	}
	return v
}

// someSeconds is a number of seconds, or nothing for 0.
func someSeconds(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// ofFilter asks for the recordings of a call or of a conference.
func ofFilter(name string) func(*world.Search, string) (world.Condition, *format.Answer) {
	return func(x *world.Search, sid string) (world.Condition, *format.Answer) {
		k, of := Calls, RecordingsOfCall
		if name == "ConferenceSid" {
			k, of = Conferences, RecordingsOfConference
		}
		i, known := x.W.Find(x.S.Among[k], sid)
		if !known {
			return nothing, nil
		}
		return of(x.W, x.S, i), nil
	}
}

// readBuried reads IncludeSoftDeleted, which widens the list.
func readBuried(x *world.Search, value string) (world.Condition, *format.Answer) {
	buried, r := world.ReadTruth(value)
	x.Buried = buried
	return world.Always, r
}

// Buried tells whether a query asks for what was deleted lately.
func Buried(q format.Query) bool {
	return strings.EqualFold(q.Given["IncludeSoftDeleted"].Value, "true")
}

// Sound is what the recording sounds like. Asked for one channel or two, it has
// that many, else as many as it was recorded with.
func (r *Recording) Sound(mp3 bool, asked string) format.Content {
	channels := r.channels()
	if asked == "1" || asked == "2" {
		channels = int64(asked[0] - '0')
	}
	seconds := min(max(r.seconds(), 1), maxAudio)
	tune := uint64(fake.RngFor(r.S.Seed, tagRecorded<<16|uint64(r.S.Account), r.i))
	c := format.Content{
		ReadSeeker: wavOf(tune, seconds, channels), Sort: "audio/x-wav", Modified: time.Unix(r.updated(), 0),
	}
	if mp3 {
		c.ReadSeeker, c.Sort = mp3Of(tune, seconds, channels), "audio/mpeg"
	}
	c.Tag = fmt.Sprintf(`"%016x-%d-%d-%s"`, tune, seconds, channels, c.Sort[len("audio/"):])
	return c
}

// Transcriptions are what recordings say in words.
var Transcriptions = &world.Kind{
	Name: "transcriptions", Prefix: "TR", Tag: 'T',
	Draw: drawTranscription, Shape: "transcription",
	Count: func(w *world.World) int64 { return w.Records / perRecording / perTranscription },
	At:    spokenAt,
	Life:  transcriptionLife, Remove: true,
}

var (
	transcriptionDone   = []string{"in-progress", "completed", "completed"}
	transcriptionFailed = []string{"in-progress", "failed"}
)

// transcriptionLife is what a transcription goes through.
func transcriptionLife(s *world.Sequence, i int64) world.Lifecycle {
	d := s.Draw(i)
	dwell := [8]int64{int64(10 + d.Below(80)), int64(5 + d.Below(55))}
	if d.Below(12) == 0 {
		return world.Lifecycle{Plan: transcriptionFailed, Dwell: dwell}
	}
	return world.Lifecycle{Plan: transcriptionDone, Dwell: dwell}
}

// drawTranscription draws a transcription. Its price is a number, unlike that of a recording.
func drawTranscription(w *world.World, s *world.Sequence, i int64) table.Values {
	p, of := s.Progress(i), new(Recording)
	of.Load(w, s.Among[Recordings], spokenIn(s, i))
	v := table.Values{
		"created": p.Created, "updated": p.Updated(), "status": p.Status(), "duration": someSeconds(of.seconds()), "recording": w.SID(of.S, of.i),
	}
	if p.Status() == "completed" {
		v["text"] = cmp.Or(fake.Body(fake.RngFor(s.Seed, tagSpoken<<8, i), false), "(blank)") // Twilio's word for silence
	}
	if p.Settled() {
		v["price"] = format.Money(5000 * max((of.seconds()+59)/60, 1))
	}
	return v
}
