// Participants: the calls in a conference while it lasts.
package kinds

import (
	"net/url"
	"strconv"
	"strings"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Participants are the calls in conferences.
var Participants = &world.Kind{
	Name: "participants", Prefix: "CP", Tag: 'P', // its SID shows in page tokens only
	Draw: drawParticipant, Shape: "participant",
	Derive: deriveParticipants,
	Found:  findParticipant,
	Filters: []world.Filter{
		world.TruthFilter("Muted", "muted"), world.TruthFilter("Hold", "hold"), world.TruthFilter("Coaching", "coaching"),
	},
	Update: updateParticipant, Remove: true,
}

// seats is how many indexes each conference has for its participants.
const seats = 8

// deriveParticipants makes the participants of an account those of its conferences.
func deriveParticipants(w *world.World, s *world.Sequence) {
	s.Size = func() int64 { return seats * s.Among[Conferences].Count() }
	s.At = func(i int64) int64 { return s.Among[Conferences].Created(i / seats) }
	s.Has = func(i int64) bool { return seated(s, i, w.Kept) }
}

// participantFields are the fields of a participant that are true or false, each with the name of its value.
var participantFields = [][2]string{{"Muted", "muted"}, {"Hold", "hold"}, {"Coaching", "coaching"}, {"EndConferenceOnExit", "end_on_exit"}}

// participantCount is how many take part in a conference: 2 to 5.
func participantCount(s *world.Sequence, conference int64) int {
	d := fake.RngFor(s.Seed, tagSeats, conference)
	return 2 + d.Below(4)
}

// participantCall is the index of the call that took a seat in a conference, -1
// when there is none. The conferences of the seed hold answered calls of their
// own block, as far as there are enough; later ones those just before them.
func participantCall(s *world.Sequence, conference int64, seat int) int64 {
	if conference >= s.Base {
		before := s.Among[Calls].FirstSince(s.Created(conference)) - 1
		return max(before-5*((conference-s.Base)%100)-int64(seat), -1)
	}
	first, end := anchor(s, conference), firstCall(s, conference)+15
	left := seat
	for i := first; i < end; i++ {
		if answered(s.Among[Calls], i) == 0 {
			continue
		}
		if left--; left < 0 {
			return i
		}
	}
	for i := first; i < end; i++ {
		if answered(s.Among[Calls], i) != 0 {
			continue
		}
		if left--; left < 0 {
			return i
		}
	}
	return -1
}

// seated tells whether a seat is taken. None is when the conference is
// over: Twilio's list is empty then (saintpete/logrole issue 4, the connector
// of Airbyte); the quirk participants-kept changes that.
func seated(s *world.Sequence, i int64, kept bool) bool {
	rooms, room, seat := s.Among[Conferences], i/seats, int(i%seats)
	if !rooms.Exists(room) || seat >= participantCount(rooms, room) {
		return false
	}
	p := rooms.Progress(room)
	return (kept || p.Status() != "completed") && participantCall(rooms, room, seat) >= 0
}

// drawParticipant draws the participant of a seat.
func drawParticipant(w *world.World, s *world.Sequence, i int64) table.Values {
	calls, rooms, room, seat := s.Among[Calls], s.Among[Conferences], i/seats, int(i%seats)
	d, p := s.Draw(i), rooms.Progress(room)
	joined := p.Created + int64(seat*(1+d.Below(20)))
	v := table.Values{
		"call": w.SID(calls, participantCall(rooms, room, seat)), "conference": w.SID(rooms, room), "joined": joined, "status": "connected",
		"queue_time": strconv.Itoa(d.Below(3000)), "muted": d.Below(4) == 0, "hold": d.Below(6) == 0, "label": "",
		"end_on_exit": seat == 0 && d.Below(2) == 0,
	}
	if d.Below(3) == 0 {
		v["label"] = [...]string{"agent", "customer", "supervisor", "translator", "trainee"}[min(seat, 4)]
	}
	if v["coaching"] = seat > 0 && d.Below(5) == 0; v["coaching"] == true {
		v["coached"] = w.SID(calls, participantCall(rooms, room, 0))
	}
	for _, field := range participantFields {
		if value, set := s.Form(i, field[0]); set {
			v[field[1]] = value == "true"
		}
	}
	if sid, set := s.Form(i, "CallSidToCoach"); set {
		v["coached"] = sid
	}
	if v["coaching"] == false {
		v["coached"] = nil
	}
	switch pick := d.Below(12); {
	case p.Status() == "completed":
		v["status"] = "complete"
	case seat > 1 && pick < 3:
		v["status"] = [...]string{"queued", "connecting", "ringing"}[pick]
	}
	updated := max(joined, s.Touched(i))
	if v["host"] = seat == 0 && p.Status() != "init"; v["host"] == true { // the conference begins when the host comes
		updated = max(updated, p.Reached("in-progress"))
	}
	v["updated"] = updated
	return v
}

// findParticipant finds who takes part in a conference by the SID of the call,
// or else by the label.
func findParticipant(w *world.World, s *world.Sequence, room int64, name string) (int64, bool) {
	by := "label"
	if _, isCall := w.Find(s.Among[Calls], name); isCall {
		by = "call"
	}
	for i := room * seats; i < (room+1)*seats; i++ {
		if s.Exists(i) && drawParticipant(w, s, i)[by] == name {
			return i, true
		}
	}
	return 0, false
}

// updateParticipant reads what POST to a participant asks for.
func updateParticipant(w *world.World, s *world.Sequence, _ int64, form url.Values) (map[string]string, []string, *format.Refusal) {
	fields := map[string]string{}
	for _, field := range participantFields {
		name := field[0]
		value := strings.ToLower(form.Get(name))
		if !form.Has(name) {
			continue
		}
		if value != "true" && value != "false" {
			return nil, nil, format.Invalid(name + " is not valid: " + form.Get(name))
		}
		fields[name] = value
	}
	if coached := form.Get("CallSidToCoach"); coached != "" {
		if _, known := w.Find(s.Among[Calls], coached); !known {
			return nil, nil, format.Invalid("CallSidToCoach is not valid: " + coached)
		}
		fields["CallSidToCoach"] = coached
	}
	return fields, nil, nil
}

// ParticipantsOf are the seats of a conference.
func ParticipantsOf(_ *world.World, _ *world.Sequence, room int64) world.Condition {
	return world.Condition{Lo: room * seats, Hi: (room+1)*seats - 1}
}
