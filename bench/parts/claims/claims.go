// Package claims is a part of the bench: what articles of 2009 to 2017 have measured, measured again beside our way.
// It writes docs/claims.md and its drawings.
package claims

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"understudy/bench/rig"
)

// claim is a sentence of an article, and the experiment that repeats it.
type claim struct {
	name    string // of its drawing and its heading
	systems string // numbers in docs/lineage.md
	says    string
	figure  string // what the article has measured
	measure func(ctx context.Context, r *rig.Run) (finding, error)
}

// verdict says what became of a claim.
type verdict string

const (
	holds    verdict = "holds"
	heldThen verdict = "held then"
	wrong    verdict = "wrong"
)

// finding is the result of an experiment.
type finding struct {
	ours    string // the figures of today, in words
	verdict verdict
	title   string // of the drawing, with the unit
	bars    []rig.Bar
	table   [][]string
	text    string // how it was measured, and why the result is what it is
}

// judge returns holds if the condition is true, else the other verdict.
func judge(condition bool, other verdict) verdict {
	if condition {
		return holds
	}
	return other
}

// all are the claims in the order of the page.
var all = []claim{
	queueOfReaders, channelStatistics, bufferedLog, logOutput, toURI, listingByOffsets, packedStrings, expectContinue,
	oneLoop, pipelining, shortIDs, moduleStreaming, eventsOrPolls, clearedDatabases, generatedMessages, fusedMultiplyAdd,
}

// missing are claims that no experiment repeats yet.
var missing = []string{
	"the libraries of ZeroMQ themselves beside each other (19, 20)",
}

// folder has the drawings, inside the folder of drawings.
const folder = "claims"

// Measure repeats all claims and writes their page.
func Measure(ctx context.Context, r *rig.Run) error {
	var found []finding
	for _, c := range all {
		r.Say("%s (%s)", c.says, c.systems)
		f, err := c.measure(ctx, r)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		r.Table(f.table)
		r.Say("%-9s %s", f.verdict, f.ours)
		r.Say("")
		found = append(found, f)
	}
	page, err := render(r, all, found)
	if err != nil {
		return err
	}
	r.Exactly("claims that were measured", len(found), len(all))
	if r.Drawings == "" || r.Quick {
		return nil
	}
	if err := os.RemoveAll(filepath.Join(r.Drawings, folder)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(r.Drawings, folder), 0o755); err != nil {
		return err
	}
	for i, c := range all {
		if err := r.Draw(filepath.Join(folder, c.name+".svg"), rig.DrawBars(found[i].title, found[i].bars)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(r.Drawings, "claims.md"), page, 0o644)
}

// heading returns the heading of a claim: its name with spaces.
func (c claim) heading() string {
	text := []rune(strings.ReplaceAll(c.name, "-", " "))
	text[0] = unicode.ToUpper(text[0])
	return string(text)
}
