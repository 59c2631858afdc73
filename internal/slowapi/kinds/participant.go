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
	Blank: func() world.Row { return new(participant) }, Shape: "participant",
	Derive: deriveParticipants,
	Found:  findParticipant,
	Filters: []world.Filter{
		world.TruthFilter("Muted", func(r *participant) bool { return r.muted }),
		world.TruthFilter("Hold", func(r *participant) bool { return r.hold }),
		world.TruthFilter("Coaching", func(r *participant) bool { return r.coaching }),
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

// participant is one call in a conference.
type participant struct {
	s              *world.Sequence
	i              int64
	room           world.Progress // the conference's
	call           int64
	label          string
	joined, queued int64
	settings
	coached string // SID of the call it whispers to
	rest    fake.Rng
}

// settings are what a conference does with a participant.
type settings struct{ muted, hold, coaching, endOnExit bool }

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

// Load reads the participant of a seat.
func (p *participant) Load(w *world.World, s *world.Sequence, i int64) {
	rooms, room, seat := s.Among[Conferences], i/seats, int(i%seats)
	d := s.Draw(i)
	*p = participant{s: s, i: i, room: rooms.Progress(room), call: participantCall(rooms, room, seat)}
	p.joined = p.room.Created + int64(seat*(1+d.Below(20)))
	p.queued = int64(d.Below(3000))
	p.muted, p.hold, p.endOnExit = d.Below(4) == 0, d.Below(6) == 0, seat == 0 && d.Below(2) == 0
	if d.Below(3) == 0 {
		p.label = [...]string{"agent", "customer", "supervisor", "translator", "trainee"}[min(seat, 4)]
	}
	if seat > 0 && d.Below(5) == 0 {
		p.coaching, p.coached = true, w.SID(s.Among[Calls], participantCall(rooms, room, 0))
	}
	p.rest = d
	p.fromForm()
}

// fromForm takes what writes said.
func (p *participant) fromForm() {
	for name, into := range map[string]*bool{"Muted": &p.muted, "Hold": &p.hold, "Coaching": &p.coaching,
		"EndConferenceOnExit": &p.endOnExit} {
		if value, set := p.s.Form(p.i, name); set {
			*into = value == "true"
		}
	}
	if sid, set := p.s.Form(p.i, "CallSidToCoach"); set {
		p.coached = sid
	}
	if !p.coaching {
		p.coached = ""
	}
}

// status is connected for nearly everybody.
func (p *participant) status() string {
	d := p.rest
	switch pick := d.Below(12); {
	case p.room.Status() == "completed":
		return "complete"
	case p.i%seats > 1 && pick < 3:
		return [...]string{"queued", "connecting", "ringing"}[pick]
	}
	return "connected"
}

// Values are the participant as its template shows it.
func (p *participant) Values(w *world.World) table.Values {
	host := p.i%seats == 0 && p.room.Status() != "init" // the conference begins when the host comes
	updated := p.joined
	if host {
		updated = max(updated, p.room.Reached("in-progress"))
	}
	updated = max(updated, p.s.Touched(p.i))
	return table.Values{
		"call":       w.SID(p.s.Among[Calls], p.call),
		"conference": w.SID(p.s.Among[Conferences], p.i/seats),
		"joined":     p.joined, "updated": updated, "label": p.label, "host": host, "muted": p.muted, "hold": p.hold, "coaching": p.coaching,
		"coached": p.coached, "end_on_exit": p.endOnExit, "queue_time": strconv.FormatInt(p.queued, 10), "status": p.status(),
	}
}

// findParticipant finds who takes part in a conference by the SID of the call,
// or else by the label.
func findParticipant(w *world.World, s *world.Sequence, room int64, name string) (int64, bool) {
	call, bySID := w.Find(s.Among[Calls], name)
	var p participant
	for i := room * seats; i < (room+1)*seats; i++ {
		if !s.Exists(i) {
			continue
		}
		if p.Load(w, s, i); bySID && p.call == call || !bySID && p.label != "" && p.label == name {
			return i, true
		}
	}
	return 0, false
}

// updateParticipant reads what POST to a participant asks for.
func updateParticipant(w *world.World, s *world.Sequence, _ int64, form url.Values) (map[string]string, []string, *format.Refusal) {
	fields := map[string]string{}
	for _, name := range []string{"Muted", "Hold", "Coaching", "EndConferenceOnExit"} {
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
	return world.Condition{Test: func(r world.Row) bool { return r.(*participant).i/seats == room }, Lo: room * seats, Hi: (room+1)*seats - 1}
}
