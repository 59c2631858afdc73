// How conferences, recordings and transcriptions lie among the calls the seed
// makes: each follows from calls, so nothing has to be remembered.
package kinds

import (
	"slices"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/world"
)

// Every twenty calls, counted from the newest backwards, are a block with one
// conference and four recordings, in this order of creation:
//
//	call  0..4        5..8            9      10..14             15..19
//	      one is      the conference         one is recorded    newest, some of
//	      recorded    and its two                               them going on
//	                  recordings
//
// The calls older than the first block have a recording for every five.
const (
	callsPerBlock      = 20
	recordingsPerBlock = 4
	perRecording       = 5 // calls one of which is recorded
)

// Tags of what is drawn here.
const (
	tagSeats    = 0x736561
	tagRooms    = 0x726f6f
	tagAnchors  = 0x616e63
	tagRecorded = 0x726563
	tagSpoken   = 0x73706f
)

// olderCalls is how many calls are older than the first block. s is the conferences.
func olderCalls(s *world.Sequence) int64 {
	return s.Siblings[Calls].SeededCount - callsPerBlock*s.SeededCount
}

// firstCall is the index of the first call of a conference's block.
func firstCall(s *world.Sequence, conference int64) int64 {
	return olderCalls(s) + callsPerBlock*conference
}

// anchor is the index of the call a conference the seed made begins with.
func anchor(s *world.Sequence, conference int64) int64 {
	d := fake.RngFor(s.Seed, tagAnchors, conference)
	return firstCall(s, conference) + 5 + int64(d.IntBelow(4))
}

// answered is when a call was answered in the world as the seed left it, 0
// when it was not.
func answered(calls *world.Sequence, i int64) int64 {
	p := calls.InitialProgress(i)
	return p.StatusTime("in-progress")
}

// subject is what a recording is of.
type subject struct {
	Call       int64 // the call, or the first one in the conference
	Conference int64 // -1 when it is of a call alone
	Since      int64 // when it began
	lost       bool  // it was not answered: there is nothing to hear
}

// SubjectOf finds what one of the recordings is of.
func SubjectOf(s *world.Sequence, i int64) subject {
	rooms := s.Siblings[Conferences]
	extra := s.SeededCount - recordingsPerBlock*rooms.SeededCount
	if i < extra {
		return recordedCall(s, perRecording*i)
	}
	room, part := (i-extra)/recordingsPerBlock, (i-extra)%recordingsPerBlock
	switch part {
	case 0:
		return recordedCall(s, firstCall(rooms, room))
	case 3:
		return recordedCall(s, firstCall(rooms, room)+10)
	}
	one := subject{Call: participantCall(rooms, room, 0), Conference: room, Since: rooms.CreationTime(room)}
	if part == 2 { // begun later, by hand
		d := fake.RngFor(s.Seed, tagRecorded, i)
		one.Since = min(one.Since+int64(d.IntBelow(50)), s.Siblings[Calls].CreationTime(anchor(rooms, room)+1))
	}
	return one
}

// recordedCall picks an answered one of the five calls from an index on. What is
// said to begin no later than the call after them, so that times never fall.
func recordedCall(s *world.Sequence, from int64) subject {
	all := s.Siblings[Calls]
	d := fake.RngFor(s.Seed, tagRecorded, from)
	first, until := int64(d.IntBelow(perRecording)), all.Newest
	if from+perRecording < all.SeededCount {
		until = all.CreationTime(from + perRecording)
	}
	for k := range int64(perRecording) {
		i := from + (first+k)%perRecording
		if at := answered(all, i); at != 0 {
			return subject{Call: i, Conference: -1, Since: min(at, until)}
		}
	}
	i := from + first
	return subject{Call: i, Conference: -1, Since: all.CreationTime(i), lost: true}
}

// nothing is a condition no record meets.
var nothing = world.Condition{Hi: -1}

// RecordingsOfCall are those of a call, alone or as the first in a conference.
func RecordingsOfCall(w *world.World, s *world.Sequence, call int64) world.Condition {
	rooms, c := s.Siblings[Conferences], world.Condition{Lo: call / perRecording, Hi: call / perRecording}
	extra := s.SeededCount - recordingsPerBlock*rooms.SeededCount
	switch block := (call - olderCalls(rooms)) / callsPerBlock; {
	case call >= s.Siblings[Calls].SeededCount:
		return nothing
	case call >= olderCalls(rooms):
		c.Lo = extra + recordingsPerBlock*block
		c.Hi = c.Lo + recordingsPerBlock - 1
	case c.Lo >= extra:
		return nothing
	}
	sid := w.SID(s.Siblings[Calls], call)
	c.Test = func(r *world.Row) bool { return r.Value("call") == sid }
	return c
}

// RecordingsOfConference are the two of a conference.
func RecordingsOfConference(_ *world.World, s *world.Sequence, room int64) world.Condition {
	rooms := s.Siblings[Conferences]
	if room >= rooms.SeededCount {
		return nothing
	}
	first := s.SeededCount - recordingsPerBlock*(rooms.SeededCount-room) + 1
	return world.Condition{Lo: first, Hi: first + 1}
}

// perTranscription is how many recordings there are for each transcription.
const perTranscription = 10

// spokenIn is the recording a transcription is of: one of ten, of a call.
func spokenIn(s *world.Sequence, transcription int64) int64 {
	all := s.Siblings[Recordings]
	from := transcription * perTranscription
	d := fake.RngFor(s.Seed, tagSpoken, transcription)
	first := int64(d.IntBelow(perTranscription))
	for k := range int64(perTranscription) {
		i := from + (first+k)%perTranscription
		if of := SubjectOf(all, i); of.Conference < 0 && !of.lost {
			return i
		}
	}
	return from + first
}

// spokenAt is when a transcription was made: when its recording ended, but not
// after the first recording that belongs to the next, so that times never fall.
func spokenAt(s *world.Sequence, transcription int64) int64 {
	all := s.Siblings[Recordings]
	i := spokenIn(s, transcription)
	at, until := all.CreationTime(i)+recordingLife(all, i).Dwell[0], all.Newest
	if next := (transcription + 1) * perTranscription; next < all.SeededCount {
		until = all.CreationTime(next)
	}
	return min(at, until)
}

// TranscriptionsOf is the one of a recording, if it has one.
func TranscriptionsOf(_ *world.World, s *world.Sequence, recording int64) world.Condition {
	i := recording / perTranscription
	if i >= s.SeededCount || spokenIn(s, i) != recording {
		return nothing
	}
	return world.Condition{Lo: i, Hi: i}
}

// lengthOf is how long the call talked in a state of a life the seed drew.
func lengthOf(l world.Progress, status string) int64 {
	step := slices.Index(l.Plan, status)
	if step < 0 {
		return 0
	}
	return l.Dwell[step]
}
