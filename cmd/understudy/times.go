// Times: what answers took, ours and upstream's, in the words of the faces.

package main

import (
	"time"

	"understudy/internal/diagnostics"
	"understudy/internal/viewer/page"
	"understudy/kit/onlinestat"
)

// times are those of a source's upstream, by kind and reason.
func (h *house) times(source string) []diagnostics.Times {
	each, _ := h.clients[source].Times()
	out := make([]diagnostics.Times, 0, len(each))
	for _, t := range each {
		out = append(out, diagnostics.Times{
			Kind: t.Kind, Reason: t.Reason.String(), Answers: t.Whole.Count, Lost: t.Lost, First: spread(t.First), Whole: spread(t.Whole),
		})
	}
	return out
}

// spread is a summary of seconds in milliseconds, to the microsecond.
func spread(s onlinestat.Summary) diagnostics.Spread {
	ms := func(seconds float64) float64 { return float64(int64(seconds*1e6+0.5)) / 1e3 }
	return diagnostics.Spread{
		Mean: ms(s.Mean), Deviation: ms(s.Deviation), Min: ms(s.Min), Max: ms(s.Max), Range: ms(s.Max - s.Min), P50: ms(s.P50), P99: ms(s.P99),
	}
}

// viewerTimes are our times, upstream's, and these by kind and reason.
func (h *house) viewerTimes(source string) (ours, theirs page.Times, each []page.Times) {
	list, all := h.clients[source].Times()
	for _, t := range list {
		out := viewerTime(t.Whole)
		out.Kind, out.Reason, out.Lost = t.Kind, t.Reason.String(), t.Lost
		each = append(each, out)
	}
	theirs = viewerTime(all.Whole)
	theirs.Lost = all.Lost
	return viewerTime(h.recent[source].stat.Stat().Summary()), theirs, each
}

func viewerTime(s onlinestat.Summary) page.Times {
	of := func(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
	return page.Times{Answers: s.Count, Mean: of(s.Mean), Deviation: of(s.Deviation), Min: of(s.Min), Max: of(s.Max), P50: of(s.P50), P99: of(s.P99)}
}
