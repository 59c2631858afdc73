// Conferences, recordings and transcriptions are computed from calls, so none of the seeded ones is stored.
package kinds

import (
	"slices"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/world"
)

// Twenty calls, counted from the newest backwards, are a block. A block has one conference and
// four recordings, in this order of creation:
//
//	call  0..4          5..8               9    10..14          15..19
//	      one has a     the conference          one has a       the newest calls,
//	      recording     and its two             recording       some unfinished
//	                    recordings
//
// Calls that are older than the first block have one recording for every five calls.
const (
	callsPerBlock      = 20
	recordingsPerBlock = 4
	perRecording       = 5 // of this many consecutive calls, one has a recording
)

// The tags of the random numbers in this file.
const (
	tagSeats    = 0x736561
	tagRooms    = 0x726f6f
	tagAnchors  = 0x616e63
	tagRecorded = 0x726563
	tagSpoken   = 0x73706f
)

// olderCallCount returns the number of calls that are older than the first block of twenty. s has the conferences.
func olderCallCount(s *world.Sequence) int64 {
	return s.Siblings[Calls].SeededCount - callsPerBlock*s.SeededCount
}

// firstBlockCall returns the index of the first call in the block of twenty calls that belongs to a conference.
func firstBlockCall(s *world.Sequence, conference int64) int64 {
	return olderCallCount(s) + callsPerBlock*conference
}

// conferenceStart returns the index of the call that begins a seeded conference.
func conferenceStart(s *world.Sequence, conference int64) int64 {
	d := fake.RngFor(s.Seed, tagAnchors, conference)
	return firstBlockCall(s, conference) + 5 + int64(d.IntBelow(4))
}

// answerTime returns when a call was answered, in Unix seconds. It returns 0 if it had not been answered when the
// simulated world began.
func answerTime(calls *world.Sequence, i int64) int64 {
	p := calls.InitialProgress(i)
	return p.StatusTime("in-progress")
}

// subject is the call or conference that a recording belongs to.
type subject struct {
	Call       int64 // the index of the call, or of the first call in the conference
	Conference int64 // the index of the conference; -1 if the recording is of a call
	Since      int64 // when the recording began, in Unix seconds
	unanswered bool  // whether nobody answered the call, so that there is no audio
}

// SubjectOf returns the call or conference that a recording belongs to.
func SubjectOf(s *world.Sequence, i int64) subject {
	rooms := s.Siblings[Conferences]
	extra := s.SeededCount - recordingsPerBlock*rooms.SeededCount
	if i < extra {
		return recordedCall(s, perRecording*i)
	}
	room, part := (i-extra)/recordingsPerBlock, (i-extra)%recordingsPerBlock
	switch part {
	case 0:
		return recordedCall(s, firstBlockCall(rooms, room))
	case 3:
		return recordedCall(s, firstBlockCall(rooms, room)+10)
	}
	one := subject{Call: participantCall(rooms, room, 0), Conference: room, Since: rooms.CreationTime(room)}
	if part == 2 { // a conference has two recordings, of which the second was started later
		d := fake.RngFor(s.Seed, tagRecorded, i)
		one.Since = min(one.Since+int64(d.IntBelow(50)), s.Siblings[Calls].CreationTime(conferenceStart(rooms, room)+1))
	}
	return one
}

// recordedCall returns an answered call among five calls, beginning with the index from. Its recording begins no
// later than the sixth call, so that creation times never decrease.
func recordedCall(s *world.Sequence, from int64) subject {
	all := s.Siblings[Calls]
	d := fake.RngFor(s.Seed, tagRecorded, from)
	first, until := int64(d.IntBelow(perRecording)), all.Newest
	if from+perRecording < all.SeededCount {
		until = all.CreationTime(from + perRecording)
	}
	for k := range int64(perRecording) {
		i := from + (first+k)%perRecording
		if at := answerTime(all, i); at != 0 {
			return subject{Call: i, Conference: -1, Since: min(at, until)}
		}
	}
	i := from + first
	return subject{Call: i, Conference: -1, Since: all.CreationTime(i), unanswered: true}
}

// matchNone is a condition that no record meets, because it contains no index.
var matchNone = world.Condition{Hi: -1}

// RecordingsOfCall returns the condition for the recordings of a call, and of the conference that began with the call.
func RecordingsOfCall(w *world.World, s *world.Sequence, call int64) world.Condition {
	rooms, c := s.Siblings[Conferences], world.Condition{Lo: call / perRecording, Hi: call / perRecording}
	extra := s.SeededCount - recordingsPerBlock*rooms.SeededCount
	switch block := (call - olderCallCount(rooms)) / callsPerBlock; {
	case call >= s.Siblings[Calls].SeededCount:
		return matchNone
	case call >= olderCallCount(rooms):
		c.Lo = extra + recordingsPerBlock*block
		c.Hi = c.Lo + recordingsPerBlock - 1
	case c.Lo >= extra:
		return matchNone
	}
	sid := w.SID(s.Siblings[Calls], call)
	c.Test = func(r *world.Row) bool { return r.Value("call") == sid }
	return c
}

// RecordingsOfConference returns the condition for the two recordings of a conference.
func RecordingsOfConference(_ *world.World, s *world.Sequence, room int64) world.Condition {
	rooms := s.Siblings[Conferences]
	if room >= rooms.SeededCount {
		return matchNone
	}
	first := s.SeededCount - recordingsPerBlock*(rooms.SeededCount-room) + 1
	return world.Condition{Lo: first, Hi: first + 1}
}

// perTranscription says that there is one transcription for this many recordings.
const perTranscription = 10

// transcribedRecording returns the index of the recording to which a transcription belongs. It is one of ten
// recordings, and if possible one of a call.
func transcribedRecording(s *world.Sequence, transcription int64) int64 {
	all := s.Siblings[Recordings]
	from := transcription * perTranscription
	d := fake.RngFor(s.Seed, tagSpoken, transcription)
	first := int64(d.IntBelow(perTranscription))
	for k := range int64(perTranscription) {
		i := from + (first+k)%perTranscription
		if of := SubjectOf(all, i); of.Conference < 0 && !of.unanswered {
			return i
		}
	}
	return from + first
}

// transcriptionTime returns when a transcription was created. This is the end of its recording, but not later than
// the first recording of the next transcription, so that creation times never decrease.
func transcriptionTime(s *world.Sequence, transcription int64) int64 {
	all := s.Siblings[Recordings]
	i := transcribedRecording(s, transcription)
	at, until := all.CreationTime(i)+recordingLifecycle(all, i).SecondsPerStep[0], all.Newest
	if next := (transcription + 1) * perTranscription; next < all.SeededCount {
		until = all.CreationTime(next)
	}
	return min(at, until)
}

// TranscriptionsOf returns the condition for the transcriptions of a recording. There is at most one.
func TranscriptionsOf(_ *world.World, s *world.Sequence, recording int64) world.Condition {
	i := recording / perTranscription
	if i >= s.SeededCount || transcribedRecording(s, i) != recording {
		return matchNone
	}
	return world.Condition{Lo: i, Hi: i}
}

// secondsInStatus returns how many seconds a record stays in a status. It returns 0 if the record never has the status.
func secondsInStatus(l world.Progress, status string) int64 {
	step := slices.Index(l.Plan, status)
	if step < 0 {
		return 0
	}
	return l.SecondsPerStep[step]
}
