// Recordings: what was said in calls and conferences, and how rows of them look.
package kinds

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// Recordings are the recordings of calls and conferences.
var Recordings = &world.Kind{
	Name: "recordings", Prefix: "RE", Tag: 'R',
	Blank: func() world.Row { return new(Recording) },
	Seed:  seedRecordings,
	Life:  recordingLife,
	Filters: slices.Concat(RecordingDates, []world.Filter{
		{Key: "CallSid", Read: ofFilter("CallSid")},
		{Key: "ConferenceSid", Read: ofFilter("ConferenceSid")},
		{Key: "IncludeSoftDeleted", Read: readBuried},
	}),
	Remove: true, Buries: true,
}

// RecordingDates are all that narrows the lists of one call or conference.
var RecordingDates = world.ClockFilters("DateCreated", false, func(r world.Row) int64 { return r.(*Recording).progress.Created })

// RecordingLook is one of the three ways a recording is shown.
type RecordingLook int

const (
	RecordingAlone RecordingLook = iota
	RecordingOfCall
	RecordingOfConference
)

// Recording is one recording, read from the seed, its mark and what it is of.
type Recording struct {
	progress world.Progress
	S        *world.Sequence
	i        int64
	of       subject
	end      int64 // of the call or conference, 0 while it goes on
	Status   string
	rest     fake.Rng // what only the row needs
	look     RecordingLook
	here     string // where this server is
}

var (
	recordingPlan = []string{"in-progress", "processing", "completed", "completed"}
	recordingLost = []string{"absent"}
)

// recordingLife is what a recording goes through.
func recordingLife(s *world.Sequence, i int64) world.Lifecycle {
	of := SubjectOf(s, i)
	d := fake.RngFor(s.Seed, s.Kind.Tag, i)
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

// Load reads the recording with an index. How it is shown stays as it was.
func (r *Recording) Load(w *world.World, s *world.Sequence, i int64) {
	*r = Recording{S: s, i: i, look: r.look, here: r.here, of: SubjectOf(s, i), progress: world.ProgressOf(s, i, recordingLife(s, i))}
	r.rest = fake.RngFor(s.Seed, tagRecorded<<8, i)
	if r.of.Conference >= 0 {
		var c conference
		c.Load(w, s.Among[Conferences], r.of.Conference)
		r.end = c.progress.Reached("completed")
	} else {
		var c Call
		c.Load(w, s.Among[Calls], r.of.Call)
		r.end = c.End
	}
	r.Status = r.state()
}

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
	if m := r.S.Marks[r.i]; m != nil {
		at = max(at, m.Touched)
	}
	return at
}

// price is for begun minutes, once the step after the final state is reached.
func (r *Recording) price() string {
	if !r.progress.Settled() || r.seconds() == 0 {
		return ""
	}
	return format.Money(250 * ((r.seconds() + 59) / 60))
}

func (r *Recording) source() string {
	d := r.rest
	d.Next() // the channels'
	if pick := d.Below(10); r.of.Conference >= 0 {
		return [...]string{"Conference", "StartConferenceRecordingAPI"}[pick%2]
	} else if pick < 4 {
		return "DialVerb"
	} else if pick < 9 {
		return [...]string{"RecordVerb", "OutboundAPI", "StartCallRecordingAPI"}[pick%3]
	}
	return "Trunking"
}

// Append writes the recording's row as the path it is read on shows it: the
// published documents have one shape for recordings alone, one below calls and
// one below conferences.
func (r *Recording) Append(dst []byte, w *world.World) []byte {
	account := format.Version + "/Accounts/" + w.AccountSID(r.S.Account)
	sid := string(w.AppendSID(nil, r.S, r.i))
	call, room := string(w.AppendSID(nil, r.S.Among[Calls], r.of.Call)), ""
	if r.of.Conference >= 0 {
		room = string(w.AppendSID(nil, r.S.Among[Conferences], r.of.Conference))
	}
	base := account + "/Recordings/" + sid

	o := format.Object{B: dst}
	o.Open()
	o.Text("account_sid", w.AccountSID(r.S.Account))
	o.Text("api_version", format.ApiVersion)
	o.Text("call_sid", call)
	o.Number("channels", r.channels())
	o.TextOrNull("conference_sid", room)
	o.Date("date_created", r.progress.Created)
	o.Date("date_updated", r.updated())
	o.TextOrNull("duration", someSeconds(r.seconds()))
	o.Null("encryption_details")
	o.Null("error_code")
	if r.look == RecordingAlone {
		o.Text("media_url", r.here+base)
	}
	o.Name("price")
	o.B = appendPrice(o.B, r.price(), r.look == RecordingOfCall)
	o.Text("price_unit", "USD")
	o.Text("sid", sid)
	o.Text("source", r.source())
	o.Date("start_time", r.of.Since)
	o.Text("status", r.Status)
	switch r.look {
	case RecordingAlone:
		o.Name("subresource_uris")
		o.Open()
		o.Text("add_on_results", base+"/AddOnResults.json")
		o.Text("transcriptions", base+"/Transcriptions.json")
		o.Close()
	case RecordingOfCall:
		o.Text("track", "both")
		base = account + "/Calls/" + call + "/Recordings/" + sid
	case RecordingOfConference:
		base = account + "/Conferences/" + room + "/Recordings/" + sid
	}
	o.Text("uri", base+".json")
	o.Close()
	return o.B
}

// someSeconds is a number of seconds, or nothing for 0.
func someSeconds(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// appendPrice appends a price as a number or as a string, or null for none.
func appendPrice(dst []byte, price string, number bool) []byte {
	switch {
	case price == "":
		return append(dst, "null"...)
	case number:
		return append(dst, price...)
	}
	return format.AppendText(dst, price)
}

// ofFilter asks for the recordings of a call or of a conference.
func ofFilter(name string) func(*world.Search, string) (world.Condition, *format.Refusal) {
	return func(x *world.Search, sid string) (world.Condition, *format.Refusal) {
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
func readBuried(x *world.Search, value string) (world.Condition, *format.Refusal) {
	c, r := world.TruthFilter(func(world.Row) bool { return true })(x, value)
	if r == nil {
		c.Test = func(world.Row) bool { return true }
		x.Buried = strings.EqualFold(value, "true")
	}
	return c, r
}

// Buried tells whether a query asks for what was deleted lately.
func Buried(q format.Query) bool {
	return strings.EqualFold(q.Given["IncludeSoftDeleted"].Value, "true")
}

// ShowRecording tells a recording how it looks on a path.
func ShowRecording(look RecordingLook) func(world.Row, string) {
	return func(r world.Row, here string) { one := r.(*Recording); one.look, one.here = look, here }
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
