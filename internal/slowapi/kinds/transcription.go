// Transcriptions: what recordings say in words.
package kinds

import (
	"cmp"

	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Transcriptions are what recordings say in words.
var Transcriptions = &world.Kind{
	Name: "transcriptions", Prefix: "TR", Tag: 'T',
	Draw: drawTranscription, Shape: "transcription",
	Seed: seedTranscriptions,
	Life: transcriptionLife, Remove: true,
}

var (
	transcriptionDone   = []string{"in-progress", "completed", "completed"}
	transcriptionFailed = []string{"in-progress", "failed"}
)

// transcriptionLife is what a transcription goes through.
func transcriptionLife(s *world.Sequence, i int64) world.Lifecycle {
	d := s.Draw(i)
	dwell := [8]int64{int64(10 + d.Below(80)), int64(5 + d.Below(55))}
	if d.Below(12) == 0 {
		return world.Lifecycle{Plan: transcriptionFailed, Dwell: dwell}
	}
	return world.Lifecycle{Plan: transcriptionDone, Dwell: dwell}
}

// drawTranscription draws a transcription. Its price is a number, unlike that of a recording.
func drawTranscription(w *world.World, s *world.Sequence, i int64) table.Values {
	p, of := s.Progress(i), new(Recording)
	of.Load(w, s.Among[Recordings], spokenIn(s, i))
	v := table.Values{
		"created": p.Created, "updated": p.Updated(), "status": p.Status(), "duration": someSeconds(of.seconds()), "recording": w.SID(of.S, of.i),
	}
	if p.Status() == "completed" {
		v["text"] = cmp.Or(fake.Body(fake.RngFor(s.Seed, tagSpoken<<8, i), false), "(blank)") // Twilio's word for silence
	}
	if p.Settled() {
		v["price"] = format.Money(5000 * max((of.seconds()+59)/60, 1))
	}
	return v
}
