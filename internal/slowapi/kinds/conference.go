// Conferences, and their participants, which are calls.
package kinds

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Conferences are the conferences of an account.
var Conferences = &world.Kind{
	Name: "conferences", Prefix: "CF", Tag: 'F',
	Generate: generateConference, Shape: "conference",
	Count:        func(w *world.World) int64 { return w.Records / callsPerBlock },
	CreationTime: func(s *world.Sequence, i int64) int64 { return s.Siblings[Calls].CreationTime(conferenceStart(s, i)) },
	Lifecycle:    conferenceLifecycle,
	Filters: slices.Concat(
		world.TimeFilters("DateCreated", false, "created"),
		world.TimeFilters("DateUpdated", false, "updated"),
		[]world.Filter{world.TextFilter("FriendlyName", "name"), world.TextFilter("Status", "status")},
	),
	Writes: world.Writes{Update: updateConference}, Arrives: true,
}

var conferencePlan = []string{"init", "in-progress", "completed"}

// conferenceLifecycle computes the statuses of a conference and how long they last. A conference lasts less than an hour.
func conferenceLifecycle(s *world.Sequence, i int64) world.Progress {
	d := s.Random(i)
	dwell := [8]int64{int64(5 + d.IntBelow(25)), int64(60 + min(d.IntBelow(2900), d.IntBelow(2900)))}
	return world.Progress{Plan: conferencePlan, SecondsPerStep: dwell}
}

var rooms = [...]string{
	"Weekly stand-up", "Support escalation", "Sales \"EMEA\"", "Übergabe Nacht", "All hands", "Café & Küche",
	"Interview", "On call <bridge>", "Room 4711", "取締役会", "Board", "غرفة الاجتماعات",
}

func generateConference(w *world.World, s *world.Sequence, i int64) table.Values {
	p, d, region := s.Progress(i), fake.RngFor(s.Seed, tagRooms, i), "us1"
	name := rooms[d.IntBelow(len(rooms))]
	if pick := d.IntBelow(10); pick < 3 {
		region = [...]string{"ie1", "au1", "jp1"}[pick]
	}
	v := table.Values{"created": p.Created, "updated": p.UpdateTime(), "name": name, "status": p.Status(), "region": region}
	if p.Status() == "completed" {
		v["reason"], v["ender"] = conferenceEnd(w, s, i, &d)
	}
	return v
}

// EndedViaAPI is the reason for the end of a conference that a request ended.
const EndedViaAPI = "conference-ended-via-api"

// conferenceEnd returns why a conference ended, and the SID of the call that ended it. The SID is "" if no call did.
func conferenceEnd(w *world.World, s *world.Sequence, i int64, d *fake.Rng) (reason, call string) {
	who, why := d.IntBelow(participantCount(s, i)), d.IntBelow(100)
	switch given, set := s.WrittenValue(i, "Reason"); {
	case set:
		return given, ""
	case why < 5:
		return EndedViaAPI, ""
	case why < 25:
		reason = "participant-with-end-conference-on-exit-left"
	case why < 30:
		reason = "participant-with-end-conference-on-exit-kicked"
	case why < 35:
		reason = "last-participant-kicked"
	default:
		reason = "last-participant-left"
	}
	if i := participantCall(s, i, who); i >= 0 {
		call = w.SID(s.Siblings[Calls], i)
	}
	return reason, call
}

// updateConference parses the form of a POST to a conference. Such a POST can end the conference. It can also make an
// announcement, which no record shows.
func updateConference(_ *world.World, s *world.Sequence, i int64, form url.Values) (map[string]string, []string, *format.Answer) {
	p := s.Progress(i)
	switch status := form.Get("Status"); {
	case status != "" && status != "completed":
		return nil, nil, format.NewInvalid("Status is not valid: " + status)
	case p.Status() == "completed":
		return nil, nil, format.Refuse(http.StatusBadRequest, 20001, "The conference is not in progress")
	case status == "completed":
		return map[string]string{"Reason": EndedViaAPI}, []string{"completed"}, nil
	}
	return nil, nil, nil
}

// Participants are the calls in conferences.
var Participants = &world.Kind{
	Name: "participants", Prefix: "CP", Tag: 'P', // its SID occurs only in page tokens
	Generate: generateParticipant, Shape: "participant",
	Owner: Conferences, SlotsPerOwner: seatsPerConference, IsUsed: isSeatTaken,
	Find: findParticipant,
	Filters: []world.Filter{
		world.BoolFilter("Muted", "muted"), world.BoolFilter("Hold", "hold"), world.BoolFilter("Coaching", "coaching"),
	},
	Writes: world.Writes{Update: updateParticipant, CanDelete: true},
}

// seatsPerConference is the number of indexes for participants that each conference has.
const seatsPerConference = 8

// participantFields are the fields of the form for a participant that are true or false, each with the name of its value.
var participantFields = [][2]string{{"Muted", "muted"}, {"Hold", "hold"}, {"Coaching", "coaching"}, {"EndConferenceOnExit", "end_on_exit"}}

// participantCount returns the number of participants of a conference, from 2 to 5.
func participantCount(s *world.Sequence, conference int64) int {
	d := fake.RngFor(s.Seed, tagSeats, conference)
	return 2 + d.IntBelow(4)
}

