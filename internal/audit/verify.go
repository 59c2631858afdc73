// Verify: whether the log is what was written.

package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"understudy/internal/smallfile"
	"understudy/kit/wal"
)

// Report is what verify found of one chain.
type Report struct {
	Chain       string
	First, Last uint64    // the lines that were looked at
	Signed      uint64    // lines up to the newest checkpoint
	SignedAt    time.Time // when it was signed
	Faults      []string  // what is wrong, and where; none: the chain is what was written
}

// mostFaults bounds the faults of one chain that are told.
const mostFaults = 20

// mostUnsigned is how many lines may follow one another without a checkpoint: many more
// than are written before one is due.
const mostUnsigned = 100 * signEvery

// Verifier verifies a log. Keys are the public keys that may have signed; Known are
// checkpoints that were kept elsewhere.
type Verifier struct {
	Keys  []string
	Known []Checkpoint
}

// Verify looks at the chains of a folder. heads is the file with the newest checkpoints.
// It finds lines that were changed, a chain that was written anew and an end that is
// missing, as far as a checkpoint tells of them. It may be called while the log is
// written. Errors are those of the disk alone.
func (v Verifier) Verify(dir, heads string) ([]Report, error) {
	known, err := readHeads(heads) // before the chains: none of them is ahead of its chain
	if err != nil {
		return nil, err
	}
	elsewhere := map[string]bool{}
	for _, c := range v.Known {
		elsewhere[c.Chain] = true
	}
	for _, c := range known {
		v.Known = append(v.Known, *c)
	}
	ids, err := Chains(dir)
	if err != nil {
		return nil, err
	}
	all := v.begin()
	for _, id := range ids {
		r := all.of(id)
		for e, err := range (Reader{Dir: dir}).Lines(id, 0) {
			switch {
			case errors.Is(err, wal.ErrDamaged):
				r.fault("%v", err)
			case err != nil:
				return nil, err
			default:
				r.line(e.Data)
			}
		}
	}
	if known, err = readHeads(heads); err != nil { // again: a chain may have its first by now
		return nil, err
	}
	for id, r := range all.chains {
		if heads != "" && r.report.Signed > 0 && known[id] == nil && !elsewhere[id] {
			r.fault("%s has no checkpoint of this chain, so that its end may be missing", heads)
		}
	}
	return all.end(), nil
}

// VerifyLines looks at lines that were exported, or sent elsewhere. A line that comes
// again does not count.
func (v Verifier) VerifyLines(from io.Reader) ([]Report, error) {
	all, lines := v.begin(), bufio.NewScanner(from)
	lines.Buffer(nil, segment)
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		var e struct{ Chain string }
		if err := json.Unmarshal(line, &e); err != nil || e.Chain == "" {
			all.of("").fault("line %d is no line of an audit log", n)
			continue
		}
		r := all.of(e.Chain)
		if r.seen == nil {
			r.seen = map[uint64][sha256.Size]byte{}
		}
		r.line(line)
	}
	return all.end(), lines.Err()
}

// verification is one run of a verifier.
type verification struct {
	v      Verifier
	chains map[string]*verified
	cuts   map[string]uint64 // the entries of a chain that may be gone
}

// verified is a chain on its way.
type verified struct {
	report  Report
	all     *verification
	head    [sha256.Size]byte
	marked  uint64                       // the last checkpoint that is one
	known   map[uint64]Checkpoint        // by their counts
	without int                          // lines without a checkpoint
	seen    map[uint64][sha256.Size]byte // the lines so far, where they may come again
}

func (v Verifier) begin() *verification {
	all := &verification{v: v, chains: map[string]*verified{}, cuts: map[string]uint64{}}
	for _, c := range v.Known {
		all.of(c.Chain).known[c.Count] = c
	}
	return all
}

func (a *verification) of(id string) *verified {
	r := a.chains[id]
	if r == nil {
		r = &verified{report: Report{Chain: id}, all: a, known: map[uint64]Checkpoint{}}
		a.chains[id] = r
	}
	return r
}

func (r *verified) fault(format string, args ...any) {
	if len(r.report.Faults) < mostFaults {
		r.report.Faults = append(r.report.Faults, fmt.Sprintf(format, args...))
	}
}

