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
	Generate: drawRecording, Shape: "recording",
	Count:        func(w *world.World) int64 { return w.Records / perRecording },
	CreationTime: func(s *world.Sequence, i int64) int64 { return SubjectOf(s, i).Since },
	Lifecycle:    recordingLife,
	Filters: slices.Concat(RecordingDates, []world.Filter{
		{Key: "CallSid", Read: ofFilter("CallSid")},
		{Key: "ConferenceSid", Read: ofFilter("ConferenceSid")},
		{Key: "IncludeSoftDeleted", Read: readBuried},
	}),
	Writes: world.Writes{CanDelete: true, ShowsDeleted: true},
}

// RecordingDates are all that narrows the lists of one call or conference.
var RecordingDates = world.TimeFilters("DateCreated", false, "created")

var (
	recordingPlan = []string{"in-progress", "processing", "completed", "completed"}
	recordingLost = []string{"absent"}
)

// recordingLife is what a recording goes through.
func recordingLife(s *world.Sequence, i int64) world.Progress {
	of := SubjectOf(s, i)
	d := s.Random(i)
	length := lengthOf(callLife(s.Siblings[Calls], of.Call), "in-progress")
	if of.Conference >= 0 {
		rooms := s.Siblings[Conferences]
		length = lengthOf(conferenceLife(rooms, of.Conference), "in-progress")
	}
	if of.lost || d.IntBelow(150) == 0 {
		return world.Progress{Plan: recordingLost}
	}
	return world.Progress{Plan: recordingPlan, Dwell: [8]int64{length, int64(2 + d.IntBelow(20)), int64(5 + d.IntBelow(55))}}
}

