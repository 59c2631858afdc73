// Conferences: rooms where several calls meet, and how a row of them looks.
package kinds

import (
	"net/http"
	"net/url"
	"slices"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Conferences are the conferences of an account.
var Conferences = &world.Kind{
	Name: "conferences", Prefix: "CF", Tag: 'F',
	Draw: drawConference, Shape: "conference",
	Seed: seedConferences,
	Life: conferenceLife,
	Filters: slices.Concat(
		world.ClockFilters("DateCreated", false, "created"),
		world.ClockFilters("DateUpdated", false, "updated"),
		[]world.Filter{world.TextFilter("FriendlyName", "name"), world.TextFilter("Status", "status")},
	),
	Update: updateConference, Arrives: true,
}

var conferencePlan = []string{"init", "in-progress", "completed"}

// conferenceLife is what a conference goes through. It lasts less than an hour.
func conferenceLife(s *world.Sequence, i int64) world.Lifecycle {
	d := s.Draw(i)
	return world.Lifecycle{Plan: conferencePlan, Dwell: [8]int64{int64(5 + d.Below(25)), int64(60 + min(d.Below(2900), d.Below(2900)))}}
}

var rooms = [...]string{
	"Weekly stand-up", "Support escalation", "Sales \"EMEA\"", "Übergabe Nacht", "All hands", "Café & Küche",
	"Interview", "On call <bridge>", "Room 4711", "取締役会", "Board", "غرفة الاجتماعات",
}

func drawConference(w *world.World, s *world.Sequence, i int64) table.Values {
	p, d, region := s.Progress(i), fake.RngFor(s.Seed, tagRooms, i), "us1"
	name := rooms[d.Below(len(rooms))]
	if pick := d.Below(10); pick < 3 {
		region = [...]string{"ie1", "au1", "jp1"}[pick]
	}
	v := table.Values{"created": p.Created, "updated": p.Updated(), "name": name, "status": p.Status(), "region": region}
	if p.Status() == "completed" {
		v["reason"], v["ender"] = conferenceEnd(w, s, i, &d)
	}
	return v
}

// EndedViaAPI is why a conference ended that a request ended.
const EndedViaAPI = "conference-ended-via-api"

// conferenceEnd returns why a conference ended, and whose leaving ended it.
func conferenceEnd(w *world.World, s *world.Sequence, i int64, d *fake.Rng) (reason, call string) {
	who, why := d.Below(participantCount(s, i)), d.Below(100)
	switch given, set := s.Form(i, "Reason"); {
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
		call = w.SID(s.Among[Calls], i)
	}
	return reason, call
}

// updateConference reads what POST to a conference asks for: to end it, or to
// say something to everybody in it, which no row shows.
func updateConference(_ *world.World, s *world.Sequence, i int64, form url.Values) (map[string]string, []string, *format.Refusal) {
	p := s.Progress(i)
	switch status := form.Get("Status"); {
	case status != "" && status != "completed":
		return nil, nil, format.Invalid("Status is not valid: " + status)
	case p.Status() == "completed":
		return nil, nil, format.Refuse(http.StatusBadRequest, 20001, "The conference is not in progress")
	case status == "completed":
		return map[string]string{"Reason": EndedViaAPI}, []string{"completed"}, nil
	}
	return nil, nil, nil
}
