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
	Blank: func() world.Row { return new(conference) }, Shape: "conference",
	Seed: seedConferences,
	Life: conferenceLife,
	Filters: slices.Concat(
		world.ClockFilters("DateCreated", false, func(r *conference) int64 { return r.progress.Created }),
		world.ClockFilters("DateUpdated", false, func(r *conference) int64 { return r.progress.Updated() }),
		[]world.Filter{
			world.TextFilter("FriendlyName", func(r *conference) string { return r.name }),
			world.TextFilter("Status", func(r *conference) string { return r.progress.Status() }),
		},
	),
	Update: updateConference, Arrives: true,
}

// conference is one conference, read from the seed and its mark.
type conference struct {
	progress world.Progress
	s        *world.Sequence
	i        int64
	rest     fake.Rng // what only the row needs
	name     string
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

// Load reads the conference with an index.
func (c *conference) Load(_ *world.World, s *world.Sequence, i int64) {
	*c = conference{s: s, i: i, progress: s.Progress(i)}
	c.rest = fake.RngFor(s.Seed, tagRooms, i)
	c.name = rooms[c.rest.Below(len(rooms))]
}

// Values are the conference as its template shows it.
func (c *conference) Values(w *world.World) table.Values {
	d := c.rest
	region := "us1"
	if pick := d.Below(10); pick < 3 {
		region = [...]string{"ie1", "au1", "jp1"}[pick]
	}
	reason, ender := c.ending(w, &d)
	return table.Values{
		"created": c.progress.Created, "updated": c.progress.Updated(), "name": c.name, "status": c.progress.Status(), "region": region,
		"reason": reason, "ender": ender,
	}
}

// EndedViaAPI is why a conference ended that a request ended.
const EndedViaAPI = "conference-ended-via-api"

// ending is why the conference ended, and whose leaving ended it.
func (c *conference) ending(w *world.World, d *fake.Rng) (reason, call string) {
	who, why := d.Below(participantCount(c.s, c.i)), d.Below(100)
	switch given, set := c.s.Form(c.i, "Reason"); {
	case c.progress.Status() != "completed":
		return "", ""
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
	if i := participantCall(c.s, c.i, who); i >= 0 {
		call = w.SID(c.s.Among[Calls], i)
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
