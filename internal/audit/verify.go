// This file checks that the log is unchanged.

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

// Report is the result of verifying one chain.
type Report struct {
	Chain    string    `json:"chain"`
	First    uint64    `json:"first"`              // the number of the first line that was checked
	Last     uint64    `json:"last"`               // the number of the last line that was checked
	Signed   uint64    `json:"signed"`             // the number of lines up to the newest checkpoint
	SignedAt time.Time `json:"signed_at,omitzero"` // when the newest checkpoint was signed
	Faults   []string  `json:"faults,omitempty"`   // what is wrong with the chain, and where; empty if the chain is unchanged
}

// maxFaults is the maximum number of faults that are reported for a chain.
const maxFaults = 20

// maxUnsigned is the maximum number of consecutive lines without a checkpoint. It is many times the number of lines
// after which a checkpoint is due.
const maxUnsigned = 100 * entriesPerCheckpoint

// Verifier verifies a log. Keys are the public keys that may have signed it. Known are checkpoints that were stored
// outside the log. OnBytes is called with the size of each line after the line was read; nil means no calls.
type Verifier struct {
	Keys    []string
	Known   []Checkpoint
	OnBytes func(n int64)
}

// Verify checks the chains of a folder. heads is the file with the newest checkpoints. Verify finds changed lines,
// a replaced chain and a missing end, as far as checkpoints show them. Processes may write to the log at the same
// time. Verify returns only errors of the disk as an error; faults are in the reports.
func (v Verifier) Verify(dir, heads string) ([]Report, error) {
	known, err := readHeads(heads) // the checkpoints are read before the chains, so that no checkpoint is newer than its chain
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
	ids, err := ListChains(dir)
	if err != nil {
		return nil, err
	}
	all := v.begin()
	for _, id := range ids {
		r := all.getChain(id)
		for e, err := range (Reader{Dir: dir}).Lines(id, 0) {
			switch {
			case errors.Is(err, wal.ErrDamaged):
				r.addFault("%v", err)
			case err != nil:
				return nil, err
			default:
				r.checkLine(e.Data)
				v.report(e.Size())
			}
		}
	}
	if known, err = readHeads(heads); err != nil { // read again, because a chain may have got its first checkpoint in the meantime
		return nil, err
	}
	for id, r := range all.chains {
		if heads != "" && r.report.Signed > 0 && known[id] == nil && !elsewhere[id] {
			r.addFault("%s has no checkpoint of this chain, so the end of the chain may be missing", heads)
		}
	}
	return all.end(), nil
}

// VerifyLines checks lines that were exported or that a receiver has. It ignores repeated lines.
func (v Verifier) VerifyLines(from io.Reader) ([]Report, error) {
	all, lines := v.begin(), bufio.NewScanner(from)
	lines.Buffer(nil, segmentBytes)
	for n := 1; lines.Scan(); n++ {
		v.report(int64(len(lines.Bytes())) + 1) // Scan has removed the end of the line
		line := bytes.TrimSpace(lines.Bytes())
		var e struct{ Chain string }
		if err := json.Unmarshal(line, &e); err != nil || e.Chain == "" {
			all.getChain("").addFault("line %d is not a line of an audit log", n)
			continue
		}
		r := all.getChain(e.Chain)
		if r.seen == nil {
			r.seen = map[uint64][sha256.Size]byte{}
		}
		r.checkLine(line)
	}
	return all.end(), lines.Err()
}

// report calls OnBytes if it is set.
func (v Verifier) report(n int64) {
	if v.OnBytes != nil {
		v.OnBytes(n)
	}
}

// verification is one run of a verifier.
type verification struct {
	v      Verifier
	chains map[string]*chainCheck
	cuts   map[string]uint64 // the line number for each chain below which entries may be missing because they were removed
}

// chainCheck is the state of checking one chain.
type chainCheck struct {
	report         Report
	all            *verification
	head           [sha256.Size]byte
	lastCheckpoint uint64                       // the line number of the last valid checkpoint
	known          map[uint64]Checkpoint        // the checkpoints known from outside the log, by the number of lines that they sign
	unsigned       int                          // the number of lines since the last checkpoint
	seen           map[uint64][sha256.Size]byte // the hashes of the lines read so far, if lines may be repeated
}

func (v Verifier) begin() *verification {
	all := &verification{v: v, chains: map[string]*chainCheck{}, cuts: map[string]uint64{}}
	for _, c := range v.Known {
		all.getChain(c.Chain).known[c.Count] = c
	}
	return all
}