// line takes the next line of a chain.
func (r *verified) line(line []byte) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		r.fault("entry %d cannot be read: %v", r.report.Last+1, err)
		return
	}
	sum := sha256.Sum256(line)
	switch {
	case r.seen[e.Number] == sum:
		return // it comes again
	case e.Chain != r.report.Chain:
		r.fault("entry %d is of another chain, %s", r.report.Last+1, e.Chain)
	case r.report.Last == 0:
		if r.report.First = e.Number; e.Number == 1 && e.Prev != hex.EncodeToString(r.head[:]) {
			r.fault("entry 1 is not the first of a chain")
		}
	case e.Number != r.report.Last+1:
		r.fault("entry %d is followed by %d", r.report.Last, e.Number)
	case e.Prev != hex.EncodeToString(r.head[:]):
		r.fault("entry %d was changed: entry %d holds another hash of it", r.report.Last, e.Number)
	}
	r.head, r.report.Last = sum, e.Number
	if r.seen != nil {
		r.seen[e.Number] = sum
	}
	if c, ok := r.known[e.Number]; ok {
		r.compare(c)
	}
	if e.Cut != nil {
		r.all.cuts[e.Cut.Chain] = max(r.all.cuts[e.Cut.Chain], e.Cut.Before)
	}
	if r.without++; e.Checkpoint != nil {
		r.checkpoint(e, *e.Checkpoint)
	}
	if r.without == mostUnsigned {
		r.fault("entries %d to %d have no checkpoint", r.marked+1, r.report.Last)
	}
}

// checkpoint takes a checkpoint of the chain.
func (r *verified) checkpoint(e Entry, c Checkpoint) {
	switch {
	case c.Chain != r.report.Chain || c.Count != e.Number-1 || c.Head != e.Prev:
		r.fault("entry %d: its checkpoint is of something else", e.Number)
	case !c.signed():
		r.fault("entry %d: the signature is wrong", e.Number)
	case !slices.Contains(r.all.v.Keys, c.Key):
		r.fault("entry %d is signed by another key, %s; if it was in use, name it with --key", e.Number, c.Key)
	default:
		r.marked, r.report.Signed, r.report.SignedAt, r.without = e.Number, c.Count, c.At, 0
	}
}

// compare holds a checkpoint that was kept elsewhere against the chain.
func (r *verified) compare(c Checkpoint) {
	switch {
	case !c.signed() || !slices.Contains(r.all.v.Keys, c.Key):
		r.fault("a checkpoint that was kept of entry %d has no signature of a known key", c.Count)
	case c.Head != hex.EncodeToString(r.head[:]):
		r.fault("the chain was written anew: entry %d is not the one that was signed on %s", c.Count, c.At.Format(time.RFC3339))
	default:
		if c.Count > r.report.Signed {
			r.report.Signed, r.report.SignedAt, r.without = c.Count, c.At, 0
		}
	}
}

// end says what is missing.
func (a *verification) end() []Report {
	var all []Report
	for _, id := range slices.Sorted(maps.Keys(a.chains)) {
		r := a.chains[id]
		if r.report.First > 1 && a.cuts[id] < r.report.First {
			r.fault("the chain begins with entry %d, and nothing says that those before were too old", r.report.First)
		}
		for _, count := range slices.Sorted(maps.Keys(r.known)) {
			if c := r.known[count]; count > r.report.Last && (r.report.Last > 0 || a.cuts[id] <= count) {
				r.fault("entries %d to %d, which were signed on %s, cannot be read: they are missing, or their bytes were changed",
					r.report.Last+1, count, c.At.Format(time.RFC3339))
			}
		}
		all = append(all, r.report)
	}
	return all
}

// maxCheckpoints bounds a file with checkpoints, in bytes.
const maxCheckpoints = 1 << 30

// ReadCheckpoints reads the checkpoints among the lines of a file; none is an error.
func ReadCheckpoints(path string) (all []Checkpoint, err error) {
	data, err := smallfile.Read(path, maxCheckpoints)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var e Entry
		if json.Unmarshal(line, &e) == nil && e.Checkpoint != nil {
			all = append(all, *e.Checkpoint)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("audit: %s holds no checkpoint", path)
	}
	return all, nil
}
