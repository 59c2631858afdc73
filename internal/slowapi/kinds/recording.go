// Recordings of calls and conferences, and transcriptions of recordings.
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
	Generate: generateRecording, Shape: "recording",
	Count:        func(w *world.World) int64 { return w.Records / perRecording },
	CreationTime: func(s *world.Sequence, i int64) int64 { return SubjectOf(s, i).Since },
	Lifecycle:    recordingLifecycle,
	Filters: slices.Concat(RecordingDates, []world.Filter{
		{Key: "CallSid", Read: subjectFilter("CallSid")},
		{Key: "ConferenceSid", Read: subjectFilter("ConferenceSid")},
		{Key: "IncludeSoftDeleted", Read: readIncludeDeleted},
	}),
	Writes: world.Writes{CanDelete: true, ShowsDeleted: true},
}

// RecordingDates are the filters for the list of recordings of a call or conference. This list has no other filters.
var RecordingDates = world.TimeFilters("DateCreated", false, "created")

var (
	recordedPlan = []string{"in-progress", "processing", "completed", "completed"}
	absentPlan   = []string{"absent"}
)

// recordingLifecycle computes the statuses of a recording and how long they last. A recording ends together with its
// call or conference.
func recordingLifecycle(s *world.Sequence, i int64) world.Progress {
	of := SubjectOf(s, i)
	d := s.Random(i)
	length := secondsInStatus(callLifecycle(s.Siblings[Calls], of.Call), "in-progress")
	if of.Conference >= 0 {
		rooms := s.Siblings[Conferences]
		length = secondsInStatus(conferenceLifecycle(rooms, of.Conference), "in-progress")
	}
	if of.unanswered || d.IntBelow(150) == 0 {
		return world.Progress{Plan: absentPlan}
	}
	return world.Progress{Plan: recordedPlan, SecondsPerStep: [8]int64{length, int64(2 + d.IntBelow(20)), int64(5 + d.IntBelow(55))}}
}

// generateRecording computes the values of a recording. Twilio's documentation has three shapes: for all recordings,
// for those of a call and for those of a conference. A recording does not end before its call or conference. Each
// minute that has begun has a price, which appears at the step after the final status.
func generateRecording(w *world.World, s *world.Sequence, i int64) table.Values {
	of, p, d := SubjectOf(s, i), s.Progress(i), fake.RngFor(s.Seed, tagRecorded<<8, i)
	two, pick := d.IntBelow(2) == 0, d.IntBelow(10)
	v := table.Values{
		"call": w.SID(s.Siblings[Calls], of.Call), "conference": "", "channels": int64(1), "source": "Trunking", "created": p.Created,
		"start": of.Since, "price": "",
	}
	end := int64(0) // when the call or conference ended; 0 if it has not ended yet
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
	v["status"], v["seconds"], v["duration"], v["updated"] = status, seconds, secondsText(seconds), max(updated, s.LastWrite(i))
	return v
}

// secondsText returns a number of seconds as digits, or "" for 0.
func secondsText(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// subjectFilter returns a filter for the recordings of a call or conference.
func subjectFilter(name string) func(*world.Request, string) (world.Condition, *format.Answer) {
	return func(x *world.Request, sid string) (world.Condition, *format.Answer) {
		k, of := Calls, RecordingsOfCall
		if name == "ConferenceSid" {
			k, of = Conferences, RecordingsOfConference
		}
		i, known := x.World.Find(x.Sequence.Siblings[k], sid)
		if !known {
			return matchNone, nil
		}
		return of(x.World, x.Sequence, i), nil
	}
}

// readIncludeDeleted parses IncludeSoftDeleted, which adds recently deleted recordings to the list.
func readIncludeDeleted(x *world.Request, value string) (world.Condition, *format.Answer) {
	buried, r := world.ReadBool(value)
	x.IncludeDeleted = buried
	return world.MatchAll, r
}

// AddDeleted reports whether a query requests recently deleted recordings, too.
func AddDeleted(q format.Query) bool {
	return strings.EqualFold(q.Given["IncludeSoftDeleted"].Value, "true")
}

// AudioOf returns the audio of a recording. complete is false if the recording has not ended yet. If
// requestedChannels is "1" or "2", the audio has that many channels, otherwise as many as were recorded.
func AudioOf(w *world.World, s *world.Sequence, i int64, mp3 bool, requestedChannels string) (c format.Content, complete bool) {
	v := generateRecording(w, s, i)
	channels := v["channels"].(int64)
	if requestedChannels == "1" || requestedChannels == "2" {
		channels = int64(requestedChannels[0] - '0')
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

// Transcriptions are the texts of recordings.
var Transcriptions = &world.Kind{
	Name: "transcriptions", Prefix: "TR", Tag: 'T',
	Generate: generateTranscription, Shape: "transcription",
	Count:        func(w *world.World) int64 { return w.Records / perRecording / perTranscription },
	CreationTime: transcriptionTime,
	Lifecycle:    transcriptionLifecycle, Writes: world.Writes{CanDelete: true},
}

var (
	transcribedPlan = []string{"in-progress", "completed", "completed"}
	failedPlan      = []string{"in-progress", "failed"}
)

// transcriptionLifecycle computes the statuses of a transcription and how long they last.
func transcriptionLifecycle(s *world.Sequence, i int64) world.Progress {
	d := s.Random(i)
	dwell := [8]int64{int64(10 + d.IntBelow(80)), int64(5 + d.IntBelow(55))}
	if d.IntBelow(12) == 0 {
		return world.Progress{Plan: failedPlan, SecondsPerStep: dwell}
	}
	return world.Progress{Plan: transcribedPlan, SecondsPerStep: dwell}
}

// generateTranscription computes the values of a transcription. Its price is a JSON number; the price of a recording is a text.
func generateTranscription(w *world.World, s *world.Sequence, i int64) table.Values {
	p, all, spoken := s.Progress(i), s.Siblings[Recordings], transcribedRecording(s, i)
	seconds := generateRecording(w, all, spoken)["seconds"].(int64)
	v := table.Values{
		"created": p.Created, "updated": p.UpdateTime(), "status": p.Status(), "duration": secondsText(seconds), "recording": w.SID(all, spoken),
	}
	if p.Status() == "completed" {
		// the text that Twilio shows for a recording without words
		v["text"] = cmp.Or(fake.Body(fake.RngFor(s.Seed, tagSpoken<<8, i), false), "(blank)")
	}
	if p.IsPriced() {
		v["price"] = format.Money(5000 * max((seconds+59)/60, 1))
	}
	return v
}