// drawRecording draws a recording: the published documents have one shape for recordings
// alone, one below calls and one below conferences. It does not end before what it is of. Its
// price is for begun minutes, once the step after the final state is reached.
func drawRecording(w *world.World, s *world.Sequence, i int64) table.Values {
	of, p, d := SubjectOf(s, i), s.Progress(i), fake.RngFor(s.Seed, tagRecorded<<8, i)
	two, pick := d.IntBelow(2) == 0, d.IntBelow(10)
	v := table.Values{
		"call": w.SID(s.Siblings[Calls], of.Call), "conference": "", "channels": int64(1), "source": "Trunking", "created": p.Created,
		"start": of.Since, "price": "",
	}
	end := int64(0) // of the call or conference, 0 while it goes on
	if of.Conference >= 0 {
		room := s.Siblings[Conferences].Progress(of.Conference)
		end = room.StatusTime("completed")
		v["conference"] = w.SID(s.Siblings[Conferences], of.Conference)
		v["source"] = [...]string{"Conference", "StartConferenceRecordingAPI"}[pick%2]
	} else {
		call := s.Siblings[Calls].Progress(of.Call)
		_, end = callTimes(&call)
		if two {
			v["channels"] = int64(2)
		}
		if pick < 9 {
			v["source"] = [...]string{"RecordVerb", "OutboundAPI", "StartCallRecordingAPI"}[pick%3]
		}
		if pick < 4 {
			v["source"] = "DialVerb"
		}
	}
	status, seconds, updated := p.Status(), int64(0), max(p.UpdateTime(), end)
	switch {
	case s.IsDeleted(i):
		status = "deleted"
	case status == "absent":
	case end == 0:
		status = "in-progress"
	case status == "in-progress":
		status = "processing"
	}
	if end != 0 && status != "absent" && status != "processing" {
		seconds = max(end-of.Since, 1)
	}
	if end == 0 && status != "absent" {
		updated = p.Created
	}
	if p.IsPriced() && seconds != 0 {
		v["price"] = format.Money(250 * ((seconds + 59) / 60))
	}
	v["status"], v["seconds"], v["duration"], v["updated"] = status, seconds, someSeconds(seconds), max(updated, s.LastWrite(i))
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
func ofFilter(name string) func(*world.Request, string) (world.Condition, *format.Answer) {
	return func(x *world.Request, sid string) (world.Condition, *format.Answer) {
		k, of := Calls, RecordingsOfCall
		if name == "ConferenceSid" {
			k, of = Conferences, RecordingsOfConference
		}
		i, known := x.World.Find(x.Sequence.Siblings[k], sid)
		if !known {
			return nothing, nil
		}
		return of(x.World, x.Sequence, i), nil
	}
}

// readBuried reads IncludeSoftDeleted, which widens the list.
func readBuried(x *world.Request, value string) (world.Condition, *format.Answer) {
	buried, r := world.ReadBool(value)
	x.IncludeDeleted = buried
	return world.MatchAll, r
}

// Buried tells whether a query asks for what was deleted lately.
func Buried(q format.Query) bool {
	return strings.EqualFold(q.Given["IncludeSoftDeleted"].Value, "true")
}

// Sound returns what a recording sounds like; false when there is nothing to hear yet. Asked for
// one channel or two, it has that many, else as many as it was recorded with.
func Sound(w *world.World, s *world.Sequence, i int64, mp3 bool, asked string) (c format.Content, there bool) {
	v := drawRecording(w, s, i)
	channels := v["channels"].(int64)
	if asked == "1" || asked == "2" {
		channels = int64(asked[0] - '0')
	}
	seconds := min(max(v["seconds"].(int64), 1), maxAudio)
	tune := uint64(fake.RngFor(s.Seed, tagRecorded<<16|uint64(s.Account), i))
	c = format.Content{ReadSeeker: wavOf(tune, seconds, channels), Sort: "audio/x-wav", Modified: time.Unix(v["updated"].(int64), 0)}
	if mp3 {
		c.ReadSeeker, c.Sort = mp3Of(tune, seconds, channels), "audio/mpeg"
	}
	c.Tag = fmt.Sprintf(`"%016x-%d-%d-%s"`, tune, seconds, channels, c.Sort[len("audio/"):])
	return c, v["status"] == "completed"
}

// Transcriptions are what recordings say in words.
var Transcriptions = &world.Kind{
	Name: "transcriptions", Prefix: "TR", Tag: 'T',
	Generate: drawTranscription, Shape: "transcription",
	Count:        func(w *world.World) int64 { return w.Records / perRecording / perTranscription },
	CreationTime: spokenAt,
	Lifecycle:    transcriptionLife, Writes: world.Writes{CanDelete: true},
}

var (
	transcriptionDone   = []string{"in-progress", "completed", "completed"}
	transcriptionFailed = []string{"in-progress", "failed"}
)

// transcriptionLife is what a transcription goes through.
func transcriptionLife(s *world.Sequence, i int64) world.Progress {
	d := s.Random(i)
	dwell := [8]int64{int64(10 + d.IntBelow(80)), int64(5 + d.IntBelow(55))}
	if d.IntBelow(12) == 0 {
		return world.Progress{Plan: transcriptionFailed, Dwell: dwell}
	}
	return world.Progress{Plan: transcriptionDone, Dwell: dwell}
}

// drawTranscription draws a transcription. Its price is a number, unlike that of a recording.
func drawTranscription(w *world.World, s *world.Sequence, i int64) table.Values {
	p, all, spoken := s.Progress(i), s.Siblings[Recordings], spokenIn(s, i)
	seconds := drawRecording(w, all, spoken)["seconds"].(int64)
	v := table.Values{
		"created": p.Created, "updated": p.UpdateTime(), "status": p.Status(), "duration": someSeconds(seconds), "recording": w.SID(all, spoken),
	}
	if p.Status() == "completed" {
		v["text"] = cmp.Or(fake.Body(fake.RngFor(s.Seed, tagSpoken<<8, i), false), "(blank)") // Twilio's word for silence
	}
	if p.IsPriced() {
		v["price"] = format.Money(5000 * max((seconds+59)/60, 1))
	}
	return v
}
