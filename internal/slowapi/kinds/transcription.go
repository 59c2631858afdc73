// Transcriptions: what recordings say in words.
package kinds

import (
	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/world"
)

// Transcriptions are what recordings say in words.
var Transcriptions = &world.Kind{
	Name: "transcriptions", Prefix: "TR", Tag: 'T',
	Blank: func() world.Row { return new(transcription) },
	Seed:  seedTranscriptions,
	Life:  transcriptionLife, Remove: true,
}

// transcription is one transcription, read from the seed and its mark.
type transcription struct {
	progress world.Progress
	s        *world.Sequence
	i        int64
	of       Recording
}

var (
	transcriptionDone   = []string{"in-progress", "completed", "completed"}
	transcriptionFailed = []string{"in-progress", "failed"}
)

// transcriptionLife is what a transcription goes through.
func transcriptionLife(s *world.Sequence, i int64) world.Lifecycle {
	d := fake.RngFor(s.Seed, s.Kind.Tag, i)
	dwell := [8]int64{int64(10 + d.Below(80)), int64(5 + d.Below(55))}
	if d.Below(12) == 0 {
		return world.Lifecycle{Plan: transcriptionFailed, Dwell: dwell}
	}
	return world.Lifecycle{Plan: transcriptionDone, Dwell: dwell}
}

// Load reads the transcription with an index.
func (t *transcription) Load(w *world.World, s *world.Sequence, i int64) {
	*t = transcription{s: s, i: i, progress: world.ProgressOf(s, i, transcriptionLife(s, i))}
	t.of.Load(w, s.Among[Recordings], spokenIn(s, i))
}

// Append writes the transcription's row, which is its instance too. Its price
// is a number, unlike that of a recording.
func (t *transcription) Append(dst []byte, w *world.World) []byte {
	account := w.AccountSID(t.s.Account)
	sid := string(w.AppendSID(nil, t.s, t.i))
	text, price := "", ""
	if t.progress.Status() == "completed" {
		d := fake.RngFor(t.s.Seed, tagSpoken<<8, t.i)
		if text = fake.Body(d, false); text == "" {
			text = "(blank)" // Twilio's word for silence
		}
	}
	if t.progress.Settled() {
		price = format.Money(5000 * max((t.of.seconds()+59)/60, 1))
	}

	o := format.Object{B: dst}
	o.Open()
	o.Text("account_sid", account)
	o.Text("api_version", format.ApiVersion)
	o.Date("date_created", t.progress.Created)
	o.Date("date_updated", t.progress.Updated())
	o.TextOrNull("duration", someSeconds(t.of.seconds()))
	o.Name("price")
	o.B = appendPrice(o.B, price, true)
	o.Text("price_unit", "USD")
	o.Text("recording_sid", string(w.AppendSID(nil, t.of.S, t.of.i)))
	o.Text("sid", sid)
	o.Text("status", t.progress.Status())
	o.TextOrNull("transcription_text", text)
	o.Text("type", "fast")
	o.Text("uri", format.Version+"/Accounts/"+account+"/Transcriptions/"+sid+".json")
	o.Close()
	return o.B
}