func (a *verification) getChain(id string) *chainCheck {
	r := a.chains[id]
	if r == nil {
		r = &chainCheck{report: Report{Chain: id}, all: a, known: map[uint64]Checkpoint{}}
		a.chains[id] = r
	}
	return r
}

func (r *chainCheck) addFault(format string, args ...any) {
	if len(r.report.Faults) < maxFaults {
		r.report.Faults = append(r.report.Faults, fmt.Sprintf(format, args...))
	}
}

// checkLine checks the next line of a chain.
func (r *chainCheck) checkLine(line []byte) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		r.addFault("entry %d cannot be read: %v", r.report.Last+1, err)
		return
	}
	sum := sha256.Sum256(line)
	switch {
	case r.seen[e.Number] == sum:
		return // the line is a repetition
	case e.Chain != r.report.Chain:
		r.addFault("entry %d belongs to another chain, %s", r.report.Last+1, e.Chain)
	case r.report.Last == 0:
		if r.report.First = e.Number; e.Number == 1 && e.Prev != hex.EncodeToString(r.head[:]) {
			r.addFault("entry 1 refers to an entry before it, so the beginning of the chain was changed")
		}
	case e.Number != r.report.Last+1:
		r.addFault("entry %d is followed by entry %d: entries are missing or out of order", r.report.Last, e.Number)
	case e.Prev != hex.EncodeToString(r.head[:]):
		r.addFault("entry %d was changed: entry %d contains another hash for it", r.report.Last, e.Number)
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
	if r.unsigned++; e.Checkpoint != nil {
		r.checkCheckpoint(e, *e.Checkpoint)
	}
	if r.unsigned == maxUnsigned {
		r.addFault("entries %d to %d have no checkpoint, so no signature proves them", r.lastCheckpoint+1, r.report.Last)
	}
}

func (r *chainCheck) checkCheckpoint(e Entry, c Checkpoint) {
	switch {
	case c.Chain != r.report.Chain || c.Count != e.Number-1 || c.Head != e.Prev:
		r.addFault("the checkpoint in entry %d does not match the entries before it", e.Number)
	case !c.isSigned():
		r.addFault("the checkpoint in entry %d has a wrong signature", e.Number)
	case !slices.Contains(r.all.v.Keys, c.Key):
		r.addFault("entry %d is signed with another key, %s; if this server used that key before, name it with --key", e.Number, c.Key)
	default:
		r.lastCheckpoint, r.report.Signed, r.report.SignedAt, r.unsigned = e.Number, c.Count, c.At, 0
	}
}

// compare checks that the chain matches a checkpoint that was stored outside the log.
func (r *chainCheck) compare(c Checkpoint) {
	switch {
	case !c.isSigned() || !slices.Contains(r.all.v.Keys, c.Key):
		r.addFault("the stored checkpoint of entry %d is not signed with a known key", c.Count)
	case c.Head != hex.EncodeToString(r.head[:]):
		r.addFault("the chain was rewritten: entry %d is not the entry that was signed on %s", c.Count, c.At.Format(time.RFC3339))
	default:
		if c.Count > r.report.Signed {
			r.report.Signed, r.report.SignedAt, r.unsigned = c.Count, c.At, 0
		}
	}
}

// end adds the faults of missing entries and returns the reports.
func (a *verification) end() []Report {
	var all []Report
	for _, id := range slices.Sorted(maps.Keys(a.chains)) {
		r := a.chains[id]
		if r.report.First > 1 && a.cuts[id] < r.report.First {
			r.addFault("the chain begins with entry %d, and the log does not say that earlier entries were removed because of their age",
				r.report.First)
		}
		for _, count := range slices.Sorted(maps.Keys(r.known)) {
			if c := r.known[count]; count > r.report.Last && (r.report.Last > 0 || a.cuts[id] <= count) {
				r.addFault("entries %d to %d, which were signed on %s, cannot be read: they are missing, or their bytes were changed",
					r.report.Last+1, count, c.At.Format(time.RFC3339))
			}
		}
		all = append(all, r.report)
	}
	return all
}

// maxCheckpoints is the maximum size of a file with checkpoints, in bytes.
const maxCheckpoints = 1 << 30

// ReadCheckpoints reads the checkpoints among the lines of a file. It returns an error if the file has no checkpoint.
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
		return nil, fmt.Errorf("audit: %s contains no checkpoint; name a file with lines of the log that were stored elsewhere", path)
	}
	return all, nil
}
