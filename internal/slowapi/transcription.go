// Transcriptions: what recordings say in words.
package slowapi

import (
	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
)

var transcriptions = &kind{
	name: "transcriptions", prefix: "TR", tag: 'T',
	blank: func() row { return new(transcription) },
	seed:  seedTranscriptions,
	life:  transcriptionLife, remove: true,
}

// transcription is one transcription, read from the seed and its mark.
type transcription struct {
	progress progress
	s        *sequence
	i        int64
	of       recording
}

var (
	transcriptionDone   = []string{"in-progress", "completed", "completed"}
	transcriptionFailed = []string{"in-progress", "failed"}
)

// transcriptionLife is what a transcription goes through.
func transcriptionLife(s *sequence, i int64) lifecycle {
	d := fake.RngFor(s.seed, s.kind.tag, i)
	dwell := [8]int64{int64(10 + d.Below(80)), int64(5 + d.Below(55))}
	if d.Below(12) == 0 {
		return lifecycle{plan: transcriptionFailed, dwell: dwell}
	}
	return lifecycle{plan: transcriptionDone, dwell: dwell}
}

// load reads the transcription with an index.
func (t *transcription) Load(w *world, s *sequence, i int64) {
	*t = transcription{s: s, i: i, progress: progressOf(s, i, transcriptionLife(s, i))}
	t.of.Load(w, s.among[recordings], spokenIn(s, i))
}

// append writes the transcription's row, which is its instance too. Its price
// is a number, unlike that of a recording.
func (t *transcription) Append(dst []byte, w *world) []byte {
	account := w.accountSID(t.s.account)
	sid := string(w.appendSID(nil, t.s, t.i))
	text, price := "", ""
	if t.progress.status() == "completed" {
		d := fake.RngFor(t.s.seed, tagSpoken<<8, t.i)
		if text = fake.Body(d, false); text == "" {
			text = "(blank)" // Twilio's word for silence
		}
	}
	if t.progress.settled() {
		price = format.Money(5000 * max((t.of.seconds()+59)/60, 1))
	}

	o := format.Object{B: dst}
	o.Open()
	o.Text("account_sid", account)
	o.Text("api_version", format.ApiVersion)
	o.Date("date_created", t.progress.created)
	o.Date("date_updated", t.progress.updated())
	o.TextOrNull("duration", someSeconds(t.of.seconds()))
	o.Name("price")
	o.B = appendPrice(o.B, price, true)
	o.Text("price_unit", "USD")
	o.Text("recording_sid", string(w.appendSID(nil, t.of.s, t.of.i)))
	o.Text("sid", sid)
	o.Text("status", t.progress.status())
	o.TextOrNull("transcription_text", text)
	o.Text("type", "fast")
	o.Text("uri", format.Version+"/Accounts/"+account+"/Transcriptions/"+sid+".json")
	o.Close()
	return o.B
}
