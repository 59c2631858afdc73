// Options: what is typed, for every part.

package rig

import (
	"flag"
	"io"
	"time"
)

// Options are the flags that every part can read.
type Options struct {
	Bin      string        // the understudy binary
	Self     string        // the bench program, whose children measure inside
	Old, As  string        // a checkout whose program is compared with this one; name of the results
	Package  string        // a package of Go whose benchmarks are compared; "" = parts are
	Pattern  string        // of the names of these benchmarks
	Turn     bool          // a turn of a comparison: a ninth of the samples, fewer records
	Quick    bool          // a smoke of every part: the figures mean nothing
	Reader   time.Duration // how long the reader of the newest page reads
	Results  string        // folder of the results; "" = print only
	Drawings string        // folder of the drawings; "" = none
	Profile  string        // folder of the CPU profiles; "" = not kept
	Command  string        // what was typed, for the results
}

// NewFlags returns an empty set of flags that prints its help to out.
func NewFlags(name string, out io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(out)
	return fs
}