// participantCall returns the index of the call in a seat of a conference. It returns -1 if there is none. A seeded
// conference has answered calls of its own block, and if these are too few, other calls of the block. A conference
// that was created later has calls that were created just before it.
func participantCall(s *world.Sequence, conference int64, seat int) int64 {
	if conference >= s.SeededCount {
		before := s.Siblings[Calls].FirstSince(s.CreationTime(conference)) - 1
		return max(before-5*((conference-s.SeededCount)%100)-int64(seat), -1)
	}
	first, end := conferenceStart(s, conference), firstBlockCall(s, conference)+15
	left := seat
	for _, wanted := range []bool{true, false} {
		for i := first; i < end; i++ {
			if (answerTime(s.Siblings[Calls], i) != 0) != wanted {
				continue
			}
			if left--; left < 0 {
				return i
			}
		}
	}
	return -1
}

// isSeatTaken reports whether a seat has a participant. Seats of a completed conference have none, because Twilio's list is
// empty then (saintpete/logrole issue 4, and the connector of Airbyte). The quirk participants-kept changes that.
func isSeatTaken(w *world.World, s *world.Sequence, i int64) bool {
	rooms, room, seat := s.Siblings[Conferences], i/seatsPerConference, int(i%seatsPerConference)
	if !rooms.HasRecord(room) || seat >= participantCount(rooms, room) {
		return false
	}
	p := rooms.Progress(room)
	return (w.ParticipantsKept || p.Status() != "completed") && participantCall(rooms, room, seat) >= 0
}

// generateParticipant computes the values of the participant in a seat.
func generateParticipant(w *world.World, s *world.Sequence, i int64) table.Values {
	calls, rooms, room, seat := s.Siblings[Calls], s.Siblings[Conferences], i/seatsPerConference, int(i%seatsPerConference)
	d, p := s.Random(i), rooms.Progress(room)
	joined := p.Created + int64(seat*(1+d.IntBelow(20)))
	v := table.Values{
		"call": w.SID(calls, participantCall(rooms, room, seat)), "conference": w.SID(rooms, room), "joined": joined, "status": "connected",
		"queue_time": strconv.Itoa(d.IntBelow(3000)), "muted": d.IntBelow(4) == 0, "hold": d.IntBelow(6) == 0, "label": "",
		"end_on_exit": seat == 0 && d.IntBelow(2) == 0,
	}
	if d.IntBelow(3) == 0 {
		v["label"] = [...]string{"agent", "customer", "supervisor", "translator", "trainee"}[min(seat, 4)]
	}
	if v["coaching"] = seat > 0 && d.IntBelow(5) == 0; v["coaching"] == true {
		v["coached"] = w.SID(calls, participantCall(rooms, room, 0))
	}
	for _, field := range participantFields {
		if value, set := s.WrittenValue(i, field[0]); set {
			v[field[1]] = value == "true"
		}
	}
	if sid, set := s.WrittenValue(i, "CallSidToCoach"); set {
		v["coached"] = sid
	}
	if v["coaching"] == false {
		v["coached"] = nil
	}
	switch pick := d.IntBelow(12); {
	case p.Status() == "completed":
		v["status"] = "complete"
	case seat > 1 && pick < 3:
		v["status"] = [...]string{"queued", "connecting", "ringing"}[pick]
	}
	updated := max(joined, s.LastWrite(i))
	if v["host"] = seat == 0 && p.Status() != "init"; v["host"] == true { // the conference begins when its host joins
		updated = max(updated, p.StatusTime("in-progress"))
	}
	v["updated"] = updated
	return v
}

// findParticipant returns the index of a participant by the SID of its call, otherwise by its label.
func findParticipant(w *world.World, s *world.Sequence, room int64, name string) (int64, bool) {
	by := "label"
	if _, isCall := w.Find(s.Siblings[Calls], name); isCall {
		by = "call"
	}
	for i := room * seatsPerConference; i < (room+1)*seatsPerConference; i++ {
		if s.HasRecord(i) && generateParticipant(w, s, i)[by] == name {
			return i, true
		}
	}
	return 0, false
}

// updateParticipant parses the form of a POST to a participant.
func updateParticipant(w *world.World, s *world.Sequence, _ int64, form url.Values) (map[string]string, []string, *format.Answer) {
	fields := map[string]string{}
	for _, field := range participantFields {
		name := field[0]
		value := strings.ToLower(form.Get(name))
		if !form.Has(name) {
			continue
		}
		if value != "true" && value != "false" {
			return nil, nil, format.NewInvalid(name + " is not valid: " + form.Get(name))
		}
		fields[name] = value
	}
	if coached := form.Get("CallSidToCoach"); coached != "" {
		if _, known := w.Find(s.Siblings[Calls], coached); !known {
			return nil, nil, format.NewInvalid("CallSidToCoach is not valid: " + coached)
		}
		fields["CallSidToCoach"] = coached
	}
	return fields, nil, nil
}

// ParticipantsOf returns the condition for the participants of a conference.
func ParticipantsOf(_ *world.World, _ *world.Sequence, room int64) world.Condition {
	return world.Condition{Lo: room * seatsPerConference, Hi: (room+1)*seatsPerConference - 1}
}
