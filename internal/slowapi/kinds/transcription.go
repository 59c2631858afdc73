// Transcriptions: what recordings say in words.
package kinds

import (
	"understudy/internal/slowapi/fake"
	"understudy/internal/slowapi/format"
	"understudy/internal/slowapi/table"
	"understudy/internal/slowapi/world"
)

// Transcriptions are what recordings say in words.
var Transcriptions = &world.Kind{
	Name: "transcriptions", Prefix: "TR", Tag: 'T',
	Blank: func() world.Row { return new(transcription) }, Shape: "transcription",
	Seed: seedTranscriptions,
	Life: transcriptionLife, Remove: true,
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
	d := s.Draw(i)
	dwell := [8]int64{int64(10 + d.Below(80)), int64(5 + d.Below(55))}
	if d.Below(12) == 0 {
		return world.Lifecycle{Plan: transcriptionFailed, Dwell: dwell}
	}
	return world.Lifecycle{Plan: transcriptionDone, Dwell: dwell}
}

// Load reads the transcription with an index.
func (t *transcription) Load(w *world.World, s *world.Sequence, i int64) {
	*t = transcription{s: s, i: i, progress: s.Progress(i)}
	t.of.Load(w, s.Among[Recordings], spokenIn(s, i))
}

// Values are the transcription as its template shows it. Its price is a number,
// unlike that of a recording.
func (t *transcription) Values(w *world.World) table.Values {
	v := table.Values{
		"created": t.progress.Created, "updated": t.progress.Updated(), "status": t.progress.Status(),
		"duration": someSeconds(t.of.seconds()), "recording": w.SID(t.of.S, t.of.i),
	}
	if t.progress.Status() == "completed" {
		d := fake.RngFor(t.s.Seed, tagSpoken<<8, t.i)
		if v["text"] = fake.Body(d, false); v["text"] == "" {
			v["text"] = "(blank)" // Twilio's word for silence
		}
	}
	if t.progress.Settled() {
		v["price"] = format.Money(5000 * max((t.of.seconds()+59)/60, 1))
	}
	return v
}
